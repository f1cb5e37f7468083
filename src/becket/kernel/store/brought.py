"""The tables that parts bring: made, or brought to the version of the part that is installed, with the journal's own.

Those of a part that is gone stay as they are, with their version, until it comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa

from becket.kernel.contract.errors import BecketError, StoreUnavailable
from becket.kernel.contract.tables import Tables, Transaction
from becket.kernel.store.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")

_VERSIONS = sa.Table(
    "part_versions",
    sa.MetaData(),
    sa.Column("part", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
)


def are_current(conn: sa.Connection, brought: Mapping[str, Tables]) -> bool:
    """Raises StoreUnavailable where a part is too old for its own tables."""
    return not any(_outdated(conn, brought))


def bring_up_to_date(conn: sa.Connection, brought: Mapping[str, Tables]) -> None:
    """Within a transaction that shuts out every other process doing the same."""
    if brought:
        _VERSIONS.create(conn, checkfirst=True)
    for part, tables, version in _outdated(conn, brought):
        if version is None:
            tables.metadata.create_all(conn, checkfirst=False)
            conn.execute(sa.insert(_VERSIONS), {"part": part, "version": tables.version})
        else:
            for step in tables.steps[version - 1 :]:
                step(conn)
            conn.execute(sa.update(_VERSIONS).where(_VERSIONS.c.part == part).values(version=tables.version))


def _outdated(conn: sa.Connection, brought: Mapping[str, Tables]) -> Iterator[tuple[str, Tables, int | None]]:
    """Those whose version is another than in the database; None: it has none of them yet."""
    there = _versions(conn) if brought else {}
    for part, tables in brought.items():
        version = there.get(part)
        if version is not None and version > tables.version:
            raise StoreUnavailable(
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
