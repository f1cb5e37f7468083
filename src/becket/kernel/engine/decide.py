"""What follows an iteration: one pure function from what is known to one of a closed set of outcomes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.condition import Conditions
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import USED, Decision, Outcome, Run, Step, StepState
from becket.kernel.contract.spec import Autonomy, LoopSpec, OnError, Phase, WaitThen
from becket.kernel.contract.store import Carried, WaitRow

STRIKES = 3
"""The same failure this often is no progress."""

BEFORE_STOP = ("effect_unknown", "effect_refused")
"""Runtime handoffs that outweigh met stop conditions: a person must look at what left, or could not leave."""

LONGEST_NAP = 60.0

BOUNDS = ("deadline_passed", "budget_exhausted")
"""Runtime handoffs that a run which has met its stop conditions need not care about."""


@dataclass(frozen=True, slots=True)
class Situation:
    """Everything a decision depends on."""

    spec: LoopSpec
    run: Run
    conditions: Conditions
    steps: tuple[Step, ...]
    receipts: tuple[tuple[Json, ...], ...]  # (command, tree, exit code) of this iteration's receipts
    carried: Carried
    autonomy: Autonomy
    failing: str  # the action whose on_error is `fail`, or ""
    now: float
    kept: frozenset[str] = frozenset()  # outputs, `id.output`, that the next iteration has too
    uncounted: frozenset[str] = frozenset()  # conditions after which the next iteration does not count


def decide(now: Situation) -> Decision:
    """In this order: cancelled, failed, handoff, wait, stop, bounds, next iteration."""
    if now.run.cancel_asked:
        return Decision(outcome=Outcome.cancelled, reason="cancelled")
    if now.failing:
        return Decision(outcome=Outcome.failed, reason="action_failed", detail=_errors(now))
    decision = _by_conditions(now)
    if now.run.dry_run:
        return _dry(now, decision)
    if now.autonomy is Autonomy.observe and decision.outcome is Outcome.again:
        return Decision(outcome=Outcome.handoff, reason="observe_only", detail={**_lacks(now), **_errors(now)})
    return decision


def _by_conditions(now: Situation) -> Decision:
    spec, raised = now.spec, now.conditions
    for name in (*spec.handoff_conditions, *BEFORE_STOP):
        if name in raised:
            return Decision(outcome=Outcome.handoff, reason=name, detail=_evidence(now, name))
    if waiting := [name for name in spec.wait_conditions if name in raised]:
        return _wait(now, waiting)
    if all(name in raised for name in spec.stop_conditions) and not unproven(now):
        detail = {name: _evidence(now, name) for name in spec.stop_conditions}
        return Decision(outcome=Outcome.completed, reason="stop_conditions_met", detail=detail)
    for name in BOUNDS:
        if name in raised:
            return Decision(outcome=Outcome.handoff, reason=name, detail=_evidence(now, name))
    return _again(now)


def unproven(now: Situation) -> list[str]:
    """What speaks against every stop condition: a step that failed, or that no verifier has looked and passed.

    `on_error: continue` excuses an action. Nothing excuses a verifier.
    """
    actions, verifiers = now.spec.output_makers(), now.spec.verifier_ids()
    excused = {name for name, action in actions.items() if action.on_error is OnError.carry_on} - verifiers
    failed = [step for step in now.steps if step.state is StepState.failed and step.phase is not Phase.notify]
    if blocking := [f"{step.phase}.{step.id} did not pass" for step in failed if step.id not in excused]:
        return blocking
    passed = any(step.id in verifiers and step.state is StepState.done for step in now.steps)
    return [] if passed else ["no verifier passed in this iteration"]


def _wait(now: Situation, waiting: list[str]) -> Decision:
    expired = [row for row in wait_rows(now, waiting) if row.expires <= now.now]
    for row in expired:
        then = now.spec.wait_conditions[row.condition].then
        outcome = Outcome.handoff if then is WaitThen.handoff else Outcome.failed
        detail = {"waited_for": row.condition, **_evidence(now, row.condition)}
        return Decision(outcome=outcome, reason="wait_expired", detail=detail)
    if "deadline_passed" in now.conditions:
        return Decision(outcome=Outcome.handoff, reason="deadline_passed", detail=_evidence(now, "deadline_passed"))
    return Decision(outcome=Outcome.wait, reason=waiting[0], detail={"waits": waiting})


def wait_rows(now: Situation, waiting: list[str]) -> list[WaitRow]:
    """When each wait is to be looked at again, and when it is over."""
    rows = []
    for name in waiting:
        wait = now.spec.wait_conditions[name]
        expires = now.run.waits_since.get(name, now.now) + wait.for_
        due = min(expires, now.now + wait.poll) if wait.poll else expires
        if wait.wake == "clock" and (until := _evidence(now, name).get("until")):
            # A time that has passed already is no reason to run in circles: each vain look waits longer.
            due = min(expires, max(float(until), now.now + min(2.0**now.carried.naps, LONGEST_NAP)))
        rows.append(WaitRow(condition=name, wake=wait.wake, due=due, expires=expires))
    return rows


def _again(now: Situation) -> Decision:
    if why := no_progress(now):
        detail = {"why": why, **_lacks(now), **_errors(now), **_against(now)}
        return Decision(outcome=Outcome.handoff, reason="no_progress", detail=detail)
    counts = now.uncounted.isdisjoint(item.ref for item in now.conditions)
    if counts and now.run.counted >= now.spec.max_iterations:
        detail = {"iterations": now.run.counted, **_lacks(now), **_errors(now), **_against(now)}
        return Decision(outcome=Outcome.handoff, reason="iterations_exhausted", detail=detail)
    return Decision(outcome=Outcome.again, reason="stop_conditions_unmet", detail=_lacks(now), counts=counts)


def _dry(now: Situation, decision: Decision) -> Decision:
    if decision.outcome is Outcome.failed or "action_error" in now.conditions:
        return Decision(outcome=Outcome.failed, reason="dry_run_failed", detail=_errors(now))
    would = {"outcome": decision.outcome.value, "reason": decision.reason, **decision.detail}
    return Decision(outcome=Outcome.completed, reason="dry_run", detail={"would": would})


def no_progress(now: Situation) -> str:
    """Why this iteration counts as no progress, or "" if it does not."""
    for step in now.steps:
        if step.progress and step.progress in now.carried.progress:
            return f"{step.id} brought the same result as an earlier iteration"
    for signature, (step, count) in failures(now).items():
        if count >= STRIKES:
            return f"{step.phase}.{step.id} failed the same way {count} times ({signature[:12]})"
    quiet = "woken" not in now.conditions and not failures(now)  # failures are judged by their strikes
    if quiet and now.carried.last and now.carried.last == added(now):
        return "the iteration added no new output, condition or receipt"
    return ""


_VARYING = re.compile(r"0x[0-9a-f]+|\d+")


def failures(now: Situation) -> dict[str, tuple[Step, int]]:
    """Failure signatures of this iteration, with how often each has come by now."""
    seen: dict[str, tuple[Step, int]] = {}
    for step in now.steps:
        if step.state is StepState.failed and step.phase is not Phase.notify:
            signature = digest_of([step.phase, step.id, step.error_kind, _VARYING.sub("#", step.error)])
            seen[signature] = (step, now.carried.failures.get(signature, 0) + 1)
    return seen


def added(now: Situation) -> str:
    """The digest of what this iteration brought. Logs are left out: they hold times; so is notify: it only tells."""
    outputs = {step.id: _brought(step) for step in now.steps if step.outputs and step.phase is not Phase.notify}
    return digest_of([outputs, sorted(item.ref for item in now.conditions), sorted(map(str, now.receipts))])


def _brought(step: Step) -> dict[str, Json]:
    return {name: value for name, value in step.outputs.items() if name not in USED}


def carry(now: Situation) -> Carried:
    """What the next iteration gets from this one."""
    kept = dict(now.carried.outputs)
    made = {step.id: step.outputs for step in now.steps if step.state is StepState.done}
    for action, _, name in (ref.partition(".") for ref in sorted(now.kept)):
        if name in made.get(action, {}):
            kept[action] = {**kept.get(action, {}), name: made[action][name]}
    return Carried(
        outputs=kept,
        failures=now.carried.failures | {signature: count for signature, (_, count) in failures(now).items()},
        progress=(*now.carried.progress, *(step.progress for step in now.steps if step.progress)),
        last=now.carried.last if "woken" in now.conditions else added(now),
        naps=now.carried.naps + 1 if "woken" in now.conditions else 0,
    )


def next_step_words(decision: Decision, run: Run) -> str:
    """What the owner of a handoff is asked to do: the command that the condition itself names, if it does."""
    if isinstance(command := decision.detail.get("next"), str):
        return f"`{command}`"
    why = reason_words(decision.reason)
    return f"{why}; look at `becket runs show {run.run_id}`, then `becket runs retry {run.run_id}`"


def _evidence(now: Situation, name: str) -> dict[str, Json]:
    condition = now.conditions.get(name)
    return dict(condition.evidence) if condition else {}


def _lacks(now: Situation) -> dict[str, Json]:
    """Why the run is not completed: stop conditions that do not hold, or what speaks against those that do."""
    unmet = [name for name in now.spec.stop_conditions if name not in now.conditions]
    return {"unmet": unmet} if unmet else {"unproven": unproven(now)}


def _errors(now: Situation) -> dict[str, Json]:
    failed = [step for step in now.steps if step.state is StepState.failed]
    return {"errors": [f"{step.phase}.{step.id}: {step.error or _verdict(step)}" for step in failed]} if failed else {}


def _verdict(step: Step) -> str:
    """How a verifier that said nothing found what it found."""
    evidence = step.conditions[0].evidence if step.conditions else {}
    found = [f"{name} {str(value)[:200]}" for name, value in evidence.items() if value and name != "log"]
    return f"{step.error_kind} ({', '.join(found)})" if found else step.error_kind


def _against(now: Situation) -> dict[str, Json]:
    """What the raised conditions have in their evidence as `against`: a person need not search for it."""
    found = [item.evidence.get("against") for item in now.conditions]
    words = [str(reason) for reasons in found if isinstance(reasons, list) for reason in reasons]
    return {"against": list(dict.fromkeys(words))} if words else {}
