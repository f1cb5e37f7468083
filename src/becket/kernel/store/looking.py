"""Lists in pages, and sums over days: read so that people can look, and bounded."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from becket.kernel.contract.handoff import UNSETTLED
from becket.kernel.contract.looking import AgentUse, EndedRuns, GateUse, RunFilter, Tally
from becket.kernel.contract.ready import ACCEPT, REASONS
from becket.kernel.contract.run import OPEN, Run
from becket.kernel.store.rows import plain, run_of, short_key
from becket.kernel.store.tables import agent_calls, handoffs, links, runs, spending, steps
from becket.kernel.store.tx import Tx

_UNRELEASED = ("release_failed", "release_rolled_back")
_NEWEST = sa.select(sa.func.coalesce(sa.func.max(runs.c.number), 0) + 1)


def list_runs(tx: Tx, where: RunFilter) -> tuple[Run, ...]:
    query = sa.select(runs).where(*_span(tx, where), *_alike(where))
    order = runs.c.number.asc() if where.oldest_first else runs.c.number.desc()
    return tuple(run_of(row._mapping) for row in tx.all(query.order_by(order).limit(where.limit)))


def _span(tx: Tx, where: RunFilter) -> list[sa.ColumnElement[bool]]:
    """By the order of writing, which no clock changes. An id that nobody has is before everything."""
    if where.before is None and where.within is None:
        return []
    top = _NEWEST if where.before is None else sa.select(runs.c.number).where(runs.c.run_id == where.before)
    found = int(tx.conn.execute(top).scalar() or 0)
    span = [runs.c.number < found]
    return span if where.within is None else [*span, runs.c.number >= found - where.within]


def _alike(where: RunFilter) -> list[sa.ColumnElement[bool]]:
    tests: list[sa.ColumnElement[bool]] = []
    # An index of the loop would be taken instead of the span, and holds most of the runs there are.
    loop = runs.c.loop_id if where.within is None else runs.c.loop_id.concat("")
    if where.loop_id is not None:
        tests.append(loop == where.loop_id)
    if where.statuses:
        tests.append(runs.c.status.in_([status.value for status in where.statuses]))
        if OPEN.issuperset(where.statuses):
            tests.append(runs.c.ended_at.is_(None))  # there is an index of these
    if where.subject is not None:
        tests.append(runs.c.subject_key == short_key(where.subject))
    if where.text:
        tests.append(sa.func.lower(runs.c.subject).contains(plain(where.text).lower(), autoescape=True))
    if where.parent is not None:
        tests.append(runs.c.run_id.in_(sa.select(links.c.child).where(links.c.parent == where.parent)))
    if where.group is not None:
        tests.append(runs.c.group_name == where.group)
    if where.since is not None:
        tests.append(runs.c.created_at >= where.since)
    return tests


def newest_of_loops(tx: Tx, within: int = 2000) -> tuple[Run, ...]:
    oldest = int(tx.conn.execute(_NEWEST).scalar_one()) - within
    loop = runs.c.loop_id.concat("")  # as in a list: by the index of loops it would look at all of them
    newest = sa.select(sa.func.max(runs.c.number)).where(runs.c.number >= oldest).group_by(loop)
    numbers = list(tx.conn.execute(newest).scalars())
    query = sa.select(runs).where(runs.c.number.in_(numbers)).order_by(runs.c.number.desc())
    return tuple(run_of(row._mapping) for row in tx.all(query))


def unsettled(tx: Tx, run_ids: Collection[str]) -> frozenset[str]:
    if not run_ids:
        return frozenset()
    mine = sa.select(handoffs.c.run_id).where(handoffs.c.run_id.in_(list(run_ids)))
    return frozenset(tx.ids(mine.where(handoffs.c.state.in_([state.value for state in UNSETTLED]))))


def tally(tx: Tx, since: float, until: float, most_gates_of: int = 200) -> Tally:
    ended = (runs.c.ended_at.is_not(None), runs.c.ended_at >= since, runs.c.ended_at < until, ~runs.c.dry_run)
    return Tally(
        ended=_ended(tx, ended), agents=_agents(tx, since, until), gates=_gates(tx, ended, most_gates_of)
    )  # fmt: skip


def _says(column: sa.ColumnElement[str], text: str) -> sa.ColumnElement[bool]:
    return column.contains(text, autoescape=True)


def _ended(tx: Tx, ended: tuple[sa.ColumnElement[bool], ...]) -> tuple[EndedRuns, ...]:
    """JSON is canonical text in either database: a key that is there stands in it in one way."""
    proves = _says(runs.c.detail, '"main_proven":{') & ~_says(runs.c.detail, '"instead_of":"')
    repairs = proves & _says(runs.c.detail, '"repaired":"') & ~_says(runs.c.detail, '"repaired":""')
    takes = _says(runs.c.inputs, f'"{ACCEPT}":"') & ~_says(runs.c.inputs, f'"{ACCEPT}":""')
    kind = sa.case(
        ((runs.c.status == "completed") & repairs & takes, "accepted"),
        ((runs.c.status == "completed") & repairs, "repaired"),
        ((runs.c.status == "completed") & proves, "green"),
        (runs.c.reason.in_(REASONS), "ready"),
        (runs.c.reason.in_(_UNRELEASED), "unreleased"),
        else_="nothing",
    )  # fmt: skip
    lasted = sa.func.sum(runs.c.ended_at - runs.c.created_at)
    query = sa.select(runs.c.loop_id, runs.c.status, kind.label("kind"), sa.func.count(), lasted).where(*ended)
    return tuple(
        EndedRuns(
            loop_id=row[0], status=row[1], brought=row[2], runs=row[3], seconds=row[4],
        )
        for row in tx.all(query.group_by(runs.c.loop_id, runs.c.status, sa.text("kind")))
    )  # fmt: skip


def _agents(tx: Tx, since: float, until: float) -> tuple[AgentUse, ...]:
    began = (agent_calls.c.began_at >= since, agent_calls.c.began_at < until, agent_calls.c.ended_at.is_not(None))
    of = (agent_calls.c.loop_id, agent_calls.c.agent)
    unpriced = sa.func.sum(sa.case((_says(agent_calls.c.result, '"priced":"unknown"'), 1), else_=0))
    found: dict[tuple[str, str], dict[str, Any]] = {
        (row[0], row[1]): {"calls": row[2], "unpriced": row[3], "usd": 0.0, "tokens": 0.0, "agent_time": 0.0}
        for row in tx.all(sa.select(*of, sa.func.count(), unpriced).where(*began).group_by(*of))
    }
    used = sa.select(*of, spending.c.kind, sa.func.sum(spending.c.amount)).where(
        *began, spending.c.key == agent_calls.c.call_id, spending.c.kind.in_(("usd", "tokens", "agent_time"))
    )
    for row in tx.all(used.group_by(*of, spending.c.kind)):
        found[row[0], row[1]][row[2]] = float(row[3])
    return tuple(AgentUse(loop_id=loop, agent=agent, **uses) for (loop, agent), uses in sorted(found.items()))


def _gates(tx: Tx, ended: tuple[sa.ColumnElement[bool], ...], most: int) -> GateUse:
    """A gate is known by what it hands out."""
    last = sa.select(runs.c.run_id).where(*ended).order_by(runs.c.ended_at.desc()).limit(most)
    judged = _says(steps.c.outputs, '"verdict":"') & _says(steps.c.outputs, '"color":"')
    flaky = sa.func.sum(sa.case((_says(steps.c.conditions, '"name":"flaky_seen"'), 1), else_=0))
    lasted = sa.func.sum(steps.c.ended_at - steps.c.started_at)
    query = sa.select(sa.func.count(), lasted, flaky).where(steps.c.run_id.in_(last), judged)
    row = tx.all(query)[0]
    return GateUse(runs=row[0], seconds=row[1] or 0.0, flaky=row[2] or 0)
