"""What a database does for the journal: run one function of the store as one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from becket.kernel.store.steady import SteadyClock
from becket.kernel.store.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")


class Database(Protocol):
    """SQLite runs the function on the spot; Postgres awaits it. Either way all of it happens or nothing."""

    steady: SteadyClock

    async def read(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T: ...

    async def write(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The function's name names the crash points before and after the commit."""
        ...

    async def version_changed(self) -> bool: ...

    async def faults(self, whole: bool) -> tuple[str, ...]:
        """What the database itself finds wrong with its files; nothing on Postgres, which sees to that alone."""
        ...

    async def close(self) -> None: ...
