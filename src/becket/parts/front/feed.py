"""Tells those who look that something has changed. One look at the journal for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import sqlalchemy as sa

from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.store import Store
from becket.kernel.contract.tables import TableStore, Transaction

log = logging.getLogger("becket.front")

LOOK_EVERY = 0.1
BESIDES_EVERY = 2.0
"""What the journal does not tell: the output of a step at work, services, who is alive."""


def written_so_far(tx: Transaction) -> str:
    """Moves with every write to the server, also with those to other databases."""
    return str(tx.conn.execute(sa.text("SELECT pg_current_wal_insert_lsn()")).scalar())


class Feed:
    """`version` grows with every change. Nothing is looked at while nobody listens."""

    def __init__(self, store: Store, besides: Callable[[], Awaitable[None]], tables: TableStore | None = None) -> None:
        """`tables` where the journal is on Postgres, whose `version_changed` cannot tell."""
        self._store = store
        self._besides = besides
        self._tables = tables
        self._mark = ""
        self._sure = False  # a mark moves a moment before what moved it can be read: it is looked at once more
        self.version = 1
        self._listeners = 0
        self._changed = asyncio.Event()
        self._somebody = asyncio.Event()

    async def look(self) -> int:
        """The version as of now."""
        if await self._is_new():
            await self.ring()
        return self.version

    async def _is_new(self) -> bool:
        if self._tables is None:
            return await self._store.version_changed()
        mark, before, sure = await self._tables.read(written_so_far), self._mark, self._sure
        self._mark, self._sure = mark, mark == before
        return not (self._sure and sure)

    async def ring(self) -> None:
        """Something was written here: another process's writes are found by looking."""
        self.version += 1
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    async def keep(self) -> None:
        """Look, for as long as the process lives."""
        passed, said = 0.0, ""
        while True:
            await self._somebody.wait()
            await asyncio.sleep(LOOK_EVERY)
            passed += LOOK_EVERY
            try:
                await self.look()
                if passed >= BESIDES_EVERY:
                    passed = 0.0
                    await self._besides()
                    await self.ring()
            except Exception as error:  # whatever it is: pages must not stand still for ever
                if str(error) != said:
                    log.warning("%s", error, exc_info=not isinstance(error, BecketError))
                said = str(error)

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[Feed]:
        self._listeners += 1
        self._somebody.set()
        try:
            yield self
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._somebody.clear()

    async def after(self, version: int, within: float) -> int:
        """The version once it is another, or as it is after so many seconds."""
        if self.version == version:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._changed.wait()
        return self.version
