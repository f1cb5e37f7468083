"""The guard's one question: why may this change not be proven?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from becket.kernel.contract.candidate import Bar
from becket.kernel.contract.guard import Change, GuardRule, Refusal
from becket.parts.gates.section import SetupConfig
from becket.parts.guard.reading import words
from becket.parts.guard.reading.content import judge_content
from becket.parts.guard.reading.deletion import judge_deletion
from becket.parts.guard.reading.gates import GatePrograms
from becket.parts.guard.reading.paths import judge_links, judge_names, judge_protected, refused
from becket.parts.guard.reading.settings import judge_settings, judge_setup
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.reading.tests import judge_tests
from becket.parts.guard.section import GuardConfig

_MOST_PER_RULE = 40


def bar(max_file: int) -> Bar:
    """What may not even be stored in the repository to be examined there: it would stay (L25)."""

    def against(change: Change, *rules: GuardRule) -> tuple[Refusal, ...]:
        return _listed(refusal for refusal in judge_content(change, max_file) if refusal.rule in rules)

    large, secret = GuardRule.large_file, GuardRule.secret_added
    return Bar(by_size=lambda change: against(change, large), by_content=lambda change: against(change, large, secret))


def examine(
    change: Change,
    rules: GuardConfig,
    side: TestSide,
    gate_commands: Sequence[str] = (),
    setup: SetupConfig | None = None,
) -> tuple[Refusal, ...]:
    """Every reason against the change, in the order of the paths; empty if there is none.

    Called once per candidate, before it is proven. Pure: reads only through the change. If all refusals ask, a person
    may approve exactly this change; any other refusal is a handoff. `gate_commands` are those of base's gates:
    programs and targets of the tree that they run are part of the gate. `setup` is base's.
    """
    found = [
        *judge_protected(change, rules.protected),
        *judge_names(change),
        *judge_links(change),
        *judge_settings(change, side, GatePrograms.of(gate_commands)),
        *judge_setup(change, setup),
        *judge_content(change, rules.max_file),
        *judge_deletion(change, rules.max_deleted_share),
    ]
    settled = frozenset(refusal.path for refusal in found if refusal.rule is not GuardRule.mass_deletion)
    return _listed([*found, *judge_tests(change, side, settled)])


def _listed(found: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """Each once, sorted, and of each rule no more than a person would read."""
    unique = sorted(set(found), key=lambda refusal: (refusal.path, refusal.line, refusal.rule, refusal.message))
    seen: Counter[GuardRule] = Counter()
    kept: list[Refusal] = []
    for refusal in unique:
        seen[refusal.rule] += 1
        if seen[refusal.rule] <= _MOST_PER_RULE:
            kept.append(refusal)
    for rule, count in seen.items():
        if count > _MOST_PER_RULE:
            last = [refusal for refusal in unique if refusal.rule is rule]
            message = words.more_refusals(count - _MOST_PER_RULE)
            kept.append(refused(rule, last[-1].path, message, asks=all(refusal.asks for refusal in last)))
    return tuple(kept)
