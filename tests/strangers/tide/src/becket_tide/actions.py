"""What its loop does."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext, ActionDef, Conclusion, Result, Verdict, VerifierDef
from becket.kernel.contract.base import Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.tables import TableStore
from becket_tide.marks import keep
from becket_tide.outside import Gauge

NAMES = ("low", "high")


class Nothing(Record):
    pass


async def rise(context: ActionContext, params: Nothing) -> Result:
    height = context.port(Gauge).height()
    report = await context.perform(EffectCall(name="tide.mark", target="mark", payload={"height": height}))
    await context.port(TableStore).write(keep, context.run.run_id, height)
    name = "high" if height > 5 else "low"
    said = Condition(object="tide", name=name, group=NAMES, evidence={"height": height})
    return Result(outputs={"height": height, "state": report.state}, conditions=(said,))


async def marked(context: ActionContext, params: Nothing) -> Verdict:
    found = context.conditions.get("tide.high")
    return Verdict(
        Conclusion.passed if found else Conclusion.failed, {"height": found.evidence["height"] if found else None}
    )


ACTIONS = (
    ActionDef(
        name="tide.rise", summary="Read the gauge and leave a mark.", run=rise, params=Nothing,
        raises=(ConditionGroup(object="tide", names=NAMES),), outputs=("height", "state"), effects=("tide.mark",),
    ),
)  # fmt: skip
VERIFIERS = (VerifierDef("tide_is_high", "The water stands high.", marked, Nothing),)
