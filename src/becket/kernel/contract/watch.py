"""What parts bring to the watchdog: work that goes on while the daemon is gone, and ways to reach a person."""

from __future__ import annotations

from typing import Protocol

from becket.kernel.contract.effect import EffectAdapter, EffectCall
from becket.kernel.contract.store import Alert, Store


class WatchdogTask(Protocol):
    """Work of a part in the watchdog's process, in a thread of its own: nothing there may wait for the engine (L33)."""

    def wanted(self) -> bool:
        """Whether the watchdog is needed for it, also where nobody wants the daemon. Asked at every tick."""
        ...

    def start(self) -> None:
        """Called once."""
        ...

    def look(self) -> None:
        """Called at every tick: one that died is begun anew."""
        ...

    def stop(self) -> None:
        """Called once, off the event loop; may take seconds."""
        ...

    def hangs(self) -> tuple[str, str] | None:
        """If it does: what to tell a person, and what to say when it goes on. It cannot be mended from here."""
        ...

    async def report(self, own: Store) -> None:
        """Raise and close alerts of its own in the watchdog's store. Called at every tick."""
        ...

    def tells(self, alert: Alert) -> bool:
        """Is this alert of the watchdog's store one of its own?"""
        ...


class Channel(Protocol):
    """Another way by which alarms, handoffs and questions reach a person."""

    @property
    def adapter(self) -> EffectAdapter:
        """The effect that delivers."""
        ...

    def call(self, alert: Alert) -> EffectCall:
        """The call that tells of it."""
        ...
