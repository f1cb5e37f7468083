"""The tables that parts bring: made, or brought to the version of the part that is installed, with the journal's own.

Those of a part that is gone stay as they are, with their version, until it comes back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from becket.kernel.contract.errors import BecketError, UnfitTables
from becket.kernel.contract.tables import Tables, Transaction
from becket.kernel.store.tables import metadata
from becket.kernel.store.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")

_VERSIONS = sa.Table(
    "part_versions",
    sa.MetaData(),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)

JOURNAL_TABLES = frozenset({*metadata.tables, "alembic_version", _VERSIONS.name})
"""Names that no part may use for its own."""


def are_current(conn: sa.Connection, brought: Mapping[str, Tables]) -> bool:
    """Raises UnfitTables where a part is too old for its own tables."""
    return not any(_outdated(conn, brought))


def bring_up_to_date(conn: sa.Connection, brought: Mapping[str, Tables]) -> None:
    """Within a transaction that shuts out every other process doing the same."""
    if brought:
        _VERSIONS.create(conn, checkfirst=True)
    for part, tables, version in _outdated(conn, brought):
        if version is None:
            with _of(part, "cannot be made"):
                tables.metadata.create_all(conn, checkfirst=False)
            conn.execute(sa.insert(_VERSIONS), {"part": part, "version": tables.version})
        else:
            for number, step in enumerate(tables.steps[version - 1 :], version):
                with _of(part, f"cannot be brought from version {number} to {number + 1} ({_name_of(step)})"):
                    step(conn)
            conn.execute(sa.update(_VERSIONS).where(_VERSIONS.c.part == part).values(version=tables.version))


@contextmanager
def _of(part: str, what: str) -> Iterator[None]:
    """What a part does wrong with its tables is its own fault and no damage of the journal: all is rolled back."""
    try:
        yield
    except BecketError:
        raise
    except Exception as error:
        if isinstance(error, sa.exc.DBAPIError) and not _is_at_fault(error):
            raise
        said = " ".join(str(getattr(error, "orig", None) or error).split())
        raise UnfitTables(
            f"the tables of the part {part} {what}: {type(error).__name__}: {said}. Nothing was changed: the journal "
            "and these tables are as they were; mend that part, go back to the version of it that you had, or remove it"
        ) from error


def _is_at_fault(error: sa.exc.DBAPIError) -> bool:
    """The statement, and not a disk that is full, a file that is damaged or a server that is gone."""
    if isinstance(error.orig, sqlite3.Error):
        code = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        return code & 0xFF in (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH)
    return not isinstance(error, sa.exc.OperationalError | sa.exc.InterfaceError | sa.exc.InternalError)


def _name_of(step: object) -> str:
    return str(getattr(step, "__qualname__", step))


def _outdated(conn: sa.Connection, brought: Mapping[str, Tables]) -> Iterator[tuple[str, Tables, int | None]]:
    """Those whose version is another than in the database; None: it has none of them yet."""
    there = _versions(conn) if brought else {}
    for part, tables in brought.items():
        version = there.get(part)
        if version is not None and version > tables.version:
            raise UnfitTables(
                f"the tables of the part {part} are of version {version}, the installed one knows versions up to "
                f"{tables.version}; upgrade that part, or remove it: its tables stay"
            )
        if version != tables.version:
            yield part, tables, version


def _versions(conn: sa.Connection) -> dict[str, int]:
    if not sa.inspect(conn).has_table(_VERSIONS.name):
        return {}
    return {str(part): int(version) for part, version in conn.execute(sa.select(_VERSIONS))}


def of_a_part(work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> Callable[[Tx], T]:
    """Whatever it is called: by their names the journal's own functions have crash points."""

    def part_work(tx: Tx) -> T:
        try:
            return work(tx, *args, **kwargs)
        except sa.exc.OperationalError as error:
            if str(error.orig).startswith("no such "):  # of the journal itself this would be damage
                raise BecketError(
                    f"a part asks for what its tables do not have: {error.orig}; mend that part"
                ) from error
            raise

    return part_work
