"""What the part puts behind its ports and behind the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from becket.app.compose import App
from becket.kernel.contract.effect import EffectAdapter
from becket.parts.services.effect import ReleaseEffect
from becket.parts.services.line import WatchdogLine
from becket.parts.services.ports import ReleaseDesk, Smokes
from becket.parts.services.process import ContainedSmokes


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    def smokes() -> ContainedSmokes:
        return ContainedSmokes(app.processes, app.state.root, hidden=app.places.hidden(), redact=app.redactor.text)

    return {ReleaseDesk: lambda: WatchdogLine(app.state.watchdog_socket), Smokes: smokes}


def effects(app: App) -> tuple[EffectAdapter, ...]:
    return (ReleaseEffect(app.state.watchdog_socket),)
