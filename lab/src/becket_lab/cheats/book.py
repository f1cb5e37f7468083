"""Every case, by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NoReturn

from becket.kernel.contract.errors import NotFound
from becket_lab.cheats import deeds_beside, deeds_code, deeds_machine, deeds_repairs, deeds_tests
from becket_lab.cheats.case import Case
from becket_lab.cheats.deeds_generated import made_again

CASES: tuple[Case, ...] = (
    *deeds_tests.BOOK,
    *deeds_machine.BOOK,
    *deeds_code.BOOK,
    *deeds_repairs.BOOK,
    *deeds_beside.BOOK,
)


def find(names: tuple[str, ...]) -> tuple[Case, ...]:
    """The cases of these names, generated ones among them, or all that are listed. Raises NotFound with near names."""
    known = {case.name: case for case in CASES}
    return tuple(known.get(name) or made_again(name) or _missing(name, known) for name in names) or CASES


def _missing(name: str, known: Mapping[str, Case]) -> NoReturn:
    near = difflib.get_close_matches(name, known, 3)
    raise NotFound(f"no case is called {name!r}; near are {', '.join(near) or 'none'}")
