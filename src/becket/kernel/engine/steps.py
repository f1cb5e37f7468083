"""Does one action or verifier: its `when`, its attempts, its time limit; gives the Step that the journal will hold."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from becket.kernel.contract.action import ActionDef, Conclusion, EffectReport, Result, Verdict, VerifierDef
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.calls import BudgetSpent
from becket.kernel.contract.condition import Condition, Lifetime, ref
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import (
    ActionFailed,
    BecketError,
    EffectFailed,
    EffectRefused,
    Fenced,
    StoreUnavailable,
    WorkerDeclaredDead,
)
from becket.kernel.contract.made import taken
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Step, StepState
from becket.kernel.contract.spec import ActionSpec, LoopSpec, VerifierSpec
from becket.kernel.contract.template import is_field, name_of
from becket.kernel.engine.commands import run_command, verify_by_command
from becket.kernel.engine.context import StepContext
from becket.kernel.engine.heartbeat import StepHeartbeat

T = TypeVar("T")

UNSETTLED = (EffectState.intended, EffectState.retrying)

GRACE = 15.0
"""A command kills its own process at its time limit; the step around it is given up this much later."""

action_begins = CrashPoint("step.action_begins", "an action is about to be done; nothing of it is written")
action_done = CrashPoint("step.action_done", "an action is done; its row is not written")
verifier_begins = CrashPoint("step.verifier_begins", "a verifier is about to look")
verifier_done = CrashPoint("step.verifier_done", "a verifier has looked; its row is not written")


@dataclass(frozen=True, slots=True)
class Done:
    """A step that is ready to be recorded."""

    step: Step
    receipts: tuple[StoredReceipt, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    stood_still: float = 0.0  # seconds in which this process did not run
    work: float = 0.0  # seconds at work


ContextFor = Callable[[str, int], StepContext]
"""Makes the context for (step id, attempt)."""


async def do_action(spec: ActionSpec, context_for: ContextFor) -> Done:
    """All attempts of one action. Only failures that say so are tried again."""
    context = context_for(spec.id, 1)
    started = await context.now()
    action_begins()
    for attempt in range(1, spec.retry + 2):
        try:
            # A command kills itself at its limit, and the door bounds how often it is tried and looked up.
            limit = math.inf if spec.effects is not None else spec.timeout
            result = await _within(limit, context, _call(spec, context))
            break
        except (ActionFailed, EffectFailed) as error:
            if not error.retryable or attempt > spec.retry:
                return await _failed(spec.id, context, started, attempt, error)
            context = context.again(context_for(spec.id, attempt + 1), error)
        except (Fenced, WorkerDeclaredDead, StoreUnavailable):
            raise
        except Exception as error:  # an action is foreign code: whatever it raises is its failure, not ours
            return await _failed(spec.id, context, started, attempt, error)
    action_done()
    return _done(spec.id, context, started, await context.now(), attempt, result)


async def do_verifier(spec: VerifierSpec, context_for: ContextFor) -> Done:
    """One verifier. A verifier that breaks is undecided: it never passes by accident (L11)."""
    context = context_for(spec.id, 1)
    started = await context.now()
    verifier_begins()
    try:
        verdict = await _within(spec.timeout, context, _ask(spec, context))
    except (Fenced, WorkerDeclaredDead, StoreUnavailable):
        raise
    except Exception as error:
        verdict = Verdict(Conclusion.undecided, {"error": _said(context, error)})
    verifier_done()
    evidence = context.runtime.redact_value(dict(verdict.evidence))
    says = Condition(
        object=spec.id, name=verdict.says.value, group=tuple(say.value for say in Conclusion), evidence=evidence,
        iteration=context.run.iteration, at=started,
    )  # fmt: skip
    raised = [says]
    if verdict.says is not Conclusion.passed:
        name = "verifier_failed" if verdict.says is Conclusion.failed else "verifier_undecided"
        raised.append(says.model_copy(update={"object": "run", "name": name, "group": (), "life": Lifetime.iteration}))
    failed = verdict.says is not Conclusion.passed
    step = _step(spec.id, context, started, await context.now(), 1).model_copy(
        update={
            "state": StepState.failed if failed else StepState.done,
            "error_kind": verdict.says.value if failed else "",
            "error": str(evidence.get("said") or evidence.get("error") or "") if failed else "",
            "outputs": {"says": verdict.says.value},
            "conditions": tuple(raised),
        }
    )
    return Done(step, tuple(context.receipts), tuple(context.facts), context.stood_still)


def skipped(context: StepContext, step_id: str, why: str, at: float) -> Done:
    return Done(_step(step_id, context, at, at, 0).model_copy(update={"state": StepState.skipped, "note": why}))


async def _call(spec: ActionSpec, context: StepContext) -> Result:
    if spec.run is not None:
        result = await run_command(context, spec)
        declared = tuple(spec.outputs)
    else:
        definition, params = _resolve(spec, context)
        result = await definition.run(context, params)
        declared = definition.outputs
        _check_raised(definition, params, result)
    _check_verdicts(context.spec, result)
    missing = [name for name in declared if name not in result.outputs]
    if missing and not result.nothing_to_do:
        raise ActionFailed(f"it ran but made no {', '.join(missing)}", kind="no_output")
    return result


def _resolve(spec: ActionSpec, context: StepContext) -> tuple[ActionDef, Record]:
    definition = context.runtime.registry.actions.get(spec.uses or "")
    if definition is None:
        raise ActionFailed(f"no action is registered as {spec.uses}; was a plug-in removed?", kind="unknown_action")
    return definition, _params(definition, spec.with_, context)


async def _ask(spec: VerifierSpec, context: StepContext) -> Verdict:
    if spec.run is not None:
        return await verify_by_command(context, spec)
    definition = context.runtime.registry.verifiers.get(spec.uses or "")
    if definition is None:
        raise ActionFailed(f"no verifier is registered as {spec.uses}; was a plug-in removed?", kind="unknown_verifier")
    return await definition.run(context, _params(definition, spec.with_, context))


def _params(definition: ActionDef | VerifierDef, given: dict[str, Json], context: StepContext) -> Record:
    filled = {name: _filled(value, context) for name, value in given.items()}
    try:
        return definition.params.model_validate(_taken(definition, filled, context) | filled)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise ActionFailed(f"{definition.name}: {problems}", kind="bad_parameter") from None


def _taken(definition: ActionDef | VerifierDef, given: dict[str, Json], context: StepContext) -> dict[str, Json]:
    """What the loop leaves to what earlier steps made. Nothing for what has a default and was not made."""
    made, outputs = context.runtime.registry.made(context.spec), context.outputs
    found: dict[str, Json] = {}
    for name, field, mark in taken(definition.params, given):
        refs = [ref.partition(".") for ref in mark.refs(made)]
        values = [outputs[step][output] for step, _, output in refs if output in outputs.get(step, {})]
        if values or (mark.each and refs):
            found[name] = values if mark.each else values[-1]
        elif field.is_required():
            missing = f"{definition.name}: `{name}` is missing, as no step made {mark.told}"
            raise ActionFailed(missing, kind="no_output")
    return found


def _filled(value: Json, context: StepContext) -> Json:
    if isinstance(value, str):
        # A value that is nothing but one field keeps the type of what it stands for.
        return context.names().get(name_of(value), context.fill(value)) if is_field(value) else context.fill(value)
    if isinstance(value, list):
        return [_filled(item, context) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, context) for key, item in value.items()}
    return value


def _check_raised(definition: ActionDef, params: Record, result: Result) -> None:
    declared = {ref for group in definition.groups(params) for ref in group.refs}
    if stray := [item.ref for item in result.conditions if item.ref not in declared]:
        raise ActionFailed(f"{definition.name} raised {', '.join(stray)} without declaring it", kind="undeclared")


def _check_verdicts(spec: LoopSpec, result: Result) -> None:
    verdicts = {ref(verifier, say.value) for verifier in spec.verifier_ids() for say in Conclusion}
    if claimed := [item.ref for item in result.conditions if item.ref in verdicts]:
        raise ActionFailed(f"it raised {', '.join(claimed)}, which only the verifier may say", kind="undeclared")


async def _within(limit: float, context: StepContext, work: Awaitable[T]) -> T:
    allowed = min(limit, max(context.seconds_left, 0.0))
    try:
        async with asyncio.timeout(allowed + GRACE) as context.timer:
            context.ends_at = asyncio.get_running_loop().time() + allowed
            with StepHeartbeat(context):
                return await work
    except TimeoutError:
        raise ActionFailed(f"it did not end within {allowed:g} s", kind="timeout", retryable=True) from None


def _done(step_id: str, context: StepContext, started: float, ended: float, attempt: int, result: Result) -> Done:
    redact, at = context.runtime.redact_value, {"iteration": context.run.iteration, "at": ended}
    raised = [item.model_copy(update={**at, "evidence": redact(item.evidence)}) for item in result.conditions]
    raised += _unknown(context, ended)
    outputs = redact(dict(result.outputs))
    step = _step(step_id, context, started, ended, attempt).model_copy(
        update={
            "outputs": outputs,
            "conditions": tuple(raised),
            "note": "; ".join(filter(None, (result.nothing_to_do or result.note, _redacted_in(outputs)))),
            "progress": result.progress,
        }
    )
    facts = (*context.facts, *result.facts.items())
    return Done(step, tuple(context.receipts), facts, context.stood_still)


def _redacted_in(outputs: dict[str, Json]) -> str:
    """Later steps get something else than was made: people are told. What an effect made has its marks before."""
    names = [f"`{name}`" for name, value in outputs.items() if "[redacted:" in str(value)]
    return f"a secret was taken out of {', '.join(names)}: later steps get `[redacted:...]` there" if names else ""


async def _failed(step_id: str, context: StepContext, started: float, attempt: int, error: Exception) -> Done:
    ended = await context.now()
    kind = error.kind if isinstance(error, ActionFailed) else type(error).__name__
    said = _said(context, error)
    evidence: dict[str, Json] = {"action": step_id, "kind": kind, "error": said}
    at = {"iteration": context.run.iteration, "at": ended, "evidence": evidence}
    await _look_for_unsettled(context)
    raised = [Condition(name="action_error").model_copy(update=at), *_unknown(context, ended)]
    if kind == "no_output":
        raised.append(Condition(name="no_output").model_copy(update=at))
    if isinstance(error, EffectRefused):
        raised.append(Condition(name="effect_refused").model_copy(update=at))
    if isinstance(error, BudgetSpent):
        spent = {"budget": error.budget, "used": error.used, "limit": error.most}
        raised.append(Condition(name="budget_exhausted").model_copy(update={**at, "evidence": spent}))
    step = _step(step_id, context, started, ended, attempt).model_copy(
        update={"state": StepState.failed, "error_kind": kind, "error": said, "conditions": tuple(raised)}
    )
    return Done(step, tuple(context.receipts), tuple(context.facts), context.stood_still)


async def _look_for_unsettled(context: StepContext) -> None:
    """A step that failed with an effect under way must not be followed by one that does it again."""
    for effect in await context.runtime.store.effects(context.run.run_id, UNSETTLED):
        asker = (effect.origin.iteration, effect.origin.phase, effect.origin.action_id)
        if asker == (context.run.iteration, context.phase, context.step_id) and not effect.call.defer:
            reason = f"{effect.call.name} was under way when the step failed"
            context.unknown_effects.append(EffectReport(key=effect.key, state="unknown", reason=reason))


def _unknown(context: StepContext, at: float) -> list[Condition]:
    return [
        Condition(
            name="effect_unknown", life=Lifetime.run, evidence={"effect": report.key, "reason": report.reason},
            iteration=context.run.iteration, at=at,
        )
        for report in context.unknown_effects
    ]  # fmt: skip


def _step(step_id: str, context: StepContext, started: float, ended: float, attempts: int) -> Step:
    return Step(
        run_id=context.run.run_id, iteration=context.run.iteration, phase=context.phase, id=step_id,
        state=StepState.done, attempts=attempts, receipts=tuple(item.digest for item in context.receipts),
        artifacts=tuple(context.artifacts), started_at=started, ended_at=ended,
    )  # fmt: skip


def _said(context: StepContext, error: Exception) -> str:
    """An error in one redacted line; a stranger's exception keeps its type's name."""
    text = str(error) if isinstance(error, BecketError) else f"{type(error).__name__}: {error}"
    return " ".join(context.runtime.redact(text).split())[:2000]
