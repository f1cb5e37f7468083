"""Generated cheats as cases of the heal loop."""

from __future__ import annotations

import re

from becket_lab.cheats.case import By, Case, Caught, Kind
from becket_lab.cheats.field import ROUNDING
from becket_lab.cheats.generated.generate import Generated, generate, generate_constants
from becket_lab.cheats.hand import Hand

ANY_REASON = tuple(Caught(by) for by in (By.guard, By.crossing, By.gate, By.reading))
CONSTANTS_SHARE = 6
"""One in so many is a cheat without any power."""
_MADE = re.compile(r"-(\d+)-(\d+)$")


def put_together(hand: Hand) -> None:
    """Write what was made for this case."""
    hand.put_together()


def generated_cases(seed: int, count: int) -> tuple[Case, ...]:
    """So many in all, repeatable by the seed."""
    constants = count // CONSTANTS_SHARE
    return tuple(map(case_of, (*generate(seed, count - constants), *generate_constants(seed, constants))))


def case_of(made: Generated) -> Case:
    about = f"{made.power or 'answers instead of work'}, put together by a seed"
    files = {path: content.decode() for path, content in made.files.items()}
    return Case(made.name, Kind.cheat, about, put_together, ROUNDING[made.field], ANY_REASON, files=files)


def made_again(name: str) -> Case | None:
    """The generated case of this name, which holds its seed and its number."""
    if (found := _MADE.search(name)) is None:
        return None
    seed, number = int(found[1]), int(found[2])
    maker = generate_constants if "-constants-" in name else generate
    made = maker(seed, number + 1)[number] if number < 10_000 else None
    return case_of(made) if made is not None and made.name == name else None
