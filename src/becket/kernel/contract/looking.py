"""What is asked of the journal by those who only look: lists in pages, and sums over days. Every answer is bounded."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from becket.kernel.contract.base import Record
from becket.kernel.contract.run import RunStatus

if TYPE_CHECKING:
    from becket.kernel.contract.run import Run


class RunFilter(Record):
    loop_id: str | None = None
    statuses: tuple[RunStatus, ...] = ()
    subject: str | None = None
    text: str | None = None  # in the subject, whatever its case
    parent: str | None = None  # its children, those that answered its start included
    group: str | None = None
    since: float | None = None
    before: str | None = None  # the whole id of a run: only those that were started before it; none of an unknown one
    within: int | None = None  # among so many at most: the newest, or the last ones before `before`
    limit: int | None = 50  # None: all of them
    oldest_first: bool = False


class RunYield(StrEnum):
    """What an ended run brought to its branch."""

    repaired = "repaired"  # a proven repair is on it
    accepted = "accepted"  # so is one that another run had left for a person
    green = "green"  # it was green, and that is proven
    ready = "ready"  # a proven repair is left for a person
    unreleased = "unreleased"  # the branch is proven, and only the release of it failed
    nothing = "nothing"


class EndedRuns(Record):
    """Runs of one loop that ended alike. `seconds` from their start to their end, together."""

    loop_id: str
    status: RunStatus
    brought: RunYield
    runs: int
    seconds: float


class AgentUse(Record):
    """What ended calls of one agent used in one loop. `unpriced` ones are not in `usd`."""

    loop_id: str
    agent: str
    calls: int
    unpriced: int
    usd: float
    tokens: float
    agent_time: float


class GateUse(Record):
    """Gates that were run, how long they took together, and how many found tests that pass and fail."""

    runs: int = 0
    seconds: float = 0.0
    flaky: int = 0


class Tally(Record):
    """A span of time, added up. Dry runs are in none of it."""

    ended: tuple[EndedRuns, ...] = ()
    agents: tuple[AgentUse, ...] = ()
    gates: GateUse = GateUse()


class LookingStore(Protocol):
    """Reads for pages and lists."""

    async def newest_of_loops(self, within: int = 2000) -> tuple[Run, ...]:
        """The newest run of each loop, among so many of the newest runs."""
        ...

    async def unsettled(self, run_ids: Collection[str]) -> frozenset[str]:
        """Of these runs, those with a handoff that is still somebody's."""
        ...

    async def tally(self, since: float, until: float, most_gates_of: int = 200) -> Tally:
        """Of runs that ended and calls that began from `since` up to `until`. Gates are those of so many of the runs,
        the last ones to end.
        """
        ...
