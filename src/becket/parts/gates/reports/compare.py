"""Whether every test that once ran has run again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from becket.parts.gates.ports.report import CaseOutcome, TestReport


class NotRun(NamedTuple):
    """Which reference ids a report lacks, and which it lists without having run them."""

    missing: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def none(self) -> bool:
        return not self.missing and not self.skipped


def every_id_ran(reference_ids: Iterable[str], report: TestReport) -> NotRun:
    """The reference ids that this report does not prove to have run, sorted. Unnamed tests prove nothing."""
    wanted = sorted(set(reference_ids))
    known = {case.id: case.outcome for case in report.cases}
    return NotRun(
        missing=tuple(name for name in wanted if name not in known),
        skipped=tuple(name for name in wanted if known.get(name) is CaseOutcome.skipped),
    )
