"""A report as Markdown: for terminals, comments and mails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from becket.app.record.report import model as report_model
from becket.app.record.report.plain import (
    CLAIM,
    HELD_HEADS,
    call_end,
    class_words,
    counted,
    decision_words,
    dollars,
    finding_words,
    headline,
    held_row,
    held_words,
    moment,
    offered,
    pairs,
    place,
    short,
    short_if_digest,
    spaced,
    spend_words,
    tests_words,
    tokens_words,
    took,
    whole_change,
)
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.text import harmless, one_line

_SPECIAL = re.compile(r"([\\`*{}\[\]<>|~&]|(?<!\w)_|_(?!\w)|\A[-+#=])")
MOST_DIFF_LINES = 400
MOST_FINDINGS = 50


def markdown_of(report: report_model.Report) -> str:
    parts = [*_head(report)]
    for title, make in SECTIONS:
        body = [part for part in make(report) if part]
        parts += [f"## {title}" if title and body else "", *body]
    return "\n\n".join(part for part in [*parts, *_foot(report)] if part) + "\n"


def plain(text: object, most: int = 400) -> str:
    """Untrusted text as text: no character of it is markup."""
    return _SPECIAL.sub(r"\\\1", one_line(text, most))


def code(text: object, most: int = 200) -> str:
    shown = one_line(text, most)
    if not shown:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{shown}{pad}{ticks}"


def fenced(text: str, language: str = "text") -> str:
    """A block that its content cannot end."""
    shown = harmless(text).rstrip("\n")
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return f"{ticks}{language}\n{shown}\n{ticks}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_cells(head), _cells(["---"] * len(head)), *(_cells(row) for row in rows)]
    return "\n".join(lines)


def _cells(cells: Sequence[str]) -> str:
    # A pipe ends a cell even inside a code span; one that is escaped already stays as it is.
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", cell) or " " for cell in cells) + " |"


def _head(report: report_model.Report) -> Iterator[str]:
    run = report.run
    yield f"# {plain(run.loop_id)}: {plain(headline(report))}"
    if report.end is not None:
        yield f"{plain(report.end.headline)}. Next: {code(report.end.next)}"
    yield plain(run.goal)
    facts = [
        ("subject", code(run.subject)),
        ("run", code(run.run_id)),
        (
            "status",
            f"{plain(spaced(run.status))} ({plain(reason_words(run.reason))})" if run.reason else plain(run.status),
        ),
        ("began", moment(run.began_at)),
        ("took", f"{took(run.seconds)} ({took(run.worked)} at work), {counted(run.iterations, 'iteration')}"),
        ("started by", f"{plain(run.trigger)}, {plain(run.by)}"),
        *((name, plain(value)) for name, value in spend_words(report.spend)),
    ]
    if run.autonomy:
        facts.append(("autonomy", plain(run.autonomy)))
    if run.dry_run:
        facts.append(("dry run", "yes: nothing left this machine"))
    yield "\n".join(f"- **{name}**: {value}" for name, value in facts)
    if report.trust:
        yield f"> {plain(report.trust)}"
    if report.lost:
        yield "\n".join(f"> {plain(line)}" for line in report.lost)


def _proof(report: report_model.Report) -> Iterator[str]:
    for proof in report.proofs:
        yield (
            f"{code(short(proof.candidate))} on {code(short(proof.base))}: **{plain(spaced(proof.says))}**, "
            f"receipt {code(short(proof.receipt))}"
        )
        rows = [("gate", name, digest) for name, digest in proof.gates.items()]
        rows += [("part", name, digest) for name, digest in proof.parts.items()]
        rows += [("reused from", name, run_id) for name, run_id in proof.reused.items()]
        if rows:
            yield table(
                ("what", "name", "by"), [(what, plain(name), code(short_if_digest(by))) for what, name, by in rows]
            )
        yield "\n".join(f"- {plain(why)}" for why in proof.against)


def _gates(report: report_model.Report) -> Iterator[str]:
    for gate in report.gates:
        yield f"### {plain(gate.of)}: {plain(gate.gate)} is {plain(gate.color)}"
        yield f"Commit {code(short(gate.commit))}, defined by {code(short(gate.defined_by))}."
        yield table(
            ("step", "colour", "tests", "seconds", "receipt"),
            [
                (
                    plain(step.step),
                    plain(step.color),
                    tests_words(step, ""),
                    f"{step.seconds:.2f}",
                    code(short(step.receipt)) + (f" of {code(step.reused_from)}" if step.reused_from else ""),
                )
                for step in gate.steps
            ],
        )
        reasons = [(step.step, reason) for step in gate.steps for reason in step.reasons]
        yield "\n".join(f"- {plain(name)}: {plain(reason)}" for name, reason in reasons)
        if gate.summary.strip():
            yield fenced(gate.summary)


def _crossings(report: report_model.Report) -> Iterator[str]:
    for crossing in report.crossings:
        yield (
            f"With the tests of {code(short(crossing.base))} exactly, on {code(short(crossing.tried))}: "
            f"**{plain(spaced(crossing.says))}**, receipt {code(short(crossing.receipt))}."
        )
        yield table(
            ("test", "failed on parent", "passed on child" if crossing.says == "crossed" else "on child"),
            [(code(test.test), code(short(test.parent)), code(short(test.child))) for test in crossing.tests],
        )
        against = dict.fromkeys(why for test in crossing.tests for why in test.against)
        yield "\n".join(f"- {plain(why)}" for why in against)


def _holdouts(report: report_model.Report) -> Iterator[str]:
    for held in report.holdouts:
        yield (
            f"Written by {plain(held.agent)} at {code(short(held.oracle))}, which was right, and unseen by whoever "
            f"repaired: **{plain(held_words(held.says))}**, receipt {code(short(held.receipt))}."
        )
        yield offered(report.run.run_id) if held.checks else ""
        yield table(HELD_HEADS, [tuple(map(code, held_row(check))) for check in held.checks])
        yield "\n".join(f"- {plain(name)} does not count: {plain(why)}" for name, why in held.left_out.items())


def _changes(report: report_model.Report) -> Iterator[str]:
    for change in report.changes:
        yield f"{plain(change.kind or 'change')} {code(short(change.commit))} on {code(short(change.parent))}"
        yield "\n".join(f"- {code(file.path)} +{file.added} -{file.removed}" for file in change.files[:50])
        lines = change.diff.split("\n")
        more = max(len(lines) - MOST_DIFF_LINES, 0) + change.left_out
        yield fenced("\n".join(lines[:MOST_DIFF_LINES]), "diff")
        if not change.kept_whole:
            yield f"More than this was changed, too much to be kept here. All of it: {code(whole_change(change))}"
        elif more:
            yield f"{more} lines are left out; the artifact {code(short(change.patch))} has all of them."


def _culprits(report: report_model.Report) -> Iterator[str]:
    for found in report.culprits:
        who = f"{code(short(found.commit))} {plain(found.subject)}" if found.commit else "Not known"
        yield f"{who}: {plain(found.why)} (confidence {found.confidence:.2f})"


def _guards(report: report_model.Report) -> Iterator[str]:
    for guard in report.guards:
        yield f"{plain(guard.says)}: {counted(len(guard.refusals), 'refusal')}"
        yield plain(class_words(guard.change_class))
        yield "\n".join(_finding(one) for one in guard.findings[:MOST_FINDINGS])
        if (more := len(guard.findings) - MOST_FINDINGS) > 0:
            yield f"and {counted(more, 'more line')}"
        yield "\n".join(
            f"- Refused: {code(place(one))} {plain(one.rule)}: {plain(one.message)} ({plain(one.more)})"
            for one in guard.refusals
        )


def _finding(one: report_model.FindingFacts) -> str:
    return f"- {plain(finding_words(one))}" + (f" {code(one.shown)}" if one.shown else "")


def _calls(report: report_model.Report) -> Iterator[str]:
    if report.calls:
        rows = [
            (
                plain(f"{one.agent} ({one.driver}{' ' + one.model if one.model else ''})"),
                plain(call_end(one)),
                took(one.seconds),
                str(one.turns),
                tokens_words(one),
                dollars(one),
                plain("; ".join(one.over)),
            )
            for one in report.calls
        ]
        yield table(("agent", "outcome", "took", "turns", "tokens", "usd", "over its limits"), rows)
        yield "\n".join(
            f"- {plain(one.agent)}, {plain(call_end(one))}: {plain(one.reason)}" for one in report.calls if one.reason
        )


def _claims(report: report_model.Report) -> Iterator[str]:
    if report.claims:
        yield CLAIM
    for claim in report.claims:
        yield f"{plain(claim.agent or claim.action)}, judged by the runtime: **{plain(claim.judged)}**"
        yield fenced(claim.said) if claim.said.strip() else ""


def _of_parts(report: report_model.Report) -> Iterator[str]:
    for one in report.parts:
        yield f"## {plain(one.part)}"
        yield "\n".join(f"- {plain(line)}" for line in one.lines)


def _people(report: report_model.Report) -> Iterator[str]:
    for item in report.handoffs:
        taken = f", taken by {plain(item.taken_by)}" if item.taken_by else ""
        yield f"## Handoff to {plain(item.owner)}"
        yield f"{code(item.handoff_id)}, {plain(item.state)}{taken}: {plain(reason_words(item.reason))}"
        yield "\n".join(f"- {plain(why)}" for why in item.because)
        yield f"Next: {code(report.end.next) if report.end else plain(item.next_step, 2000)}"
        if item.commands:
            yield fenced("\n".join(item.commands), "sh")
    if report.approvals:
        yield "## Decisions"
        yield table(
            ("approval", "state", "about", "question", "by"),
            [
                (code(one.approval_id), plain(one.state), code(short(one.bound_to)), plain(one.question),
                 plain(one.decided_by or ""))
                for one in report.approvals
            ],
        )  # fmt: skip


def _effects(report: report_model.Report) -> Iterator[str]:
    if report.effects:
        rows = [
            (code(one.name), code(one.target), plain(spaced(one.state)), plain(one.reason)) for one in report.effects
        ]
        yield table(("effect", "target", "state", "why"), rows)


def _phases(report: report_model.Report) -> Iterator[str]:
    if report.phases:
        rows = [
            (
                str(phase.iteration),
                plain(phase.phase),
                took(phase.seconds),
                _steps(phase),
                plain(decision_words(phase.decision)),
            )
            for phase in report.phases
        ]
        yield table(("iteration", "phase", "took", "steps", "decision"), rows)


def _steps(phase: report_model.PhaseFacts) -> str:
    said = []
    for step in phase.steps:
        why = (
            f" ({plain(step.error, 120)})"
            if step.error
            else f" ({plain(', '.join(step.raised))})"
            if step.raised
            else ""
        )
        said.append(f"{plain(step.id)} {plain(step.state)}{why}")
    return "; ".join(said)


def _conditions(report: report_model.Report) -> Iterator[str]:
    if report.conditions:
        rows = [
            (code(one.name), "; ".join(f"{plain(name)}: {plain(value)}" for name, value in pairs(one.evidence)))
            for one in report.conditions
        ]
        yield table(("condition", "evidence"), rows)


def _receipts(report: report_model.Report) -> Iterator[str]:
    if report.receipts:
        rows = [
            (code(short(one.digest)), plain(one.kind), plain(f"{one.phase}.{one.action}"),
             "" if one.exit_code is None else str(one.exit_code), code(short(one.log)), took(one.seconds))
            for one in report.receipts
        ]  # fmt: skip
        yield table(("receipt", "kind", "step", "exit code", "log", "took"), rows)


SECTIONS: tuple[tuple[str, Callable[[report_model.Report], Iterator[str]]], ...] = (
    ("Proof", _proof),
    ("Gates", _gates),
    ("Crossing proof", _crossings),
    ("Hold-out checks", _holdouts),
    ("Change", _changes),
    ("Culprit", _culprits),
    ("Guard", _guards),
    ("Calls of agents", _calls),
    ("What the agent said", _claims),
    ("", _people),
    ("Effects", _effects),
    ("", _of_parts),
    ("Phases", _phases),
    ("Conditions at the end", _conditions),
    ("Receipts", _receipts),
)
"""With their titles; without one, the section has titles of its own."""


def _foot(report: report_model.Report) -> Iterator[str]:
    yield (
        f"Made {moment(report.made_at)} from the journal. Check it: `becket verify {report.run.run_id} --head "
        f"{report.run.chain_head}`"
    )
