"""Tables that a part keeps in the journal's database, and the door to them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    import sqlalchemy as sa

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tables:
    """A part's tables as its newest version has them. Their names begin with the part's name and `_`."""

    metadata: sa.MetaData
    steps: tuple[Callable[[sa.Connection], None], ...] = ()
    """Each brings the tables from one version to the next, within a transaction. Never changed once released."""

    @property
    def version(self) -> int:
        return 1 + len(self.steps)


class Transaction(Protocol):
    @property
    def conn(self) -> sa.Connection: ...

    @property
    def now(self) -> float:
        """The journal's time."""
        ...


class TableStore(Protocol):
    """Each `write` is one transaction of the journal's database: all of `work` happens, or nothing. It may be done
    again where it lost a race, so it does nothing else. What it writes to is its part's own.

    Raises StoreBusy, StoreUnavailable and StoreDamaged as every call of the journal does.
    """

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...
