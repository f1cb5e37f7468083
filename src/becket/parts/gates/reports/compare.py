"""Two reports side by side, and whether every test that once ran has run again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from becket.kernel.contract.base import Record
from becket.parts.gates.ports.report import Outcome, TestReport


class Comparison(Record):
    """Ids by what became of them, each list in the order of the reports."""

    fixed: tuple[str, ...] = ()  # failed before, holds now
    broken: tuple[str, ...] = ()  # did not fail before, fails now; or held before and is expected to fail now
    vanished: tuple[str, ...] = ()  # was there before, is not there now
    appeared: tuple[str, ...] = ()
    newly_skipped: tuple[str, ...] = ()  # ran before, is skipped now
    excused: tuple[str, ...] = ()  # failed before, and is merely expected to fail now


class NotRun(NamedTuple):
    """Which reference ids a report lacks, and which it lists without having run them."""

    missing: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def none(self) -> bool:
        return not self.missing and not self.skipped


def compare(before: TestReport, after: TestReport) -> Comparison:
    """What changed between two reports of the same step."""
    old = {case.id: case.outcome for case in before.cases}
    new = {case.id: case.outcome for case in after.cases}
    both = [name for name in new if name in old]
    return Comparison(
        fixed=tuple(name for name in both if old[name].bad and new[name].held),
        broken=tuple(name for name in both if _broke(old[name], new[name])),
        vanished=tuple(name for name in old if name not in new),
        appeared=tuple(name for name in new if name not in old),
        newly_skipped=tuple(name for name in both if new[name] is Outcome.skipped and old[name] is not Outcome.skipped),
        excused=tuple(name for name in both if old[name].bad and new[name] is Outcome.xfailed),
    )


def _broke(old: Outcome, new: Outcome) -> bool:
    return (new.bad and not old.bad) or (new is Outcome.xfailed and old.held)


def every_id_ran(reference_ids: Iterable[str], report: TestReport) -> NotRun:
    """The reference ids that this report does not prove to have run, sorted. Unnamed tests prove nothing."""
    wanted = sorted(set(reference_ids))
    known = {case.id: case.outcome for case in report.cases}
    return NotRun(
        missing=tuple(name for name in wanted if name not in known),
        skipped=tuple(name for name in wanted if known.get(name) is Outcome.skipped),
    )
