"""What a person may ask of the runtime: the same for the command line, a page and a chat, which say who asks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from becket.app.compose import App
from becket.app.driving import ALL
from becket.app.neighbours import bury_gone, sweep_children
from becket.app.proposals import declined_for, must_decide, ready_for
from becket.app.record.settling import retried
from becket.app.state import StateFolder, holder
from becket.kernel.contract.base import Json, Record, new_id
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.contract.handoff import Approval, Handoff, HandoffState
from becket.kernel.contract.naming import Line, alone
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.run import ENDED, Run, RunStatus, Started
from becket.kernel.contract.spec import Autonomy, EventName
from becket.kernel.contract.store import Control
from becket.kernel.contract.template import fields
from becket.kernel.dispatch.bell import ring
from becket.kernel.engine.intake import StartRequest
from becket.kernel.engine.state import StateReader

T = TypeVar("T")

LOOK_EVERY = 0.1
_SHA = re.compile("[0-9a-f]{4,64}")
SHORT_HASH = 8
_EVENT_NAME = TypeAdapter[str](EventName)
_LINE = TypeAdapter[str | None](Line | None)
_NOT_UTF8 = re.compile("[\ud800-\udfff]")  # as Python reads a byte of the command line that is none


class RunRequest(Record):
    """A run that a person wants."""

    loop_id: str
    subject: str | None = None
    sha: str | None = None  # instead of a subject, where the loop is about a commit; its beginning is enough
    inputs: dict[str, Json] = Field(default_factory=dict)
    dry_run: bool = False
    autonomy: Autonomy | None = None


async def start(app: App, caller: Caller, request: RunRequest) -> Started:
    """Start it, or find the run that answers: also one that left a ready repair, so that nobody pays for a second."""
    _check_told(app, {"--subject": request.subject}, request.inputs)
    ask = StartRequest(
        loop_id=request.loop_id, subject=request.subject, inputs=request.inputs, dry_run=request.dry_run,
        autonomy=request.autonomy,
        fields={} if request.sha is None else await _about(app, request.loop_id, request.sha), by=caller,
    )  # fmt: skip
    if ready := await ready_for(app, ask):
        return Started(run=ready, created=False)
    if said := await declined_for(app, ask):
        return Started(run=None, created=False, dropped=said)
    return await _rung(app, app.intake.start(ask))


async def _about(app: App, loop_id: str, text: str) -> dict[str, Json]:
    """A commit and its branch: the watched one where that holds it, else the one that is checked out at it."""
    sha = await _commit(app, loop_id, text)
    watched = await app.git.resolve(f"refs/heads/{app.config.branch}")
    if watched is not None and await app.git.contains(watched, sha):
        return {"sha": sha, "branch": app.config.branch}
    here = (await app.git.refs())["HEAD"].partition("refs/heads/")[2]
    return {"sha": sha, "branch": here if here and await app.git.resolve("HEAD") == sha else alone(sha)}


async def _commit(app: App, loop_id: str, text: str) -> str:
    """The commit that a person means."""
    template = app.loops.get(loop_id).spec.subject
    if "sha" not in {field.name for field in fields(template)}:
        raise UsageError(f"{loop_id} is not about a commit (its subjects look like {template!r}); use --subject")
    short = text.lower() if _SHA.fullmatch(text.lower()) else ""
    try:
        sha = await app.git.resolve(short or text)
    except GitFailed:  # not even the shape of a revision
        sha = None
    if sha is None or not sha.startswith(short):
        raise UsageError(
            f"there is no commit {text!r} here; give a revision such as HEAD~1, or the beginning of a hash, at least 4 "
            "characters"
        )
    return sha


async def retry(app: App, caller: Caller, run_id: str) -> Started:
    run = await app.store.get_run(run_id)
    if run.status not in ENDED:
        raise UsageError(f"{run.run_id} is {run.status.value}; only a run that has ended can be tried again")
    started = await _rung(app, app.intake.retry(run, caller))
    if started.run is not None:
        await retried(app, run.run_id, started.run.run_id)
    return started


async def post_event(
    app: App, caller: Caller, name: str, data: Mapping[str, Json], event_id: str | None = None
) -> tuple[str, tuple[Started, ...]]:
    """The event's id and what it started. The same id again starts only what is still missing."""
    try:
        _EVENT_NAME.validate_python(name)
    except ValidationError:
        raise UsageError(
            f"{name[:60]!r} is no name of an event, so no loop can hear it; write lower-case names joined by dots, "
            "like ci.failed"
        ) from None
    _check_told(app, {"--id": event_id}, data)
    event_id = event_id or new_id("evt")
    return event_id, await _rung(app, app.triggers.post(name, dict(data), event_id, by=caller))


def _check_told(app: App, lines: Mapping[str, str | None], inputs: Mapping[str, Json]) -> None:
    """What cannot or must not be kept is refused before it is. Where no person could be told, the intake takes a
    secret out instead.
    """
    for name, line in lines.items():
        try:
            _LINE.validate_python(line)
        except ValidationError:
            raise UsageError(f"{name} is not a plain line of 1 to 500 characters; write it so") from None
    for name, value in {**lines, **{f"--with {name}": value for name, value in inputs.items()}}.items():
        if _NOT_UTF8.search(f"{name}{value}"):
            raise UsageError(f"{name} is not UTF-8; write it so, or hand it on by file")
        if app.redactor.value({name: value}) != {name: value}:
            raise UsageError(
                f"{app.redactor.text(name)} holds what looks like a secret, and what a run is told is kept and shown. "
                "Leave it out; let the command that needs it get it itself, for instance from a file"
            )


async def cancel(app: App, caller: Caller, run_id: str, reason: str = "") -> Run:
    """Cancel at once what waits; a run at work is told so and ends by itself."""
    run = await app.store.get_run(run_id)
    if run.status in ENDED:
        raise UsageError(f"{run.run_id} has already ended: {run.status.value}; there is nothing to cancel")
    await bury_gone(app)  # nobody would hear it whose process is gone
    return await _rung(app, _ask_cancel(app, caller, run, reason))


async def _ask_cancel(app: App, caller: Caller, run: Run, reason: str) -> Run:
    state = await StateReader(app.store, lambda: app.git, run.run_id).of_run(app.loops, run)
    return await app.store.ask_cancel(run.run_id, caller, app.redactor.text(reason), state)


async def cancel_to_the_end(app: App, caller: Caller, run_id: str, reason: str = "") -> Run:
    """Cancel it and come back when it has ended: at the latest when the lease of whoever does not listen runs out."""
    run = await cancel(app, caller, run_id, reason)
    while run.status not in ENDED:
        await asyncio.sleep(LOOK_EVERY)  # the other end is another process
        run = await app.store.get_run(run.run_id)
        at_work = run.status is RunStatus.running and (run.lease_until or 0.0) > await app.store.now()
        if run.status not in ENDED and not at_work:  # given back meanwhile, or left alone: a second wish ends it
            run = await _ask_cancel(app, caller, run, reason)
        await bury_gone(app)
    await sweep_children(app, await bury_gone(app))  # those of a worker that did not listen
    return run


async def drop(app: App, caller: Caller, run_id: str) -> Run:
    """Cancel a run that is not at work."""
    run = await app.store.get_run(run_id)
    if run.status is RunStatus.running:
        raise UsageError(f"{run.run_id} is at work; stop it with `becket runs cancel {run.run_id}`")
    return await cancel(app, caller, run.run_id, "dropped")


async def hold(app: App, caller: Caller, run_id: str, on: bool) -> Run:
    run = await app.store.get_run(run_id)
    return await _rung(app, app.store.hold(run.run_id, caller, on))


async def pause(app: App, caller: Caller, loop_id: str | None, on: bool, note: str) -> tuple[Control, ...]:
    """Keep a loop, or everything, from being started; what is at work goes on to its end."""
    scope = ALL if loop_id is None else f"loop:{loop_id}"
    if (
        loop_id is not None
        and not app.trouble
        and scope not in {control.scope for control in await app.store.controls()}
    ):
        app.loops.get(loop_id)  # the pause of a loop that is gone can still be taken back
    return await _rung(app, app.store.set_control(scope, on, caller, app.redactor.text(note)))


async def migrate(app: App, caller: Caller, run_id: str) -> Run:
    """Move a waiting run to its loop's current spec."""
    run = await app.store.get_run(run_id)
    loop = app.loops.get(run.loop_id)
    if loop.digest == run.spec_digest:
        raise UsageError(f"{run.run_id} follows the current spec of {run.loop_id} already")
    return await app.store.migrate(run.run_id, loop.digest, loop.text, caller)


async def decide(app: App, caller: Caller, approval_id: str, approve: bool, about: str | None, note: str) -> Approval:
    if about is not None and len(about) >= SHORT_HASH:  # lists show the beginning; it is enough to mean this one
        bound_to = (await app.store.get_approval(approval_id)).bound_to
        about = bound_to if bound_to.startswith(about) else about
    return await _rung(app, app.store.decide_approval(approval_id, approve, caller, about, app.redactor.text(note)))


async def revoke(app: App, caller: Caller, approval_id: str, note: str) -> Approval:
    return await _rung(app, app.store.revoke_approval(approval_id, caller, app.redactor.text(note)))


async def change_handoff(app: App, caller: Caller, handoff_id: str, state: HandoffState, note: str) -> Handoff:
    """A ready repair that is settled is gone: that needs whoever may decline it."""
    item = await app.store.get_handoff(handoff_id)
    if item.reason in REASONS:
        must_decide(caller)
    return await app.store.change_handoff(item.handoff_id, state, caller, app.redactor.text(note))


def daemon_is_up(state: StateFolder) -> bool:
    return holder(state.daemon_lock) is not None


async def _rung(app: App, work: Awaitable[T]) -> T:
    result = await work
    ring(app.state.bell)
    return result
