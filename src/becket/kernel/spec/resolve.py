"""Finds the code behind each step of a spec and checks the step's parameters against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from becket.kernel.contract.action import Registry
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import ConditionGroup, split_ref
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.made import taken
from becket.kernel.contract.spec import ActionSpec, LoopSpec
from becket.kernel.contract.template import TemplateError, fields, is_field
from becket.kernel.spec.document import Document, Path
from becket.kernel.spec.kinds import kind_findings
from becket.kernel.spec.lint_context import ActionStep, LintContext, Order, VerifierStep, action_specs, verifier_specs
from becket.kernel.spec.problems import finding_of, suggestion

_RULES = {"unknown-key": "unknown-parameter", "missing-key": "missing-parameter", "missing-bound": "missing-parameter"}


def resolve(
    document: Document,
    spec: LoopSpec,
    registry: Registry,
    others: Sequence[LoadedLoop] | None,
    config: Config | None = None,
) -> LintContext:
    """The case, with the findings about unknown actions, verifiers and parameters already in it."""
    resolver = _Resolver(document, registry)
    actions = tuple(resolver.action(path, order, action) for path, order, action in action_specs(spec))
    verifiers = []
    for path, order, verifier in verifier_specs(spec):
        definition = registry.verifiers.get(verifier.uses) if verifier.uses else None
        if verifier.uses and definition is None:
            resolver.unknown(path, "verifier", verifier.uses, registry.verifiers)
        elif definition is not None:
            resolver.parameters(path, definition.params, verifier.with_)
        verifiers.append(VerifierStep(path, order, verifier, definition))
    return LintContext(document, spec, registry, others, actions, tuple(verifiers), tuple(resolver.findings), config)


class _Resolver:
    def __init__(self, document: Document, registry: Registry) -> None:
        self._document = document
        self._registry = registry
        self.findings: list[Finding] = []

    def action(self, path: Path, order: Order, spec: ActionSpec) -> ActionStep:
        if spec.uses is None:
            return ActionStep(path, order, spec, None, _groups_of_command(spec), frozenset(spec.outputs))
        definition = self._registry.actions.get(spec.uses)
        if definition is None:
            self.unknown(path, "action", spec.uses, self._registry.actions)
            return ActionStep(path, order, spec, None, (), frozenset(), known=False)
        params = self.parameters(path, definition.params, spec.with_)
        groups = None if params is None else definition.groups_if_told(params)
        made = frozenset(definition.outputs)
        return ActionStep(path, order, spec, definition, groups or (), made, known=groups is not None)

    def unknown(self, path: Path, what: str, name: str, known: Mapping[str, object]) -> None:
        spot = self._document.place((*path, "uses")).value
        message = f"there is no {what} `{name}`"
        self.findings.append(self._document.finding(spot, f"unknown-{what}", message, suggestion(name, known)))

    def parameters(self, path: Path, model: type[Record], given: Mapping[str, Json]) -> Record | None:
        """The parameters, with templates where a value is not known yet; None if they do not fit."""
        below = (*path, "with")
        kinds = kind_findings(self._document, model, below, _is_open)
        found = [replace(finding, rule="bad-parameter") for finding in kinds]
        made = None
        try:
            made = model.model_validate(given, by_alias=True, by_name=False)
        except ValidationError as error:
            made_before = {key for key, _, _ in taken(model, given)}  # the rule about them tells what nobody makes
            wrong = [
                details for details in error.errors(include_url=False)
                if not _open(details) and not (details["type"] == "missing" and details["loc"][0] in made_before)
            ]  # fmt: skip
            found += [self._wrong(details, below, model) for details in wrong]
        self.findings += found
        return None if found else made or model.model_construct(**dict(given))

    def _wrong(self, details: ErrorDetails, below: Path, model: type[Record]) -> Finding:
        finding = finding_of(details, model, self._document, below=below)
        rule = _RULES.get(finding.rule, "bad-parameter")
        if isinstance(details["input"], str) and _is_open(details["input"]):
            return replace(finding, rule=rule, fix="make the template the whole value; its parts are always text")
        return replace(finding, rule=rule)


def _is_open(value: Json) -> bool:
    """Whether a value holds fields, so that it is not known before the run."""
    if isinstance(value, dict):
        return any(_is_open(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_is_open(item) for item in value)
    try:
        return isinstance(value, str) and bool(fields(value))
    except TemplateError:
        return False  # the rule about templates says so


def _open(details: ErrorDetails) -> bool:
    """Whether an error only says that a template is not its value yet."""
    value = details["input"]
    if isinstance(value, str) and is_field(value):
        return True
    by_a_check = details["type"] in ("value_error", "assertion_error")
    return (by_a_check or details["type"].startswith("string_")) and _is_open(value)


def _groups_of_command(spec: ActionSpec) -> tuple[ConditionGroup, ...]:
    """What a `run` action raises: the values of one object replace each other, the run's own stand alone."""
    names: dict[tuple[str, str], dict[str, None]] = {}
    for condition in spec.raises.values():
        about, name = split_ref(condition)
        names.setdefault((about, "" if "." in condition else name), {})[name] = None
    return tuple(ConditionGroup(object=about, names=tuple(of), life=spec.keep) for (about, _), of in names.items())
