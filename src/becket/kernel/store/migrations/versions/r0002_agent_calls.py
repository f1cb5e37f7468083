"""Every call of an agent has a row: what it was allowed, how it ended, what it used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "agent_calls",
        sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("call_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("iteration", sa.Integer, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("step_id", sa.Text, nullable=False),
        sa.Column("loop_id", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("driver", sa.Text, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("limits", sa.Text, nullable=False),
        sa.Column("began_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double, nullable=True),
        sa.Column("result", sa.Text, nullable=True),
    )
    op.create_index("ix_agent_calls_id", "agent_calls", ["call_id"], unique=True)
    op.create_index("ix_agent_calls_run", "agent_calls", ["run_id"])
    op.create_index("ix_agent_calls_began", "agent_calls", ["began_at"])
