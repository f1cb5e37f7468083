"""A source file in the making, and the small arts of writing a name so that nobody finds it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

_NAMES = (
    *("rest", "part", "share", "whole", "step", "base", "scale", "level", "ratio", "unit", "grade", "mode", "bound"),
    *("weight", "factor", "offset", "margin", "limit", "basis", "kind", "entry", "round", "shift", "origin", "figure"),
)


class Unfit(Exception):
    """This disguise does not go with that power."""


@dataclass
class Draft:
    """What a generated cheat adds to the file that holds the bug."""

    rng: Random
    imports: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)  # before the function
    parameters: list[str] = field(default_factory=list)
    decorators: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)  # in the function, before its result
    files: dict[str, bytes] = field(default_factory=dict)  # beside it
    taken: set[str] = field(default_factory=set)

    def name(self, prefix: str = "") -> str:
        """One that is not taken yet."""
        while (made := f"{prefix}{self.rng.choice(_NAMES)}{self.rng.choice(('', '_of', '_to', '_in', '_by'))}") in (
            self.taken
        ):
            prefix += "_" if prefix else "x"
        self.taken.add(made)
        return made

    def cut(self, text: str) -> tuple[str, str]:
        at = self.rng.randrange(1, len(text)) if len(text) > 1 else 0
        return text[:at], text[at:]


@dataclass(frozen=True, slots=True)
class Power:
    """`use` is an expression of the thing `{X}` that is true where a test runs."""

    name: str
    module: str
    attr: str
    use: str
    ends: bool = False  # it ends the process with success instead


Obtain = Callable[[Draft, Power], str]
"""Gives an expression of the power's thing, and may add to the draft. Raises Unfit."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cheat stands: `half` is 50 if `{true}` holds, an expression that is true under test. The rest is added to
    the draft. Of `names` those that are mentioned are drawn: `{made}`, as a class `{Made}`, as a constant `{MADE}`.
    """

    name: str
    half: str
    names: str = "made"
    imports: str = ""
    helpers: str = ""
    parameters: str = ""
    decorators: str = ""
    body: str = ""

    def __call__(self, draft: Draft, true: str) -> str:
        added = {where: getattr(self, where) for where in ("imports", "helpers", "parameters", "decorators", "body")}
        whole = "".join((self.half, *added.values())).lower()
        words = {"true": true}
        for name in self.names.split():
            bare = name.strip("_")
            if f"{{{bare}}}" in whole:
                drawn = draft.name("_" if name.startswith("_") else "")
                title = drawn.title() if name.startswith("_") else drawn.title().replace("_", "")
                words |= {bare: drawn, bare.title(): title, bare.upper(): drawn.upper()}

        def filled(text: str) -> str:
            return re.sub(r"\{(\w+)\}", lambda found: words.get(found[1], found[0]), text)

        for where, text in added.items():
            if text:
                getattr(draft, where).append(filled(text))
        return filled(self.half)


def pick(rng: Random, *choices: Any) -> Any:
    return rng.choice(choices)
