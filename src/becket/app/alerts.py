"""Handoffs and approval requests as alarms, so that they are delivered by the same rules."""

from __future__ import annotations

from becket.kernel.contract.base import Json
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.store import Alert, AlertState

TOLD_FOR = 86_400.0
"""Seconds: what could not be delivered within a day is left to `becket status`."""


def handoff_alert(item: Handoff) -> Alert:
    if item.reason in REASONS:
        title, said = "a proven repair is ready", str(item.evidence.get("why") or "it is yours to take")
        verb = f"becket proposals show {item.run_id}"
    else:
        title, said = f"{item.loop_id} needs {item.owner}", f"{reason_words(item.reason)}\n{item.next_step}"
        verb = f"becket handoffs show {item.handoff_id}"
    text = f"{item.loop_id} about {item.subject}: {said}\n{verb}"
    return _alert(f"handoff:{item.handoff_id}", title, text, item.created_at)


def approval_alert(item: Approval) -> Alert:
    text = f"{item.question.strip()}\nbecket approve {item.approval_id}   or   becket deny {item.approval_id}"
    return _alert(f"approval:{item.approval_id}", "a run asks for a decision", text, item.asked_at)


def _alert(key: str, title: str, text: str, at: float) -> Alert:
    data: dict[str, Json] = {"title": title}
    return Alert(key=key, text=text, data=data, state=AlertState.open, count=1, first_at=at, last_at=at)
