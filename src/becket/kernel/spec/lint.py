"""Proves a spec before it runs: every rule, every finding, each with its place and the way out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from becket.kernel.contract.action import Registry
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding, InvalidDocument
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.spec.document import Document, read
from becket.kernel.spec.lint_context import LintContext
from becket.kernel.spec.load import fit
from becket.kernel.spec.problems import in_order
from becket.kernel.spec.resolve import resolve
from becket.kernel.spec.rules import chains, conditions, references, steps, templates, triggers

Rule = Callable[[LintContext], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    triggers.clocks,
    triggers.loops,
    triggers.inputs,
    chains.endless,
    references.sections,
    references.own,
    references.taken_from,
    references.facts,
    references.signals,
    references.places,
    templates.subjects,
    templates.steps,
    templates.quotes,
    templates.persisted,
    conditions.expressions,
    conditions.ends,
    conditions.contradictions,
    conditions.claims,
    conditions.waits,
    steps.names,
    steps.effects,
    steps.network,
    steps.exit_codes,
    steps.bounds,
    steps.verification,
    steps.commands,
)


def lint(
    document: Document,
    spec: LoopSpec,
    registry: Registry,
    others: Sequence[LoadedLoop] | None = None,
    config: Config | None = None,
) -> list[Finding]:
    """What is wrong with a spec that loads, in the order of the file. `others` None: the other loops are not known.

    `config` None: becket.yaml is not known.
    """
    case = resolve(document, spec, registry, others, config)
    return in_order([*case.findings, *(finding for rule in RULES for finding in rule(case))])


def lint_text(
    text: str | bytes,
    file: str,
    registry: Registry,
    others: Sequence[LoadedLoop] | None = None,
    config: Config | None = None,
) -> tuple[LoopSpec | None, list[Finding]]:
    """The spec, or None if it does not even load, and everything that is wrong with it."""
    try:
        document = read(text, file)
        spec = fit(document, LoopSpec)
    except InvalidDocument as error:
        return None, list(error.findings)
    return spec, lint(document, spec, registry, others, config)
