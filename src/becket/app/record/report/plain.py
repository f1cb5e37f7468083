"""How values look in a report, whatever it is written in. Text of steps, agents and commits is untrusted (L24)."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping

from becket.app.record.report import model as report_model
from becket.app.record.report.words import NOT_TOLD
from becket.kernel.contract.base import Json
from becket.kernel.contract.gate import no_tests_counted
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.text import harmless, one_line

SHORT = 12
_DIGEST = re.compile("[0-9a-f]{40,64}")

HEADLINES = {
    "completed": "Completed",
    "completed_dry_run": "Dry run completed: nothing left this machine",
    "ready_for_handoff": "Handed to a person",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "waiting": "Waiting",
    "running": "At work",
    "queued": "Queued",
}
CLASSES = {
    "plain": "nothing but logic, of what its files already used",
    "ordinary": "new, but it only computes: by itself it is promoted only with a hold-out proof",
    "powerful": "it can look around or reach out, or cannot be read: a person decides",
}
"""What the classes of changes mean."""
CLAIM = "A claim: it was not believed and proves nothing. What counts is what the runtime found."


HELD_HEADS = ("check", "when it was right", "on the parent", "on the child", "artifact")


def short(digest: str | None) -> str:
    return harmless(digest or "")[:SHORT]


def short_if_digest(text: object) -> str:
    shown = one_line(text)
    return short(shown) if _DIGEST.fullmatch(shown) else shown


def with_short_digests(text: str) -> str:
    return _DIGEST.sub(lambda found: found[0][:SHORT], one_line(text))


def counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def spaced(code: str) -> str:
    return harmless(code).replace("_", " ")


def decision_words(said: str) -> str:
    """As a phase has it: the outcome, and the reason by its name."""
    outcome, _, reason = harmless(said).partition(": ")
    return f"{spaced(outcome)}: {reason_words(reason)}" if reason else spaced(outcome)


def held_words(says: str) -> str:
    return spaced(says.removeprefix("holdout_"))


def held_row(check: report_model.HeldOutCheck) -> tuple[str, str, str, str, str]:
    """As HELD_HEADS has them: its name, how it ended on each commit, each time it ran, and where it is kept."""
    ends = (" ".join(map(str, ends)) for ends in (check.oracle, check.parent, check.candidate))
    return (check.name, *ends, short(check.artifact))  # type: ignore[return-value]  # three of them


def offered(run_id: str) -> str:
    return f"They are kept, and may serve as new tests: `becket runs show {harmless(run_id)} --log holdout`."


def took(seconds: float) -> str:
    if seconds < 59.95:
        return f"{max(seconds, 0.0):.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def moment(at: float | None) -> str:
    """In UTC: a report is read elsewhere."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at))


def is_proven(report: report_model.Report) -> bool:
    """By the last proof; where nothing had to be proven anew, by the gates' last words. Never without its evidence."""
    last = {gate.gate: gate.color for gate in report.gates}.values()
    shown = report.proofs[-1].says == "proven" if report.proofs else bool(last) and set(last) == {"green"}
    return report.run.status == "completed" and shown and not report.lost


def headline(report: report_model.Report) -> str:
    if is_proven(report):
        return "Done, and proven"
    said = HEADLINES.get(report.run.status, report.run.status)
    owners = {item.owner for item in report.handoffs if item.settled_at is None}
    if report.run.status == "ready_for_handoff" and report.handoffs and not owners:
        by = report.handoffs[-1].accepted_by
        return f"The repair was accepted by {one_line(by, 60)}" if by else "Settled"
    return f"Handed to {one_line(owners.pop(), 60)}" if report.run.status == "ready_for_handoff" and owners else said


def pairs(found: Mapping[str, Json]) -> list[tuple[str, str]]:
    """A condition's evidence, without what is empty."""
    return [
        (spaced(name), one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), 400))
        for name, value in found.items()
        if value not in (None, "", [], {})
    ]


def because(evidence: Mapping[str, Json]) -> tuple[str, ...]:
    """What a handoff's evidence says in words: why, the lines that made a change's class, and what was refused."""
    found = (*_list(evidence.get("findings")), *_list(evidence.get("against")))
    return tuple(str(one) for one in (evidence.get("why"), *found) if one)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def whole_change(change: report_model.ChangeFacts) -> str:
    return f"git diff {short(change.parent)} {short(change.commit)}"


def spend_words(spend: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(spaced(kind), _amount(kind, amount)) for kind, amount in spend.items()]


def _amount(kind: str, amount: float) -> str:
    if kind in ("agent_time", "wall"):
        return took(amount)
    return f"{amount:.4f}" if kind == "usd" else f"{amount:,.0f}" if kind == "tokens" else f"{amount:g}"


def dollars(call: report_model.CallFacts) -> str:
    """A question mark where nobody can tell."""
    return "?" if call.priced == "unknown" and not call.usd else f"{call.usd:.4f}"


def tokens_words(call: report_model.CallFacts) -> str:
    return f"{call.input_tokens + call.output_tokens:,}" if tokens_told(call) else NOT_TOLD


def tokens_told(call: report_model.CallFacts) -> bool:
    """Nought is a figure only where somebody told it."""
    return bool(call.input_tokens or call.output_tokens or call.turns) or call.priced != "unknown"


def call_end(call: report_model.CallFacts) -> str:
    """A call without an outcome is at work, or nobody saw its end."""
    return spaced(call.outcome) or "no end seen"


def tests_words(step: report_model.GateStepFacts, what: str) -> str:
    """`what` is empty in a table whose head says that these are tests."""
    if not step.counts_tests:
        return no_tests_counted(step.exit_code)
    failing = f", {step.failed} failing" if step.failed else ""
    return f"{step.tests_run}{what}{failing}"


def class_words(kind: str) -> str:
    return f"{kind}: {CLASSES[kind]}" if kind in CLASSES else kind


def finding_words(one: report_model.FindingFacts) -> str:
    """`ordinary: adds a new function: gcd.py:9`."""
    return one_line(f"{one.kind}: {one.message}: {place(one)}")


def place(remark: report_model.RemarkFacts | report_model.FindingFacts) -> str:
    return harmless(f"{remark.path}:{remark.line}" if remark.line else remark.path)
