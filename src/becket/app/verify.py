"""`becket verify RUN`: recompute every digest a run rests on and, on request, repeat its commands."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.contract.effect import EffectState
from becket.contract.events import Event, Kind, event_digest
from becket.contract.process import ChildSpec, Network
from becket.contract.receipt import StoredReceipt
from becket.contract.run import ENDED, Run, Status

REPEATABLE = ("command", "verifier")
"""Kinds of receipts whose command may be run again: effects never are."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that was looked at."""

    ok: bool
    what: str
    detail: str


async def verify_run(app: App, run_id: str, rerun: bool) -> tuple[Checked, ...]:
    """Everything that can be checked without believing the tables that are being checked."""
    run = await app.store.get_run(run_id)
    events = await app.store.events(run.run_id)
    receipts = await app.store.receipts(run.run_id)
    checks = [
        _chain(run, events),
        _status(run, events),
        await _spec(app, run),
        await _steps(app, run, events),
        *_receipts(receipts),
        *await _artifacts(app, run, receipts),
        *await _effects(app, run, events),
    ]
    if rerun:
        checks += await _repeat(app, run, receipts)
    return tuple(checks)


def _chain(run: Run, events: tuple[Event, ...]) -> Checked:
    previous = ""
    for number, event in enumerate(events, 1):
        digest = event_digest(event.run_id, event.seq, event.at, event.kind.value, event.data, event.previous)
        if (event.seq, event.previous, event.digest) != (number, previous, digest):
            return Checked(False, "events", f"event {event.seq} was changed, or one before it is missing")
        previous = event.digest
    if (len(events), previous) != (run.event_count, run.head):
        return Checked(False, "events", f"{run.event_count} were written, {len(events)} are there")
    return Checked(True, "events", f"{len(events)} in one unbroken chain")


_STATUS_OF = {
    Kind.run_created: Status.queued,
    Kind.run_claimed: Status.running,
    Kind.run_requeued: Status.queued,
    Kind.run_waiting: Status.waiting,
    Kind.run_woken: Status.queued,
}


def _status(run: Run, events: Iterable[Event]) -> Checked:
    derived: Status | None = None
    for event in events:
        ended = event.kind is Kind.run_ended
        derived = Status(event.data["status"]) if ended else _STATUS_OF.get(event.kind, derived)
    return Checked(derived is run.status, "status", f"the events say {derived}, the run says {run.status.value}")


async def _spec(app: App, run: Run) -> Checked:
    import hashlib

    text = await app.store.spec_text(run.spec_digest)
    same = hashlib.sha256(text.encode()).hexdigest() == run.spec_digest
    return Checked(same, "spec", f"{run.spec_digest[:12]} {'as stored' if same else 'was changed'}")


async def _steps(app: App, run: Run, events: Iterable[Event]) -> Checked:
    told = {
        (event.data["phase"], event.data["id"])
        for event in events
        if event.kind in (Kind.step_done, Kind.step_failed, Kind.step_skipped)
    }
    steps = await app.store.steps(run.run_id)
    silent = [f"{step.phase}.{step.id}" for step in steps if step.id[0] != "@" and (step.phase, step.id) not in told]
    return Checked(not silent, "steps", f"no event tells of {', '.join(silent)}" if silent else f"{len(steps)} told")


def _receipts(receipts: Iterable[StoredReceipt]) -> list[Checked]:
    checks = []
    for item in receipts:
        same = item.receipt.digest == item.digest
        checks.append(Checked(same, f"receipt {item.digest[:12]}", f"{item.phase}.{item.action_id}"))
    return checks


async def _artifacts(app: App, run: Run, receipts: Iterable[StoredReceipt]) -> list[Checked]:
    refs = {ref.digest: f"{ref.phase}.{ref.action_id} {ref.name}" for ref in await app.store.artifacts(run.run_id)}
    refs |= {item.receipt.log: f"log of {item.action_id}" for item in receipts if item.receipt.log}
    return [Checked(app.artifacts.check(digest), f"artifact {digest[:12]}", name) for digest, name in refs.items()]


async def _effects(app: App, run: Run, events: Iterable[Event]) -> list[Checked]:
    intended = {event.data.get("key") for event in events if event.kind is Kind.effect_intended}
    checks = []
    for effect in await app.store.effects(run.run_id):
        open_end = run.status in ENDED and effect.state is EffectState.intended
        known = effect.key in intended and not open_end and effect.state is not EffectState.unknown
        checks.append(Checked(known, f"effect {effect.key[:12]}", f"{effect.call.name} {effect.state.value}"))
    return checks


async def _repeat(app: App, run: Run, receipts: tuple[StoredReceipt, ...]) -> list[Checked]:
    """The commands again, in their order, in a fresh checkout; only exit codes are compared: logs hold times."""
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir=app.state.folder))
    try:
        repeated = [item for item in receipts if item.receipt.kind in REPEATABLE]
        return [await _again(app, run, item, folder) for item in repeated]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _again(app: App, run: Run, item: StoredReceipt, folder: Path) -> Checked:
    body = item.receipt.body
    result = await app.processes.run(
        ChildSpec(
            argv=item.receipt.command,
            tree=await _place(app, run, folder, str(body.get("cwd"))),
            env=body.get("env", {}),
            network=Network(body.get("network", "none")),
            output=folder / "again.log",
            readable=app.readable(),
            hidden=app.hidden(),
        )
    )
    same = result.exit_code == item.receipt.exit_code
    detail = f"{item.phase}.{item.action_id}: exit code {item.receipt.exit_code} then, {result.exit_code} now"
    return Checked(same, f"again {item.digest[:12]}", detail)


async def _place(app: App, run: Run, folder: Path, name: str) -> Path:
    if name == "scratch":
        (folder / "scratch").mkdir(exist_ok=True)
        return folder / "scratch"
    found = await app.git.find_workspace(folder)
    if found is None:
        fields = run.subject.fields
        found = await app.git.open_workspace(folder, str(fields.get("sha") or f"refs/heads/{fields['branch']}"))
    return found.tree
