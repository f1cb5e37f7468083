"""A model that does not work now: when to look again, and when to stop looking and call a person."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.agent import RETRYABLE, AgentOutcome
from becket.kernel.contract.base import Json, show_duration
from becket.kernel.contract.condition import Condition, ConditionGroup, ref
from becket.kernel.contract.project import Projects
from becket.parts.agents.actions.calling import OBJECT, Calls

MODEL_ERROR = ref(OBJECT, AgentOutcome.model_error.value)
UNAVAILABLE = ConditionGroup(names=("model_unavailable",))

FIRST_LOOK, SLOWER = 30.0, 3.0
"""Seconds until the first look; each later one comes after three times as long as the outage has lasted by then: one of
two hours costs six calls.
"""

LONGEST = 7200.0
LAST_LOOK = 60.0
"""The last look is so many seconds before the wait is over: it is to end by its own name."""


def is_outage(context: ActionContext, *tried: Calls) -> Calls | None:
    """The calls to be told of, where a model failed, nobody else could do the work, and the loop waits for that."""
    if MODEL_ERROR not in context.spec.wait_conditions:
        return None
    if not all(each.chosen.judged.outcome in RETRYABLE for each in tried):
        return None
    return next((each for each in tried if each.chosen.judged.outcome is AgentOutcome.model_error), None)


def look_again(context: ActionContext, condition: str, now: float) -> float | None:
    """When to ask the agent again while the run waits on `condition`; None: that has lasted too long."""
    wait = context.spec.wait_conditions.get(condition)
    since = context.run.waits_since.get(condition, now)
    most = min(wait.for_, LONGEST) if wait is not None else 0.0
    over = min(since + most, context.run.deadline_at) - LAST_LOOK
    return min(now + max(FIRST_LOOK, SLOWER * (now - since)), over) if now < over else None


Told = tuple[dict[str, Json], tuple[Condition, ...]]
"""What the condition `agent.model_error` has in its evidence besides, and what is raised beside it in the end."""


def outage_evidence(context: ActionContext, calls: Calls) -> Told:
    chosen, model = calls.chosen, _model(context, calls)
    again = look_again(context, MODEL_ERROR, calls.now)
    evidence: dict[str, Json] = {"model": model, "until": again}
    if again is not None:
        return evidence, ()
    lasted = show_duration(60.0 * round((calls.now - context.run.waits_since.get(MODEL_ERROR, calls.now)) / 60))
    named = f"the model of {chosen.agent}{f' ({model})' if model else ''}"
    known: dict[str, Json] = {
        "why": f"{named} has not worked for {lasted}; it last said: {chosen.judged.reason}",
        "agent": chosen.agent,
        "model": model,
        "reason": chosen.judged.reason,
        "asked": [each.told for each in calls.made],
    }
    return evidence, (Condition(name=UNAVAILABLE.names[0], group=UNAVAILABLE.names, evidence=known),)


def _model(context: ActionContext, calls: Calls) -> str:
    """As its program names it, else as it is configured; nothing where neither does."""
    config = context.port(Projects).current().agents.get(calls.chosen.agent)
    return calls.chosen.report.model or (config.model if config is not None else None) or ""
