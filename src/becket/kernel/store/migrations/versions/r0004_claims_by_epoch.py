"""A worker tells its heartbeat what it has at work, by claim: no row is marked as lost any more."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_runs_lost", "runs")
    op.drop_index("ix_leases_worker", "leases")
    op.drop_column("runs", "lost_by")
