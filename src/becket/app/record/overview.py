"""The same snapshot as `becket.app.record.status`, through the Store port: for a journal that is not a local file."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from becket.app.compose import App
from becket.app.liveness import is_cared_for
from becket.app.record.agent_spend import added
from becket.app.record.main_now import BUSY, GREEN, JUDGES, TRIES, MainNow, failing_of, standing
from becket.app.record.quota import QUOTA, quota_of
from becket.app.record.settling import proven_by
from becket.app.record.status import (
    MOST,
    AlertNow,
    ApprovalNow,
    FireNow,
    HandoffNow,
    PauseNow,
    RunNow,
    Snapshot,
    SpentNow,
    cause_of,
    counted,
    midnight,
    nobody_since,
    outline,
    with_alarms,
)
from becket.app.state import StateFolder
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import UNSETTLED
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import AlertState, RunFilter
from becket.kernel.store.quick import LOOKS_BACK

MOST_COUNTED = 10_000


def take_from_store(state: StateFolder) -> Snapshot:
    return asyncio.run(_take(state))


async def _take(state: StateFolder) -> Snapshot:
    app = App.open(state)
    try:
        return await overview(app)
    finally:
        await app.store.close()


async def overview(app: App, *, counting: bool = True) -> Snapshot:
    store = app.store
    now = await store.now()
    settings = app.config.model_dump(mode="json")
    found = await store.count_runs((TRIES,)) if counting else {}
    by_status = {status.value: count for status, count in found.items()}
    handoffs = await store.handoffs(UNSETTLED)
    approvals = [item for item in await store.approvals(open_only=True) if item.expires_at > now]
    cursors = sorted((cursor.due_at, cursor.name) for cursor in await store.cursors("schedule:") if cursor.due_at)
    alerts = sorted(await store.alerts((AlertState.open, AlertState.told)), key=lambda item: item.first_at)
    snapshot = replace(
        outline(app.state, settings, now),
        counts=counted(by_status, len({item.run_id for item in handoffs})),
        running=await _runs(app, RunStatus.running, now),
        queued=await _runs(app, RunStatus.queued, now),
        waiting=await _runs(app, RunStatus.waiting, now),
        handoffs=tuple(
            HandoffNow(
                item.handoff_id, item.run_id, item.loop_id, item.subject, item.owner, item.reason, item.next_step,
                item.state.value, item.taken_by, item.created_at, cause_of(item.evidence),
            )
            for item in sorted(handoffs, key=lambda item: item.created_at)[:MOST]
        ),
        approvals=tuple(
            ApprovalNow(
                item.approval_id, item.run_id, item.question, item.bound_to, item.role, item.asked_at, item.expires_at
            )
            for item in sorted(approvals, key=lambda item: item.asked_at)[:MOST]
        ),
        paused=tuple(
            PauseNow(item.scope, item.by, item.via, item.note, item.at)
            for item in sorted(await store.controls(), key=lambda item: item.scope)
        ),
        fires=tuple(FireNow(name.split(":")[1], at) for at, name in cursors[:MOST]),
        spent=_spent(await store.calls(since=midnight(now))),
        main=await _main(app),
        alerts=tuple(AlertNow(item.key, item.text, item.count, item.first_at, "engine") for item in alerts[:MOST]),
    )  # fmt: skip
    return with_alarms(snapshot, app.state)


async def _main(app: App) -> MainNow | None:
    store, branch = app.store, app.config.branch
    head = await app.git.resolve(f"refs/heads/{branch}")
    if head is None:
        return None
    if proven := await store.recorded_by("proven", f"{branch}@{head}"):
        run = await store.get_run(proven)
        repaired, at = bool(proven_by(run).get("repaired")), run.ended_at or run.updated_at
        return MainNow(branch, head, GREEN, at, run.run_id, run.loop_id, repaired=repaired)
    last = await _last_green(app, branch)
    behind = len(await app.git.commits(last, head, MOST_COUNTED)) if last else None
    now = MainNow(branch, head, last_green=last, behind=behind)
    judges = await store.list_runs(RunFilter(loop_id=JUDGES, subject=f"{branch}@{head}", limit=MOST))
    counting = [run for run in judges if run.status not in (RunStatus.cancelled, RunStatus.completed_dry_run)]
    return await _judged(app, now, counting) if counting else now


async def _judged(app: App, now: MainNow, judges: list[Run]) -> MainNow:
    run = judges[0]
    alone = run.status.value in BUSY and not cared_for(app, run)
    now = replace(now, run_id=run.run_id, loop_id=run.loop_id, at=run.created_at, alone=alone)
    steps = [step for each in judges for step in reversed(await app.store.steps(each.run_id))]
    failing = failing_of([(one.object, one.name, one.evidence) for one in step.conditions] for step in steps)
    now = standing(now, run.status.value, run.reason, failing)
    for handoff in await app.store.handoffs(UNSETTLED, run.run_id) if not now.open else ():
        now = replace(now, owner=handoff.owner, ready=handoff.reason in REASONS)
    return now


async def _last_green(app: App, branch: str) -> str:
    runs = await app.store.list_runs(
        RunFilter(loop_id=JUDGES, statuses=(RunStatus.completed,), within=LOOKS_BACK, limit=MOST)
    )
    found = (str(proven_by(run).get("sha", "")) for run in runs if run.subject.name.startswith(f"{branch}@"))
    return next(filter(None, found), "")


def _spent(calls: tuple[AgentCall, ...]) -> SpentNow | None:
    if not calls:
        return None
    found = added("", calls)
    return SpentNow(found.calls, found.open, found.seconds, found.tokens, found.usd, found.unpriced)


async def _runs(app: App, status: RunStatus, now: float) -> tuple[RunNow, ...]:
    runs = await app.store.list_runs(RunFilter(statuses=(status,), limit=MOST, oldest_first=True))
    return tuple([await _run(app, run, now) for run in runs])


async def _run(app: App, run: Run, now: float) -> RunNow:
    """The Store port does not tell when a wait is over; the journal's own file does."""
    steps = await app.store.steps(run.run_id, run.iteration)
    last = steps[-1] if steps else None
    return RunNow(
        run_id=run.run_id, loop_id=run.loop_id, subject=run.subject.name, status=run.status.value, held=run.held,
        iteration=run.iteration, phase=last.phase.value if last else "", step=last.id if last else "",
        since=await _since(app, run), waits_for=run.waiting_on,
        quota=quota_of(await app.store.calls(run.run_id)) if QUOTA in run.waiting_on else None,
        nobody_since=nobody_since(run.model_dump(), now, cared_for(app, run)),
    )  # fmt: skip


def cared_for(app: App, run: Run) -> bool:
    """A journal that is shared may have workers on other machines, whose locks are not here: their leases tell."""
    if app.config.database is not None and run.status is RunStatus.running:
        return True
    return is_cared_for(app.state, run.run_id, run.worker)


async def _since(app: App, run: Run) -> float:
    if run.status is RunStatus.running:
        events = await app.store.events(run.run_id)
        return next((event.at for event in reversed(events) if event.kind is EventKind.run_claimed), run.updated_at)
    if run.status is RunStatus.waiting:
        return min(run.waits_since.values(), default=run.updated_at)
    return run.created_at
