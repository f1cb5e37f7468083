"""Let an agent work in the run's checkout; what came of it is read from the work tree, not from its words."""

from __future__ import annotations

from becket.contract.action import ActionContext, ActionDef, Result
from becket.contract.agent import RETRYABLE, AgentOutcome, Agents, Judged, Limits, judge
from becket.contract.base import Duration, Record
from becket.contract.condition import Condition, ConditionGroup
from becket.contract.errors import ActionFailed
from becket.contract.git import Git

NAMES = tuple(outcome.value for outcome in AgentOutcome)


class WorkParams(Record):
    agent: str
    brief: str
    time: Duration = 1800.0


async def work(context: ActionContext, params: WorkParams) -> Result:
    tree = await context.workspace()
    limits = Limits(seconds=min(params.time, context.seconds_left))
    report = await context.port(Agents).get(params.agent).run(params.brief, tree, limits)
    await context.spend("agent_time", report.usage.seconds)
    await context.spend("tokens", report.usage.tokens)
    await context.spend("usd", report.usage.usd)
    judged = judge(report, await _changed(context))
    if judged.outcome in RETRYABLE:
        raise ActionFailed(f"the agent {judged.outcome}: {judged.reason}", kind=judged.outcome.value, retryable=True)
    return _result(judged, report.said, report.until)


async def _changed(context: ActionContext) -> tuple[str, ...]:
    workspace = await context.existing_workspace()
    if workspace is None:
        raise ActionFailed("the agent removed its own checkout", kind="workspace_gone")
    state = await context.port(Git).status(workspace)
    return (*state.changed, *state.untracked)


def _result(judged: Judged, said: str, until: float | None) -> Result:
    evidence = {"reason": judged.reason, "paths": list(judged.changed_paths[:50]), "until": until}
    raised = Condition(object="agent", name=judged.outcome.value, group=NAMES, evidence=evidence)
    outputs = {"outcome": judged.outcome.value, "paths": list(judged.changed_paths), "said": said[:4000]}
    return Result(outputs=outputs, conditions=(raised,))


ACTIONS = (
    ActionDef(
        name="agent.work",
        summary="Let a configured agent work in the run's checkout.",
        run=work,
        params=WorkParams,
        raises=(ConditionGroup(object="agent", names=NAMES),),
        outputs=("outcome", "paths", "said"),
        calls_agent=True,
    ),
)
