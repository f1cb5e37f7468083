"""What reaches a person by the `notify` command of becket.yaml: alarms, handoffs and questions."""

from __future__ import annotations

from dataclasses import dataclass

from becket.app.compose import App
from becket.kernel.contract.base import Json, new_id
from becket.kernel.contract.effect import EffectCall, Origin
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import Alert
from becket.kernel.engine.door import Door, Patience
from becket.parts.notify.command import NAME, CommandNotice
from becket.parts.notify.section import NOTIFY


def notice_of(app: App) -> CommandNotice | None:
    """By becket.yaml as it stands; None where it names no command."""
    found = app.config.section(NOTIFY)
    if found is None:
        return None
    return CommandNotice(found.command, app.state.root, app.redactor.text, found.timeout)


def call_of(app: App, title: str, text: str) -> EffectCall:
    payload: dict[str, Json] = {"title": f"{app.state.root.name}: {title}", "text": text}
    return EffectCall(name=NAME, target="notify", payload=payload)


@dataclass(frozen=True, slots=True)
class CommandChannel:
    app: App
    adapter: CommandNotice

    def call(self, alert: Alert) -> EffectCall:
        return call_of(self.app, str(alert.data.get("title") or "Becket's alarm"), alert.text)


def channel(app: App) -> CommandChannel | None:
    notice = notice_of(app)
    return None if notice is None else CommandChannel(app, notice)


async def send_test(app: App, text: str) -> tuple[str, dict[str, Json]]:
    """The command, and what came of it. Raises UsageError where there is none, EffectFailed where it fails."""
    notice, command = notice_of(app), app.config.section(NOTIFY)
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
