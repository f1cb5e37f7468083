"""Rules about templates and outputs: every field is there when it is needed, every output has a maker."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.spec import PHASES, Phase
from becket.kernel.contract.template import (
    ALWAYS,
    OF_NOTIFY,
    OF_STEP,
    OF_TRIGGER,
    Field,
    TemplateError,
    fields,
    in_single_quotes,
    shell_fields,
)
from becket.kernel.spec.document import Path
from becket.kernel.spec.lint_context import ActionStep, LintContext, Order, Step
from becket.kernel.spec.problems import suggestion

WITHOUT_INPUTS = frozenset({"commit", "schedule"})
"""Triggers that can give a run no inputs: what such a run needs, must have a default."""


def subjects(case: LintContext) -> Iterator[Finding]:
    """`subject`, `group` and `state_refs` use only what every trigger of the loop provides."""
    texts: list[tuple[Path, str]] = [(("subject",), case.spec.subject)]
    texts += [(("state_refs", number), ref) for number, ref in enumerate(case.spec.state_refs)]
    if case.spec.concurrency is not None:
        texts.append((("concurrency", "group"), case.spec.concurrency.group))
    for path, text in texts:
        for field in _fields(case, path, text):
            if isinstance(field, Finding):
                yield field
            else:
                yield from _provided(case, path, field, ())


def steps(case: LintContext) -> Iterator[Finding]:
    """The fields in parameters, environment and commands of each step."""
    makers = {action.spec.id: action for action in case.actions}
    for step in case.steps:
        also = OF_STEP + OF_NOTIFY if step.path[1] == Phase.notify else OF_STEP
        for path, field in _step_fields(case, step):
            if isinstance(field, Finding):
                yield field
            elif "." in field.name and not field.name.startswith("data.") and field.name not in also:
                yield from output(case, path, field, step.order, makers)
            else:
                yield from _provided(case, path, field, also)


def persisted(case: LintContext) -> Iterator[Finding]:
    """What a phase keeps is made by it or by an earlier one."""
    makers = {action.spec.id: action for action in case.actions}
    for number, phase in enumerate(PHASES):
        declared = case.spec.phases.get(phase)
        for index, name in enumerate(declared.persist_outputs if declared else ()):
            path = ("phases", phase.value, "persist_outputs", index)
            maker = makers.get(name.partition(".")[0])
            unmade = _unmade(case, path, 0, name, maker)
            if unmade is not None:
                yield unmade
            elif maker is not None and maker.order[0] > number:
                message = f"`{name}` is made in phase {maker.path[1]}, after {phase}"
                yield case.finding(
                    case.value(*path), "output-used-before-made", message, "keep it in the phase that makes it"
                )


def _step_fields(case: LintContext, step: Step) -> Iterator[tuple[Path, Field | Finding]]:
    for path, text in _texts((*step.path, "with"), step.spec.with_):
        yield from ((path, field) for field in _fields(case, path, text))
    for path, text in _texts((*step.path, "env"), step.spec.env):
        yield from ((path, field) for field in _fields(case, path, text))
    for path, text in _commands(step):
        yield from ((path, field) for field in shell_fields(_written(case, path, text)))


def _commands(step: Step) -> Iterator[tuple[Path, str]]:
    if step.spec.run is not None:
        yield (*step.path, "run"), step.spec.run
    if isinstance(step, ActionStep) and step.spec.effects is not None and step.spec.effects.look_up is not None:
        yield (*step.path, "effects", "look_up"), step.spec.effects.look_up


def quotes(case: LintContext) -> Iterator[Finding]:
    """A field in a command is a variable, and a shell leaves variables in single quotes as they are."""
    for step in case.steps:
        for path, text in _commands(step):
            for field in in_single_quotes(_written(case, path, text)):
                spot = case.document.inside(path, field.column - 1)
                message = f"{{{field.name}}} stands in single quotes, where the shell does not fill it in"
                yield case.finding(spot, "field-in-single-quotes", message, f'write "{{{field.name}}}"')


def _texts(path: Path, value: Json) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
    elif isinstance(value, str):
        yield path, value


def _fields(case: LintContext, path: Path, text: str) -> Iterator[Field | Finding]:
    try:
        yield from fields(_written(case, path, text))
    except TemplateError as error:
        spot = case.document.inside(path, error.column - 1)
        yield case.finding(spot, "bad-template", str(error), "write {{ and }} for braces that are no field")


def _written(case: LintContext, path: Path, text: str) -> str:
    """The text as it stands in the file: a model may have stripped it, and columns are counted there."""
    written = case.document.at(path)
    return written if isinstance(written, str) else text


def _provided(case: LintContext, path: Path, field: Field, also: tuple[str, ...]) -> Iterator[Finding]:
    """Nothing if every trigger provides the field, or else the finding that says which one does not."""
    inputs = case.spec.inputs
    for kind in dict.fromkeys(trigger.kind for trigger in case.spec.trigger):
        given = (*ALWAYS, *also, *OF_TRIGGER[kind])
        if field.name in given or ("data.*" in given and field.name.startswith("data.")):
            continue
        asked = inputs.get(field.name)
        if asked is not None and (
            asked.default is not None or not asked.optional or not (also or kind in WITHOUT_INPUTS)
        ):
            continue
        spot = case.document.inside(path, field.column - 1)
        known = (*given, *inputs)
        message = f"a run started by `{kind}` {'may have' if asked else 'has'} no {{{field.name}}}"
        fix = "give the input a default" if asked else suggestion(field.name, known)
        yield case.finding(spot, "bad-template", message, fix)
        return


def output(
    case: LintContext, path: Path, field: Field, order: Order, makers: dict[str, ActionStep]
) -> Iterator[Finding]:
    """Nothing if the output is made before, or kept; or else the finding that says why it is not there."""
    maker = makers.get(field.name.partition(".")[0])
    unmade = _unmade(case, path, field.column, field.name, maker)
    if unmade is not None:
        yield unmade
    elif maker is not None and not there(case, maker, field.name, order):
        spot = case.document.inside(path, field.column - 1)
        message = f"`{field.name}` is made later, and no phase keeps it for the next iteration"
        yield case.finding(
            spot, "output-used-before-made", message, f"add {field.name} to persist_outputs, or use it later"
        )


def _unmade(case: LintContext, path: Path, column: int, name: str, maker: ActionStep | None) -> Finding | None:
    spot = case.document.inside(path, max(column - 1, 0))
    head, _, output = name.partition(".")
    if maker is None:
        known = [action.spec.id for action in case.actions]
        return case.finding(spot, "unknown-output", f"`{name}`: there is no action `{head}`", suggestion(head, known))
    if maker.known and output not in maker.outputs:
        return case.finding(
            spot, "unknown-output", f"`{head}` does not make `{output}`", suggestion(output, maker.outputs)
        )
    return None


def there(case: LintContext, maker: ActionStep, name: str, order: Order) -> bool:
    """Whether an output can be there at a step: made before it, or kept from an earlier iteration."""
    return maker.order < order or name in case.registry.kept(case.spec)
