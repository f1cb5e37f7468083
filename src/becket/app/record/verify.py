"""`becket verify RUN`: compare what a run's tables hold with what its chain of events says, in both directions.

The events are chained by digests, and each carries the seals of the rows it tells of; so a change of one row, or of one
file, is found. Whoever can write the database can also write the whole chain anew. Against that only a copy elsewhere
helps: the head of the chain, kept outside and given back as `head`.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from becket.app.compose import App
from becket.app.record.payments import PaymentRows, check_payments, trouble_of
from becket.app.record.proofs import check_proofs
from becket.app.record.replay import Replay, as_it_stands
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect, EffectState
from becket.kernel.contract.errors import NotFound, StoreDamaged, UsageError
from becket.kernel.contract.events import Event, event_digest, row_name
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.receipt import Repetition, StoredReceipt
from becket.kernel.contract.run import ENDED, Run, Step

T = TypeVar("T")

PAGE = 5000
LOOKS = 40
PAUSE = 0.05


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at."""

    ok: bool
    what: str
    detail: str
    repeated: bool = False  # a command of the run was done again for it


@dataclass(frozen=True, slots=True)
class Verified:
    """Everything that was looked at, and the digest of the run's last event."""

    run_id: str
    head: str
    checks: tuple[Checked, ...]

    @property
    def ok(self) -> bool:
        return all(item.ok for item in self.checks)


@dataclass(slots=True)
class _Rows:
    """What the tables hold of one run; `broken` are tables that cannot be read."""

    run: Run
    events: tuple[Event, ...] = ()
    steps: tuple[Step, ...] = ()
    conditions: tuple[Condition, ...] = ()
    receipts: tuple[StoredReceipt, ...] = ()
    effects: tuple[Effect, ...] = ()
    approvals: tuple[Approval, ...] = ()
    handoffs: tuple[Handoff, ...] = ()
    calls: tuple[AgentCall, ...] = ()
    spent: dict[str, float] = field(default_factory=dict)
    seals: dict[str, str] = field(default_factory=dict)
    broken: list[Checked] = field(default_factory=list)


async def verify_run(app: App, run_id: str, rerun: bool) -> tuple[Checked, ...]:
    """The checks of `verified`."""
    return (await verified(app, run_id, rerun)).checks


async def verified(app: App, run_id: str, rerun: bool, head: str | None = None) -> Verified:
    """Everything that can be checked without believing the tables that are being checked."""
    try:
        rows = await _read(app, run_id)
    except (ValueError, TypeError, StoreDamaged) as error:
        return Verified(run_id, "", (Checked(False, "run", f"its row cannot be read: {_short(error)}"),))
    told = _replay(rows)
    checks = [
        *rows.broken,
        check_chain(rows.run, rows.events),
        *(Checked(False, "events", problem) for problem in told.problems),
        _status(rows.run, told),
        _run(rows, told),
        await _spec(app, rows.run, told),
        *_steps(rows, told),
        *_conditions(rows, told),
        *_receipts(rows, told),
    ]
    checks += await _proofs(app, rows)
    provable = all(item.ok for item in checks)
    checks += [*_artifacts(app, rows, told), *_effects(rows, told), *_people(rows, told)]
    checks += [*_payments(rows, told), *_rest(rows, told)]
    if head is not None:
        checks.append(_kept(rows.events, head.strip().lower()))
    if rerun:
        # A command out of a record that does not hold is nobody's word: it is not run.
        no = Checked(False, "again", "nothing was repeated: the record itself does not hold")
        checks += await _repeat(app, rows.run, rows.receipts) if provable else [no]
    return Verified(rows.run.run_id, rows.run.head, tuple(checks))


async def _read(app: App, run_id: str) -> _Rows:
    """All tables at one moment: each is read by itself, so a run that moved meanwhile is read again."""
    for _ in range(LOOKS):
        run = await app.store.get_run(run_id)
        rows = await _read_once(app, run)
        if await app.store.get_run(run_id) == run:
            return rows
        await asyncio.sleep(PAUSE)
    raise UsageError(f"run {run_id} is at work and changes while it is read; verify it when it waits or has ended")


async def _read_once(app: App, run: Run) -> _Rows:
    store, rows = app.store, _Rows(run)
    rows.events = await _readable(rows, "events", all_events(app, run.run_id), ())
    rows.steps = await _readable(rows, "steps", store.steps(run.run_id), ())
    rows.conditions = await _readable(rows, "conditions", store.conditions(run.run_id), ())
    rows.receipts = await _readable(rows, "receipts", store.receipts(run.run_id), ())
    rows.effects = await _readable(rows, "effects", store.effects(run.run_id), ())
    rows.approvals = await _readable(rows, "approvals", store.approvals(run.run_id), ())
    rows.handoffs = await _readable(rows, "handoffs", store.handoffs(run_id=run.run_id), ())
    rows.calls = await _readable(rows, "calls", store.calls(run.run_id), ())
    rows.spent = await store.spent(run_id=run.run_id)
    rows.seals = await store.seals(run.run_id)
    return rows


async def _readable(rows: _Rows, what: str, read: Awaitable[T], otherwise: T) -> T:
    try:
        return await read
    except (ValueError, TypeError, StoreDamaged) as error:
        rows.broken.append(Checked(False, what, f"a row cannot be read: {_short(error)}"))
        return otherwise


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


async def all_events(app: App, run_id: str) -> tuple[Event, ...]:
    found: list[Event] = []
    while page := await app.store.events(run_id, after=found[-1].seq if found else 0, limit=PAGE):
        found += page
    return tuple(found)


def check_chain(run: Run, events: tuple[Event, ...]) -> Checked:
    previous = ""
    for number, event in enumerate(events, 1):
        digest = event_digest(event.run_id, event.seq, event.at, event.kind.value, event.data, event.previous)
        if (event.seq, event.previous, event.digest) != (number, previous, digest):
            return Checked(False, "events", f"event {event.seq} was changed, or one before it is missing")
        previous = event.digest
    if (len(events), previous) != (run.event_count, run.head):
        return Checked(False, "events", f"{run.event_count} were written, {len(events)} are there")
    return Checked(True, "events", f"{len(events)} in one unbroken chain")


def _kept(events: tuple[Event, ...], head: str) -> Checked:
    """A head that was kept elsewhere: everything up to it is as it was then."""
    at = next((number for number, event in enumerate(events, 1) if event.digest == head), None)
    if at is None:
        return Checked(False, "kept head", "is not in this chain: the record was written anew, or it is another run's")
    later = len(events) - at
    return Checked(True, "kept head", f"is event {at}, {f'with {later} after it' if later else 'the last one'}")


def _status(run: Run, told: Replay) -> Checked:
    return Checked(told.status is run.status, "status", f"the events say {told.status}, the run says {run.status}")


def _run(rows: _Rows, told: Replay) -> Checked:
    """`wall_used` is a sum of floats, and each step's event tells its own to the millisecond."""
    now = as_it_stands(rows.run)
    changed = [name for name, value in now.items() if name != "spec_digest" and told.run.get(name) != value]
    if abs(rows.run.wall_used - told.seconds) > 0.01 + 0.001 * len(rows.steps):
        changed.append("wall_used")
    if changed:
        return Checked(False, "run", f"{', '.join(changed)}: not what the events say")
    return Checked(True, "run", f"{len(now)} facts as the events say")


async def _spec(app: App, run: Run, told: Replay) -> Checked:
    shown = run.spec_digest[:12]
    if told.run.get("spec_digest") != run.spec_digest:
        return Checked(False, "spec", f"{shown} is not the one that the events name")
    try:
        text = await app.store.spec_text(run.spec_digest)
    except NotFound:
        return Checked(False, "spec", f"{shown} is gone")
    same = hashlib.sha256(text.encode()).hexdigest() == run.spec_digest
    return Checked(same, "spec", f"{shown} {'as stored' if same else 'was changed'}")


def _names(rows: _Rows, told: Replay, kind: str) -> list[str]:
    """The rows of one kind: those told of, then those nobody told of."""
    return [name for name in {**told.seals, **rows.seals} if name.startswith(f"{kind} ")]


def _troubles(rows: _Rows, told: Replay, kind: str) -> Iterator[Checked]:
    for name in _names(rows, told, kind):
        if trouble := trouble_of(name, rows.seals, told):
            yield Checked(False, _shown(name), trouble)


def _shown(name: str) -> str:
    """A row's name with its digests cut short."""
    return re.sub(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b", r"\1", name)


def _steps(rows: _Rows, told: Replay) -> list[Checked]:
    names = _names(rows, told, "step")
    bad = list(_troubles(rows, told, "step"))
    if not bad and names != [name for name in rows.seals if name in told.seals and name.startswith("step ")]:
        bad = [Checked(False, "steps", "their order was changed")]
    return bad or [Checked(True, "steps", f"{len(names)} as told")]


def _conditions(rows: _Rows, told: Replay) -> list[Checked]:
    """They change with every step and have no seals: the steps of the journal say which must stand now."""
    standing = {(item.object, item.name): item for item in rows.conditions}
    bad = []
    for key in {**told.conditions, **standing}:
        expected, found = told.conditions.get(key), standing.get(key)
        if expected != found:
            why = "it is gone" if found is None else "no step raised it" if expected is None else "it was changed"
            bad.append(Checked(False, f"condition {'.'.join(key).removeprefix('run.')}", why))
    return bad or [Checked(True, "conditions", f"{len(standing)} as the steps raised them")]


def _receipts(rows: _Rows, told: Replay) -> list[Checked]:
    forged = {
        row_name("receipt", item.iteration, item.phase, item.action_id, item.digest)
        for item in rows.receipts
        if item.receipt.digest != item.digest
    }
    checks = []
    for name in _names(rows, told, "receipt"):
        _, phase, action, digest = name.split(" ", 1)[1].split("/")
        trouble = trouble_of(name, rows.seals, told) or (
            "its name is not the digest of its contents" if name in forged else ""
        )
        checks.append(_line(f"receipt {digest[:12]}", f"{phase}.{action}", trouble))
    return checks


def _line(what: str, about: str, trouble: str) -> Checked:
    return Checked(not trouble, what, f"{about}: {trouble}" if trouble else about)


def _artifacts(app: App, rows: _Rows, told: Replay) -> list[Checked]:
    """One line per content. Retention takes all references of a run at once, and says so in an event."""
    checks = [Checked(True, "retention", f"{told.dropped} artifacts dropped by retention")] if told.dropped else []
    by_digest: dict[str, list[str]] = {}
    for name in _names(rows, told, "artifact"):
        by_digest.setdefault(name.split("/", 4)[3], []).append(name)
    for digest, names in by_digest.items():
        _, phase, action, _, file = names[0].split("/", 4)
        unclaimed = all(name not in told.seals for name in names)
        bad = [trouble for name in names if name in told.seals and (trouble := trouble_of(name, rows.seals, told))]
        if not app.artifacts.check(digest):
            bad = ["its content was changed, or is gone"]
        about = f"{phase}.{action} {file}{' (not part of a recorded step)' if unclaimed else ''}"
        checks.append(_line(f"artifact {digest[:12]}", about, bad[0] if bad else ""))
    return checks


def _effects(rows: _Rows, told: Replay) -> list[Checked]:
    known = {row_name("effect", effect.key): effect for effect in rows.effects}
    checks = []
    for name in _names(rows, told, "effect"):
        effect, trouble = known.get(name), trouble_of(name, rows.seals, told)
        about = f"{effect.call.name} {effect.state}" if effect else "an effect"
        what = f"effect {name.split()[1][:12]}"
        unproven = effect is not None and not trouble and _unproven(effect, rows.run)
        checks.append(Checked(False, what, about) if unproven else _line(what, about, trouble))
    return checks


def _unproven(effect: Effect, run: Run) -> bool:
    """Nobody changed it, and yet nobody can say how it ended."""
    return effect.state is EffectState.unknown or (run.status in ENDED and effect.state is EffectState.intended)


def _people(rows: _Rows, told: Replay) -> list[Checked]:
    about = {row_name("approval", one.approval_id): f"{one.state}: {one.question}" for one in rows.approvals}
    about |= {row_name("handoff", one.handoff_id): f"{one.state}: {one.reason}" for one in rows.handoffs}
    names = [*_names(rows, told, "approval"), *_names(rows, told, "handoff")]
    return [_line(name, about.get(name, "?"), trouble_of(name, rows.seals, told)) for name in names]


def _payments(rows: _Rows, told: Replay) -> list[Checked]:
    books = PaymentRows(rows.run, rows.calls[::-1], rows.seals, rows.spent)
    return [_line(one.what, one.about, one.trouble) for one in check_payments(books, told)]


def _rest(rows: _Rows, told: Replay) -> Iterable[Checked]:
    """Facts that triggers ask for, and what an iteration hands to the next: only worth a line when wrong."""
    return [*_troubles(rows, told, "fact"), *_troubles(rows, told, "carried")]


async def _proofs(app: App, rows: _Rows) -> list[Checked]:
    """Verdicts, crossings and proofs, each against the records that it names."""

    async def elsewhere(run_id: str) -> tuple[StoredReceipt, ...] | None:
        try:
            return _borne_out(await _read_once(app, await app.store.get_run(run_id)))
        except (NotFound, ValueError, TypeError, StoreDamaged):
            return None

    found = await check_proofs(rows.receipts, rows.steps, elsewhere)
    return [_line(f"{one.kind} {one.digest[:12]}", one.about, "; ".join(one.troubles)) for one in found]


def _borne_out(rows: _Rows) -> tuple[StoredReceipt, ...]:
    """The receipts that are as the run's own chain tells; it may be longer by now than when its row was read."""
    head = rows.events[-1].digest if rows.events else ""
    now = rows.run.model_copy(update={"event_count": len(rows.events), "head": head})
    if not check_chain(now, rows.events).ok:
        return ()
    told = _replay(rows)
    return tuple(item for item in rows.receipts if item.receipt.digest == item.digest and _is_told(rows, told, item))


def _is_told(rows: _Rows, told: Replay, item: StoredReceipt) -> bool:
    return not trouble_of(
        row_name("receipt", item.iteration, item.phase, item.action_id, item.digest), rows.seals, told
    )


def _replay(rows: _Rows) -> Replay:
    steps = {row_name("step", step.iteration, step.phase.value, step.id): step for step in rows.steps}
    return Replay(rows.events, steps)


async def _repeat(app: App, run: Run, receipts: tuple[StoredReceipt, ...]) -> list[Checked]:
    checks = []
    for one in await app.port(Repetition).repeat(run, receipts):
        item = one.item
        now = f"not repeated: {one.trouble}" if one.trouble else f"{one.now} now"
        detail = f"{item.phase}.{item.action_id}: exit code {item.receipt.exit_code} then, {now}"
        checks.append(Checked(one.same, f"again {item.digest[:12]}", detail, repeated=True))
    if count := app.port(Repetition).left_out(receipts):
        checks.append(Checked(True, "again", f"{count} runs of chosen tests alone are not repeated"))
    return checks
