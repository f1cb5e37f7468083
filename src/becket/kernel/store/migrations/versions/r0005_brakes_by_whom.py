"""A brake says with which role and by which way in it was set; of older ones nobody knows."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("role", "via"):
        op.add_column("controls", sa.Column(name, sa.Text, nullable=True))
