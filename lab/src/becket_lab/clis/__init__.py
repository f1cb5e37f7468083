"""Fake codex, claude and gemini programs: they talk to a real model server and behave like the versions we test.

    install(folder)  # then put the folder in front of PATH

Each is one file that needs only Python's standard library.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PROGRAMS = ("codex", "claude", "gemini")

_OURS = re.compile(r"^from becket_lab\.clis\.(\w+) import (?:\([^)]*\)|[^\n]*)\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"


def install(folder: Path) -> None:
    """Write the three programs, executable, into the folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PROGRAMS:
        program = folder / name
        program.write_text(source(name))
        program.chmod(0o755)


def source(name: str) -> str:
    """One program's whole text, with the modules that it shares inside."""
    # The interpreter itself, not a virtual environment's link: a sandbox may show only the former.
    interpreter = Path(sys.executable).resolve()
    return f"#!{interpreter} -IS\n{_FUTURE}" + "".join(_gathered(name, set()))


def _gathered(name: str, seen: set[str]) -> list[str]:
    """The texts of the modules in an order in which each comes after those that it imports."""
    if name in seen:
        return []
    seen.add(name)
    text = (Path(__file__).parent / f"{name}.py").read_text()
    before = [part for found in _OURS.findall(text) for part in _gathered(found, seen)]
    return [*before, _OURS.sub("", text).replace(_FUTURE, "")]
