"""Let agents repair a red base, each in a clone of its own; only the runtime commits what they leave (L5, L7)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from becket.actions.candidate import GROUP, REPAIR, exists, made_as, none
from becket.actions.gates.tree import set_up
from becket.contract.action import ActionContext, ActionDef, Result
from becket.contract.agent import RETRYABLE, AgentOutcome, AgentReport, Agents, Around, Judged, Limits, judge
from becket.contract.base import Duration, Json, Record
from becket.contract.candidate import Candidates, Made
from becket.contract.condition import Condition, ConditionGroup
from becket.contract.config import Config
from becket.contract.crash import CrashPoint
from becket.contract.errors import ActionFailed, GitFailed
from becket.contract.git import Git, Workspace
from becket.contract.loop import WORK, Places
from becket.contract.project import Projects
from becket.contract.setup import SetupFailed

agent_ended = CrashPoint("fix.agent_ended", "the agent has worked; its work is in the checkout and nowhere else")

NAMES = tuple(outcome.value for outcome in AgentOutcome)
SUBJECT_LIMIT = 72
KEPT = "refs/becket/"


class FixParams(Record):
    """`brief` is an artifact; `subject` becomes the first line of the commit."""

    brief: str
    base: str
    subject: str
    time: Duration = 1800.0


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    judged: Judged
    report: AgentReport
    made: Made | None


def fixer_of(config: Config) -> str | None:
    """The agent that repairs: the named one, `fixer`, or the only one."""
    if config.heal.agent is not None:
        return config.heal.agent
    if "fixer" in config.agents or not config.agents:
        return "fixer" if config.agents else None
    return next(iter(config.agents)) if len(config.agents) == 1 else None


async def fix(context: ActionContext, params: FixParams) -> Result:
    config = context.port(Projects).current()
    name = fixer_of(config)
    if name is None:
        raise ActionFailed("no agent is configured; add one under `agents:` in becket.yaml", kind="no_agent")
    brief = (await context.read(params.brief)).decode(errors="replace")
    count = config.heal.attempts
    done = await asyncio.gather(*(_attempt(context, params, name, brief, number) for number in range(1, count + 1)))
    await _spend(context, done)
    useful = sorted((each for each in done if each.made is not None), key=lambda each: len(each.judged.changed_paths))
    if not useful and all(each.judged.outcome in RETRYABLE for each in done):
        worst = done[0].judged
        raise ActionFailed(f"the agent {worst.outcome}: {worst.reason}", kind=worst.outcome.value, retryable=True)
    return await _result(context, name, done, useful)


async def _attempt(context: ActionContext, params: FixParams, name: str, brief: str, number: int) -> Attempt:
    git = context.port(Git)
    label = f"{context.run.iteration}-{number}"
    folder = context.folder(WORK) / str(number)
    keep = f"candidate/{context.run.run_id}/{label}"
    if (before := await _made_before(context, params.base, keep)) is not None:
        known = Judged(outcome=AgentOutcome.changed, reason="it was committed before a crash of ours")
        return Attempt(number, known, AgentReport(ended=True), before)
    await _save_leftovers(context, folder, label)
    workspace = await git.open_workspace(folder, params.base)
    readable = await _set_up(context, params.base, workspace)
    limits = Limits(seconds=max(1.0, min(params.time, context.seconds_left)))
    log = context.folder("logs") / f"{context.step_id}-{label}-{context.attempt}.log"
    around = Around(watcher=context.watcher(), readable=readable, log=log)
    try:
        report = await context.port(Agents).get(name).run(brief, workspace.tree, limits, around=around)
    except asyncio.CancelledError:
        await asyncio.shield(_save_leftovers(context, folder, label))
        raise
    agent_ended()
    if log.exists():
        await context.keep(log, f"agent-{number}.log")
    state = await git.status(workspace)
    judged = judge(report, (*state.changed, *state.untracked))
    if judged.outcome is not AgentOutcome.changed:
        await _save_leftovers(context, folder, label)
        return Attempt(number, judged, report, None)
    try:
        made = await context.port(Candidates).commit_work(workspace, _message(context, params), keep)
    except GitFailed as failed:
        await _save_leftovers(context, folder, label)
        refused = Judged(outcome=AgentOutcome.refused, reason=str(failed), changed_paths=judged.changed_paths)
        return Attempt(number, refused, report, None)
    await git.close_workspace(folder)  # what counts of it is committed
    if made is None:
        nothing = Judged(outcome=AgentOutcome.nothing_done, reason="what it changed is ignored by git")
        return Attempt(number, nothing, report, None)
    return Attempt(number, judged, report, made)


async def _made_before(context: ActionContext, base: str, keep: str) -> Made | None:
    """What an earlier life of this very attempt committed: the agent is not paid twice, and its work not lost (L7)."""
    git = context.port(Git)
    sha = await git.resolve(f"{KEPT}{keep}")
    if sha is None or list(await git.commits(base, sha, 2)) != [sha]:
        return None
    return Made(sha=sha, tree=await git.tree_of(sha), parent=base)


async def _save_leftovers(context: ActionContext, folder: Path, label: str) -> None:
    """Whatever an attempt leaves uncommitted is saved before its tree is used again (L7)."""
    git = context.port(Git)
    found = await git.find_workspace(folder)
    if found is not None:
        await git.rescue(found, f"{context.run.run_id}-{label}", f"becket: what attempt {label} left")


async def _set_up(context: ActionContext, base: str, workspace: Workspace) -> tuple[Path, ...]:
    """The agent may run the tests as the gate does."""
    setup = (await context.port(Projects).committed(base)).setup
    if setup is None:
        return context.port(Places).readable()
    ready = await set_up(context, base, setup, workspace)
    if isinstance(ready, SetupFailed):
        raise ActionFailed(f"the set-up of {base[:12]} fails: {ready.reason}", kind="environment")
    return (ready.folder, *context.port(Places).readable())


async def _spend(context: ActionContext, done: list[Attempt]) -> None:
    usages = [each.report.usage for each in done]
    await context.spend("agent_time", sum(usage.seconds for usage in usages))
    await context.spend("tokens", sum(usage.tokens for usage in usages))
    await context.spend("usd", sum(usage.usd for usage in usages))


def _message(context: ActionContext, params: FixParams) -> str:
    first = " ".join(params.subject.split())[:SUBJECT_LIMIT]
    return f"{first}\n\nRepairs {params.base}.\n\nBecket-Run: {context.run.run_id}"


async def _result(context: ActionContext, name: str, done: list[Attempt], useful: list[Attempt]) -> Result:
    first = useful[0] if useful else done[0]
    judged = first.judged
    evidence: dict[str, Json] = {
        "agent": name,
        "reason": judged.reason,
        "paths": list(judged.changed_paths[:50]),
        "until": first.report.until,
    }
    said = [Condition(object="agent", name=judged.outcome.value, group=NAMES, evidence=evidence)]
    outputs: dict[str, Json] = {"outcome": judged.outcome.value, "said": first.report.said[:4000], "sha": ""}
    progress = ""
    if first.made is not None:
        others = tuple(each.made.sha for each in useful[1:] if each.made is not None)
        said.append(exists(made_as(first.made, REPAIR, others)))
        outputs["sha"] = first.made.sha
        progress = f"candidate {first.made.tree}"  # the same tree a second time is no progress
    else:
        said.append(none(f"the agent: {judged.outcome}: {judged.reason}"))
    return Result(outputs=outputs, conditions=tuple(said), progress=progress)


ACTIONS = (
    ActionDef(
        name="agent.fix",
        summary="Let agents repair the base, each in its own clone; what they leave becomes a candidate.",
        run=fix,
        params=FixParams,
        raises=(ConditionGroup(object="agent", names=NAMES), GROUP),
        outputs=("outcome", "said", "sha"),
        calls_agent=True,
    ),
)
