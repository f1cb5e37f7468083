"""Rules about conditions: every one that is named can be raised, and no expression or list contradicts itself."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from becket.kernel.contract.condition import RUN, RUNTIME_CONDITIONS, RUNTIME_HANDOFFS, Lifetime, split_ref
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.when import Expr, WhenError, parse
from becket.kernel.spec.document import Path, Spot
from becket.kernel.spec.lint_context import LintContext, Step
from becket.kernel.spec.problems import suggestion

_OTHERWISE = "correct the name, or add an action that raises it"
_MOST_REFS = 10  # the truth table of an expression is tried out up to this size


def expressions(case: LintContext) -> Iterator[Finding]:
    """Each `when` parses, names conditions that exist, and can hold where it stands."""
    for step in case.steps:
        if step.spec.when is None:
            continue
        path = (*step.path, "when")
        try:
            expr = parse(step.spec.when)
        except WhenError as error:
            spot = case.document.inside(path, error.column - 1)
            yield case.finding(spot, "bad-when", str(error), "use `and`, `or`, `not` and parentheses over conditions")
            continue
        if not case.all_known:
            continue
        unknown = list(_unknown_refs(case, path, expr))
        yield from unknown
        if not unknown and not _can_hold(case, step, expr):
            message = "this can never hold: its conditions exclude each other, or are raised only later"
            yield case.finding(case.value(*path), "unreachable", message, "correct the expression or move the step")


def _unknown_refs(case: LintContext, path: Path, expr: Expr) -> Iterator[Finding]:
    for leaf in expr.leaves():
        if leaf.name in case.raisers:
            continue
        about, name = split_ref(leaf.name)
        spot = case.document.inside(path, leaf.column - 1)
        if "." in leaf.name and (about == RUN or about not in case.objects):
            known = [name] if about == RUN else sorted(case.objects - {RUN})
            fix = suggestion(name if about == RUN else about, known)
            yield case.finding(spot, "unknown-object", f"nothing is said about `{about}` here", fix)
        else:
            fix = suggestion(leaf.name, case.raisers, _OTHERWISE)
            yield case.finding(spot, "unknown-condition", f"nobody raises `{leaf.name}`", fix)


def _can_hold(case: LintContext, step: Step, expr: Expr) -> bool:
    refs = expr.refs()
    if len(refs) > _MOST_REFS:
        return True
    possible = {name for name in refs if _raised_before(case, step, name)}
    apart = [pair for pair in combinations(refs, 2) if case.exclusive(*pair)]
    for values in product((False, True), repeat=len(refs)):
        raised = {name for name, value in zip(refs, values, strict=True) if value}
        if raised <= possible and not any(set(pair) <= raised for pair in apart) and expr.holds(raised.__contains__):
            return True
    return False


def condition(case: LintContext, path: Path, name: str, step: Step) -> Iterator[Finding]:
    """Nothing if a condition that a step asks for can be raised before it; or else the finding."""
    if name not in case.raisers:
        fix = suggestion(name, case.raisers, _OTHERWISE)
        yield case.finding(case.value(*path), "unknown-condition", f"nobody raises `{name}`", fix)
    elif not _raised_before(case, step, name):
        yield case.finding(case.value(*path), "unreachable", f"`{name}` is raised only later", "move the step")


def _raised_before(case: LintContext, step: Step, name: str) -> bool:
    return any(
        way.order is None or way.order < step.order or way.group.life is Lifetime.run for way in case.raisers[name]
    )


def ends(case: LintContext) -> Iterator[Finding]:
    """Every stop, handoff and wait condition can be raised by somebody."""
    if not case.all_known:
        return
    spec = case.spec
    lists: tuple[tuple[str, list[tuple[str, Spot]]], ...] = (
        ("stop", [(name, case.value("stop_conditions", n)) for n, name in enumerate(spec.stop_conditions)]),
        ("handoff", [(name, case.value("handoff_conditions", n)) for n, name in enumerate(spec.handoff_conditions)]),
        ("wait", [(name, case.key("wait_conditions", name)) for name in spec.wait_conditions]),
    )
    for kind, named in lists:
        for name, spot in named:
            if name not in case.raisers:
                message = f"no action or verifier of this loop raises `{name}`"
                yield case.finding(spot, f"unraisable-{kind}", message, suggestion(name, case.raisers, _OTHERWISE))


def contradictions(case: LintContext) -> Iterator[Finding]:
    """No condition ends a run in two ways, and the stop conditions can hold together."""
    spec = case.spec
    for number, name in enumerate(spec.handoff_conditions):
        if name in spec.stop_conditions:
            yield _contradiction(case, case.value("handoff_conditions", number), f"`{name}` also is a stop condition")
    for name in spec.wait_conditions:
        if name in (*spec.stop_conditions, *spec.handoff_conditions):
            kind = "stop" if name in spec.stop_conditions else "handoff"
            yield _contradiction(case, case.key("wait_conditions", name), f"`{name}` also is a {kind} condition")
    for number, name in enumerate(spec.stop_conditions):
        spot = case.value("stop_conditions", number)
        if name in RUNTIME_HANDOFFS:
            yield _contradiction(case, spot, f"`{name}` hands every run to a person before it can stop")
        if name in RUNTIME_CONDITIONS or name in case.verdicts - case.passes:
            message = f"`{name}` says how an iteration went: no run is completed by it"
            fix = "name a verifier's pass, or what an action raises when the goal is reached"
            yield case.finding(spot, "contradiction", message, fix)
        against = [other for other in spec.stop_conditions[:number] if case.exclusive(other, name)]
        if against and case.all_known:
            yield _contradiction(
                case, spot, f"`{name}` and `{against[0]}` are never raised together, so the loop cannot stop"
            )


def claims(case: LintContext) -> Iterator[Finding]:
    """Nobody but the verifier says how it ended."""
    for action in case.actions:
        for ref in (ref for group in action.groups for ref in group.refs if ref in case.verdicts):
            keys = [key for key, raised in action.spec.raises.items() if raised == ref]
            spot = case.value(*action.path, "raises", keys[0]) if keys else case.value(*action.path, "uses")
            message = f"`{ref}` is what the verifier `{split_ref(ref)[0]}` says, and no action says it"
            yield case.finding(spot, "claimed-verdict", message, "raise a condition of another name")


def _contradiction(case: LintContext, spot: Spot, message: str) -> Finding:
    return case.finding(spot, "contradiction", message, "keep it in one place")


def waits(case: LintContext) -> Iterator[Finding]:
    """No wait ends before its first look."""
    for name, wait in case.spec.wait_conditions.items():
        if wait.poll is not None and wait.poll > wait.for_:
            spot = case.value("wait_conditions", name, "poll")
            yield case.finding(spot, "contradiction", "the wait is over before its first `poll`", "make `for` longer")
