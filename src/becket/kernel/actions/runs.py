"""Start other loops and gather how they ended."""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.spec import EventName, LoopId, Signal

NAMES = ("pending", "completed", "unfinished")
GOOD = (RunStatus.completed, RunStatus.completed_dry_run)
NAMED = 1000
"""So many children are named in `outcomes`, those without success first; all of them are counted."""


class StartParams(Record):
    """`each` starts one child per item (a list, or words in a text); `%` stands for it in subject and inputs.

    `max_chain` is needed where the child may come to start this loop again.
    """

    loop: LoopId
    subject: str | None = None
    inputs: dict[str, Json] = Field(default_factory=dict)
    each: list[Json] | str | None = None
    again: bool = False
    max_chain: int | None = Field(default=None, ge=1, le=100)


class PostEventParams(Record):
    name: EventName
    data: dict[str, Json] = Field(default_factory=dict)


async def start(context: ActionContext, params: StartParams) -> Result:
    if params.max_chain is not None and context.run.chain >= params.max_chain:
        raise ActionFailed(_too_long(context.run, params), kind="chain_too_long")
    items = params.each.split() if isinstance(params.each, str) else params.each
    if items is None:
        runs = [await context.start_run(params.loop, params.subject, params.inputs, params.again)]
    else:
        runs = [await _one(context, params, item) for item in items]
    if not runs:
        return Result(outputs={"runs": []}, nothing_to_do="there was no item to start a run for")
    return Result(outputs={"runs": [run.run_id for run in runs]})


def _too_long(run: Run, params: StartParams) -> str:
    return (
        f"{params.loop} was not started: it would be number {run.chain + 1} of a chain of starts, and max_chain is "
        f"{params.max_chain}"
    )


async def _one(context: ActionContext, params: StartParams, item: Json) -> Run:
    subject = (params.subject or f"{params.loop}/%").replace("%", str(item))
    inputs = {name: str(item) if value == "%" else value for name, value in params.inputs.items()}
    return await context.start_run(params.loop, subject, inputs, params.again)


async def gather(context: ActionContext, params: Record) -> Result:
    """Where the children stand. `pending` is a condition to wait on (`wake: child`)."""
    children = await context.child_runs()
    if not children:
        return Result(outputs={"ended": 0, "open": 0, "outcomes": {}}, nothing_to_do="no child run was started")
    still_open = [run for run in children if run.status not in ENDED]
    good = all(run.status in GOOD for run in children)
    name = "pending" if still_open else "completed" if good else "unfinished"
    telling = sorted(children, key=lambda run: run.status in GOOD)[:NAMED]
    outcomes = {run.run_id: run.status.value for run in telling}
    said = Condition(object="children", name=name, group=NAMES, evidence={"runs": outcomes})
    outputs = {"ended": len(children) - len(still_open), "open": len(still_open), "outcomes": outcomes}
    return Result(outputs=outputs, conditions=(said,))


async def post_event(context: ActionContext, params: PostEventParams) -> Result:
    run = context.run
    event_id = f"{run.run_id}:{run.iteration}:{context.phase}:{context.step_id}"
    payload: dict[str, Json] = {"event": event_id, "data": params.data, "chain": run.chain + 1, "cause": run.run_id}
    report = await context.perform(EffectCall(name="event.post", target=params.name, payload=payload))
    return Result(outputs={"event": event_id}, note=report.reason)


ACTIONS = (
    ActionDef(
        name="run.start", summary="Start a run of another loop, or one per item.", run=start, params=StartParams,
        outputs=("runs",), signals=(Signal.child,),
    ),
    ActionDef(
        name="run.gather", summary="See how the child runs stand.", run=gather,
        raises=(ConditionGroup(object="children", names=NAMES),), outputs=("ended", "open", "outcomes"),
        signals=(Signal.child,),  # whoever started them
    ),
    ActionDef(
        name="event.post", summary="Post an event that other loops may listen to.", run=post_event,
        params=PostEventParams, outputs=("event",), effects=("event.post",),
    ),
)  # fmt: skip
