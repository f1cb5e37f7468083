"""Which run works for which: one row per parent and child, whether the child was started anew or was there already."""

from __future__ import annotations

import sqlalchemy as sa

from becket.kernel.contract.run import Run
from becket.kernel.store.locked import lock
from becket.kernel.store.tables import links, runs
from becket.kernel.store.tx import Tx

_LINK = sa.select(links.c.at).where(links.c.parent == sa.bindparam("parent"), links.c.child == sa.bindparam("child"))
_OPEN_PARENTS = (
    sa.select(links.c.parent)
    .join(runs, runs.c.run_id == links.c.parent)
    .where(links.c.child == sa.bindparam("child"), runs.c.ended_at.is_(None))
    .order_by(links.c.parent)
)
_above = sa.select(links.c.parent).where(links.c.child == sa.bindparam("run_id")).cte("above", recursive=True)
_above = _above.union(sa.select(links.c.parent).join(_above, links.c.child == _above.c.parent))
_IS_ABOVE = sa.select(_above.c.parent).where(_above.c.parent == sa.bindparam("ancestor"))


def link(tx: Tx, parent: str, child: str) -> None:
    tx.add_new(links, {"parent": parent, "child": child, "at": tx.now})


def adopt(tx: Tx, parent: str, child: str) -> Run | None:
    """Link a run that is there already, and the run as it stands. None if it waits for the parent itself: they would
    wait for each other for ever.
    """
    if tx.one(_LINK, parent=parent, child=child) is None:
        tx.mutex(["links"])  # two adoptions at once could close a circle that neither sees
        if child == parent or tx.one(_IS_ABOVE, run_id=parent, ancestor=child) is not None:
            return None
    # Locked before it is linked: an end that is being written tells only the parents it can see.
    run = lock(tx, child)
    link(tx, parent, child)
    return run.record()


def open_parents(tx: Tx, child: str) -> list[str]:
    return tx.ids(_OPEN_PARENTS, child=child)
