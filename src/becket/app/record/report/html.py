"""A report as one HTML file: no script, nothing from outside, readable on a phone and on paper, light and dark."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from importlib.resources import files

from becket.app.record.report import model as report_model
from becket.app.record.report.diff import DiffLine, by_file
from becket.app.record.report.elements import (
    bar,
    below,
    brief,
    code,
    commands,
    counts,
    fact_list,
    fold,
    listed,
    note,
    pill,
    pre,
    soft,
    table,
    text,
    tone,
)
from becket.app.record.report.plain import (
    CLAIM,
    HELD_HEADS,
    class_words,
    counted,
    decision_words,
    dollars,
    finding_words,
    headline,
    held_row,
    held_words,
    is_proven,
    moment,
    offered,
    pairs,
    place,
    short,
    short_if_digest,
    spend_words,
    tests_words,
    tokens_told,
    took,
    whole_change,
    with_short_digests,
)
from becket.app.record.report.words import NOT_TOLD
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.text import one_line

UNFINISHED = frozenset({"queued", "running", "waiting"})
UNSETTLED = frozenset({"open", "taken", "accepted", "changing"})
MOST_FILES = 200
OPEN_FINDINGS, MOST_FINDINGS = 10, 50
OPEN_LINES = 150
"""Of diffs: beyond these, files are folded."""


def html_of(report: report_model.Report) -> str:
    style = (files(__package__) / "page.css").read_text("utf-8")
    shown = list(sections_of(report))
    links = "".join(f'<li><a href="#{one.name}">{text(one.title)}</a></li>' for one in shown)
    sections = "\n".join(
        f'<section id="{one.name}" aria-labelledby="of-{one.name}">\n<h2 id="of-{one.name}">{text(one.title)}</h2>\n'
        f"{one.body}\n</section>"
        for one in shown
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{text(report.run.loop_id)}: {text(headline(report))}</title>\n<style>{style}</style>\n</head>\n"
        f'<body>\n<header class="{tone_of(report)}">\n{"".join(head_of(report))}\n</header>\n'
        f'<nav aria-label="On this page"><ul>{links}</ul></nav>\n<main>\n{sections}\n</main>\n'
        f"<footer>Made {moment(report.made_at)} from the journal, not from an agent's words.</footer>\n"
        "</body>\n</html>\n"
    )


def tone_of(report: report_model.Report) -> str:
    """Green is for what is proven."""
    found = "bad" if report.lost else tone(report.run.status)
    return "plain" if found == "good" and not is_proven(report) else found


def _policy(style: str) -> str:
    """This very style and nothing else: text that got through as markup could neither load, run nor dress up."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def head_of(report: report_model.Report, stands: str = "") -> Iterator[str]:
    """What is so and what is next. `stands` says it in HTML where a page is kept up to date, and not only then."""
    run = report.run
    yield f'<p class="soft">{text(run.loop_id)} · {code(with_short_digests(run.subject))} · {code(run.run_id)}</p>'
    yield f"<h1>{text(headline(report))}</h1>"
    why = f" {text(reason_words(run.reason))}" if run.reason else ""
    yield f"<p>{stands or pill(run.status)}{why}</p>"
    if report.end is not None:
        yield f"<p><b>{text(report.end.headline)}</b></p>\n<p>Next: {code(report.end.next)}</p>"
    if run.goal:
        yield f"<p>{text(run.goal)}</p>"
    if run.status in UNFINISHED and not stands:
        yield note(f"It has not ended: this is how it stood at {moment(report.made_at)}.")
    if report.trust:
        yield note(text(report.trust))
    for line in report.lost:
        yield f'<p class="note bad">{text(line)}</p>'
    is_open = bool(stands) and run.status in UNFINISHED
    tiles = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in _tiles(report, is_open=is_open))
    yield f'<dl class="tiles">{tiles}</dl>'


def _tiles(report: report_model.Report, *, is_open: bool) -> Iterator[tuple[str, str]]:
    """What one wants to know before the first coffee. Values are HTML. Of one that is open: without what time alone
    changes.
    """
    run = report.run
    if is_open:
        yield "at work", took(run.worked) + below(counted(run.iterations, "iteration"))
    else:
        yield "took", took(run.seconds) + below(f"{took(run.worked)} at work, {counted(run.iterations, 'iteration')}")
    if report.crossings:
        last = report.crossings[-1]
        yield "red turned green" if last.says == "crossed" else "red before", counted(len(last.tests), "test")
    if report.changes:
        change = report.changes[-1]
        added, removed = sum(file.added for file in change.files), sum(file.removed for file in change.files)
        least = "" if change.kept_whole else "at least "
        yield "change", least + counts(added, removed) + below(f"in {least}{counted(len(change.files), 'file')}")
    if report.calls:
        tokens = sum(call.input_tokens + call.output_tokens for call in report.calls)
        used = f"{tokens:,} tokens" if any(map(tokens_told, report.calls)) else f"tokens {NOT_TOLD}"
        spent = took(sum(call.seconds for call in report.calls))
        yield "agents", counted(len(report.calls), "call") + below(f"{spent}, {used}")
        yield "money", _money(report.calls)


def _money(calls: tuple[report_model.CallFacts, ...]) -> str:
    unknown = sum(dollars(call) == "?" for call in calls)
    if unknown == len(calls):
        return "?" + below("no price is known")
    return f"${sum(call.usd for call in calls):.4f}" + below(f"without {counted(unknown, 'call')}" if unknown else "")


def _people(report: report_model.Report) -> Iterator[str]:
    for one in sorted(report.approvals, key=lambda one: one.state != "asked"):
        asked = one.state == "asked"
        by = f", by {text(one.decided_by)}" if one.decided_by else ""
        about = f" about {code(short(one.bound_to))}" if one.bound_to else ""
        yield f"<p>{pill(one.state)} {code(one.approval_id)}{about}{by}</p>"
        yield note(text(one.question), urgent=asked)
        if asked:
            yield commands(f"becket approve {one.approval_id}", f"becket deny {one.approval_id}")
    for item in report.handoffs:
        taken = f", taken by {text(item.taken_by)}" if item.taken_by else ""
        yield f"<h3>Handoff to {text(item.owner)} {pill(item.state)}</h3>"
        yield f"<p>{text(reason_words(item.reason))}, {code(item.handoff_id)}{taken}</p>"
        yield listed(text(why) for why in item.because)
        following = code(report.end.next) if report.end is not None else text(item.next_step)
        yield note(f"<strong>Next:</strong> {following}", urgent=item.state in UNSETTLED)
        take = (f"becket handoffs take {item.handoff_id}",) if item.state == "open" else ()
        if take or item.commands:
            yield commands(*take, *item.commands)


def _proof(report: report_model.Report) -> Iterator[str]:
    for proof in report.proofs:
        about = f"{code(short(proof.candidate))} on {code(short(proof.base))}"
        yield f"<p>{pill(proof.says)} {about}, receipt {code(short(proof.receipt))}</p>"
        kinds = (("gate", proof.gates), ("part", proof.parts), ("reused from", proof.reused))
        yield fact_list(
            (f"{kind} {name}", code(short_if_digest(by))) for kind, found in kinds for name, by in found.items()
        )
        yield listed(text(why) for why in proof.against)
    for crossing in report.crossings:
        with_tests = f"with the tests of {code(short(crossing.base))} exactly, on {code(short(crossing.tried))}"
        yield f"<h3>Crossing {pill(crossing.says)}</h3>"
        yield f"<p>{with_tests}, receipt {code(short(crossing.receipt))}</p>"
        child = "passed on child: receipt" if crossing.says == "crossed" else "on child: receipt"
        crossed = [(code(test.test), code(short(test.parent)), code(short(test.child))) for test in crossing.tests]
        yield table(("test", "failed on parent: receipt", child), crossed)
        yield listed(text(why) for why in dict.fromkeys(why for test in crossing.tests for why in test.against))
    for held in report.holdouts:
        yield f"<h3>Hold-out checks {pill(held_words(held.says))}</h3>"
        by = f"written by {text(held.agent)} at {code(short(held.oracle))}, unseen by whoever repaired"
        yield f"<p>{by}, receipt {code(short(held.receipt))}</p>"
        yield f"<p>{text(offered(report.run.run_id))}</p>" if held.checks else ""
        yield table(HELD_HEADS, [tuple(map(code, held_row(check))) for check in held.checks])
        yield listed(f"{text(name)} does not count: {text(why)}" for name, why in held.left_out.items())


def _check(report: report_model.Report) -> Iterator[str]:
    run = report.run
    yield "<p>Every event, receipt and artifact that this page tells from, checked again where the run was made:</p>"
    yield commands(f"becket verify {run.run_id} --head {run.chain_head}")
    yield f'<p class="soft">{code("--rerun")} repeats the commands in a fresh checkout.</p>'


def _story(report: report_model.Report) -> Iterator[str]:
    longest = max((phase.seconds for phase in report.phases), default=0.0)
    for iteration in dict.fromkeys(phase.iteration for phase in report.phases):
        if report.run.iterations > 1:
            yield f"<h3>Iteration {iteration}</h3>"
        mine = "".join(_phase(phase, longest) for phase in report.phases if phase.iteration == iteration)
        yield f'<ol class="story">{mine}</ol>'


def _phase(phase: report_model.PhaseFacts, longest: float) -> str:
    worked = "".join(_step(step) for step in phase.steps if step.state != "skipped")
    steps = f'<ul class="steps">{worked}</ul>' if worked else ""
    skipped = [step for step in phase.steps if step.state == "skipped"]
    hidden = fold(soft(f"{counted(len(skipped), 'step')} skipped"), listed(map(_skipped, skipped))) if skipped else ""
    decision = f'<p class="decision">{text(decision_words(phase.decision))}</p>' if phase.decision else ""
    return (
        f'<li><div class="phase"><b>{text(phase.phase)}</b><span class="time">{took(phase.seconds)}</span></div>'
        f"{bar(phase.seconds, longest)}<p>{soft(text(phase.objective))}</p>"
        f"{steps}{hidden}{decision}</li>"
    )


def _step(step: report_model.StepFacts) -> str:
    mark = "" if step.state == "done" else f" {pill(step.state)}"
    more = [*step.raised, step.error, step.note, f"{step.attempts} attempts" if step.attempts > 1 else ""]
    said = below("; ".join(part for part in more if part))
    return f'<li><span>{text(step.id)}{mark}{said}</span><span class="time">{took(step.seconds)}</span></li>'


def _skipped(step: report_model.StepFacts) -> str:
    return f"{text(step.id)}{below(step.note)}"


def _change(report: report_model.Report) -> Iterator[str]:
    for change in report.changes:
        yield f"<p>{text(change.kind or 'change')} {code(short(change.commit))} on {code(short(change.parent))}</p>"
        room = OPEN_LINES
        shown = list(by_file(change.diff))[:MOST_FILES]
        for file, lines in zip(change.files, shown, strict=False):
            room -= len(lines)
            yield fold(f"{code(file.path)} {counts(file.added, file.removed)}", _diff(file, lines), is_open=room >= 0)
        rest = change.files[len(shown) :]
        if rest:
            names = listed(f"{code(file.path)} {counts(file.added, file.removed)}" for file in rest[:MOST_FILES])
            yield fold(f"{counted(len(rest), 'more file')} without their lines", names)
        if not change.kept_whole:
            yield note(f"More than this was changed, too much to be kept here. All of it: {code(whole_change(change))}")
        elif change.left_out or rest:
            cut = f"{change.left_out:,} lines are left out; the" if change.left_out else "The"
            yield f"<p>{cut} artifact {code(short(change.patch))} has all of it.</p>"


def _diff(file: report_model.FileFacts, lines: tuple[DiffLine, ...]) -> str:
    shown = "".join(f'<span class="{line.kind}">{text(line.text) or " "}</span>' for line in lines)
    return f'<pre class="diff" tabindex="0" role="region" aria-label="Diff of {brief(file.path)}">{shown}</pre>'


def _culprit(report: report_model.Report) -> Iterator[str]:
    for found in report.culprits:
        who = f"{code(short(found.commit))} {text(found.subject)}" if found.commit else "Not known"
        sure = f", confidence {found.confidence:.2f}" if found.commit else ""
        yield f"<p>{who}{below(f'{found.why}{sure}')}</p>"


def _gates(report: report_model.Report) -> Iterator[str]:
    for gate in report.gates:
        again = f" · iteration {gate.iteration}" if report.run.iterations > 1 else ""
        yield f"<h3>{text(gate.of)}: {text(gate.gate)} {pill(gate.color)}{again}</h3>"
        by = f"defined by {code(short(gate.defined_by))}, receipt {code(short(gate.receipt))}"
        yield f'<p class="soft">commit {code(short(gate.commit))}, {by}</p>'
        if gate.steps:
            yield table(("step", "colour", "tests", "took", "receipt"), map(_gate_step, gate.steps), frozenset({3}))
        yield listed(text(f"{step.step}: {reason}") for step in gate.steps for reason in step.reasons)
        if gate.summary.strip():
            why = f"Why it is {gate.color}"
            yield fold(text(why), pre(gate.summary, why), is_open=tone(report.run.status) != "good")


def _gate_step(step: report_model.GateStepFacts) -> tuple[str, ...]:
    reused = f"<br>{soft(f'of {code(step.reused_from)}')}" if step.reused_from else ""
    receipt = f"{code(short(step.receipt))}{reused}"
    return text(step.step), pill(step.color), text(tests_words(step, "")), took(step.seconds), receipt


def _guard(report: report_model.Report) -> Iterator[str]:
    for guard in report.guards:
        count = counted(len(guard.refusals), "refusal")
        yield f"<p>{text(guard.says)}: {count}</p>"
        if guard.change_class:
            yield f"<p>{pill(guard.change_class)} {text(class_words(guard.change_class).partition(': ')[2])}</p>"
        yield from _findings(guard.findings)
        rows = [(pill("refused"), *_remark(one)) for one in guard.refusals]
        if rows:
            yield table(("verdict", "where", "rule", "what", "more"), rows)


def _findings(found: tuple[report_model.FindingFacts, ...]) -> Iterator[str]:
    lines = [f"{text(finding_words(one))}{below(one.shown)}" for one in found[:MOST_FINDINGS]]
    yield listed(lines[:OPEN_FINDINGS])
    if folded := lines[OPEN_FINDINGS:]:
        more = len(found) - MOST_FINDINGS
        folded += [f"and {counted(more, 'more line')}"] if more > 0 else []
        yield fold(counted(len(found) - OPEN_FINDINGS, "more line"), listed(folded))


def _remark(one: report_model.RemarkFacts) -> tuple[str, str, str, str]:
    return code(place(one)), text(one.rule), text(one.message), text(one.more)


def _calls(report: report_model.Report) -> Iterator[str]:
    if report.calls:
        open_end = "at work" if report.run.status in UNFINISHED else "no end seen"
        rows = [_call(call, open_end) for call in report.calls]
        head = ("agent", "outcome", "took", "turns", "tokens", "usd", "over its limits")
        yield table(head, rows, frozenset({2, 3, 4, 5}))


def _call(call: report_model.CallFacts, open_end: str) -> tuple[str, ...]:
    cached = f"{call.cached_tokens:,} cached" if call.cached_tokens else ""
    return (
        f"<b>{text(call.agent)}</b>{below(f'{call.driver} {call.model}'.strip())}",
        pill(call.outcome or open_end) + below(call.reason),
        took(call.seconds),
        str(call.turns),
        f"{call.input_tokens:,} in<br>{call.output_tokens:,} out{below(cached)}" if tokens_told(call) else NOT_TOLD,
        dollars(call),
        text("; ".join(call.over)),
    )


def _claims(report: report_model.Report) -> Iterator[str]:
    if report.claims:
        yield note(text(CLAIM))
    for claim in report.claims:
        yield f"<p>{text(claim.agent or claim.action)}, judged by the runtime: <b>{text(claim.judged)}</b></p>"
        if claim.said.strip():
            yield fold("Its words", pre(claim.said, "Its words"))


def _effects(report: report_model.Report) -> Iterator[str]:
    if report.effects:
        rows = [(code(one.name), code(one.target), pill(one.state), text(one.reason)) for one in report.effects]
        yield table(("effect", "target", "state", "why"), rows)


def _of_parts(report: report_model.Report) -> Iterator[str]:
    for one in report.parts:
        yield f"<h3>{text(one.part)}</h3>"
        yield listed(text(line) for line in one.lines)


def _run(report: report_model.Report) -> Iterator[str]:
    run = report.run
    detail = {name: value for name, value in run.detail.items() if not isinstance(value, dict | list)}
    rows = [
        ("run", code(run.run_id)),
        ("subject", code(run.subject)),
        ("began", text(moment(run.began_at))),
        ("ended", text(moment(run.ended_at))),
        ("started by", text(f"{run.trigger}, {run.by}")),
        ("retry of", code(run.retry_of or "")),
        ("autonomy", text(run.autonomy or "")),
        ("dry run", "yes: nothing left this machine" if run.dry_run else ""),
        *((f"{name} used", text(value)) for name, value in spend_words(report.spend)),
        *((name, text(value)) for name, value in pairs(detail)),
        ("spec", code(short(run.spec_digest))),
        ("chain head", code(run.chain_head)),
    ]
    yield fact_list((name, value) for name, value in rows if value)


def _conditions(report: report_model.Report) -> Iterator[str]:
    if report.conditions:
        each = (
            fold(code(one.name), fact_list((name, text(value)) for name, value in pairs(one.evidence)))
            for one in report.conditions
        )
        yield fold(counted(len(report.conditions), "condition"), listed(each))


def _receipts(report: report_model.Report) -> Iterator[str]:
    if report.receipts:
        rows = [
            (code(short(one.digest)), text(one.kind), text(f"{one.phase}.{one.action}"),
             code(one_line(" ".join(one.command), 120)), "" if one.exit_code is None else str(one.exit_code),
             code(short(one.log)), took(one.seconds))
            for one in report.receipts
        ]  # fmt: skip
        head = ("receipt", "kind", "step", "command", "exit code", "log", "took")
        yield fold(counted(len(rows), "receipt"), table(head, rows, frozenset({4, 6})))


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One of a report. `body` is HTML."""

    name: str
    title: str
    body: str


def sections_of(report: report_model.Report, but: Collection[str] = ()) -> Iterator[ReportSection]:
    """Those that have something to say, in order; `but` are made by somebody else."""
    for name, title, make in SECTIONS:
        if name not in but and (body := "\n".join(make(report))):
            yield ReportSection(name, title, body)


SECTIONS: tuple[tuple[str, str, Callable[[report_model.Report], Iterator[str]]], ...] = (
    ("people", "For a person", _people),
    ("proof", "Proof", _proof),
    ("check", "Check it yourself", _check),
    ("story", "Story", _story),
    ("culprit", "Culprit", _culprit),
    ("change", "Change", _change),
    ("gates", "Gates", _gates),
    ("guard", "Guard", _guard),
    ("calls", "Calls of agents", _calls),
    ("claims", "What the agent said", _claims),
    ("effects", "Effects", _effects),
    ("parts", "Besides", _of_parts),
    ("run", "The run", _run),
    ("conditions", "Conditions", _conditions),
    ("receipts", "Receipts", _receipts),
)
"""In the order in which one wants to know."""
