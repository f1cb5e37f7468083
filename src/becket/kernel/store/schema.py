"""Brings a database to the version of this code: made at once if it is new, migrated by Alembic if it is older."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.store.tables import VERSION, metadata, tell_postgres

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
"""Every revision under `migrations`, oldest first."""

MIGRATIONS = Path(__file__).parent / "migrations"

migrated = CrashPoint("schema.migrated", "an older journal has its new tables; the transaction is not committed")

_VERSION_TABLE = sa.Table(
    "alembic_version",
    sa.MetaData(),
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)


def version_of(conn: sa.Connection, known: Sequence[str] = REVISIONS) -> str | None:
    """None for a new database. Raises StoreUnavailable for one that code with the `known` revisions is too old for."""
    if not sa.inspect(conn).has_table("alembic_version"):
        return None
    found = conn.execute(sa.select(_VERSION_TABLE.c.version_num)).scalar()
    if found is not None and found not in known:
        raise StoreUnavailable(
            f"the journal is of version {found}, this Becket knows versions up to {known[-1]}; "
            "upgrade Becket, or use the one that wrote the journal"
        )
    return found


def bring_up_to_date(conn: sa.Connection) -> None:
    """Within a transaction that shuts out every other process doing the same."""
    version = version_of(conn)
    if version is None:
        if conn.dialect.name == "postgresql":
            tell_postgres()
        metadata.create_all(conn, checkfirst=False)
        _VERSION_TABLE.create(conn, checkfirst=True)
        conn.execute(sa.insert(_VERSION_TABLE), {"version_num": VERSION})
    elif version != VERSION:
        migrate(conn, VERSION)
        migrated()


def migrate(conn: sa.Connection, to: str) -> None:
    """Run the migrations up to a revision on a connection whose transaction the caller began and will commit."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    attributes: dict[str, Any] = config.attributes
    attributes["connection"] = conn
    command.upgrade(config, to)
