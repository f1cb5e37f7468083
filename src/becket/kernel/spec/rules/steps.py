"""Rules about steps as such: their names, their effects, what bounds them, and that something is verified at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.kernel.contract.condition import RUN
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.process import Network
from becket.kernel.contract.spec import ActionSpec, Phase
from becket.kernel.contract.when import KEYWORDS
from becket.kernel.spec.document import Path
from becket.kernel.spec.lint_context import LintContext

RESERVED = {
    RUN: "a condition without an object is the run's own",
    "data": "`{data.KEY}` is the event's data",
    "decision": "`{decision.outcome}` is how the iteration ended",
}

_FILE = r"(?!/)(?!(?:.*/)?\.\.(?:/|$)).+"
_JSON_PATH = r"[^.=\s]+(?:\.[^.=\s]+)*"
_OUTPUT = re.compile(rf"stdout|json:{_JSON_PATH}|file:{_FILE}")
_PARSE = re.compile(rf"json|junit:{_FILE}")
_WORDS = r"""(?:"[^"]*"|'[^']*'|[^|&;\n"'])*"""
_END = r"[\s;)]*(?:(?<=[\s;])\#[^\n]*)?\s*\Z"
_LOST_IN_PIPE = re.compile(rf"(?<!\|)\|&?\s*(?:tee|cat|tail|head|sort|less|more|column|wc)\b{_WORDS}{_END}")
_LOST_EXIT_CODE = re.compile(
    rf"\|\|\s*(?:(?:/\S*/)?true\b|:|exit 0\b|(?:echo|printf)\b{_WORDS}){_END}|(?<![&|<>\\])&{_END}"
)
_EXIT_CODES = re.compile(r"(0|[1-9][0-9]{0,2})(?:-([1-9][0-9]{0,2}))?")
_JSON_VALUE = re.compile(rf"json:{_JSON_PATH}=.*")


def names(case: LintContext) -> Iterator[Finding]:
    """Action ids are unique in the loop, verifier ids in their phase, and no verifier is named like an action."""
    lines: dict[str, int] = {}
    for action in case.actions:
        spot = case.value(*action.path, "id")
        if action.spec.id in lines:
            message = f"the id `{action.spec.id}` is already used in line {lines[action.spec.id]}"
            yield case.finding(spot, "duplicate-id", message, "give each action an id of its own")
        lines.setdefault(action.spec.id, spot[0])
    seen: dict[tuple[object, ...], int] = {}
    for verifier in case.verifiers:
        spot = case.value(*verifier.path, "id")
        name = verifier.spec.id
        in_phase = (verifier.path[1], name)
        if name in lines:
            message = f"the action in line {lines[name]} is called `{name}` too"
            yield case.finding(spot, "verifier-id-clash", message, "give the verifier an id of its own")
        elif in_phase in seen:
            message = f"the id `{name}` is already used in line {seen[in_phase]}"
            yield case.finding(spot, "duplicate-id", message, "give each verifier of a phase an id of its own")
        seen.setdefault(in_phase, spot[0])
    for step in case.steps:
        if step.spec.id in RESERVED:
            spot = case.value(*step.path, "id")
            yield case.finding(
                spot, "reserved-id", f"`{step.spec.id}` cannot be an id: {RESERVED[step.spec.id]}", "choose another id"
            )


def effects(case: LintContext) -> Iterator[Finding]:
    """No step needs more autonomy for its effects than the loop has."""
    for action in case.actions:
        own = action.spec.effects
        needs = (
            [(own.name, own.needs)]
            if own
            else [(name, case.registry.effects[name].needs) for name in action.effects if name in case.registry.effects]
        )
        for name, needed in needs:
            if not case.spec.autonomy.allows(needed):
                spot = case.value(*action.path, "effects" if own else "uses")
                message = f"the effect `{name}` needs autonomy `{needed}`, this loop has `{case.spec.autonomy}`"
                yield case.finding(
                    spot, "effect-above-autonomy", message, f"set `autonomy: {needed}` or remove the action"
                )
                break


def exit_codes(case: LintContext) -> Iterator[Finding]:
    """A check that cannot fail is none (L11): a pipe's exit code is that of its last program."""
    for verifier in case.verifiers:
        text = verifier.spec.run or ""
        in_pipe = None if "pipefail" in text else _LOST_IN_PIPE.search(text)
        if lost := in_pipe or _LOST_EXIT_CODE.search(text):
            yield case.finding(
                case.value(*verifier.path, "run"),
                "exit-code-lost",
                f"`{lost[0].strip()}` at its end decides how this verifier ends, whatever came before",
                "let the command that checks be the last one",
            )


def network(case: LintContext) -> Iterator[Finding]:
    """An action that reaches the outside is an effect and passes the door. A verifier only looks."""
    for action in case.actions:
        if action.spec.network is Network.full and action.spec.effects is None:
            yield case.finding(
                case.value(*action.path, "network"),
                "network-without-effects",
                "an action with `network: full` can change the world outside without passing the door",
                "declare `effects: {name: ...}` (`class: repeatable` if it only asks), or use `network: loopback`",
            )


def bounds(case: LintContext) -> Iterator[Finding]:
    """Who calls agents has a budget for them."""
    callers = [action for action in case.actions if action.definition and action.definition.calls_agent]
    budget = case.spec.budget
    if callers and budget.agent_time is None and budget.usd is None:
        message = f"`{callers[0].spec.uses}` calls an agent, and the budget bounds neither agent_time nor usd"
        yield case.finding(case.value("budget"), "missing-bound", message, "add `budget: {agent_time: 1h}`")


def verification(case: LintContext) -> Iterator[Finding]:
    """The verify phase verifies."""
    declared = case.spec.phases.get(Phase.verify)
    if declared is None or not declared.verifiers:
        message = "the verify phase has no verifier" if declared else "there is no verify phase"
        spot = case.key("phases", "verify") if declared else case.key("phases")
        fix = "add `verifiers:` to phases.verify; what nobody verifies is only claimed"
        yield case.finding(spot, "verify-without-verifier", message, fix)


def commands(case: LintContext) -> Iterator[Finding]:
    """The small grammars of a `run` action: outputs, parse, raises."""
    for action in case.actions:
        for name, source in action.spec.outputs.items():
            if not _OUTPUT.fullmatch(source):
                spot = case.value(*action.path, "outputs", name)
                message = f"`{source[:60]}` is not a source of an output"
                yield case.finding(spot, "bad-output", message, "write stdout, json:PATH, or file:PATH below the tree")
        if action.spec.parse is not None and not _PARSE.fullmatch(action.spec.parse):
            spot = case.value(*action.path, "parse")
            message = f"`{action.spec.parse[:60]}` is not a parser"
            yield case.finding(spot, "bad-parse", message, "write json, or junit:FILE below the tree")
        yield from _raises(case, action.path, action.spec)


def _raises(case: LintContext, path: Path, spec: ActionSpec) -> Iterator[Finding]:
    ranges: list[range] = []
    for key, raised in spec.raises.items():
        spot = case.key(*path, "raises", key)
        if raised in KEYWORDS:
            message = f"`{raised}` is a word of `when`, and cannot name a condition"
            yield case.finding(case.value(*path, "raises", key), "bad-raises", message, "choose another name")
        if key == "*":
            continue
        if key.startswith("json:"):
            if spec.parse != "json":
                yield case.finding(spot, "bad-raises", f"`{key[:60]}` needs the output as JSON", "add `parse: json`")
            elif not _JSON_VALUE.fullmatch(key):
                yield case.finding(spot, "bad-raises", f"`{key[:60]}` names no value", "write json:PATH=VALUE")
            continue
        codes = _codes(key)
        if codes is None:
            message = f"`{key[:60]}` is not an exit code"
            yield case.finding(spot, "bad-raises", message, "write 0 to 255, a range like 2-5, * or json:PATH=VALUE")
        elif any(
            codes.start < other.stop and other.start < codes.stop for other in ranges if len(codes) > 1 < len(other)
        ):
            yield case.finding(spot, "bad-raises", f"`{key}` overlaps another range", "make the ranges disjoint")
        else:
            ranges.append(codes)


def _codes(key: str) -> range | None:
    match = _EXIT_CODES.fullmatch(key)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2] or match[1])
    return range(first, last + 1) if first <= last <= 255 else None
