"""A table of its own: how high each run found the water. And what a report says of it."""

from __future__ import annotations

from collections.abc import Iterator

import sqlalchemy as sa

from becket.app.record.story import Story
from becket.kernel.contract.tables import Tables, Transaction

_METADATA = sa.MetaData()
_MARKS = sa.Table(
    "tide_marks",
    _METADATA,
    sa.Column("run_id", sa.Text, primary_key=True),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
)
TABLES = Tables(_METADATA)


def keep(tx: Transaction, run_id: str, height: int) -> None:
    """The action may be done again after a crash."""
    tx.conn.execute(sa.delete(_MARKS).where(_MARKS.c.run_id == run_id))
    tx.conn.execute(sa.insert(_MARKS), {"run_id": run_id, "height": height, "at": tx.now})


def heights(tx: Transaction) -> list[int]:
    return list(tx.conn.execute(sa.select(_MARKS.c.height).order_by(_MARKS.c.at)).scalars())


def evidence(story: Story) -> Iterator[str]:
    for found in story.conditions:
        if found.object == "tide":
            yield f"the water stood at {found.evidence['height']}, says redbuoy4711x"
