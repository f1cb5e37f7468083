"""What reaches a person by the `notify` command of becket.yaml: alarms, handoffs and questions."""

from __future__ import annotations

from becket.app.compose import App
from becket.kernel.contract.base import Json, new_id
from becket.kernel.contract.effect import EffectCall, Origin
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import Alert, AlertState
from becket.kernel.engine.door import Door, Patience
from becket.parts.notify.command import NAME, CommandNotice

TOLD_FOR = 86_400.0
"""Seconds: what could not be delivered within a day is left to `becket status`."""


def notice_of(app: App) -> CommandNotice | None:
    """By becket.yaml as it stands; None where it names no command."""
    found = app.config.notify
    if found is None:
        return None
    return CommandNotice(found.command, app.state.root, app.redactor.text, found.timeout)


def call_of(app: App, title: str, text: str) -> EffectCall:
    payload: dict[str, Json] = {"title": f"{app.state.root.name}: {title}", "text": text}
    return EffectCall(name=NAME, target="notify", payload=payload)


def alert_call(app: App, alert: Alert) -> EffectCall:
    return call_of(app, str(alert.data.get("title") or "Becket's alarm"), alert.text)


def handoff_alert(item: Handoff) -> Alert:
    """A handoff in the shape of an alarm, so that it is told by the same rules."""
    if item.reason in REASONS:
        title, said = "a proven repair is ready", str(item.evidence.get("why") or "it is yours to take")
        verb = f"becket proposals show {item.run_id}"
    else:
        title, said = f"{item.loop_id} needs {item.owner}", f"{item.reason.replace('_', ' ')}\n{item.next_step}"
        verb = f"becket handoffs show {item.handoff_id}"
    text = f"{item.loop_id} about {item.subject}: {said}\n{verb}"
    return _alert(f"handoff:{item.handoff_id}", title, text, item.created_at)


def approval_alert(item: Approval) -> Alert:
    text = f"{item.question.strip()}\nbecket approve {item.approval_id}   or   becket deny {item.approval_id}"
    return _alert(f"approval:{item.approval_id}", "a run asks for a decision", text, item.asked_at)


def _alert(key: str, title: str, text: str, at: float) -> Alert:
    data: dict[str, Json] = {"title": title}
    return Alert(key=key, text=text, data=data, state=AlertState.open, count=1, first_at=at, last_at=at)


async def send_test(app: App, text: str) -> tuple[str, dict[str, Json]]:
    """The command, and what came of it. Raises UsageError where there is none, EffectFailed where it fails."""
    notice, command = notice_of(app), app.config.notify
    if notice is None or command is None:
        raise UsageError(
            "becket.yaml names no command to notify by; write for instance\n"
            """  notify: {command: 'notify-send "$BECKET_TITLE" "$BECKET_TEXT"'}"""
        )
    origin = Origin(run_id=new_id("notify"), action_id="test")
    call = call_of(app, "a test", text)
    door = Door(app.store, {notice.name: notice}, app.redactor, {}, patience=Patience(delays=()))  # a person waits
    report = await door.perform(call, origin, None, Autonomy.release, dry_run=False)
    return command.command, report.result
