"""Every case, by name."""

from __future__ import annotations

import difflib

from becket.contract.errors import NotFound
from becket.testing.cheats import deeds_beside, deeds_code, deeds_machine, deeds_repairs, deeds_tests
from becket.testing.cheats.case import Case

CASES: tuple[Case, ...] = (
    *deeds_tests.BOOK,
    *deeds_machine.BOOK,
    *deeds_code.BOOK,
    *deeds_repairs.BOOK,
    *deeds_beside.BOOK,
)


def find(names: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of these names, or all. Raises NotFound with names that are near."""
    if not names:
        return CASES
    known = {case.name: case for case in CASES}
    unknown = [name for name in names if name not in known]
    if unknown:
        near = difflib.get_close_matches(unknown[0], known, 3)
        raise NotFound(f"no case is called {unknown[0]!r}; near are {', '.join(near) or 'none'}")
    return tuple(known[name] for name in names)
