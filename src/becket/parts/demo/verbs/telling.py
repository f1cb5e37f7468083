"""The demo's story in sentences: what happened, told as it becomes a fact, and why it may be believed.

Everything comes from the run's report, the answer of the service and the checks of `verify`; nothing from step names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from textwrap import fill
from typing import TYPE_CHECKING

from becket.cli import words
from becket.cli.loops import counted
from becket.cli.plain import line, short

if TYPE_CHECKING:
    from becket.app.record.report.model import GateFacts, Report
    from becket.app.record.verify import Checked
    from becket.kernel.contract.process import Holds

WIDTH = 79


def happened(report: Report) -> list[str]:
    """As far as the records go: every look at a growing run begins with what the one before told."""
    told: list[str] = []
    for beat in _BEATS:
        if not (said := beat(report)):
            break
        told.append(said)
    return told


def _found_red(report: Report) -> str:
    red = next((gate for gate in report.gates if gate.color == "red"), None)
    step = next((step for step in red.steps if step.color == "red"), None) if red else None
    if red is None or step is None:  # the steps come a moment after their gate
        return ""
    failing = ", ".join(map(_short_name, step.failing))
    return words.DEMO_RED.format(
        sha=short(red.commit), gate=red.gate, step=step.step, bad=len(step.failing), ran=step.tests_run, failing=failing
    )


def _repaired(report: Report) -> str:
    claim = next(iter(report.claims), None)
    if claim is None or not report.changes:
        return ""
    paths = ", ".join(file.path for file in report.changes[-1].files)
    said = line((claim.said.strip().splitlines() or [""])[-1], 60)
    return words.DEMO_REPAIR.format(agent=claim.agent, paths=paths, said=said)


def _promoted(report: Report) -> str:
    if not report.proofs or not _done(report, "git.promote"):
        return ""
    proof = report.proofs[-1]
    return words.DEMO_PROMOTED.format(old=short(proof.base), new=short(proof.candidate))


_BEATS: Sequence[Callable[[Report], str]] = (_found_red, _repaired, _promoted)


def believable(report: Report, holds: Holds, answer: str, checks: Sequence[Checked]) -> Iterator[str]:
    """One reason each, with the evidence that anybody can look up."""
    proof, crossing, change, guard = report.proofs[-1], report.crossings[-1], report.changes[-1], report.guards[-1]
    yield contained(holds)
    yield words.DEMO_CROSSED.format(
        count=len(crossing.tests), new=short(crossing.candidate), receipt=short(crossing.receipt)
    )
    green = [gate for gate in report.gates if gate.commit == proof.candidate and gate.color == "green"]
    yield words.DEMO_GREEN.format(gates=_listed(map(_gate, green)), new=short(proof.candidate))
    lines = counted(sum(file.added for file in change.files), "new line")
    refusals = counted(len(guard.refusals), "refusal")
    yield words.DEMO_GUARD.format(lines=lines, read_as=guard.change_class, refusals=refusals)
    yield words.DEMO_PROOF.format(receipt=short(proof.receipt), new=short(proof.candidate))
    yield answer
    yield words.DEMO_CHECKED.format(good=sum(item.ok for item in checks), count=len(checks))


def contained(holds: Holds) -> str:
    """One line on every machine: the story fits a screen of 24 rows."""
    held = [name for name in ("files", "processes", "network") if name not in holds.missing]
    told = words.DEMO_HELD_IN_PART if held and holds.missing else words.DEMO_HELD if held else words.DEMO_NOT_HELD
    return told.format(kind=holds.kind.value, held=_listed(held), missing=_listed(holds.missing))


def paragraph(text: str, first: str) -> str:
    """Each line of `text` folded to the screen, behind `first`."""
    beside = " " * len(first)
    begins = [first, *[beside] * text.count("\n")]
    pairs = zip(text.split("\n"), begins, strict=True)
    return "\n".join(fill(one, WIDTH, initial_indent=begin, subsequent_indent=beside) for one, begin in pairs)


def _done(report: Report, effect: str) -> bool:
    return any(item.name == effect and item.state == "done" for item in report.effects)


def _gate(gate: GateFacts) -> str:
    return f"{gate.gate} ({', '.join(step.step for step in gate.steps)})"


def _short_name(test: str) -> str:
    return test.rpartition("::")[2]


def _listed(names: Iterable[str]) -> str:
    """`files, processes and network`."""
    *most, last = [*names] or [""]
    return f"{', '.join(most)} and {last}" if most else last
