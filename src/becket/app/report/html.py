"""A report as one HTML file: no script, nothing from outside, readable on a phone, light and dark."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files

from becket.app.report import model as told
from becket.app.report.diff import lines_of
from becket.app.report.plain import (
    CLAIM,
    counted,
    dollars,
    harmless,
    headline,
    moment,
    pairs,
    place,
    short,
    short_if_digest,
    spaced,
    spend_words,
    tests_words,
    took,
)

GOOD = frozenset(
    {"green", "completed", "completed_dry_run", "done", "proven", "crossed", "approved", "used", "changed"}
)
BAD = frozenset({"red", "failed", "refused", "not_proven", "not_crossed", "denied", "crashed", "model_error"})
UNSURE = frozenset(
    {"undecided", "unknown", "cross_undecided", "ready_for_handoff", "waiting", "open", "taken", "asked", "retrying"}
)
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_of(report: told.Report) -> str:
    title = _text(f"{report.run.loop_id}: {headline(report)}")
    style = (files(__package__) / "page.css").read_text("utf-8")
    parts = (
        _head(report),
        _people(report),
        _proofs(report),
        _gates(report),
        _crossings(report),
        _changes(report),
        _culprits(report),
        _guards(report),
        _calls(report),
        _claims(report),
        _phases(report),
        _effects(report),
        _conditions(report),
        _receipts(report),
    )
    body = "\n".join(line for part in parts for line in part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n{body}\n{_foot(report)}\n"
        "</main>\n</body>\n</html>\n"
    )


def _text(text: object) -> str:
    return html.escape(harmless(text))


def _code(text: object) -> str:
    return f"<code>{_text(text)}</code>" if str(text) else ""


def _pill(state: str) -> str:
    kind = "good" if state in GOOD else "bad" if state in BAD else "unsure" if state in UNSURE else ""
    return f'<span class="pill {kind}">{_text(spaced(state))}</span>'


def _pre(text: str) -> str:
    return f"<pre>{_text(text.rstrip())}</pre>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: frozenset[int] = frozenset()) -> str:
    """Cells are HTML already: whoever makes them escapes."""
    titles = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    lines = []
    for row in rows:
        cells = "".join(
            f'<td class="number">{cell}</td>' if index in numbers else f"<td>{cell}</td>"
            for index, cell in enumerate(row)
        )
        lines.append(f"<tr>{cells}</tr>")
    return f'<div class="wide"><table><thead><tr>{titles}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _list(items: Iterable[str]) -> str:
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


def _section(title: str, present: object) -> Iterator[str]:
    if present:
        yield f"<h2>{_text(title)}</h2>"


def _head(report: told.Report) -> Iterator[str]:
    run = report.run
    yield f'<p class="kicker">{_text(run.loop_id)} · {_code(run.subject)}</p>'
    yield f"<h1>{_text(headline(report))}</h1>"
    yield f"<p>{_pill(run.status)} {_text(spaced(run.reason))}</p>"
    yield f'<p class="soft">{_text(run.goal)}</p>'
    facts = [
        ("run", _code(run.run_id)),
        ("began", _text(moment(run.began_at))),
        ("took", f"{took(run.seconds)}, {took(run.worked)} at work, {counted(run.iterations, 'iteration')}"),
        ("started by", _text(f"{run.trigger}, {run.by}")),
        *((name, _text(value)) for name, value in spend_words(report.spend)),
    ]
    if run.autonomy:
        facts.append(("autonomy", _text(run.autonomy)))
    if run.dry_run:
        facts.append(("dry run", "yes: nothing left this machine"))
    yield '<dl class="facts">' + "".join(f"<dt>{_text(name)}</dt><dd>{value}</dd>" for name, value in facts) + "</dl>"
    for line in report.lost:
        yield f'<p class="note bad">{_text(line)}</p>'


def _people(report: told.Report) -> Iterator[str]:
    for item in report.handoffs:
        taken = f", taken by {item.taken_by}" if item.taken_by else ""
        yield from _section(f"Handoff to {item.owner}", True)
        yield f"<p>{_pill(item.state)} {_code(item.handoff_id)}{_text(taken)}: {_text(spaced(item.reason))}</p>"
        yield f'<p class="note"><strong>Next:</strong> {_text(item.next_step)}</p>'
        if item.commands:
            yield _pre("\n".join(item.commands))
    yield from _section("Decisions", report.approvals)
    if report.approvals:
        yield _table(
            ("approval", "state", "about", "question", "by"),
            [
                (_code(one.approval_id), _pill(one.state), _code(short(one.bound_to)), _text(one.question),
                 _text(one.decided_by or ""))
                for one in report.approvals
            ],
        )  # fmt: skip


def _proofs(report: told.Report) -> Iterator[str]:
    yield from _section("Proof", report.proofs)
    for proof in report.proofs:
        about = f"{_code(short(proof.candidate))} on {_code(short(proof.base))}"
        yield f"<p>{_pill(proof.says)} {about}, receipt {_code(short(proof.receipt))}</p>"
        rows = [("gate", name, by) for name, by in proof.gates.items()]
        rows += [("part", name, by) for name, by in proof.parts.items()]
        rows += [("reused from", name, by) for name, by in proof.reused.items()]
        if rows:
            shown = [(_text(what), _text(name), _code(short_if_digest(by))) for what, name, by in rows]
            yield _table(("what", "name", "by"), shown)
        yield _list(_text(why) for why in proof.against)


def _gates(report: told.Report) -> Iterator[str]:
    yield from _section("Gates", report.gates)
    for gate in report.gates:
        again = f" · iteration {gate.iteration}" if report.run.iterations > 1 else ""
        yield f"<h3>{_text(gate.of)}: {_text(gate.gate)} {_pill(gate.color)}{again}</h3>"
        by = f"defined by {_code(short(gate.defined_by))}, receipt {_code(short(gate.receipt))}"
        yield f'<p class="soft">commit {_code(short(gate.commit))}, {by}</p>'
        yield _table(("step", "colour", "tests", "seconds", "receipt"), map(_gate_step, gate.steps), frozenset({3}))
        yield _list(_text(f"{step.step}: {reason}") for step in gate.steps for reason in step.reasons)
        if gate.summary.strip():
            yield f"<details open><summary>Why it is {_text(gate.color)}</summary>{_pre(gate.summary)}</details>"


def _gate_step(step: told.GateStepFacts) -> tuple[str, ...]:
    reused = f'<br><span class="soft">of {_code(step.reused_from)}</span>' if step.reused_from else ""
    receipt = f"{_code(short(step.receipt))}{reused}"
    return _text(step.step), _pill(step.color), _text(tests_words(step)), f"{step.seconds:.2f}", receipt


def _crossings(report: told.Report) -> Iterator[str]:
    yield from _section("Crossing proof", report.crossings)
    for crossing in report.crossings:
        with_tests = f"with the tests of {_code(short(crossing.base))} exactly, on {_code(short(crossing.tried))}"
        yield f"<p>{_pill(crossing.says)} {with_tests}, receipt {_code(short(crossing.receipt))}</p>"
        child = "passed on child: receipt" if crossing.says == "crossed" else "on child: receipt"
        rows = [(_code(test.test), _code(short(test.parent)), _code(short(test.child))) for test in crossing.tests]
        yield _table(("test", "failed on parent: receipt", child), rows)
        yield _list(_text(why) for why in dict.fromkeys(why for test in crossing.tests for why in test.against))


def _changes(report: told.Report) -> Iterator[str]:
    yield from _section("Change", report.changes)
    for change in report.changes:
        kind = _text(change.kind or "change")
        yield f"<p>{kind} {_code(short(change.commit))} on {_code(short(change.parent))}</p>"
        yield _list(
            f'{_code(file.path)} <span class="plus">+{file.added}</span> <span class="minus">−{file.removed}</span>'
            for file in change.files[:200]
        )
        lines = "".join(f'<span class="{line.kind}">{_text(line.text) or " "}</span>' for line in lines_of(change.diff))
        yield f'<pre class="diff">{lines}</pre>'
        if change.left_out:
            yield f"<p>{change.left_out} lines are left out; the artifact {_code(short(change.patch))} has them.</p>"


def _culprits(report: told.Report) -> Iterator[str]:
    yield from _section("Culprit", report.culprits)
    for found in report.culprits:
        who = f"{_code(short(found.commit))} {_text(found.subject)}" if found.commit else "Not known"
        sure = f"confidence {found.confidence:.2f}" if found.commit else ""
        yield f'<p>{who}<br><span class="soft">{_text(found.why)} {sure}</span></p>'


def _guards(report: told.Report) -> Iterator[str]:
    yield from _section("Guard", report.guards)
    for guard in report.guards:
        count = f"{counted(len(guard.refusals), 'refusal')}, {counted(len(guard.notes), 'note')}"
        yield f"<p>{_text(guard.says)}: {count}</p>"
        rows = [(_pill("refused"), *_remark(one)) for one in guard.refusals]
        rows += [("to look at", *_remark(one)) for one in guard.notes]
        if rows:
            yield _table(("", "where", "rule", "what", "more"), rows)


def _remark(one: told.RemarkFacts) -> tuple[str, str, str, str]:
    return _code(place(one)), _text(one.rule), _text(one.message), _text(one.more)


def _calls(report: told.Report) -> Iterator[str]:
    yield from _section("Calls of agents", report.calls)
    if report.calls:
        head = ("agent", "outcome", "took", "turns", "tokens", "usd", "over its limits")
        yield _table(head, map(_call, report.calls), frozenset({2, 3, 4, 5}))


def _call(call: told.CallFacts) -> tuple[str, ...]:
    who = f'<b>{_text(call.agent)}</b><br><span class="soft">{_text(f"{call.driver} {call.model}".strip())}</span>'
    why = f'<br><span class="soft">{_text(call.reason)}</span>' if call.reason else ""
    return (
        who,
        _pill(call.outcome or "unknown") + why,
        took(call.seconds),
        str(call.turns),
        f"{call.input_tokens + call.output_tokens:,}",
        dollars(call),
        _text("; ".join(call.over)),
    )


def _claims(report: told.Report) -> Iterator[str]:
    yield from _section("What the agent said", report.claims)
    if report.claims:
        yield f'<p class="note">{CLAIM}</p>'
    for claim in report.claims:
        yield f"<p>{_text(claim.agent or claim.action)}, judged by the runtime: <b>{_text(claim.judged)}</b></p>"
        if claim.said.strip():
            yield f"<details><summary>Its words</summary>{_pre(claim.said)}</details>"


def _phases(report: told.Report) -> Iterator[str]:
    yield from _section("Phases", report.phases)
    for iteration in dict.fromkeys(phase.iteration for phase in report.phases):
        if report.run.iterations > 1:
            yield f"<h3>Iteration {iteration}</h3>"
        mine = [phase for phase in report.phases if phase.iteration == iteration]
        yield _table(("phase", "took", "steps"), map(_phase, mine), frozenset({1}))


def _phase(phase: told.PhaseFacts) -> tuple[str, ...]:
    name = f'<b>{_text(phase.phase)}</b><br><span class="soft">{_text(phase.objective)}</span>'
    decision = f"<p><b>{_text(spaced(phase.decision))}</b></p>" if phase.decision else ""
    return name, took(phase.seconds), _list(map(_step, phase.steps)) + decision


def _step(step: told.StepFacts) -> str:
    mark = "" if step.state == "done" else f" {_pill(step.state)}"
    time = f' <span class="soft">{took(step.seconds)}</span>' if step.state != "skipped" else ""
    more = [*step.raised, step.error, step.note, f"{step.attempts} attempts" if step.attempts > 1 else ""]
    said = _text("; ".join(part for part in more if part))
    below = f'<br><span class="soft">{said}</span>' if said else ""
    return f"{_text(step.id)}{mark}{time}{below}"


def _effects(report: told.Report) -> Iterator[str]:
    yield from _section("Effects", report.effects)
    if report.effects:
        rows = [(_code(one.name), _code(one.target), _pill(one.state), _text(one.reason)) for one in report.effects]
        yield _table(("effect", "target", "state", "why"), rows)


def _conditions(report: told.Report) -> Iterator[str]:
    yield from _section("Conditions at the end", report.conditions)
    for one in report.conditions:
        rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in pairs(one.evidence))
        yield f'<details><summary>{_code(one.name)}</summary><dl class="facts">{rows}</dl></details>'


def _receipts(report: told.Report) -> Iterator[str]:
    yield from _section("Receipts", report.receipts)
    if report.receipts:
        rows = [
            (_code(short(one.digest)), _text(one.kind), _text(f"{one.phase}.{one.action}"),
             "" if one.exit_code is None else str(one.exit_code), _code(short(one.log)), took(one.seconds))
            for one in report.receipts
        ]  # fmt: skip
        yield _table(("receipt", "kind", "step", "exit code", "log", "took"), rows, frozenset({3, 5}))


def _foot(report: told.Report) -> str:
    check = _code(f"becket verify {report.run.run_id} --head {report.run.chain_head}")
    return f"<footer>Made {_text(moment(report.made_at))} from the journal, not from an agent's words. {check}</footer>"
