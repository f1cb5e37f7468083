"""Which tests must run: those that ran on the last proven commit, where the parent itself cannot tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.gate import GateVerdict, StepVerdict
from becket.kernel.contract.git import Git
from becket.kernel.contract.process import ChildEnd
from becket.parts.gates.judging.gate import remembered
from becket.parts.gates.judging.history import since_proven
from becket.parts.gates.judging.tree import open_tree
from becket.parts.gates.ports.report import TestReport
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.reports.formats import PLAIN_ID

KEPT = 7 * 86400.0
"""So long a green speaks for itself; an older one is not run again only to be a reference."""


def tells_all(verdict: StepVerdict, report: TestReport) -> bool:
    """Did the step come to run every test it has? Not where a file could not be collected, or it did not end."""
    return verdict.end == ChildEnd.exited and not report.problems and not any(case.group for case in report.failing)


async def red_without_tests(context: ActionContext, verdicts: Iterable[str], base: str) -> tuple[str, ...]:
    """The steps that are red on base and named no test that fails: their exit code is all there is to go by."""
    found = [GateVerdict.model_validate_json(await context.read(digest)) for digest in verdicts if digest]
    steps = [step for verdict in found if verdict.commit == base for step in verdict.steps]
    return tuple(step.step for step in steps if not step.green and not set(step.failing) - {PLAIN_ID})


@dataclass(frozen=True, slots=True)
class WhenProven:
    """What the steps of a gate said on the last proven commit, by step; `same` are the files unchanged since."""

    reports: Mapping[str, TestReport]
    same: frozenset[str]

    def ran(self, step: str) -> frozenset[str]:
        """The tests of the step that ran there and whose files nobody has changed since."""
        report = self.reports.get(step)
        cases = report.executed if report is not None else ()
        return frozenset(case.id for case in cases if not case.group and case.file in self.same)


NOTHING_PROVEN = WhenProven({}, frozenset())


async def when_proven(context: ActionContext, branch: str, base: str, gate: str) -> WhenProven:
    """From what is remembered: a reference that would have to be run first is none."""
    found = await since_proven(context, branch, base) if branch else None
    if found is None:
        return NOTHING_PROVEN
    proof = await open_tree(context, found[0], base, when_needed=True)
    if isinstance(proof, SetupFailed):
        return NOTHING_PROVEN
    git = context.port(Git)
    then, now = await git.listing(found[0]), await git.listing(base)
    same = frozenset(path for path, entry in then.items() if now.get(path) == entry)
    known = await remembered(context, gate, proof, defined_by=base, ttl=KEPT)
    reports = {step.step: TestReport.model_validate_json(await context.read(step.report)) for step in known}
    return WhenProven(reports, same)
