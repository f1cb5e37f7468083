"""What must hold of a repository after any fault, checked by one function that knows nothing of the fault.

    scene = Scene(app.store, app.artifacts, state=app.state)         # in a test, once the world has come to rest
    problems = await broken(scene)

    problems = await broken_at(root, heal=heal_by_cli)               # from outside, while processes live or afterwards

Each sentence is one thing that is wrong; none of them means that all is well.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from properties_git import Moved, git_problems, moves_of
from properties_machine import folder_problems, lock_problems, process_problems

from becket.app.compose import App
from becket.app.record.verify import verified
from becket.app.state import StateFolder, find_state
from becket.app.watchdog import ALARM_FILE
from becket.kernel.contract.effect import SETTLED, Effect, EffectState
from becket.kernel.contract.promote import PROMOTE
from becket.kernel.contract.run import ENDED, Run, RunStatus, Step
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import AlertState, RunFilter, Store
from becket.kernel.store import tables

LEASE = 30.0
LEASES = 2
"""So many lease times a run may be without anybody at work on it."""

LONGEST_DELIVERY = 86400.0
ONCE = (EffectClass.queryable, EffectClass.blind)
"""Of these the outside sees each key once. A keyed one drops what comes twice, a repeatable one may be seen twice."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What is looked at. `state` of a real repository; without one its git is modelled and `moves` are given."""

    store: Store
    artifacts: Any
    state: StateFolder | None = None
    lease: float = LEASE
    at_work: frozenset[str] | None = None  # the runs that a task of this process moves; None: looked at from outside
    served: bool = True  # an engine lives: what can start is started
    moves: Sequence[Moved] = ()
    performed: Mapping[str, int] = field(default_factory=dict)  # how often the outside saw each effect's key
    folders: Path | None = None  # of runs
    dirty: frozenset[str] = frozenset()  # paths of the work tree that a person left so
    heal: Callable[[], Awaitable[Run]] | None = None  # a later heal with nothing wrong


@dataclass(frozen=True, slots=True)
class Journal:
    """The rows that several checks need, read once."""

    now: float
    runs: dict[str, Run]
    rows: dict[str, Any]  # by run_id: what the record of a run does not show
    effects: tuple[Effect, ...]
    leases: tuple[Any, ...]
    wakeups: tuple[Any, ...]
    children: tuple[Any, ...]
    controls: frozenset[str]
    alarms: tuple[str, ...]


Check = Callable[[Scene, Journal], AsyncIterator[str]]


async def broken(scene: Scene) -> list[str]:
    """Everything that does not hold, as plain sentences."""
    journal = await _read(scene.store)
    problems = [problem for check in _CHECKS async for problem in check(scene, journal)]
    if scene.state is not None:
        problems += await asyncio.to_thread(_on_disk, scene, journal)
    if scene.heal is not None and not problems:
        problems += await _heals_again(scene, scene.heal)
    return problems


async def broken_at(root: Path, *, heal: Callable[[Path], Awaitable[Run]] | None = None, **more: Any) -> list[str]:
    """The same for a repository that other processes work on, or worked on. `more` are fields of the scene."""
    state = find_state(root)
    app = App.open(state)
    try:
        heals = None if heal is None else lambda: heal(root)
        return await broken(Scene(app.store, app.artifacts, state, heal=heals, **{"served": False, **more}))
    finally:
        await app.store.close()


async def heal_by_cli(root: Path) -> Run:
    """A heal as a person asks for it."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "becket.cli", "run", "heal", "--json", cwd=root, stdout=-1, stderr=-1
    )
    said, complained = await process.communicate()
    app = App.open(find_state(root))
    try:
        newest = await app.store.list_runs(RunFilter(loop_id="heal", limit=1))
        assert newest, f"`becket run heal` made no run: {said.decode()} {complained.decode()}"
        return newest[0]
    finally:
        await app.store.close()


async def _read(store: Store) -> Journal:
    def rows(tx: Any, table: sa.Table) -> tuple[Any, ...]:
        return tuple(tx.all(sa.select(table)))

    async def all_of(table: sa.Table) -> tuple[Any, ...]:
        return await store._db.read(rows, table)  # type: ignore[attr-defined, no-any-return]

    runs = await store.list_runs(RunFilter(limit=None, oldest_first=True))
    open_alarms = await store.alerts((AlertState.open, AlertState.told))
    return Journal(
        now=await store.now(),
        runs={run.run_id: run for run in runs},
        rows={row.run_id: row for row in await all_of(tables.runs)},
        effects=await store.effects(),
        leases=await all_of(tables.leases),
        wakeups=await all_of(tables.wakeups),
        children=await all_of(tables.children),
        controls=frozenset(one.scope for one in await store.controls()),
        alarms=tuple(f"{one.key} {one.text} {json.dumps(one.data)}" for one in open_alarms),
    )


async def _at_work(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    """Property 1: who is at work is seen by tasks here, and from outside by what the journal hears of it."""
    patience = LEASES * scene.lease
    for run in journal.runs.values():
        if run.status is not RunStatus.running or any(run.run_id in alarm for alarm in journal.alarms):
            continue
        row = journal.rows[run.run_id]
        late = journal.now - (row.lease_until or 0.0)
        if late > patience:
            yield f"run {run.run_id} is at work, its lease ran out {late:.0f} s ago, and nobody has taken it over"
        elif scene.at_work is not None:
            if run.run_id not in scene.at_work and journal.now - row.updated_at > patience:
                yield f"run {run.run_id} is at work by its row and its lease, and no task of its worker moves it"
        elif journal.now - row.updated_at > patience and not await _busy(scene, journal, run):
            quiet = journal.now - row.updated_at
            yield f"run {run.run_id} is at work by its row and its lease, and nothing was heard of it for {quiet:.0f} s"


async def _busy(scene: Scene, journal: Journal, run: Run) -> bool:
    """A child, a call or an effect of it is under way: these may take their time."""
    under_way = any(one.origin.run_id == run.run_id and one.state not in SETTLED for one in journal.effects)
    calling = any(call.end is None for call in await scene.store.calls(run.run_id))
    return under_way or calling or any(child.run_id == run.run_id for child in journal.children)


async def _waiting(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    """What is queued or waits has something that will move it, and is moved when that comes."""
    patience = LEASES * scene.lease
    startable = {run_id for run_id, _ in await scene.store.startable(1000)}
    for run in journal.runs.values():
        if run.status is RunStatus.queued:
            if problem := _never_started(scene, journal, run, startable, patience):
                yield problem
        elif run.status is RunStatus.waiting:
            due = [one.due for one in journal.wakeups if one.run_id == run.run_id]
            if not due:
                yield f"run {run.run_id} waits for {', '.join(run.waiting_on)}, and no row would ever wake it"
            elif scene.served and min(due) < journal.now - patience:
                yield f"run {run.run_id} waits, was due {journal.now - min(due):.0f} s ago, and nobody woke it"


def _never_started(scene: Scene, journal: Journal, run: Run, startable: set[str], patience: float) -> str:
    if run.held or journal.controls & {"all", f"loop:{run.loop_id}"}:
        return ""  # a person holds it back
    since = journal.now - journal.rows[run.run_id].updated_at
    if run.run_id in startable:
        late = scene.served and since > patience
        return f"run {run.run_id} could start for {since:.0f} s, and nobody starts it" if late else ""
    others = [one for one in journal.runs.values() if one.group == run.group and one.run_id != run.run_id]
    if run.group is not None and any(one.status not in ENDED for one in others):
        return ""  # its turn comes when theirs is over; whether theirs will be is asked of them
    return f"run {run.run_id} is queued, and nothing would ever start it"


async def _chains(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    """`becket verify` of every run. An effect that a person was told nobody knows of is no broken record."""
    app = SimpleNamespace(store=scene.store, artifacts=scene.artifacts)
    for run in journal.runs.values():
        if run.status is RunStatus.running:
            continue  # it changes while it is read
        for item in (await verified(app, run.run_id, rerun=False)).checks:  # type: ignore[arg-type]
            told = item.what.startswith("effect ") and item.detail.endswith(" unknown") and run.status in ENDED
            if not item.ok and not told:
                yield f"run {run.run_id} does not verify: {item.what} {item.detail}"


async def _promotions(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    """Main moves to a proven commit only, once, and the journal holds both the effect and its proof."""
    moves = list(scene.moves) if scene.state is None else await asyncio.to_thread(moves_of, scene.state)
    for new, count in Counter(move.new for move in moves).items():
        if count > 1:
            yield f"main was moved to {new[:12]} {count} times"
    by_key = {one.key: one for one in journal.effects if one.call.name == PROMOTE}
    proofs = [found for run_id in journal.runs async for found in _proofs_of(scene.store, run_id)]
    for move in moves:
        effect = by_key.get(move.key) or next(
            (one for one in by_key.values() if not move.key and one.call.payload["new"] == move.new), None
        )
        if effect is None:
            yield f"main was moved to {move.new[:12]}, and no effect of the journal tells of it"
            continue
        wanted = (str(effect.call.payload["proof"]), move.old, move.new)
        if wanted not in proofs:
            yield f"main was moved from {move.old[:12]} to {move.new[:12]} without a proof of just that in the journal"
        if effect.state not in (EffectState.done, EffectState.unknown) and effect.state in SETTLED:
            yield f"main was moved to {move.new[:12]}, and its effect {effect.key} says {effect.state}"


async def _proofs_of(store: Store, run_id: str) -> AsyncIterator[tuple[str, str, str]]:
    kept = {item.digest for item in await store.receipts(run_id)}
    for step in await store.steps(run_id):
        for condition in step.conditions:
            if condition.ref == "candidate.proven" and _backed(step, kept):
                evidence = condition.evidence
                yield str(step.outputs["digest"]), str(evidence["base"]), str(evidence["candidate"])


def _backed(step: Step, kept: set[str]) -> bool:
    return bool(kept) and all(digest in kept for digest in step.receipts)


async def _effects(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    """Each happened at most once, and is settled, tried again at a time on record, or a person's business."""
    known = {one.key: one for one in journal.effects}
    for key, count in _performed(scene).items():
        effect = known.get(key)
        if effect is None:
            yield f"the outside saw the effect {key}, and the journal does not know it"
        elif count > 1 and effect.class_ in ONCE:
            yield f"{effect.call.name} {key} reached the outside {count} times"
        elif effect.state in (EffectState.failed, EffectState.refused, EffectState.dry_run):
            yield f"{effect.call.name} {key} reached the outside, and the journal says {effect.state}"
    handed_over = {one.run_id for one in await scene.store.handoffs()}
    for effect in journal.effects:
        if problem := _unsettled(scene, journal, effect, handed_over):
            yield problem


def _performed(scene: Scene) -> dict[str, int]:
    """What the caller saw outside, and what lies in the outbox."""
    seen = Counter(scene.performed)
    outbox = () if scene.state is None else sorted(scene.state.outbox.glob("**/*.jsonl"))
    outbox = [file for file in outbox if file.name != ALARM_FILE]  # the watchdog has a store of its own
    for line in (line for file in outbox for line in file.read_text(errors="replace").splitlines()):
        try:
            seen[json.loads(line)["key"]] += 1
        except (ValueError, KeyError, TypeError):
            continue  # a torn line is no notice
    return dict(seen)


def _unsettled(scene: Scene, journal: Journal, effect: Effect, handed_over: set[str]) -> str:
    run, name = journal.runs.get(effect.origin.run_id), f"{effect.call.name} {effect.key}"
    patience = LEASES * scene.lease
    if effect.state is EffectState.unknown:
        told = run is None or run.status not in ENDED or run.run_id in handed_over or run.status is RunStatus.cancelled
        deferred = effect.call.defer  # a notice: the run does not depend on it
        return "" if told or deferred else f"nobody knows whether {name} happened, and nobody was told"
    if effect.state in SETTLED or (run is not None and run.status not in ENDED) or not scene.served:
        return ""
    due = effect.settle_at if effect.state is EffectState.intended else effect.next_at
    if due is None or due > journal.now + LONGEST_DELIVERY:
        return f"{name} is {effect.state} and nothing says when it is tried again"
    return f"{name} is {effect.state} and was due {journal.now - due:.0f} s ago" if due < journal.now - patience else ""


async def _leases(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    for lease in journal.leases:
        run = journal.runs.get(lease.run_id)
        if run is None or run.status is not RunStatus.running:
            yield f"the lease on {lease.name} is run {lease.run_id}'s, which is {run.status if run else 'not there'}"
        elif journal.rows[run.run_id].worker != lease.worker:
            yield f"the lease on {lease.name} is worker {lease.worker}'s, and its run is another's"
    for run in journal.runs.values():
        held = any(lease.run_id == run.run_id for lease in journal.leases)
        if run.status is RunStatus.running and run.group is not None and not held:
            yield f"run {run.run_id} is at work without the lease on {run.group}"


async def _folders(scene: Scene, journal: Journal) -> AsyncIterator[str]:
    place = scene.folders or (scene.state.runs if scene.state is not None else None)
    if place is not None:
        open_runs = {run.run_id for run in journal.runs.values() if run.status not in ENDED}
        for problem in folder_problems(place, open_runs):
            yield problem


_CHECKS: tuple[Check, ...] = (_at_work, _waiting, _chains, _promotions, _effects, _leases, _folders)


def _on_disk(scene: Scene, journal: Journal) -> list[str]:
    assert scene.state is not None
    busy = any(run.status is RunStatus.running for run in journal.runs.values())
    return [
        *git_problems(scene.state, scene.dirty, busy=busy),
        *lock_problems(scene.state, busy=busy),
        *process_problems(scene.state, journal.children),
    ]


async def _heals_again(scene: Scene, heal: Callable[[], Awaitable[Run]]) -> list[str]:
    """Nothing is disabled: the next heal comes to a proven end, and all of this holds after it too."""
    run = await heal()
    if run.status is not RunStatus.completed:
        return [f"a later heal of a sound repository ended {run.status}: {run.reason} {json.dumps(run.detail)[:500]}"]
    return [f"after a later heal: {problem}" for problem in await broken(replace(scene, heal=None))]
