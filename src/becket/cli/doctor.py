"""`becket doctor`: what is wrong, and the command that mends it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from becket.cli.paper import emit, say
from becket.cli.plain import Paint, line, safe
from becket.cli.shape import AsJson, end

if TYPE_CHECKING:
    from becket.app.doctor import Diagnosis


def doctor(as_json: AsJson = False) -> None:
    """Check machine, repository and configuration; say how to mend them."""
    from becket.app.doctor import examine, exit_code, to_json

    found = examine(Path.cwd())
    if as_json:
        emit(to_json(found))
    else:
        for item in found:
            _say(item)
    end(exit_code(found))


def _say(item: Diagnosis) -> None:
    paint = Paint()
    mark = {"ok": paint.green("ok   "), "warn": paint.yellow("warn "), "error": paint.red("ERROR")}[item.level.value]
    where = f"  {paint.dim(line(item.where, 200))}" if item.where and item.level.value != "ok" else ""
    say(f"{mark} {item.name.ljust(10)} {line(item.what, 400)}{where}")
    if item.mend:
        say(f"{' ' * 17}{paint.bold(safe(item.mend))}")
