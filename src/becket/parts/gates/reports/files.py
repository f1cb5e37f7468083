"""pytest's test files as cases: a file that cannot be collected fails as a whole, and passes once its tests run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from becket.parts.gates.ports.report import CaseOutcome
from becket.parts.gates.reports.book import Draft


def with_files(drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts, and one group for each file that has named tests."""
    outcomes: dict[str, set[CaseOutcome]] = {}
    result, alone = [], set()
    for draft in drafts:
        path, inside, _ = draft.id.partition("::")
        if path.endswith(".py") and inside:
            outcomes.setdefault(path, set()).add(draft.outcome)
        elif path.endswith(".py"):
            alone.add(path)
        result.append(replace(draft, group=True) if path in alone and not inside else draft)
    result += [
        Draft(id=path, outcome=together(found), file=path, group=True)
        for path, found in outcomes.items()
        if path not in alone
    ]
    return result


def together(outcomes: set[CaseOutcome]) -> CaseOutcome:
    """The result of a container, from those of its tests."""
    if any(outcome.bad for outcome in outcomes):
        return CaseOutcome.failed
    return CaseOutcome.skipped if outcomes == {CaseOutcome.skipped} else CaseOutcome.passed
