"""The conditions of a run as rows: raising replaces the names of the group, an iteration's end drops the rest."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from becket.kernel.contract.condition import Condition
from becket.kernel.store.rows import condition_of, condition_row
from becket.kernel.store.tables import conditions
from becket.kernel.store.tx import Tx

_ADD = sa.insert(conditions)
_REPLACE = sa.delete(conditions).where(
    conditions.c.run_id == sa.bindparam("this_run"),
    conditions.c.object == sa.bindparam("this_object"),
    conditions.c.name == sa.bindparam("this_name"),
)
_END_ITERATION = sa.delete(conditions).where(
    conditions.c.run_id == sa.bindparam("this_run"), conditions.c.life == "iteration"
)
_OF_RUN = (
    sa.select(conditions)
    .where(conditions.c.run_id == sa.bindparam("run_id"))
    .order_by(conditions.c.at, conditions.c.object, conditions.c.name)
)


def dated(item: Condition, iteration: int, at: float) -> Condition:
    """The condition with its iteration and time filled in where it has none."""
    if item.iteration and item.at:
        return item
    return item.model_copy(update={"iteration": item.iteration or iteration, "at": item.at or at})


def raise_all(tx: Tx, run_id: str, new: Iterable[Condition]) -> None:
    """In order: a later condition of the same group replaces an earlier one."""
    standing: dict[tuple[str, str], Condition] = {}
    gone: dict[tuple[str, str], None] = {}
    for item in new:
        for name in (*item.group, item.name):
            standing.pop((item.object, name), None)
            gone[item.object, name] = None
        standing[item.object, item.name] = item
    tx.run(_REPLACE, [{"this_run": run_id, "this_object": object_, "this_name": name} for object_, name in gone])
    tx.run(_ADD, [condition_row(run_id, item) for item in standing.values()])


def end_iteration(tx: Tx, run_id: str) -> None:
    tx.run(_END_ITERATION, {"this_run": run_id})


def of_run(tx: Tx, run_id: str) -> tuple[Condition, ...]:
    return tuple(condition_of(row) for row in tx.all(_OF_RUN, run_id=run_id))
