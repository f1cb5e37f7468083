"""How a run ended, for people: what is so, what shows it, and what to type next. A pure function of the report."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.app.record.report import model as report_model
from becket.app.record.report import settled as over
from becket.app.record.report import words
from becket.app.record.report.plain import counted, place
from becket.kernel.contract.base import Json
from becket.kernel.contract.naming import alone
from becket.kernel.contract.reasons import VERDICTS, reason_words
from becket.kernel.contract.receipt import SETUP
from becket.kernel.contract.text import one_line

_COMMIT = re.compile("(?P<branch>.+)@(?P<sha>[0-9a-f]{40,64})")
SHORT = 7
MOST_FAILING, MOST_SAID, MOST_AGAINST, LOG_LINES = 12, 3, 5, 6
STATUS = {"ready_for_handoff": "handed off"}
ENDED = ("completed", "completed_dry_run", "ready_for_handoff", "failed", "cancelled")
WITH_CHANGE = ("repair_ready", "proposed", "contended", "promote_refused", "candidate.guard_refused")
"""Ends at which a person has to judge a change."""
UNPROVEN = ("no_progress", "iterations_exhausted", "deadline_passed", "budget_exhausted", "fix_exhausted")
"""And at which the last change may still be what they need."""
STUCK = ("no_progress", "iterations_exhausted")
BY_TESTS = (
    "no_agent",
    "agent_not_found",
    "agent_gave_up",
    "fix_exhausted",
    "never_green",
    "observe_only",
    "undecided",
    "environment_broken",
    *words.CHANGED,
)


def ending_of(report: report_model.Report, *, watched: bool = False) -> report_model.EndFacts | None:
    """None while the run is open. `watched`: the daemon is up."""
    run = report.run
    if run.status not in ENDED:
        return None
    return report_model.EndFacts(
        headline=one_line(_headline(report), 400),
        lines=tuple(_indent(text) + one_line(text, 300) for text in _lines(report)),
        change=bool(report.changes)
        and (run.reason in WITH_CHANGE or _tried(report) or _proven(report).get("repaired") not in (None, "")),
        next=_next(report, watched),
    )


def _indent(text: str) -> str:
    return " " * (len(text) - len(text.lstrip(" ")))


def _known(report: report_model.Report) -> dict[str, str]:
    """What the sentences are filled with."""
    run = report.run
    subject = _COMMIT.fullmatch(run.subject)
    return {
        "loop": run.loop_id, "goal": run.goal.rstrip("."), "status": STATUS.get(run.status, run.status),
        "reason": reason_words(run.reason), "agent": _agent(report), "by": run.by,
        "decider": next((one.decided_by for one in reversed(report.approvals) if one.decided_by), "a person"),
        "why": str(run.detail.get("why", "")), "what": _commit_words(subject) or run.loop_id,
        "branch": _branch(subject) if subject else "", "sha": subject["sha"][:SHORT] if subject else "",
    }  # fmt: skip


def _headline(report: report_model.Report) -> str:
    run, known = report.run, _known(report)
    if run.status == "cancelled":
        return words.CANCELLED.format(**known | {"by": _canceller(report)})
    if run.status == "completed_dry_run":
        return words.DRY.format(stand=_stand(report, known), would=_would(report))
    if item := over.settled(report):
        return over.headline(item, known, revert=_is_revert(report))
    return _as_it_ended(report, known)


def _as_it_ended(report: report_model.Report, known: dict[str, str]) -> str:
    run, subject = report.run, known["branch"]
    if proven := _proven(report):
        at = {"sha": str(proven.get("sha", ""))[:SHORT], "asked": known["sha"]}
        return _green(report, proven).format(**known | at)
    if subject and run.reason in words.UNJUDGED:
        return words.UNJUDGED[run.reason].format(**known)
    if subject and run.reason in words.HEADLINES and any(gate.color != "green" for gate in report.gates):
        more = words.REVERT_READY if _is_revert(report) else words.HEADLINES[run.reason]
        return f"{words.RED}; {more}".format(**known)
    return (words.GOAL if run.status == "completed" else words.STOPPED).format(**known)


def _stand(report: report_model.Report, known: dict[str, str]) -> str:
    """How the branch stands by its own gates, where it was judged."""
    base = {gate.color for gate in report.gates if gate.of == "base"}
    reason = report.run.detail.get("would", {}).get("reason")
    if not known["branch"] or not base:
        return known["loop"]
    return words.UNJUDGED.get(reason, words.GREEN if base == {"green"} else words.RED).format(**known)


def _would(report: report_model.Report) -> str:
    """What would have come of it in earnest."""
    would = report.run.detail.get("would", {})
    outcome, why = str(would.get("outcome", "")), reason_words(str(would.get("reason", "")))
    planned = [one for one in report.conditions if one.name in words.WOULD_PLAN]
    if outcome == "again" and planned:
        return words.WOULD_PLAN[planned[0].name].format(agent=planned[0].evidence.get("agent") or words.NOBODY)
    return words.WOULD.get(outcome, words.WOULD["again"]).format(why=why)


def _commit_words(subject: re.Match[str] | None) -> str:
    return f"{_branch(subject)} at {subject['sha'][:SHORT]}" if subject else ""


def _branch(subject: re.Match[str]) -> str:
    return words.ALONE if subject["branch"] == alone(subject["sha"]) else subject["branch"]


def _canceller(report: report_model.Report) -> str:
    return str(report.run.detail.get("by") or "a person")


def _green(report: report_model.Report, proven: dict[str, Json]) -> str:
    if proven.get("instead_of"):
        return words.MOVED_ON
    if not proven.get("repaired"):
        return words.GREEN
    return words.UNDONE if report.changes and report.changes[-1].kind == "revert" else words.REPAIRED


def _proven(report: report_model.Report) -> dict[str, Json]:
    """What the condition `main_proven` rests on, where the run is completed with it."""
    if report.run.status != "completed":
        return {}
    return next((one.evidence for one in report.conditions if one.name == "main_proven"), {})


def _is_revert(report: report_model.Report) -> bool:
    ready = report.run.reason in ("repair_ready", "proposed")
    return ready and bool(report.changes) and report.changes[-1].kind == "revert"


def _agent(report: report_model.Report) -> str:
    """Whose change it is; else whoever was asked last."""
    changed = [call.agent for call in report.calls if call.outcome == "changed"]
    asked = [call.agent for call in report.calls]
    return str((changed or asked or [report.run.repaired_by or report.run.detail.get("agent") or words.NOBODY])[-1])


def _lines(report: report_model.Report) -> Iterator[str]:
    run = report.run
    if item := over.settled(report):
        yield over.how(item)
        return
    if run.reason in BY_TESTS:
        yield from _failing(report)
    if run.reason == "no_agent":
        yield from ("", *words.ADD_AGENT)
    if run.reason.rpartition(".")[2] in VERDICTS:  # what the verifier printed
        yield from str(run.detail.get("said", "")).split("\n")[:MOST_FAILING]
    undone = bool(report.changes) and report.changes[-1].kind == "revert"
    if undone and (_is_revert(report) or _proven(report)):
        yield from (str(one.evidence.get("why", "")) for one in report.conditions if one.name == "plan.revert")
    if run.status in ("ready_for_handoff", "failed"):
        yield from _about_tries(report)
        stuck = tuple(_stuck(report))
        yield from stuck
        yield from (text for text in _reasons(report) if not any(text in line for line in stuck))
    if _tried(report):
        yield words.NOT_PROVEN


def _tried(report: report_model.Report) -> bool:
    if not report.changes or report.run.reason not in UNPROVEN or over.settled(report):
        return False
    return (report.changes[-1].commit, "proven") not in {(proof.candidate, proof.says) for proof in report.proofs}


def _stuck(report: report_model.Report) -> Iterator[str]:
    """The gate, its step and the failing tests that the tries did not come past."""
    approved = _tried_as_approved(report)
    if report.run.reason not in STUCK and not approved:
        return
    form = words.STUCK_APPROVED if approved else words.STUCK
    for gate, step, why in list(dict.fromkeys(_last_red(report)))[:MOST_AGAINST]:
        yield form.format(gate=gate, step=step, why=why)


def _last_red(report: report_model.Report) -> Iterator[tuple[str, str, str]]:
    """Of the last candidate that was tried; of the branch itself where none came so far."""
    of_candidate = [gate for gate in report.gates if gate.of != "base"]
    crossing = report.crossings[-1] if report.crossings else None
    if crossing is not None and crossing.says != "crossed":
        yield from ((test.gate, test.step, why) for test in crossing.tests for why in test.against)
    else:
        for gate in (of_candidate or [one for one in report.gates if one.color != "green"])[-1:]:
            yield from ((gate.gate, step.step, why) for step in gate.steps for why in step.reasons)


def _tried_as_approved(report: report_model.Report) -> bool:
    """The last candidate was tried with its own tests, by a person's yes, and failed with them too."""
    asked = {guard.candidate for guard in report.guards if "candidate.test_change_asked" in guard.says}
    last = report.crossings[-1] if report.crossings else None
    return last is not None and last.says != "crossed" and last.candidate in asked


def _failing(report: report_model.Report) -> Iterator[str]:
    """The names of the failing tests with their places and assertions; of a step without tests, the end of its log."""
    red = next((gate for gate in reversed(report.gates) if gate.of == "base" and gate.color != "green"), None)
    if red is None:
        return
    head, _, rest = red.summary.partition("\n\n")
    shown = [text for text in head.split("\n") if not text.startswith("step ")]
    if not any(text.startswith("FAIL ") and text != "FAIL step" for text in shown):
        log = [text for text in rest.split("\n") if text.strip() and not text.startswith("--- ")]
        shown = [f"{step.step}: {why}" for step in red.steps for why in step.reasons] + log[-LOG_LINES:]
    yield from shown[:MOST_FAILING]
    named = sum(text.startswith("FAIL ") for text in shown[:MOST_FAILING])
    if (left := sum(step.failed for step in red.steps) - named) > 0:
        yield words.MORE.format(count=counted(left, "more failing test"))
    elif len(shown) > MOST_FAILING:
        yield words.MORE.format(count=counted(len(shown) - MOST_FAILING, "more line"))


def _about_tries(report: report_model.Report) -> Iterator[str]:
    """The agent's last words, and what it was not let do."""
    detail, agent = report.run.detail, _agent(report)
    if report.run.reason in ("agent_gave_up", "fix_exhausted", "candidate.guard_refused"):
        said = str(detail.get("said") or (report.claims[-1].said if report.claims else ""))
        if last := [text for text in said.split("\n") if text.strip()][-MOST_SAID:]:
            yield words.SAID.format(agent=agent, words=" ".join(last))
    if denied := _texts(detail.get("denied")):
        yield words.DENIED.format(agent=agent, hosts=", ".join(denied))


def _reasons(report: report_model.Report) -> Iterator[str]:
    detail = report.run.detail
    if (
        report.run.reason in ("candidate.guard_refused", *words.CHANGED)
        and report.guards
        and report.guards[-1].refusals
    ):
        yield from (f"{place(one)} {one.rule}: {one.message}" for one in report.guards[-1].refusals[:MOST_AGAINST])
        return
    known = {f"{step.step}: {why}" for gate in report.gates for step in gate.steps for why in step.reasons}
    allowed = tuple(
        f"{place(one)}: {one.rule}:"
        for guard in report.guards[-1:]
        for one in guard.refusals
        if _tried_as_approved(report)
    )
    seen: dict[str, None] = {}
    for key in ("why", "problems", "findings", "against", "errors", "unproven", "last_lines"):
        texts = [text for text in _texts(detail.get(key)) if text not in known and not text.startswith(allowed)]
        seen |= dict.fromkeys(map(cause, texts))
    headline = _headline(report)
    yield from [text for text in seen if text and text not in headline][:MOST_AGAINST]


def cause(text: str) -> str:
    """Of another program's stack trace, the last line: it says what happened."""
    lines = [one.strip() for one in text.split("\n") if one.strip()]
    return (lines[-1] if "Traceback (most recent call last)" in text else " ".join(lines)) if lines else ""


def _texts(value: Json) -> list[str]:
    return [str(one) for one in (value if isinstance(value, list) else [value]) if one]


def _next(report: report_model.Report, watched: bool) -> str:
    run, known = report.run, {"run": report.run.run_id, "loop": report.run.loop_id}
    if item := over.settled(report):
        return over.following(item).format(**known)
    if isinstance(said := run.detail.get("next"), str):
        return said
    if repaired := _proven(report):
        name = words.NEXT_WATCHED if watched else words.NEXT["main_proven"]
        name = words.NEXT_OF_COMMIT if repaired.get("repaired") else name
        return name.format(sha=str(repaired.get("sha", ""))[:SHORT])
    if run.reason in words.NEXT:
        return words.NEXT[run.reason].format(**known)
    step = _broken_step(report)
    return words.NEXT_OF_LOG.format(step=step, **known) if step else words.NEXT_OTHERWISE.format(**known)


def _broken_step(report: report_model.Report) -> str:
    """Whose log shows what is wrong: the set-up's, or that of a command that failed. Tests that fail are shown."""
    if report.run.status == "completed" or (report.gates and report.run.reason != "environment_broken"):
        return ""
    logs = [item for item in report.receipts if item.log and item.exit_code != 0]
    return SETUP if any(item.kind == SETUP for item in logs) else logs[-1].action if logs else ""
