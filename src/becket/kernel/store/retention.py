"""What may be forgotten, and what never: an open run, an unfinished handoff, an unsettled effect keep everything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import UNSETTLED
from becket.kernel.store.locked import lock
from becket.kernel.store.tables import (
    agent_calls,
    approvals,
    artifact_refs,
    carried,
    conditions,
    effects,
    events,
    facts,
    handoffs,
    links,
    origins,
    receipts,
    runs,
    signals,
    specs,
    spending,
    steps,
    wakeups,
    workers,
)
from becket.kernel.store.tx import Tx

_OF_RUNS = (
    agent_calls, approvals, artifact_refs, carried, conditions, effects, events, facts, handoffs, origins, receipts,
    signals, steps, wakeups, runs,
)  # fmt: skip

_BATCH = 500

_LONGEST_PERIOD = 32 * 86_400.0
"""What was spent outlives its run until no budget of a day or a month can count it any more."""

_parent = runs.alias("parent")
_UNSETTLED = ("intended", "retrying")
_FORGETTABLE = sa.select(runs.c.run_id).where(
    runs.c.ended_at.is_not(None),
    runs.c.ended_at < sa.bindparam("before"),
    runs.c.follow_since.is_(None),
    ~sa.exists().where(handoffs.c.run_id == runs.c.run_id, handoffs.c.state.in_([state.value for state in UNSETTLED])),
    ~sa.exists().where(effects.c.run_id == runs.c.run_id, effects.c.state.in_(_UNSETTLED)),
    # An open run may still look at what its children did.
    ~sa.exists().where(
        links.c.child == runs.c.run_id, _parent.c.run_id == links.c.parent, _parent.c.ended_at.is_(None)
    ),
)
_REFS_WITHOUT_RUN = (
    sa.select(artifact_refs.c.digest)
    .where(artifact_refs.c.at < sa.bindparam("before"))
    .where(~sa.exists().where(runs.c.run_id == artifact_refs.c.run_id))
)
_DROP_REFS_WITHOUT_RUN = (
    sa.delete(artifact_refs)
    .where(artifact_refs.c.at < sa.bindparam("before"))
    .where(~sa.exists().where(runs.c.run_id == artifact_refs.c.run_id))
)
_DROP_OLD_ALARMS = (
    sa.delete(effects)
    .where(effects.c.updated_at < sa.bindparam("before"), effects.c.state.not_in(_UNSETTLED))
    .where(~sa.exists().where(runs.c.run_id == effects.c.run_id))
)
_DROP_OLD_SPENDING = (
    sa.delete(spending)
    .where(spending.c.at < sa.bindparam("before"))
    .where(~sa.exists().where(runs.c.run_id == spending.c.run_id))
)
_DROP_OLD_WORKERS = sa.delete(workers).where(workers.c.beat_at < sa.bindparam("before"))
_DROP_UNUSED_SPECS = (
    sa.delete(specs)
    .where(specs.c.at < sa.bindparam("before"))
    .where(~sa.exists().where(runs.c.spec_digest == specs.c.digest))
)
_REFERRED = sa.select(artifact_refs.c.digest).distinct()


def forget(tx: Tx, runs_before: float, artifacts_before: float) -> tuple[str, ...]:
    dropped: set[str] = set()
    for ids in _batches(tx.ids(_FORGETTABLE, before=artifacts_before)):
        _tell_of_dropping(tx, ids)
        dropped |= _drop_refs(tx, ids)
    for ids in _batches(tx.ids(_FORGETTABLE, before=runs_before)):
        dropped |= _drop_refs(tx, ids)
        for table in _OF_RUNS:
            tx.run(sa.delete(table).where(table.c.run_id.in_(ids)), {})
        tx.run(sa.delete(links).where(sa.or_(links.c.parent.in_(ids), links.c.child.in_(ids))), {})
    dropped |= set(tx.ids(_REFS_WITHOUT_RUN, before=artifacts_before))
    tx.run(_DROP_REFS_WITHOUT_RUN, {"before": artifacts_before})
    for statement in (_DROP_OLD_ALARMS, _DROP_OLD_WORKERS, _DROP_UNUSED_SPECS):
        tx.run(statement, {"before": runs_before})
    tx.run(_DROP_OLD_SPENDING, {"before": min(runs_before, tx.now - _LONGEST_PERIOD)})
    return tuple(sorted(dropped - _still_referred(tx, sorted(dropped))))


def _tell_of_dropping(tx: Tx, ids: Sequence[str]) -> None:
    """Evidence is never deleted silently (L44): the runs it belonged to say so."""
    counted = sa.select(artifact_refs.c.run_id, sa.func.count()).group_by(artifact_refs.c.run_id)
    for run_id, count in tx.all(counted.where(artifact_refs.c.run_id.in_(ids)).order_by(artifact_refs.c.run_id)):
        run = lock(tx, run_id)
        run.add(EventKind.artifacts_dropped, {"count": count})
        run.save()


def _drop_refs(tx: Tx, ids: Sequence[str]) -> set[str]:
    digests = tx.ids(sa.select(artifact_refs.c.digest).where(artifact_refs.c.run_id.in_(ids)).distinct())
    tx.run(sa.delete(artifact_refs).where(artifact_refs.c.run_id.in_(ids)), {})
    return set(digests)


def _still_referred(tx: Tx, digests: Sequence[str]) -> set[str]:
    found: set[str] = set()
    for some in _batches(digests):
        found.update(tx.ids(_REFERRED.where(artifact_refs.c.digest.in_(some))))
    return found


def _batches(items: Sequence[str]) -> Iterator[Sequence[str]]:
    """Both databases limit how many values one statement may hold."""
    for start in range(0, len(items), _BATCH):
        yield items[start : start + _BATCH]


def referred(tx: Tx) -> frozenset[str]:
    return frozenset(tx.ids(_REFERRED))
