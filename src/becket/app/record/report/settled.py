"""How a run that handed something over is told once that is settled: by whom, when and how."""

from __future__ import annotations

from collections.abc import Mapping

from becket.app.record.report import model as report_model
from becket.app.record.report import words
from becket.app.record.report.plain import moment
from becket.kernel.contract.handoff import BY_ITSELF, SETTLED, HandoffState
from becket.kernel.contract.ready import REASONS


def settled(report: report_model.Report) -> report_model.HandoffFacts | None:
    """The last of its handoffs, where none is open any more."""
    found = report.handoffs if report.run.status == "ready_for_handoff" else ()
    return found[-1] if found and all(item.settled_at is not None for item in found) else None


def headline(item: report_model.HandoffFacts, known: Mapping[str, str], *, revert: bool) -> str:
    """`known` is what the headlines of `words` are filled with; without a branch the loop has the first word."""
    by = item.accepted_by or item.taken_by or BY_ITSELF
    change = (words.REVERT_OF if revert else words.REPAIR_OF).format(**known)
    said = _said(item, by).format(**{**known, "by": by, "change": change})
    return f"{words.WAS_RED.format(**known)}; {said}" if known["branch"] else said


def _said(item: report_model.HandoffFacts, by: str) -> str:
    if item.reason not in REASONS:
        return words.SETTLED_ITSELF if by == BY_ITSELF else words.SETTLED_BY
    if item.accepted_by:
        return words.ACCEPTED
    return words.DECLINED if item.state == HandoffState.declined else words.TAKEN_OVER


def how(item: report_model.HandoffFacts) -> str:
    note = item.note.removeprefix(SETTLED) or item.state
    return words.SETTLED_AT.format(when=moment(item.settled_at), how=note)


def following(item: report_model.HandoffFacts) -> str:
    """What a person closed without a repair may still be wanted; all else shows in how things stand now."""
    return words.NEXT_OF_SETTLED if item.accepted_by or item.note.startswith(SETTLED) else words.NEXT_AGAIN
