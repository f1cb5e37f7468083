"""The rule about chains of starts: a graph of every way in which a run can cause another, and no cycle without a bound.

An arc leads from the loop whose run causes to the loop that is started: `run.start`, an event that is posted and heard,
the end of a run, a branch that is moved and watched. `max_chain` bounds an arc, and so does a trigger's
`unless`, if the loop's subject can be the same twice: otherwise nothing is ever recorded about the next one.
People and schedules begin a chain anew, so nothing leads to them and no cycle goes through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from becket.kernel.contract.action import Registry
from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.spec import ActionSpec, EventTrigger, LoopSpec
from becket.kernel.contract.template import TemplateError, fields, plain_text
from becket.kernel.spec.document import Document, Path, read
from becket.kernel.spec.lint_context import LintContext, action_specs

_NEW_EACH_TIME = ("start", "id")
"""Fields of a subject that no two starts share: the run's id and the event's."""


@dataclass(frozen=True, slots=True)
class StartEdge:
    """A run of `cause` can start a run of `loop`. `at` is the place in the file of `owner` that says so."""

    cause: str
    loop: str
    owner: str
    at: Path
    how: str


def endless(case: LintContext) -> Iterator[Finding]:
    """No chain of starts goes round without a bound. Each cycle is told once per file, at its first arc there."""
    own = case.spec.loop_id
    others = [other for other in case.others or () if other.spec.loop_id != own]
    graph = tuple(unbounded([case.spec, *(other.spec for other in others)], case.registry))
    sources = {own: case.document} | {other.spec.loop_id: other for other in others}
    told: set[StartEdge] = set()
    for arc in graph:
        if arc.owner != own or arc in told:
            continue
        if cycle := shortest_cycle(graph, arc):
            told.update(cycle)
            way = "; ".join(_in_words(step, sources[step.owner]) for step in cycle)
            message = f"a run of this loop can start the next one without end: {way}"
            yield case.finding(case.key(*arc.at), "self-feeding", message, _fix(case.spec, arc))


def unbounded(specs: Sequence[LoopSpec], registry: Registry) -> Iterator[StartEdge]:
    """Every arc that nothing bounds, those of triggers first, in the order of the files."""
    for spec in specs:
        for number, trigger in enumerate(spec.trigger):
            at = ("trigger", number, trigger.kind)
            for cause, how in _causes_of(spec, number, specs, registry):
                yield StartEdge(cause, spec.loop_id, spec.loop_id, at, how)
    for spec in specs:
        for path, _, action in action_specs(spec):
            if action.uses == "run.start" and action.with_.get("max_chain") is None:
                named = child(action)
                for loop in (other.loop_id for other in specs) if named is None else (named,):
                    how = f"`{spec.loop_id}` starts `{named or 'any loop'}`"
                    yield StartEdge(spec.loop_id, loop, spec.loop_id, (*path, "uses"), how)


def _causes_of(spec: LoopSpec, number: int, specs: Sequence[LoopSpec], registry: Registry) -> Iterator[tuple[str, str]]:
    """The loops that set off one trigger, and how."""
    trigger = spec.trigger[number]
    if (after := trigger.after) is not None and after.max_chain is None:
        yield after.loop, f"`{spec.loop_id}` follows `{after.loop}`"
    guarded = trigger.commit or trigger.event
    if guarded is None or guarded.max_chain is not None or (guarded.unless is not None and not _always_new(spec)):
        return
    for other in specs:
        if isinstance(guarded, EventTrigger):
            if _posts(other, guarded, registry):
                yield other.loop_id, f"`{spec.loop_id}` hears `{guarded.name}`, which `{other.loop_id}` may post"
        elif _moves_branch(other, registry):
            yield other.loop_id, f"`{spec.loop_id}` watches a branch, which `{other.loop_id}` may move"


def _always_new(spec: LoopSpec) -> bool:
    try:
        return any(field.name in _NEW_EACH_TIME for field in fields(spec.subject))
    except TemplateError:
        return False  # has its own finding


def shortest_cycle(graph: Sequence[StartEdge], first: StartEdge) -> tuple[StartEdge, ...]:
    """The shortest way from an arc back to its beginning, that arc included; nothing if there is none."""
    reached: dict[str, tuple[StartEdge, ...]] = {first.loop: (first,)}
    ahead = [first.loop]
    while ahead and first.cause not in reached:
        here, *ahead = ahead
        for arc in graph:
            if arc.cause == here and arc.loop not in reached:
                reached[arc.loop] = (*reached[here], arc)
                ahead.append(arc.loop)
    return reached.get(first.cause, ())


def child(action: ActionSpec) -> str | None:
    """The loop that a `run.start` action names outright."""
    return plain_text(action.with_.get("loop")) if action.uses == "run.start" else None


def _in_words(arc: StartEdge, source: Document | LoadedLoop) -> str:
    document = source if isinstance(source, Document) else read(source.text, source.source)
    line, column = document.place(arc.at).key
    return f"{arc.how} ({document.file}:{line}:{column})"


def _fix(spec: LoopSpec, arc: StartEdge) -> str:
    by_fact = arc.at[-1] in ("commit", "event") and not _always_new(spec)
    return "add `unless: completed` or `max_chain: 3`" if by_fact else "add `max_chain: 3`"


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
        "event.post" in _effects(action, registry)
        and plain_text(action.with_.get("name")) in (None, event.name)
        and _may_match(action.with_.get("data", {}), event)
        for _, _, action in action_specs(spec)
    )


def _may_match(data: Json, event: EventTrigger) -> bool:
    """Whether what is posted may be what is heard: yes, but where the file itself says otherwise."""
    if not isinstance(data, dict):
        return True
    return all(
        key in data and (not isinstance(data[key], str) or plain_text(data[key]) in (None, value))
        for key, value in event.match.items()
    )
