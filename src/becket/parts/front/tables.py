"""What the front remembers: who may come in, with which keys, and who decided what."""

from __future__ import annotations

import sqlalchemy as sa

from becket.kernel.contract.tables import Tables

METADATA = sa.MetaData()

USERS = sa.Table(
    "front_users",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("password", sa.Text, nullable=False),  # as argon2 has it
    sa.Column("created_at", sa.Double, nullable=False),
)
KEYS = sa.Table(
    "front_keys",
    METADATA,
    sa.Column("digest", sa.Text, primary_key=True),  # of the secret, which nobody keeps
    sa.Column("kind", sa.Text, nullable=False),  # link | session | token
    sa.Column("user", sa.Text, nullable=False),  # empty: whoever the operating system says
    sa.Column("role", sa.Text, nullable=False),  # of a token; of others it is asked anew each time
    sa.Column("label", sa.Text, nullable=False),
    sa.Column("created_at", sa.Double, nullable=False),
    sa.Column("expires_at", sa.Double, nullable=False),
    sa.Column("revoked_at", sa.Double),
    sa.Index("front_keys_of_kind", "kind", "created_at"),
)
AUDIT = sa.Table(
    "front_audit",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("via", sa.Text, nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    sa.Column("did", sa.Text, nullable=False),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
)
DELIVERIES = sa.Table(
    "front_deliveries",
    METADATA,
    sa.Column("hook", sa.Text, primary_key=True),
    sa.Column("delivery", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
)
COMMENTS = sa.Table(
    "front_comments",
    METADATA,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_id", sa.Text, nullable=False, index=True),
    sa.Column("sha", sa.Text, nullable=False),
    sa.Column("path", sa.Text, nullable=False),  # empty: about the whole
    sa.Column("line", sa.Integer, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("who", sa.Text, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("sent_to", sa.Text, nullable=False),  # the run whose brief has it; empty before
)

TABLES = Tables(METADATA)
