"""What a run's proof rests on, as something Rich can print: gates, crossing, culprit, guard, change.

By what the run left, not by the loop's name: a run without gates has none of these sections.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from becket.app.record.report.diff import lines_of
from becket.app.record.report.plain import (
    HELD_HEADS,
    class_words,
    finding_words,
    held_row,
    held_words,
    offered,
    tests_words,
)
from becket.cli import words
from becket.cli.plain import line, safe, short, took

if TYPE_CHECKING:
    from becket.app.record.report.model import ChangeFacts, CrossingFacts, GateFacts, GuardFacts, HoldoutFacts, Report

MOST_DIFF_LINES = 120
MOST_SUMMARY_LINES = 40
MOST_TESTS = 20
MOST_FINDINGS = 20

COLORS = {"green": "green", "red": "bold red", "undecided": "bold yellow"}
CLASS_STYLES = {"ordinary": "cyan", "powerful": "bold yellow"}
DIFF_STYLES = {"add": "green", "remove": "red", "hunk": "cyan", "file": "bold", "about": "dim", "same": ""}


def proof_sections(report: Report) -> Iterator[RenderableType]:
    if report.gates:
        yield from _titled("gates")
        for gate in report.gates:
            yield from _gate(gate)
    for found in report.culprits:
        if found.commit:
            yield from _titled("culprit")
            who = Text.assemble("  ", (short(found.commit), "cyan"), "  ", line(found.subject, 100))
            yield who.append(f"  {line(found.why)}", "dim")
    yield from _guarded(report)
    for crossing in report.crossings:
        yield from _crossing(crossing)
    for held in report.holdouts:
        yield from _held_out(held, report.run.run_id)
    for change in report.changes:
        yield from _change(change, report.run.run_id)
    yield from _of_parts(report)
    if report.trust:
        yield Text()
        yield Text(line(report.trust), "bold yellow")
    for lost in report.lost:
        yield Text(line(lost), "bold red")


def _of_parts(report: Report) -> Iterator[RenderableType]:
    for one in report.parts:
        yield from _titled(line(one.part))
        yield from (Text(f"  {line(said)}") for said in one.lines)


def _guarded(report: Report) -> Iterator[RenderableType]:
    for guard in report.guards:
        if guard.refusals or guard.change_class:
            yield from _guard(guard)


def _titled(title: str, more: str = "", style: str = "") -> Iterator[Text]:
    yield Text()
    yield Text.assemble((title, "bold"), "  " if more else "", (more, style))


def _gate(gate: GateFacts) -> Iterator[RenderableType]:
    color = COLORS.get(gate.color, "")
    yield Text.assemble("  ", f"{line(gate.of)} {line(gate.gate)} ", (gate.color, color), f"  at {short(gate.commit)}")
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for step in gate.steps:
        reused = f" of {line(step.reused_from)}" if step.reused_from else ""
        grid.add_row(
            "   ",
            Text(line(step.step, 40)),
            Text(step.color, COLORS.get(step.color, "")),
            Text(tests_words(step, " tests")),
            Text(took(step.seconds), "dim"),
            Text(f"receipt {short(step.receipt)}{reused}", "dim"),
        )
    yield grid
    if gate.color != "green" and gate.summary.strip():
        yield from _capped(safe(gate.summary).rstrip().split("\n"), MOST_SUMMARY_LINES)


def _capped(lines: list[str], most: int) -> Iterator[Text]:
    for text in lines[:most]:
        yield Text(f"      {text}", "dim" if text.startswith("---") else "")
    if len(lines) > most:
        yield Text(f"      ... {len(lines) - most} lines more", "dim")


def _guard(guard: GuardFacts) -> Iterator[RenderableType]:
    yield from _titled("guard", line(guard.says), "bold red" if guard.refusals else "")
    if guard.change_class:
        yield Text(f"  {line(class_words(guard.change_class))}", CLASS_STYLES.get(guard.change_class, ""))
    for found in guard.findings[:MOST_FINDINGS]:
        style = CLASS_STYLES.get(found.kind, "")
        yield Text.assemble("    ", (line(finding_words(found)), style), (f"  {line(found.shown, 100)}", "dim"))
    if (more := len(guard.findings) - MOST_FINDINGS) > 0:
        yield Text(f"    ... {more} more", "dim")
    for one in guard.refusals:
        where = f"{one.path}:{one.line}" if one.line else one.path
        yield Text.assemble(
            "  ", (f"{line(where)} {one.rule}", "red"), f": {line(one.message)}", (f" ({one.more})", "dim")
        )


def _held_out(held: HoldoutFacts, run_id: str) -> Iterator[RenderableType]:
    good = held.says == "holdout_passed"
    yield from _titled("hold-out", held_words(held.says), "green" if good else "bold yellow")
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for check in held.checks:
        name, *ends, artifact = held_row(check)
        told = ", ".join(f"{end or '-'} {place}" for place, end in zip(HELD_HEADS[1:], ends, strict=False))
        grid.add_row(" ", Text(line(name, 60)), Text(told, "dim"), Text(f"artifact {artifact}", "dim"))
    yield grid
    for name, why in held.left_out.items():
        yield Text(f"  {line(name, 60)} does not count: {line(why)}", "yellow")
    if held.checks:
        yield Text(f"  {offered(run_id)}", "dim")


def _crossing(crossing: CrossingFacts) -> Iterator[RenderableType]:
    good = crossing.says == "crossed"
    yield from _titled("crossing", crossing.says.replace("_", " "), "green" if good else "bold yellow")
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for test in crossing.tests[:MOST_TESTS]:
        grid.add_row(
            " ",
            Text(line(test.test, 100)),
            Text(f"failed on parent {short(test.parent)}", "dim"),
            Text(f"{'passed on' if good else 'on'} child {short(test.child)}", "dim"),
        )
    yield grid
    if (more := len(crossing.tests) - MOST_TESTS) > 0:
        yield Text(f"  ... {more} more", "dim")
    for why in dict.fromkeys(why for test in crossing.tests for why in test.against):
        yield Text(f"  {line(why)}", "yellow")


def _change(change: ChangeFacts, run_id: str) -> Iterator[RenderableType]:
    yield from _titled("change", f"{change.kind or 'commit'} {short(change.commit)} on {short(change.parent)}", "dim")
    lines = list(lines_of(change.diff))
    for item in lines[:MOST_DIFF_LINES]:
        yield Text(f"  {safe(item.text)}", DIFF_STYLES[item.kind])
    if (more := len(lines) - MOST_DIFF_LINES + change.left_out) > 0:
        yield Text(f"  {words.DIFF_CUT.format(count=more, run_id=run_id)}", "dim")
