"""One call of an agent as a run of its own, and messages to agents at work."""

from __future__ import annotations

import contextlib
from pathlib import Path

from becket.app.compose import App
from becket.app.desk import RunRequest, start
from becket.app.foreground import see_or_stop
from becket.app.record.agent_watch import CallListener, Tell
from becket.app.rescue import CannotApply
from becket.kernel.contract.agent import AgentOutcome, CallFiles
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.calls import CALLS, AgentCall, folder_of
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.git import TreeState
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import ENDED, Run, RunStatus, Started
from becket.kernel.git.apply import DoesNotFit, apply_patch
from becket.parts.agents.adapters.inbox import put
from becket.parts.agents.configured import ConfiguredAgents, unpriced, why_unenforceable, wrongs
from becket.parts.agents.messages import MAIL
from becket.parts.agents.once.actions import BRIEF_LIMIT

ONCE = "once"


class AgentMisconfigured(UsageError):
    """The agent can never be called as it is configured."""


class CallResult(Record):
    """What came of it, by the records. `outcome` is None where no call was made or judged; `reason` then says why."""

    run: Run
    base: str
    outcome: AgentOutcome | None
    reason: str
    said: str = ""  # the agent's own words: a claim
    sha: str = ""  # the commit with its work
    patch: Path | None = None
    calls: tuple[AgentCall, ...] = ()

    @property
    def changed(self) -> bool:
        return self.outcome is AgentOutcome.changed

    @property
    def over(self) -> bool:
        return self.run.status in ENDED


class MessageDelivery(Record):
    """Where a message went. Without an `agent`, nobody was at work: whoever is called next gets it."""

    run_id: str
    agent: str | None
    driver: str = ""


async def standing(app: App) -> TreeState:
    """The person's work tree: what the agent will see of it is its HEAD."""
    return await app.git.status()


async def begin(app: App, caller: Caller, agent: str, brief: str, base: str, *, alone: bool = False) -> Run:
    """Start the run. Raises UsageError for an agent that becket.yaml does not have or that can never be called so."""
    if len(brief) > BRIEF_LIMIT:
        raise UsageError(
            f"the brief has {len(brief):,} characters, at most {BRIEF_LIMIT:,} are passed on; shorten it, or commit "
            "the long part as a file and name that"
        )
    driven = app.port(ConfiguredAgents).get(agent)
    wrong = wrongs(agent, app.config.agents[agent], app.state.root, Path.home())
    blind = unpriced(app.config, agent, driven) or why_unenforceable(app.config, agent, ONCE)
    if problem := blind or next(wrong, ""):
        raise AgentMisconfigured(problem)
    inputs = app.redactor.value({"agent": agent, "brief": brief, "base": base, "alone": alone})
    started: Started = await start(app, caller, RunRequest(loop_id=ONCE, inputs=inputs))
    if started.run is None:
        raise UsageError(f"nothing was started: {started.dropped}")
    return started.run


async def see_call(app: App, caller: Caller, run_id: str, tell: Tell) -> bool:
    """See the run through and tell what its agents do. Who interrupts this process cancels the run: an agent that
    nobody looks at any more must not go on to cost money. True: that is how it ended.
    """
    listener = CallListener(app, run_id, tell)
    try:
        return await see_or_stop(app, caller, run_id, listener.listen())
    finally:
        if (await app.store.get_run(run_id)).status in ENDED:
            await listener.tell_kept()
        listener.close()


async def result(app: App, run_id: str, base: str) -> CallResult:
    run = await app.store.get_run(run_id)
    calls = tuple(reversed(await app.store.calls(run.run_id)))
    steps = await app.store.steps(run.run_id)
    made = next((step.outputs for step in reversed(steps) if step.outputs.get("outcome") in list(AgentOutcome)), {})
    patch = next((str(step.outputs["patch"]) for step in reversed(steps) if step.outputs.get("patch")), "")
    ends = [call.end for call in reversed(calls) if call.end is not None]
    told = str(made.get("outcome") or (ends[0].outcome if ends else ""))
    because = next((end.reason for end in ends if end.outcome == told), "")
    return CallResult(
        run=run,
        base=base,
        outcome=AgentOutcome(told) if told else None,
        reason=because or _why(run),
        said=str(made.get("said", "")),
        sha=str(made.get("sha", "")),
        patch=_patch(app, patch),
        calls=calls,
    )


def _why(run: Run) -> str:
    """The run's own end, where no call tells."""
    if run.reason == "budget_exhausted" and "budget" in run.detail:
        budget, used, most = (run.detail.get(key) for key in ("budget", "used", "limit"))
        return f"{budget} is used up ({used} of {most}); `becket agent spend` tells what used it"
    behind = [_flat(value) for value in run.detail.values() if value not in (None, "", [], {})]
    return "; ".join([reason_words(run.reason) or run.status.value, *behind])[:600]


def _flat(value: Json) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _patch(app: App, digest: str) -> Path | None:
    if not digest:
        return None
    try:
        return app.artifacts.path(digest)
    except NotFound:
        return None


def patch_start(app: App, called: CallResult, limit: int) -> str:
    """The beginning of the patch, for people to read: without secrets, unlike the patch itself (L25)."""
    if called.patch is None:
        return ""
    with called.patch.open("rb") as file:
        return app.redactor.text(file.read(limit).decode(errors="replace"))


async def apply(app: App, called: CallResult) -> None:
    """Into the person's work tree, staged and not committed; whole or not at all."""
    if not (await standing(app)).clean:
        raise CannotApply(f"nothing was applied: the work tree was changed in the meantime; {_kept(called)}")
    try:
        await apply_patch(app.git.place, await app.git.candidates().patch(called.base, called.sha, limit=1 << 40))
    except DoesNotFit as error:
        raise CannotApply(f"nothing was applied: {error}; {_kept(called)}") from error


def _kept(called: CallResult) -> str:
    return f"its change is kept: `git cherry-pick --no-commit {called.sha[:12]}`"


async def say(app: App, caller: Caller, run_id: str, text: str) -> MessageDelivery:
    """Put a message where the agent at work finds it, or else the next one. Raises UsageError for a run that has ended,
    also if it ended in this very moment: no next one will ever look.
    """
    run = _not_ended(await app.store.get_run(run_id))
    by = caller.name if caller.via is Via.command_line else f"{caller.name}@{caller.via}"
    folder = app.places.of_run(run.run_id)
    call = next((call for call in await app.store.calls(run.run_id) if call.end is None), None)
    place = CallFiles(folder / CALLS / folder_of(call.run_id, call.call_id)) if call is not None else None
    if call is None or place is None or run.status is not RunStatus.running or not place.folder.is_dir():
        call, letter = None, put(folder / MAIL, text, by)
    else:
        letter = put(place.inbox, text, by)
        if await _too_late(app, call, letter):
            call, letter = None, folder / MAIL / letter.name
    try:
        _not_ended(await app.store.get_run(run_id))
    except UsageError:
        _withdraw(letter, app.state.runs)
        raise
    if call is None:
        return MessageDelivery(run_id=run.run_id, agent=None)
    return MessageDelivery(run_id=run.run_id, agent=call.agent, driver=call.driver)


def _not_ended(run: Run) -> Run:
    if run.status in ENDED:
        raise UsageError(
            f"{run.run_id} has ended ({run.status.value}) and nobody is there to be told; "
            f"`becket runs retry {run.run_id}` tries it again"
        )
    return run


def _withdraw(letter: Path, below: Path) -> None:
    """With the folders that were made for it: those of the run are gone already, or go soon."""
    letter.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it is not empty, or not there
        for folder in letter.relative_to(below).parents:
            if folder.name:
                (below / folder).rmdir()


async def _too_late(app: App, call: AgentCall, letter: Path) -> bool:
    """A call that ended in this very moment reads its inbox no more: the message waits for the next one."""
    calls = await app.store.calls(call.run_id)
    if all(each.end is None for each in calls if each.call_id == call.call_id):
        return False
    post = app.places.of_run(call.run_id) / MAIL
    post.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # the call's end brought it there already
        letter.replace(post / letter.name)
    return True
