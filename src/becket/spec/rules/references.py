"""Rules about what a loop names of becket.yaml, and about the loops that come with Becket."""

from __future__ import annotations

from collections.abc import Iterator

from becket.contract.config import Names
from becket.contract.errors import Finding
from becket.contract.template import plain_text
from becket.spec.case import Case, Step
from becket.spec.problems import suggestion

_RULES = {"gates": "unknown-gate", "agents": "unknown-agent", "services": "unknown-service"}


def sections(case: Case) -> Iterator[Finding]:
    """Gates, agents and services that a step names are in becket.yaml. Not checked where that is not known."""
    for step in case.steps if case.config is not None else ():
        for name, field in step.definition.params.model_fields.items() if step.definition else ():
            for mark in field.metadata:
                if isinstance(mark, Names):
                    yield from _named(case, step, field.alias or name, field.default, mark)


def _named(case: Case, step: Step, key: str, default: object, mark: Names) -> Iterator[Finding]:
    named = plain_text(step.spec.with_.get(key, default))
    there = getattr(case.config, mark.section)
    if named and named not in there and named not in mark.optional:
        path = (*step.path, "with", key)
        spot = case.value(*path) if case.document.has(path) else case.value(*step.path, "uses")
        message = f"becket.yaml has no `{named}` in `{mark.section}`"
        fix = suggestion(named, there, f"add it to `{mark.section}:` in becket.yaml, or name another")
        yield case.finding(spot, _RULES[mark.section], message, fix)


def facts(case: Case) -> Iterator[Finding]:
    """Something records what a trigger's `unless` asks for."""
    for number, trigger in enumerate(case.spec.trigger):
        guarded = trigger.commit or trigger.event
        if guarded is not None and guarded.unless is not None and guarded.unless not in case.registry.facts:
            spot = case.value("trigger", number, trigger.kind, "unless")
            fix = suggestion(guarded.unless, case.registry.facts)
            yield case.finding(spot, "unknown-fact", f"nothing records the fact `{guarded.unless}`", fix)


def signals(case: Case) -> Iterator[Finding]:
    """Somebody sends what a run waits for."""
    for name, wait in case.spec.wait_conditions.items():
        if wait.wake not in case.registry.signals:
            spot = case.value("wait_conditions", name, "wake")
            fix = suggestion(wait.wake, case.registry.signals)
            yield case.finding(spot, "unknown-signal", f"nothing sends the signal `{wait.wake}`", fix)
