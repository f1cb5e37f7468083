"""Calls are told of by events. No table changes; a Becket that does not know those events must not read them, and would
settle calls behind the chain's back.
"""

from __future__ import annotations

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing to change: old runs stay as they are, and `becket verify` says what of them cannot be proven."""
