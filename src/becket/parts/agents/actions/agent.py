"""Let an agent work in the run's checkout; what came of it is read from the work tree, not from its words."""

from __future__ import annotations

from dataclasses import dataclass

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import RETRYABLE
from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.config import AgentName
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.loop import Places
from becket.parts.agents.actions import calling, outage
from becket.parts.agents.actions.calling import AgentTask, Calls, OpenedCheckout
from becket.parts.gates.judging.tree import readable


class WorkParams(Record):
    """Without `time`: the agent's own limit."""

    agent: AgentName
    brief: str
    time: Duration | None = None


async def work(context: ActionContext, params: WorkParams) -> Result:
    await calling.settle_earlier(context)
    calls = await calling.call(context, AgentTask(params.agent, params.brief, Checkout(context), time=params.time))
    if down := outage.is_outage(context, calls):
        return _result(context, calls, outage.outage_evidence(context, down))
    if calls.chosen.judged.outcome in RETRYABLE:
        raise calling.failed(calls.chosen)
    return _result(context, calls)


@dataclass
class Checkout:
    """The run's own checkout. Where it was clean, the next agent of a chain finds it clean again; otherwise it goes on
    with what earlier steps made, and what the agent before it added.
    """

    context: ActionContext
    was_clean: bool | None = None

    async def open(self) -> OpenedCheckout:
        context, git = self.context, self.context.port(Git)
        await context.workspace()
        workspace = await self._workspace()
        if self.was_clean is None:
            self.was_clean = (await git.status(workspace)).clean
        elif self.was_clean:
            await self.save()
            await git.open_workspace(context.port(Places).of_run(context.run.run_id), workspace.sha)
        return OpenedCheckout(workspace.tree, await readable(context, workspace.sha, workspace), fresh=False)

    async def changed(self) -> tuple[str, ...]:
        state = await self.context.port(Git).status(await self._workspace())
        return (*state.changed, *state.untracked)

    async def save(self) -> None:
        run_id = self.context.run.run_id
        await self.context.port(Git).rescue(await self._workspace(), run_id, f"becket: what an agent of {run_id} left")

    async def _workspace(self) -> Workspace:
        found = await self.context.existing_workspace()
        if found is None:
            raise ActionFailed("the agent removed its own checkout", kind="workspace_gone")
        return found


def _result(context: ActionContext, calls: Calls, down: outage.Told = ({}, ())) -> Result:
    chosen, raised = calls.chosen, calling.raised(calls)
    outputs: dict[str, Json] = {
        "outcome": chosen.judged.outcome.value,
        "paths": list(chosen.judged.changed_paths),
        "said": context.redact(chosen.report.said)[: calling.SAID_LIMIT],
        "sessions": calling.sessions(context, calls.made),
        "calls": [called.told for called in calls.made],
    }
    raised = raised.model_copy(update={"evidence": {**raised.evidence, **down[0]}})
    return Result(outputs=outputs, conditions=(raised, *down[1]))


ACTIONS = (
    ActionDef(
        name="agent.work",
        summary="Let a configured agent work in the run's checkout.",
        run=work,
        params=WorkParams,
        raises=(calling.GROUP, outage.UNAVAILABLE),
        outputs=(*calling.OUTPUTS, "paths"),
        calls_agent=True,
    ),
)
