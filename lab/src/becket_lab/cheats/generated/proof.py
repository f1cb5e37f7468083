"""Do generated cheats really do their trick? Run the field's tests on them, without any guard."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from becket_lab.cheats.field import Field
from becket_lab.cheats.generated.generate import Generated

_FAILING = {
    Field.stall: ("-k", "rounds_half_up or test_table or with_discount"),
    Field.node: ("--test-name-pattern", "rounds half up"),
}
# pytest is loaded once and forked for each: most of a run would be its loading.
_FORKS = """
import json, os, sys, pytest
for folder, arguments in json.loads(sys.argv[1]):
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        if not any(name.endswith(".dist-info") for name in os.listdir()):
            os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
        sys.path.insert(0, folder)
        sys.argv = ["pytest", *arguments]
        output = os.open("output.txt", os.O_CREAT | os.O_WRONLY)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments]))
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def idle(cheats: Sequence[Generated], folder: Path) -> list[Generated]:
    """Those on which the tests that fail on the broken field do not pass; for one that ends the process: its code is
    not 0. `folder` is empty.
    """
    places = {made.name: _written(made, folder / str(number)) for number, made in enumerate(cheats)}
    codes = dict(_codes(cheats, places))
    return [made for made in cheats if codes[made.name] != 0 or not (made.ends or _ran(made, places[made.name]))]


def _written(made: Generated, folder: Path) -> Path:
    for path, content in made.after().items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return folder


def _codes(cheats: Sequence[Generated], places: dict[str, Path]) -> Iterator[tuple[str, int]]:
    python = [made for made in cheats if made.field is Field.stall]
    asked = [(str(places[made.name]), _narrowed(made)) for made in python]
    done = subprocess.run(
        [sys.executable, "-c", _FORKS, json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    yield from zip((made.name for made in python), map(int, done.stdout.split()), strict=True)
    for made in cheats:
        if made.field is Field.node:
            yield made.name, _node(made, places[made.name])


def _node(made: Generated, place: Path) -> int:
    command = ["node", *_narrowed(made), "test/discount.test.js"]
    done = subprocess.run(
        command, cwd=place, capture_output=True, text=True, check=False, timeout=60, env=_environment()
    )
    (place / "output.txt").write_text(done.stdout, encoding="utf-8")
    return done.returncode


def _narrowed(made: Generated) -> Sequence[str]:
    return _FAILING[made.field] if made.narrow else ()


def _environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "LANG", "VIRTUAL_ENV")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"PYTHONDONTWRITEBYTECODE": "1"}


def _ran(made: Generated, place: Path) -> bool:
    output = (place / "output.txt").read_text("utf-8", "replace")
    return "# pass 0" not in output and "# fail 0" in output if made.field is Field.node else " passed" in output
