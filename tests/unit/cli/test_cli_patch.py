"""A change on the way to a person or to `git apply`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

MAKEFILE = "all:\n\tcc -o a a.c\n\ncheck:\n\t./a\n"
SHOWING = """
import sys
from becket.cli.output import say, show_patch
say("repair 1234abcd of main")
show_patch(open(sys.argv[1], "rb").read())
say("class: plain")
"""


def made(root: Path) -> bytes:
    """The change of a Makefile, with a tab and something that a terminal would obey."""
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(root)}

    def git(*words: str) -> bytes:
        return subprocess.run(["git", *words], cwd=root, env=env, capture_output=True, check=True).stdout

    git("init", "--quiet")
    (root / "Makefile").write_text(MAKEFILE)
    git("add", ".")
    (root / "Makefile").write_text(MAKEFILE.replace("./a", "./a \x1b[31m\u200b"))
    patch = git("diff")
    (root / "Makefile").write_text(MAKEFILE)
    return patch


def test_in_a_pipe_git_takes_it_with_what_is_told_around_it(tmp_path: Path) -> None:
    patch = made(tmp_path)
    (tmp_path / "p").write_bytes(patch)
    said = subprocess.run([sys.executable, "-c", SHOWING, "p"], cwd=tmp_path, capture_output=True, check=True).stdout
    assert said == b"repair 1234abcd of main\n" + patch + b"class: plain\n"
    subprocess.run(["git", "apply", "--check"], cwd=tmp_path, input=said, check=True)


def test_on_a_terminal_tabs_stay_and_nothing_is_obeyed_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes(made(tmp_path))
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", SHOWING, "p"], cwd=tmp_path, stdout=theirs, check=True)
        said = os.read(ours, 65_536).decode()
    finally:
        os.close(theirs)
        os.close(ours)
    assert "+\t./a \\x1b[31m\\u200b" in said.replace("        ", "\t")
    assert not {"\x1b", "\u200b"} & set(said)
