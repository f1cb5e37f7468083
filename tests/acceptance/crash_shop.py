"""Actions of the crash matrix that spend: each call leaves a trace, so that a later life can tell what it used."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import AgentOutcome, Limits, Usage
from becket.kernel.contract.base import Record
from becket.kernel.contract.calls import CallEnd, CallRequest

COST = Usage(seconds=2.0, turns=1, output_tokens=10, usd=0.25)


async def buy(context: ActionContext, params: Record) -> Result:
    traces = context.folder("calls")
    traces.mkdir(parents=True, exist_ok=True)
    for call in await context.open_calls():
        made = (traces / call.call_id).exists()
        await context.end_call(call.grant, CallEnd(outcome=AgentOutcome.crashed, usage=COST if made else Usage()))
    for label in ("first", "second"):
        wish = CallRequest(label=label, agent="shop", driver="test", limits=Limits(seconds=5.0, tokens=100))
        grant = await context.begin_call(wish)
        (traces / grant.call_id).touch()
        await context.end_call(grant, CallEnd(outcome=AgentOutcome.changed, usage=COST))
    return Result(outputs={"bought": 2})


async def tip(context: ActionContext, params: Record) -> Result:
    await context.spend("usd", 0.125)
    return Result(outputs={"tipped": True})


ACTIONS = (
    ActionDef(name="shop.buy", summary="buys", run=buy, outputs=("bought",)),
    ActionDef(name="shop.tip", summary="tips", run=tip, outputs=("tipped",)),
)
