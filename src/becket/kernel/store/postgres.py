"""Postgres: many workers, row locks, the database's clock. The same functions as on SQLite, run over asyncio."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from becket.kernel.contract.errors import StoreUnavailable, UsageError
from becket.kernel.contract.tables import Tables
from becket.kernel.store import brought as of_parts
from becket.kernel.store import points
from becket.kernel.store.schema import bring_up_to_date
from becket.kernel.store.steady import SteadyClock
from becket.kernel.store.tables import VERSION
from becket.kernel.store.tx import Clock, Tx

P = ParamSpec("P")
T = TypeVar("T")

CONNECT_SECONDS = 5
CONNECTIONS = 10
_TRIES = 8
_LOST_A_RACE = ("40001", "40P01")
"""Serialisation failure and deadlock: the database undid everything, and doing it again is right."""

_SCHEMA_LOCK = 7_233_281_550_926_348_101  # any number, the same in every process


class PostgresDatabase:
    """A pool of connections. It belongs to the event loop that used it first."""

    def __init__(self, url: str, clock: Clock | None, steady: SteadyClock) -> None:
        self.steady = steady
        self._clock = clock
        self._address = _address(url)
        self._engine: AsyncEngine = create_async_engine(
            self._address,
            isolation_level="READ COMMITTED",
            pool_size=CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )

    async def read(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._transact(lambda tx: work(tx, *args, **kwargs))

    async def write(self, work: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        def whole(tx: Tx) -> T:
            result = work(tx, *args, **kwargs)
            points.before_commit(work.__name__)
            return result

        result = await self._transact(whole)
        points.after_commit(work.__name__)
        return result

    async def _transact(self, work: Callable[[Tx], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                async with self._engine.begin() as conn:
                    return await conn.run_sync(lambda sync: work(Tx(sync, self._clock, self.steady.read)))
            except sa.exc.DBAPIError as error:
                if left and _lost_a_race(error):
                    continue
                if _is_unreachable(error):
                    raise unavailable(self._address, error) from error
                raise
            except (sa.exc.TimeoutError, OSError) as error:
                raise unavailable(self._address, error) from error
        raise AssertionError("the last try returns or raises")

    async def version_changed(self) -> bool:
        """There is no cheap way to know, and the queries behind it are cheap."""
        return True

    async def faults(self, whole: bool) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        await self._engine.dispose()


def prepare(url: str, brought: Mapping[str, Tables]) -> None:
    """Make the tables, or bring them up to date. One process at a time does it; the others wait and find it done."""
    address = _address(url)
    try:
        engine = sa.create_engine(address, poolclass=sa.NullPool, connect_args={"connect_timeout": CONNECT_SECONDS})
    except ModuleNotFoundError as error:
        raise UsageError(f"Postgres needs the package {error.name}; install becket[postgres]") from error
    try:
        with engine.connect() as conn:
            if _is_current(conn) and of_parts.are_current(conn, brought):
                return
            conn.execute(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK)))
            bring_up_to_date(conn)
            of_parts.bring_up_to_date(conn, brought)
            conn.commit()
    except sa.exc.DBAPIError as error:
        if _is_unreachable(error):
            raise unavailable(address, error) from error
        raise
    finally:
        engine.dispose()


def _is_current(conn: sa.Connection) -> bool:
    """A look at the version as cheap as can be. An error would abort the transaction, so the table is looked up."""
    there = conn.exec_driver_sql("SELECT to_regclass('alembic_version')").scalar()
    return there is not None and conn.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == VERSION


def _address(url: str) -> sa.URL:
    try:
        address = sa.make_url(url)
    except sa.exc.ArgumentError:
        raise UsageError("`database` is not a URL; write it like postgresql://user@host/name") from None
    if address.get_backend_name() not in ("postgresql", "postgres"):
        raise UsageError(f"`database` is a {address.get_backend_name()} URL; the journal is kept by SQLite or Postgres")
    return address.set(drivername="postgresql+psycopg")


def _lost_a_race(error: sa.exc.DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) in _LOST_A_RACE


def _is_unreachable(error: sa.exc.DBAPIError) -> bool:
    """A connection that fails is advice for a person; a statement that fails is a bug and keeps its own words."""
    return isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError) or error.connection_invalidated


def unavailable(address: sa.URL, error: Exception) -> StoreUnavailable:
    said = " ".join(str(getattr(error, "orig", None) or error).split())
    where = address.render_as_string(hide_password=True)
    return StoreUnavailable(f"the database {where} cannot be used: {said}; is it running, and may this user connect?")
