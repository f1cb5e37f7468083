"""The second process: tells a person when the first one, a schedule or a loop is silent (L43), and restarts the first.

It has a small store of its own, so that alarms work when the journal does not; its messages pass the same door.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

from becket.adapters.store import open_sqlite
from becket.app.compose import App
from becket.app.daemon import log_to, spawn
from becket.app.state import Lock, State, holder
from becket.contract.effect import EffectCall, Origin
from becket.contract.errors import BecketError, EffectFailed, EffectRefused
from becket.contract.spec import Autonomy
from becket.contract.store import Alert, AlertState, Store
from becket.engine.deadman import DeadMan, SignsOfLife, signs_of_life
from becket.engine.door import Door

log = logging.getLogger("becket.watchdog")

LOOK_EVERY = float(os.environ.get("BECKET_WATCHDOG_EVERY", "2"))
RESTARTS = 5
"""So many restarts of the daemon within `RESTART_WINDOW`; then a person must look (L28)."""
RESTART_WINDOW = 600.0
ALARM_FILE = "alarms.jsonl"


def run_watchdog(state: State) -> int:
    """Watch until SIGTERM, or until nobody wants the daemon any more."""
    with Lock(state.make().watchdog_lock) as lock:
        if not lock.acquire():
            return 0  # another one watches
        log_to(state, "watchdog")
        log.info("watchdog %d begins", os.getpid())
        asyncio.run(_watch(state))
        log.info("watchdog %d ends", os.getpid())
    return 0


async def _watch(state: State) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    own = open_sqlite(state.watchdog_database)
    watchdog = Watchdog(state, own)
    switch = DeadMan(watchdog.read, own, watchdog.tell)
    try:
        while not stop.is_set() and state.wanted.exists():
            try:
                await switch.tick()
                await watchdog.tell_alerts()
            except Exception:
                log.exception("tick")
            await watchdog.restart_daemon()
            try:
                await asyncio.wait_for(stop.wait(), LOOK_EVERY)
            except TimeoutError:
                continue
    finally:
        await own.close()
        await watchdog.close()


@dataclass
class Restarts:
    """How often the daemon was started again, so that a daemon that always dies is left to a person."""

    at: list[float] = field(default_factory=list)

    def allowed(self, now: float) -> bool:
        self.at = [one for one in self.at if now - one < RESTART_WINDOW]
        return len(self.at) < RESTARTS and (not self.at or now - self.at[-1] >= 2.0 ** len(self.at))

    def note(self, now: float) -> None:
        self.at.append(now)


class Watchdog:
    """Reads the journal, tells people, restarts the daemon."""

    def __init__(self, state: State, own: Store) -> None:
        self._state = state
        self._own = own
        self._app: App | None = None
        self._restarts = Restarts()

    @property
    def app(self) -> App:
        """Opened when first needed: a broken configuration must not keep the watchdog from watching."""
        if self._app is None:
            self._app = App.open(self._state, sys.stderr)
        return self._app

    async def read(self) -> SignsOfLife:
        view = await signs_of_life(self.app.store, self.app.loops)
        return view.model_copy(update={"daemon_gone": holder(self._state.daemon_lock) is None})

    async def tell(self, alert: Alert) -> bool:
        """Deliver an alarm everywhere it should go; delivered means that every target has it."""
        log.warning("%s", alert.text)
        return all([await self._send(alert, call) for call in self._calls(alert)])

    async def tell_alerts(self) -> None:
        """The journal's own alerts (a loop that could not be started, a chain cut off) go the same way."""
        for alert in await self.app.store.alerts((AlertState.open,)):
            await self.app.store.alert_told(alert.key, await self.tell(alert))

    def _calls(self, alert: Alert) -> list[EffectCall]:
        payload = {"alarm": alert.key, "text": alert.text, "data": alert.data, "count": alert.count}
        calls = [EffectCall(name="notify.file", target=ALARM_FILE, payload=payload)]
        for target in self._targets():
            name = "http.post" if "://" in target else "notify.file"
            calls.append(EffectCall(name=name, target=target, payload=payload))
        return calls

    def _targets(self) -> list[str]:
        try:
            return [target.url or target.file or "" for target in self.app.config.alarms]
        except BecketError as error:
            log.warning("alarm targets are not known: %s", error)
            return []

    async def _send(self, alert: Alert, call: EffectCall) -> bool:
        """Keyed by the alarm and the incident: a repeated tick is not a second message."""
        door = Door(self._own, self.app.effects, self.app.redactor, {})
        origin = Origin(run_id=f"alarm:{alert.key}", iteration=int(alert.first_at), action_id="tell")
        try:
            report = await door.perform(call, origin, None, Autonomy.release, dry_run=False)
        except (EffectFailed, EffectRefused) as error:
            log.error("alarm %s to %s: %s", alert.key, call.target, error)
            return False
        return report.happened

    async def restart_daemon(self) -> None:
        if not self._state.wanted.exists() or holder(self._state.daemon_lock) is not None:
            return
        now = await self._own.now()
        if self._restarts.allowed(now):
            self._restarts.note(now)
            log.warning("the daemon is gone; started again as pid %d", spawn(self._state, "up"))

    async def close(self) -> None:
        if self._app is not None:
            await self._app.store.close()


def alarm_file(state: State) -> Path:
    """Where every alarm is written, whatever else is configured."""
    return state.outbox / ALARM_FILE
