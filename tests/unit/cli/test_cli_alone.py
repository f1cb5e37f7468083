"""Every verb is found by an interpreter that has imported nothing else: no module leans on what another one loaded."""

from __future__ import annotations

import subprocess
import sys

from becket.cli.verbs import all_verbs

EACH_IN_A_FORK = """
import os, sys
from importlib import import_module
for name in sys.argv[1:]:
    if not (pid := os.fork()):
        import_module(name)
        os._exit(0)
    if os.waitpid(pid, 0)[1]:
        print(name)
"""


def test_each_verb_can_be_imported_alone() -> None:
    targets = {target for verb in all_verbs() for target in (verb.target, verb.quick) if target}
    names = sorted({target.partition(":")[0] for target in targets})
    command = [sys.executable, "-c", EACH_IN_A_FORK, *names]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
