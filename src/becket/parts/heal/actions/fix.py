"""Let agents repair a red base, each in a clone of its own; only the runtime commits what they leave (L5, L7)."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from becket.kernel.actions.candidate import BARRED, GROUP, REPAIR, barred, exists, made_as, none
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import RETRYABLE, AgentOutcome, AgentReport, CallJudgement
from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.candidate import Bar, Barred, Candidates, CommitMade
from becket.kernel.contract.config import AgentName, Config
from becket.kernel.contract.errors import ActionFailed, GitFailed
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.guard import Refusal
from becket.kernel.contract.loop import WORK
from becket.kernel.contract.made import BaseSha, takes
from becket.kernel.contract.project import Projects
from becket.parts.agents.actions import calling, outage
from becket.parts.agents.actions.calling import AgentTask, Calls, FinishedCall, OpenedCheckout
from becket.parts.gates.judging.tree import config_of, readable
from becket.parts.guard.section import GUARD, GuardConfig

SUBJECT_LIMIT = 72
_CHANGING = re.compile(r"\b(?=[\w-]*\d)[\w-]{8,}\b|\b\d+(?:\.\d+)? ?m?s\b")
"""What differs between two messages about the same failure: the name of a request, how long it took."""
KEPT = "refs/becket/"


class FixParams(Record):
    """`brief` is an artifact; `subject` becomes the first line of the commit.

    Without `agent` and `attempts`: those of the heal loop. Without `time`: the agent's own limit. With `tell_crashes`
    a crash is a condition like every other outcome; without it, the step fails and `retry` applies, until it crashes
    twice in the same way and has changed nothing. With `alone` no fallback is asked.
    """

    brief: Annotated[str, takes("brief.text")]
    base: BaseSha
    subject: Annotated[str, takes("brief.subject")]
    agent: AgentName = ""
    attempts: int | None = Field(default=None, ge=1, le=8)
    time: Duration | None = None
    tell_crashes: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    judged: CallJudgement
    calls: Calls
    made: CommitMade | None
    refusals: tuple[Refusal, ...] = ()  # why nothing was made of what it left
    by_earlier_life: bool = False  # then no call was made now


def fixer_of(config: Config) -> str | None:
    """The agent that repairs: the named one, `fixer`, or the only one."""
    if config.heal.agent is not None:
        return config.heal.agent
    if "fixer" in config.agents or not config.agents:
        return "fixer" if config.agents else None
    return next(iter(config.agents)) if len(config.agents) == 1 else None


async def fix(context: ActionContext, params: FixParams) -> Result:
    config = context.port(Projects).current()
    name = params.agent or fixer_of(config)
    if name is None:
        raise ActionFailed("no agent is configured; add one under `agents:` in becket.yaml", kind="no_agent")
    brief = (await context.read(params.brief)).decode(errors="replace")
    count = params.attempts or config.heal.attempts
    await calling.settle_earlier(context)
    tried = await asyncio.gather(
        *(_attempt(context, params, name, brief, number, 1 / count) for number in range(1, count + 1)),
        return_exceptions=True,
    )
    done = _without_errors(tried)
    useful = sorted((each for each in done if each.made is not None), key=lambda each: len(each.judged.changed_paths))
    if not useful and not params.tell_crashes and (down := outage.is_outage(context, *(each.calls for each in done))):
        return _result(
            context, [each for each in done if each.calls is down], useful, outage.outage_evidence(context, down)
        )
    if not useful and not params.tell_crashes and all(each.judged.outcome in RETRYABLE for each in done):
        failure = calling.failed(done[0].calls.chosen)
        if not _in_vain(context, failure, done):
            raise failure
        return _result(context, done, useful, ask_again=False)
    return _result(context, done, useful)


def _in_vain(context: ActionContext, failure: ActionFailed, done: list[Attempt]) -> bool:
    """It failed so before, and has changed nothing since: to call it once more is money for the same answer."""
    unchanged = not any(each.judged.changed_paths for each in done)
    return unchanged and _CHANGING.sub("", str(failure)) == _CHANGING.sub("", context.failed_before)


def _without_errors(tried: list[Attempt | BaseException]) -> list[Attempt]:
    """One attempt that could not be made (no budget, no set-up) does not undo another's work."""
    done = [each for each in tried if isinstance(each, Attempt)]
    errors = [each for each in tried if isinstance(each, BaseException)]
    if errors and not any(each.made is not None for each in done):
        raise errors[0]
    return done


async def _attempt(
    context: ActionContext, params: FixParams, name: str, brief: str, number: int, share: float
) -> Attempt:
    label = f"{context.run.iteration}-{number}"
    keep = f"candidate/{context.run.run_id}/{label}"
    if (before := await _made_before(context, params.base, keep)) is not None:
        known = CallJudgement(outcome=AgentOutcome.changed, reason="it was committed before a crash of ours")
        earlier = FinishedCall(name, number, known, AgentReport(ended=True))
        return Attempt(number, known, Calls((earlier,)), before, by_earlier_life=True)
    clone = Clone(context, params.base, context.folder(WORK) / str(number), label)
    calls = await calling.call(context, AgentTask(name, brief, clone, number, params.time, share, params.alone))
    judged = calls.chosen.judged
    if judged.outcome is not AgentOutcome.changed:
        await clone.leave()
        return Attempt(number, judged, calls, None)
    return await _committed(context, params, clone, keep, number, calls)


async def _committed(
    context: ActionContext, params: FixParams, clone: Clone, keep: str, number: int, calls: Calls
) -> Attempt:
    judged = calls.chosen.judged
    try:
        rules = await _bar(context, params.base)
        made = await context.port(Candidates).commit_work(clone.workspace, _message(context, params), keep, rules)
    except GitFailed as failed:
        await clone.leave()
        refused = CallJudgement(outcome=AgentOutcome.refused, reason=str(failed), changed_paths=judged.changed_paths)
        return Attempt(number, refused, calls, None)
    if isinstance(made, Barred):
        await clone.leave()
        reason = f"the guard keeps it out of the repository: {made.refusals[0]}"
        refused = CallJudgement(outcome=AgentOutcome.refused, reason=reason, changed_paths=judged.changed_paths)
        return Attempt(number, refused, calls, None, made.refusals)
    await clone.close()  # what counts of it is committed
    if made is None:
        nothing = CallJudgement(outcome=AgentOutcome.nothing_done, reason="what it changed is ignored by git")
        return Attempt(number, nothing, calls, None)
    return Attempt(number, judged, calls, made)


async def _bar(context: ActionContext, base: str) -> Bar:
    from becket.parts.guard.reading.examine import bar  # every start pays for what actions import

    config = await config_of(context, base)
    return bar((config.section(GUARD) if config is not None else GuardConfig()).max_file)


@dataclass
class Clone:
    """A clone of the base at a path that stays the same for the whole run: a session is resumed only there."""

    context: ActionContext
    base: str
    folder: Path
    label: str
    opened: Workspace | None = None

    @property
    def workspace(self) -> Workspace:
        assert self.opened is not None
        return self.opened

    async def open(self) -> OpenedCheckout:
        await self.save()
        self.opened = await self.context.port(Git).open_workspace(self.folder, self.base)
        return OpenedCheckout(self.workspace.tree, await readable(self.context, self.base, self.workspace), fresh=True)

    async def changed(self) -> tuple[str, ...]:
        state = await self.context.port(Git).status(self.workspace)
        return (*state.changed, *state.untracked)

    async def save(self) -> None:
        git = self.context.port(Git)
        found = await git.find_workspace(self.folder)
        if found is not None:
            name = f"{self.context.run.run_id}-{self.label}"
            await git.rescue(found, name, f"becket: what attempt {self.label} left")

    async def leave(self) -> None:
        await self.save()
        await self.close()

    async def close(self) -> None:
        """Its files serve the next agent; it makes them anew where an agent touched them."""
        git = self.context.port(Git)
        await git.spare_workspace(self.folder)
        await git.close_workspace(self.folder)


async def _made_before(context: ActionContext, base: str, keep: str) -> CommitMade | None:
    """What an earlier life of this very attempt committed: the agent is not paid twice, and its work not lost (L7)."""
    git = context.port(Git)
    try:
        sha = await git.resolve(f"{KEPT}{keep}")
        if sha is None or await context.port(Candidates).missing(sha):
            return None
        if list(await git.commits(base, sha, 2)) != [sha]:
            return None
    except GitFailed:  # it names what is not there: there is nothing to take over
        return None
    return CommitMade(sha=sha, tree=await git.tree_of(sha), parent=base)


def _message(context: ActionContext, params: FixParams) -> str:
    first = " ".join(params.subject.split())[:SUBJECT_LIMIT]
    return f"{first}\n\nMade on {params.base}.\n\nBecket-Run: {context.run.run_id}"


def _result(
    context: ActionContext,
    done: list[Attempt],
    useful: list[Attempt],
    down: outage.Told = ({}, ()),
    *,
    ask_again: bool = True,
) -> Result:
    first = useful[0] if useful else _to_be_told(done)
    judged, report = first.judged, first.calls.chosen.report
    calls = [called for each in done if not each.by_earlier_life for called in each.calls.made]
    told = calling.raised(first.calls)
    evidence = {**told.evidence, "reason": judged.reason, **down[0]}
    said = [told.model_copy(update={"name": judged.outcome.value, "evidence": evidence}), *down[1]]
    outputs: dict[str, Json] = {
        "outcome": judged.outcome.value,
        "said": context.redact(report.said)[: calling.SAID_LIMIT],
        "sha": "",
        "sessions": calling.sessions(context, calls),
        "calls": [called.told for called in calls],
    }
    if first.made is None:
        answer = "" if first.refusals else judged.outcome.value
        said.append(none(_why(first, ask_again), ask_again=ask_again, answer=answer))
        said += [barred(first.refusals)] if first.refusals else []
        return Result(outputs=outputs, conditions=tuple(said))
    others = tuple(each.made.sha for each in useful[1:] if each.made is not None)
    said.append(exists(made_as(first.made, REPAIR, others)))
    outputs["sha"] = first.made.sha
    # The same tree a second time is no progress.
    return Result(outputs=outputs, conditions=tuple(said), progress=f"candidate {first.made.tree}")


def _why(tried: Attempt, ask_again: bool) -> str:
    if tried.refusals:  # as it was after a guard that looked later: the agent did its part
        return tried.judged.reason
    twice = "" if ask_again else " failed the same way twice and changed nothing"
    return f"the agent{twice}: {tried.judged.outcome}: {tried.judged.reason}"


def _to_be_told(done: list[Attempt]) -> Attempt:
    """Of attempts without a result, one that waits for its quota: it is not over yet. Else one that left something."""
    waiting = [each for each in done if each.judged.outcome is AgentOutcome.quota_wait]
    if waiting:
        return min(waiting, key=lambda each: each.calls.chosen.report.until or 0.0)
    return next((each for each in done if each.refusals), done[0])


ACTIONS = (
    ActionDef(
        name="agent.fix",
        summary="Let agents repair the base, each in its own clone; what they leave becomes a candidate.",
        run=fix,
        params=FixParams,
        raises=(calling.GROUP, GROUP, BARRED, outage.UNAVAILABLE),
        outputs=(*calling.OUTPUTS, "sha"),
        keeps=("sessions", "said", "calls"),
        about="fix",
        calls_agent=True,
    ),
)
