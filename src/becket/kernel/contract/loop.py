"""What the runtime asks of its surroundings: the loops that exist, and what the current configuration allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.base import Record
from becket.kernel.contract.calls import CallRequest
from becket.kernel.contract.config import Budgets
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.run import Run
from becket.kernel.contract.spec import Autonomy, Budget, LoopSpec


class LoadedLoop(Record):
    """A loop as it stands on disk now."""

    spec: LoopSpec
    text: str
    digest: str
    source: str  # the file, or `built in`


class Loops(Protocol):
    """The loops of this repository. Read anew when their files change; a broken file hides only itself."""

    def get(self, loop_id: str) -> LoadedLoop:
        """Raises NotFound, or InvalidDocument if its file is broken."""
        ...

    def all(self) -> Sequence[LoadedLoop]:
        """Every loop that loads."""
        ...

    def broken(self) -> Mapping[str, Sequence[Finding]]:
        """Every file that does not load, with what is wrong; or the folder, if that cannot be read. Which loops and
        which triggers are in it, nobody knows until it loads: then `source` of its loops is the name it has here, or
        is below the folder.
        """
        ...

    def parse(self, text: str) -> LoopSpec:
        """A spec as a run stored it."""
        ...


class Policy(Protocol):
    """What the current configuration allows; asked at every step, never remembered."""

    def autonomy(self, spec: LoopSpec, run: Run) -> Autonomy:
        """The lowest of configuration, spec, the run's own wish and what the sandbox can hold."""
        ...

    def capped_by(self) -> str:
        """What here keeps every run below the configured autonomy, or nothing."""
        ...

    def budget(self, run: Run, stored: Budget) -> Budget:
        """The loop's current budget, or the stored one if the loop is gone."""
        ...

    def budgets(self) -> Budgets:
        """What agents may use in a day and a month, for all loops and for each."""
        ...

    def why_unenforceable(self, run: Run, request: CallRequest) -> str:
        """Why a budget of the configuration could not be held for this call, or nothing. Asked before each call is
        booked; a call with a reason is not made.
        """
        ...

    def owner(self) -> str:
        """Who gets handoffs."""
        ...


UNHELD = "budget_unheld"
"""The failure of a call that no budget could be held for."""

WORK = "work"
"""Below a run's folder: one checkout for each piece of work that must be saved before the folder is removed (L7)."""

PROOF = "proof"
"""Below a run's folder: the tree in which it judges commits, one after the other. The next run begins with it."""


class Places(Protocol):
    """Where runs keep their files."""

    def of_run(self, run_id: str) -> Path:
        """The run's own folder below the state folder; made by whoever writes there first."""
        ...

    def resident(self) -> tuple[Path, Path]:
        """The resident test tree: where the runtime keeps its own part of it, and the tree itself."""
        ...

    def hidden(self) -> tuple[Path, ...]:
        """What no contained program may see: the state folder, the main git directory, HOME."""
        ...
