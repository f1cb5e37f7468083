"""Rules about starts: clocks that tick, loops that exist, inputs that can be filled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.spec import InputSpec, InputType
from becket.kernel.contract.template import ALWAYS, OF_STEP, OF_TRIGGER
from becket.kernel.spec.lint_context import ActionStep, LintContext
from becket.kernel.spec.problems import suggestion
from becket.kernel.spec.rules.chains import child
from becket.kernel.spec.rules.templates import WITHOUT_INPUTS

GROUPS = ("data", "decision")
"""What stands before the dot in fields that are no output of an action."""

_SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)
_KINDS = {InputType.integer: int, InputType.number: int | float, InputType.boolean: bool}
"""What a default is in the file; the others are texts."""


def clocks(case: LintContext) -> Iterator[Finding]:
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


def loops(case: LintContext) -> Iterator[Finding]:
    """Loops that are named exist. Not checked where the other loops are not known."""
    if case.others is None:
        return
    known = [case.spec.loop_id, *(other.spec.loop_id for other in case.others)]
    for number, trigger in enumerate(case.spec.trigger):
        if trigger.after is not None and trigger.after.loop not in known:
            spot = case.value("trigger", number, "after", "loop")
            yield _unknown_loop(case, spot, trigger.after.loop, known)
    for action in case.actions:
        named = child(action.spec)
        if named is not None and named not in known:
            yield _unknown_loop(case, case.value(*action.path, "with", "loop"), named, known)
        elif named is not None:
            specs = [other.spec for other in case.others if other.spec.loop_id == named] or [case.spec]
            yield from _child_inputs(case, action, specs[0].inputs)


def _child_inputs(case: LintContext, action: ActionStep, wanted: Mapping[str, InputSpec]) -> Iterator[Finding]:
    given = action.spec.with_.get("inputs", {})
    path = (*action.path, "with", "inputs")
    for name in given if isinstance(given, dict) else ():
        if name not in wanted:
            message = f"the loop it starts has no input `{name}`"
            yield case.finding(case.key(*path, name), "unknown-input", message, suggestion(name, wanted, "remove it"))
    for name, spec in wanted.items() if isinstance(given, dict) else ():
        if name not in given and spec.default is None and not spec.optional:
            message = f"the loop it starts needs the input `{name}`"
            yield case.finding(
                case.value(*action.path, "uses"), "unfilled-input", message, f"add it: inputs: {{{name}: ...}}"
            )


def _unknown_loop(case: LintContext, spot: tuple[int, int], name: str, known: Sequence[str]) -> Finding:
    return case.finding(spot, "unknown-loop", f"there is no loop `{name}`", suggestion(name, known))


def inputs(case: LintContext) -> Iterator[Finding]:
    """Defaults fit their inputs, and a start without a person lacks nothing."""
    mute = [trigger.kind for trigger in case.spec.trigger if trigger.kind in WITHOUT_INPUTS]
    taken = {*ALWAYS, *OF_STEP, *GROUPS, *(name for kind in case.spec.trigger for name in OF_TRIGGER[kind.kind])}
    for name, spec in case.spec.inputs.items():
        if name in taken:
            message = f"`{{{name}}}` already means something else in this loop"
            yield case.finding(case.key("inputs", name), "reserved-id", message, "choose another name for the input")
        for number, choice in enumerate(spec.choices):
            if problem := _unreadable(spec, choice):
                spot = case.value("inputs", name, "choices", number)
                yield case.finding(spot, "bad-default", problem, "change the choice or the type")
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
        return f"`{json.dumps(default, ensure_ascii=False)[:60]}` is not of type {spec.type}"
    return _unreadable(spec, default)


def _unreadable(spec: InputSpec, value: Json) -> str | None:
    try:
        spec.read(value)
    except ValueError as error:
        return str(error)
    return None
