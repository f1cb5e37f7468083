"""Rules about what a loop names: of becket.yaml, of itself, and of what comes with Becket."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.contract.action import NamesCondition, NamesOutput
from becket.kernel.contract.config import Names
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.made import taken
from becket.kernel.contract.state import STATE_KINDS, fits
from becket.kernel.contract.template import Field, TemplateError, fill, plain_text
from becket.kernel.contract.when import parse
from becket.kernel.spec.document import Path
from becket.kernel.spec.lint_context import LintContext, Step
from becket.kernel.spec.problems import suggestion
from becket.kernel.spec.rules.conditions import condition
from becket.kernel.spec.rules.templates import output, there


def sections(case: LintContext) -> Iterator[Finding]:
    """What a step names of a section, such as `gates`, is in becket.yaml. Not checked where that is not known."""
    for step in case.steps if case.config is not None else ():
        for path, named, mark in _marked(case, step):
            if isinstance(mark, Names):
                yield from _named(case, path, named, mark)


def own(case: LintContext) -> Iterator[Finding]:
    """Outputs and conditions that a step's parameters name are made or raised before it."""
    makers = {action.spec.id: action for action in case.actions}
    for step in case.steps:
        for path, named, mark in _marked(case, step):
            if isinstance(mark, NamesOutput):
                name = f"{named}.{mark.of}" if mark.of else named
                yield from output(case, path, Field(name, 1), step.order, makers)
            elif isinstance(mark, NamesCondition) and case.all_known:
                for name in parse(named).refs() if mark.expression else (named,):
                    yield from condition(case, path, name, step)


def taken_from(case: LintContext) -> Iterator[Finding]:
    """A parameter that is left to what earlier steps made has a step before it that makes it."""
    makers, made = {action.spec.id: action for action in case.actions}, case.registry.made(case.spec)
    for step in case.steps:
        for name, field, mark in taken(step.definition.params, step.spec.with_) if step.definition else ():
            refs = mark.refs(made)
            if field.is_required() and not any(there(case, makers[_id(ref)], ref, step.order) for ref in refs):
                objects = {kind.partition(".")[0] for kind in mark.kinds}
                able = [action.name for action in case.registry.actions.values() if action.about in objects]
                message = f"`{name}` is missing, and no step before this one makes {mark.told}"
                fix = f"add it to `with`, or a step that makes it{f', such as `{able[0]}`' if able else ''}"
                yield case.finding(case.value(*step.path, "uses"), "missing-parameter", message, fix)


def _id(ref: str) -> str:
    return ref.partition(".")[0]


def _marked(case: LintContext, step: Step) -> Iterator[tuple[Path, str, object]]:
    """Each name that stands in a parameter with a mark, with its place."""
    for name, field in step.definition.params.model_fields.items() if step.definition else ():
        key = field.alias or name
        path, given = (*step.path, "with", key), step.spec.with_.get(key, field.default)
        items = [((*path, n), item) for n, item in enumerate(given)] if isinstance(given, list) else [(path, given)]
        for mark in field.metadata:
            for at, item in items:
                if named := plain_text(item):
                    yield at if case.document.has(at) else (*step.path, "uses"), named, mark


def _named(case: LintContext, path: Path, named: str, mark: Names) -> Iterator[Finding]:
    there = getattr(case.config, mark.section, ())
    if named not in there and named not in mark.optional:
        message = f"becket.yaml has no `{named}` in `{mark.section}`"
        fix = suggestion(named, there, f"add it to `{mark.section}:` in becket.yaml, or name another")
        yield case.finding(case.value(*path), mark.rule, message, fix)


def facts(case: LintContext) -> Iterator[Finding]:
    """Something records what a trigger's `unless` asks for."""
    for number, trigger in enumerate(case.spec.trigger):
        guarded = trigger.commit or trigger.event
        if guarded is not None and guarded.unless is not None and guarded.unless not in case.registry.facts:
            spot = case.value("trigger", number, trigger.kind, "unless")
            fix = suggestion(guarded.unless, case.registry.facts)
            yield case.finding(spot, "unknown-fact", f"nothing records the fact `{guarded.unless}`", fix)


def places(case: LintContext) -> Iterator[Finding]:
    """Each of `state_refs` is of a known kind, and can be there."""
    for number, ref in enumerate(case.spec.state_refs):
        kind, spot = ref.partition(":")[0], case.value("state_refs", number)
        if kind not in STATE_KINDS:
            fix = suggestion(kind, STATE_KINDS)
            yield case.finding(spot, "unknown-state", f"nobody knows where `{kind}` is", fix)
        elif not fits(_with_fields_filled(ref)):
            fix = f"write it like {STATE_KINDS[kind].example}"
            yield case.finding(spot, "bad-state", f"`{ref}` names no state of the kind `{kind}`", fix)


def _with_fields_filled(ref: str) -> str:
    try:
        return fill(ref, lambda name: name)
    except TemplateError:
        return ref  # has its own finding


def signals(case: LintContext) -> Iterator[Finding]:
    """Somebody sends what a run waits for, and an action of this loop leads to it where it does not come by itself."""
    senders = case.registry.senders
    led_to = {name for step in case.actions if step.definition for name in step.definition.signals}
    for name, wait in case.spec.wait_conditions.items():
        spot = case.value("wait_conditions", name, "wake")
        if wait.wake not in senders:
            fix = suggestion(wait.wake, senders)
            yield case.finding(spot, "unknown-signal", f"nothing sends the signal `{wait.wake}`", fix)
        elif wait.wake not in {*case.registry.signals, *led_to} and case.all_known:
            message = f"no action of this loop leads to the signal `{wait.wake}`"
            fix = f"add an action that does: {' or '.join(f'`{each}`' for each in senders[wait.wake])}"
            yield case.finding(spot, "wait-without-ask", message, fix)
