"""What every bench prints: a table of figures, each with its bar where it has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One line of the table. `bar` is what the ratio or figure must not pass."""

    what: str
    figure: str
    against: str = ""
    bar: str = ""
    ok: bool | None = None


def show(rows: Sequence[Row], *, check: bool) -> int:
    """Print them; the exit code is 1 if a bar is missed and `check` asks for that."""
    for row in rows:
        mark = {None: "", True: "met", False: "MISSED"}[row.ok]
        print(f"{row.what:48}{row.figure:>18}   {row.against:32}{row.bar:12}{mark}")
    return 1 if check and any(row.ok is False for row in rows) else 0
