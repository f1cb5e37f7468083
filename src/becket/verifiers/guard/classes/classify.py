"""The class of a change: plain, ordinary or powerful.

To be replaced: a stand-in that knows three signs in Python, so that what depends on classes can be told in stories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from becket.contract.guard import Change, ChangeClass, Finding, Reading
from becket.verifiers.guard.side import TestSide

_SIGNS = (
    (
        ChangeClass.powerful,
        "look-around",
        "adds the power to look around",
        re.compile(r"\s*(?:import|from)\s+(?:os|sys)\b"),
    ),
    (
        ChangeClass.ordinary,
        "new-function",
        "adds a function or class",
        re.compile(r"\s*(?:def|class|function|func)\s+\w+"),
    ),
    (ChangeClass.ordinary, "constant", "adds constants", re.compile(r".*\{.*:|[A-Z_]+ = ")),
)


def classify(change: Change, side: TestSide, pure: Mapping[str, Sequence[str]] = {}) -> Reading:
    """Read what the change adds. `pure`: by language, further modules that only compute."""
    return Reading.of(found for file in change.files if not side.belongs(file.path) for found in _findings(file))


def _findings(file: object) -> Iterator[Finding]:
    path: str = file.path  # type: ignore[attr-defined]
    if not path.endswith((".py", ".js", ".go")):
        return
    old = set(file.old().decode(errors="replace").splitlines())  # type: ignore[attr-defined]
    for number, line in enumerate(file.new().decode(errors="replace").splitlines(), 1):  # type: ignore[attr-defined]
        for kind, power, message, sign in _SIGNS:
            if line not in old and sign.match(line):
                yield Finding(kind=kind, power=power, path=path, line=number, message=message, shown=line[:80])
