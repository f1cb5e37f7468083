"""Handoffs close by themselves once their subject is settled: with the reason, in one transaction with its event."""

from __future__ import annotations

import contextlib
import logging

from becket.app.compose import App
from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import itself
from becket.kernel.contract.errors import BecketError, NotFound, UsageError
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.handoff import BY_ITSELF, SETTLED, UNSETTLED, Handoff, HandoffState
from becket.kernel.contract.ready import CHANGES, REASONS
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import Run, RunStatus

log = logging.getLogger("becket.settling")


async def close(app: App, handoff: Handoff, why: str) -> None:
    with contextlib.suppress(UsageError):  # somebody was faster
        await app.store.change_handoff(handoff.handoff_id, HandoffState.done, itself(BY_ITSELF), f"{SETTLED}{why}")
        log.info("%s about %s is closed: %s", handoff.handoff_id, handoff.subject, why)


def proven_by(run: Run) -> dict[str, Json]:
    """What a run proved of its branch: the evidence of `main_proven`, or nothing."""
    found = run.detail.get("main_proven") if run.status is RunStatus.completed else None
    return found if isinstance(found, dict) else {}


class Settlements:
    """A chore for runs whose end nobody here saw: after a crash they are still to be followed."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._seen: frozenset[str] = frozenset()

    async def look(self) -> None:
        ended = await self._app.store.unfollowed()
        for run in ended:
            if run.run_id not in self._seen:
                await settle(self._app, run)
        self._seen = frozenset(run.run_id for run in ended)


async def settle(app: App, run: Run) -> None:
    """Close what the end of this run settles: earlier handoffs of its loop about commits that its proven one holds."""
    await _tried_again(app, run)
    sha = str(proven_by(run).get("sha", ""))
    for handoff in await app.store.handoffs(UNSETTLED) if sha else ():
        if handoff.loop_id != run.loop_id or handoff.run_id == run.run_id:
            continue
        fields = await _fields(app, handoff)
        same = fields.get("branch") == run.subject.fields.get("branch")
        if same and await holds(app, sha, str(fields.get("sha", ""))):
            await close(app, handoff, f"{fields['branch']} is proven at {sha[:12]} by {run.run_id}")
            if await _has(app, sha, str(handoff.evidence.get("candidate", ""))):
                await _withdraw(app, handoff)
    await _changed(app, run)


async def _changed(app: App, run: Run) -> None:
    """Another ready repair stands for the one that it was to change; without one, that is offered as it was."""
    left_by = str(run.inputs.get(CHANGES) or "")
    for handoff in await app.store.handoffs((HandoffState.changing,), left_by) if left_by else ():
        if run.status is RunStatus.ready_for_handoff and run.reason in REASONS:
            await close(app, handoff, f"changed as {handoff.taken_by} asked, by {run.run_id}")
            continue
        why = f"nothing came of the changes: {run.run_id} ended: {reason_words(run.reason)}; {handoff.note}"
        with contextlib.suppress(UsageError):
            await app.store.change_handoff(handoff.handoff_id, HandoffState.open, itself(BY_ITSELF), why)


async def _tried_again(app: App, run: Run) -> None:
    """What handed over the same for the same reason stands for all that did before; a ready repair is worth keeping."""
    if run.status is not RunStatus.ready_for_handoff or run.reason in REASONS:
        return
    for handoff in await app.store.handoffs(UNSETTLED):
        same = (handoff.loop_id, handoff.subject, handoff.reason) == (run.loop_id, run.subject.name, run.reason)
        if same and handoff.run_id < run.run_id:
            await close(app, handoff, f"tried again by {run.run_id}")


async def branch_moved(app: App, moved: RefMoved) -> None:
    """A person may have merged a ready repair by hand."""
    if moved.new is None:
        return
    for handoff in await app.store.handoffs(UNSETTLED):
        if handoff.reason in REASONS and (await _fields(app, handoff)).get("branch") == moved.branch:
            await close_if_merged(app, handoff, moved.new)


async def close_if_merged(app: App, handoff: Handoff, head: str) -> bool:
    """Also where the same change stands there as another commit."""
    sha = str(handoff.evidence.get("candidate", ""))
    if not await _has(app, head, sha):
        return False
    accepted = handoff.state is HandoffState.accepted  # by whom it was moved, the run that took it tells
    how = f"accepted by {handoff.taken_by}, and there" if accepted else "merged by hand"
    await close(app, handoff, f"{how} at {head[:12]}")
    await _withdraw(app, handoff)
    return True


async def _withdraw(app: App, handoff: Handoff) -> None:
    """The branch that offered it is of no more use, where a person said to take it to another."""
    branch, sha = str(handoff.evidence.get("branch", "")), str(handoff.evidence.get("candidate", ""))
    if handoff.reason in REASONS and handoff.state is HandoffState.accepted and branch:
        try:
            await app.git.withdraw(f"refs/heads/{branch}", sha)
        except BecketError as error:
            log.warning("%s is left: %s", branch, error)


async def retried(app: App, run_id: str, new: str) -> None:
    for handoff in await app.store.handoffs(UNSETTLED, run_id):
        await close(app, handoff, f"retried as {new}")


async def _fields(app: App, handoff: Handoff) -> dict[str, Json]:
    try:
        return (await app.store.get_run(handoff.run_id)).subject.fields
    except NotFound:
        return {}


async def holds(app: App, commit: str, ancestor: str) -> bool:
    try:
        return bool(ancestor) and await app.git.contains(commit, ancestor)
    except BecketError:  # it is not there any more, so nothing can be said
        return False


async def _has(app: App, head: str, sha: str) -> bool:
    return await holds(app, head, sha) or await _same_change(app, head, sha)


async def _same_change(app: App, head: str, sha: str) -> bool:
    try:
        return bool(sha) and await app.git.has_change(head, sha)
    except BecketError:
        return False
