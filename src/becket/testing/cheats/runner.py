"""Play cases, two at a time, and count what came of them."""

from __future__ import annotations

import asyncio
import os
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from becket.adapters.process.choice import Unavailable, probe
from becket.contract.process import SandboxKind
from becket.testing.cheats.agents import Wired
from becket.testing.cheats.case import Case, Kind
from becket.testing.cheats.play import ENVIRONMENT, Played, play, prepare

AT_ONCE = 2
HONEST_BAR = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """The three figures. A case counts only if every promise around it was kept as well."""

    played: tuple[Played, ...]
    held: bool  # a sandbox held files, processes and network

    def of(self, kind: Kind) -> tuple[int, int]:
        """How many came out right, of how many."""
        of_kind = [each for each in self.played if each.case.kind is kind]
        return sum(each.ok for each in of_kind), len(of_kind)

    @property
    def ok(self) -> bool:
        """What cannot be proven is counted apart: no bar can be set for it."""
        caught, cheats = self.of(Kind.cheat)
        promoted, honest = self.of(Kind.honest)
        return caught == cheats and promoted >= HONEST_BAR * honest


def sandbox_holds() -> bool:
    try:
        return not probe(SandboxKind.bwrap).holds().missing
    except Unavailable:
        return False


def run_cases(
    cases: Sequence[Case], *, thorough: bool | int = 5, tell: Callable[[Played], None] = lambda played: None,
    at_once: int = AT_ONCE, folder: Path | None = None, agent: Callable[[], Wired] = Wired,
) -> Figures:  # fmt: skip
    """`thorough`: True looks at the next commit after every case, a number after every so many, False after none.
    `agent` makes the one of a case.
    """
    with tempfile.TemporaryDirectory(prefix="becket-cheats-", dir=folder) as made:
        return asyncio.run(_run(cases, Path(made), thorough, tell, at_once, agent))


async def _run(
    cases: Sequence[Case], folder: Path, thorough: bool | int, tell: Callable[[Played], None], at_once: int,
    agent: Callable[[], Wired],
) -> Figures:  # fmt: skip
    held = sandbox_holds()
    template = await prepare(folder / "template", held=held)
    turn = asyncio.Semaphore(at_once)
    every = int(thorough)  # True is 1

    async def one(number: int, case: Case) -> Played:
        async with turn:
            further = every > 0 and number % every == 0
            try:
                place = folder / f"{number}-{case.name}"
                played = await play(case, template, place, held=held, thorough=further, agent=agent)
            except Exception as error:  # one case that cannot be played must not hide the others
                played = Played.broken(case, error)
            tell(played)
            return played

    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = secrets.token_urlsafe(24)
    try:
        played = await asyncio.gather(*(one(number, case) for number, case in enumerate(cases)))
    finally:
        if before is None:
            del os.environ[ENVIRONMENT]
        else:
            os.environ[ENVIRONMENT] = before
    return Figures(tuple(played), held)
