"""pytest's test files as cases: a file that cannot be collected fails as a whole, and passes once its tests run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from becket.parts.gates.ports.report import Outcome
from becket.parts.gates.reports.book import Draft


def with_files(drafts: Iterable[Draft]) -> list[Draft]:
    """The drafts, and one group for each file that has named tests."""
    outcomes: dict[str, set[Outcome]] = {}
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


def together(outcomes: set[Outcome]) -> Outcome:
    """The result of a container, from those of its tests."""
    if any(outcome.bad for outcome in outcomes):
        return Outcome.failed
    return Outcome.skipped if outcomes == {Outcome.skipped} else Outcome.passed
