"""Rules about starts: clocks that tick, loops that exist, inputs that can be filled, and nothing that feeds itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from becket.contract.action import Registry
from becket.contract.base import Json
from becket.contract.errors import Finding
from becket.contract.spec import ActionSpec, EventTrigger, InputSpec, InputType, LoopSpec, Trigger
from becket.contract.template import plain_text
from becket.spec.case import Case, action_specs
from becket.spec.problems import suggestion
from becket.spec.rules.templates import WITHOUT_INPUTS

_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_KINDS = {InputType.integer: int, InputType.number: int | float, InputType.boolean: bool}
"""What a default is in the file; the others are texts."""


def clocks(case: Case) -> Iterator[Finding]:
    """Schedules have a cron expression that fires and a time zone that exists."""
    for number, trigger in enumerate(case.spec.trigger):
        if trigger.schedule is None:
            continue
        path = ("trigger", number, "schedule")
        problem = _cron_problem(trigger.schedule.cron)
        if problem is not None:
            fix = "write minute, hour, day, month, weekday, like `30 2 * * *`"
            yield case.finding(case.value(*path, "cron"), "bad-cron", problem, fix)
        try:
            ZoneInfo(trigger.schedule.tz)
        except (KeyError, ValueError, OSError):
            message = f"there is no time zone {trigger.schedule.tz[:60]!r}"
            yield case.finding(
                case.value(*path, "tz"), "bad-timezone", message, "write an IANA name like Europe/Berlin"
            )


def _cron_problem(text: str) -> str | None:
    try:
        next(CronSim(text, _SOME_DAY))
    except StopIteration:
        return f"`{text[:60]}` never fires"
    except (CronSimError, ValueError) as error:
        return f"`{text[:60]}` is not a cron expression: {str(error)[:60].lower()}"
    return None


def loops(case: Case) -> Iterator[Finding]:
    """Loops that are named exist. Not checked where the other loops are not known."""
    if case.others is None:
        return
    known = [case.spec.loop_id, *(other.loop_id for other in case.others)]
    for number, trigger in enumerate(case.spec.trigger):
        if trigger.after is not None and trigger.after.loop not in known:
            spot = case.value("trigger", number, "after", "loop")
            yield _unknown_loop(case, spot, trigger.after.loop, known)
    for action in case.actions:
        child = _child(action.spec)
        if child is not None and child not in known:
            yield _unknown_loop(case, case.value(*action.path, "with", "loop"), child, known)


def _unknown_loop(case: Case, spot: tuple[int, int], name: str, known: Sequence[str]) -> Finding:
    return case.finding(spot, "unknown-loop", f"there is no loop `{name}`", suggestion(name, known))


def inputs(case: Case) -> Iterator[Finding]:
    """Defaults fit their inputs, and a start without a person lacks nothing."""
    mute = [trigger.kind for trigger in case.spec.trigger if trigger.kind in WITHOUT_INPUTS]
    for name, spec in case.spec.inputs.items():
        if spec.default is not None and (problem := _default_problem(spec, spec.default)):
            yield case.finding(case.value("inputs", name, "default"), "bad-default", problem, "change the default")
        if spec.default is None and not spec.optional and mute:
            message = f"a run started by `{mute[0]}` cannot have the input `{name}`"
            yield case.finding(
                case.key("inputs", name), "unfilled-input", message, "add a default, or `optional: true`"
            )


def _default_problem(spec: InputSpec, default: Json) -> str | None:
    kind = _KINDS.get(spec.type, str)
    if isinstance(default, bool) is not (kind is bool) or not isinstance(default, kind):
        return f"{str(default)[:60]!r} is not of type {spec.type}"
    try:
        spec.read(default)
    except ValueError as error:
        return str(error)
    return None


def feeding(case: Case) -> Iterator[Finding]:
    """No trigger can start its own loop again and again without an end."""
    every = [case.spec, *(other for other in case.others or () if other.loop_id != case.spec.loop_id)]
    caused = _causes(every, case.spec.loop_id)
    downstream = [spec for spec in every if spec.loop_id in caused]
    for number, trigger in enumerate(case.spec.trigger):
        if trigger.after is not None:
            again = trigger.after.loop if trigger.after.max_chain is None and trigger.after.loop in caused else None
            what, fix = "leads to this loop again", "add `max_chain: 3`"
        else:
            again = _feeder(trigger, downstream, case.registry)
            what = f"may post `{trigger.event.name}`" if trigger.event else "may move a branch"
            fix = "add `unless: completed` or `max_chain: 3`"
        if again is not None:
            message = f"a run of this loop can start the next one without end: `{again}` {what}"
            yield case.finding(case.key("trigger", number, trigger.kind), "self-feeding", message, fix)


def _feeder(trigger: Trigger, downstream: Sequence[LoopSpec], registry: Registry) -> str | None:
    """The loop that sets off an unguarded commit or event trigger."""
    guarded = trigger.commit or trigger.event
    if guarded is None or guarded.unless is not None or guarded.max_chain is not None:
        return None
    for spec in downstream:
        if _posts(spec, trigger.event, registry) if trigger.event else _moves_branch(spec, registry):
            return spec.loop_id
    return None


def _causes(every: Sequence[LoopSpec], start: str) -> frozenset[str]:
    """The loops that a run of `start` can lead to without a bound on the chain, itself included."""
    leads: dict[str, set[str]] = {}
    for spec in every:
        for trigger in spec.trigger:
            if trigger.after is not None and trigger.after.max_chain is None:
                leads.setdefault(trigger.after.loop, set()).add(spec.loop_id)
        for _, _, action in action_specs(spec):
            if (child := _child(action)) is not None:
                leads.setdefault(spec.loop_id, set()).add(child)
    reached, ahead = {start}, [start]
    while ahead:
        new = leads.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return frozenset(reached)


def _child(action: ActionSpec) -> str | None:
    """The loop that a `run.start` action names outright."""
    return plain_text(action.with_.get("loop")) if action.uses == "run.start" else None


def _effects(action: ActionSpec, registry: Registry) -> tuple[str, ...]:
    if action.effects is not None:
        return (action.effects.name,)
    definition = registry.actions.get(action.uses or "")
    return definition.effects if definition else ()


def _moves_branch(spec: LoopSpec, registry: Registry) -> bool:
    """Any effect on git counts: what is pushed may come back by a fetch."""
    return any(name.startswith("git.") for _, _, action in action_specs(spec) for name in _effects(action, registry))


def _posts(spec: LoopSpec, event: EventTrigger, registry: Registry) -> bool:
    return any(
        "event.post" in _effects(action, registry) and plain_text(action.with_.get("name")) in (None, event.name)
        for _, _, action in action_specs(spec)
    )
