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

from becket.adapters.notify import FileNotice
from becket.adapters.store import open_sqlite
from becket.app.compose import App
from becket.app.daemon import log_to, spawn
from becket.app.services import ServiceThread, about_service, raise_incidents
from becket.app.state import Lock, State, holder
from becket.contract.config import AlarmTarget
from becket.contract.effect import EffectCall, EffectState, Origin
from becket.contract.errors import BecketError, EffectFailed, EffectRefused
from becket.contract.spec import Autonomy
from becket.contract.store import Alert, AlertState, Store
from becket.engine.deadman import DeadMan, SignsOfLife, signs_of_life
from becket.engine.door import Door, Patience

log = logging.getLogger("becket.watchdog")

LOOK_EVERY = float(os.environ.get("BECKET_WATCHDOG_EVERY", "2"))
RESTARTS = 5
"""So many restarts of the daemon within `RESTART_WINDOW`; then a person must look (L28)."""
RESTART_WINDOW = 600.0
ALARM_FILE = "alarms.jsonl"
LONGEST_PAUSE = 300.0


def run_watchdog(state: State) -> int:
    """Watch until SIGTERM, or until nobody wants the daemon or a service any more."""
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
    services = ServiceThread(state)
    services.start()
    switch = DeadMan(watchdog.read, own, watchdog.tell)
    try:
        while not stop.is_set() and (state.wanted.exists() or state.services_wanted.exists()):
            try:
                await raise_incidents(state, own)
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
        await asyncio.to_thread(services.stop)
        await own.close()
        await watchdog.close()


@dataclass
class Restarts:
    """How often the daemon was started again, so that a daemon that always dies is left to a person."""

    at: list[float] = field(default_factory=list)

    def allowed(self, now: float) -> bool:
        self.at = [one for one in self.at if 0 <= now - one < RESTART_WINDOW]
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
        self._tried: dict[str, tuple[int, float]] = {}

    @property
    def app(self) -> App:
        """Opened when first needed: a broken configuration must not keep the watchdog from watching."""
        if self._app is None:
            self._app = App.open(self._state, sys.stderr)
        return self._app

    async def read(self) -> SignsOfLife:
        view = await signs_of_life(self.app.store, self.app.loops)
        gone = holder(self._state.daemon_lock) is None
        return view.model_copy(update={"daemon_gone": gone, "daemon_expected": self._state.wanted.exists()})

    async def tell(self, alert: Alert) -> bool:
        """Deliver an alarm everywhere it should go; delivered means that every target has it."""
        log.warning("%s", alert.text)
        return all([await self._send(alert, call) for call in self._calls(alert)])

    async def tell_alerts(self) -> None:
        """Incidents of services, and the journal's own alerts (a loop that could not be started), go the same way."""
        for alert in await self._own.alerts((AlertState.open,)):
            if about_service(alert):
                await self._tell_from(self._own, alert)
        for alert in await self.app.store.alerts((AlertState.open,)):
            await self._tell_from(self.app.store, alert)

    async def _tell_from(self, store: Store, alert: Alert) -> None:
        now = await self._own.now()
        tries, at = self._tried.get(alert.key, (0, 0.0))
        if now >= at:
            delivered = await self.tell(alert)
            await store.alert_told(alert.key, delivered)
            self._tried[alert.key] = (0, 0.0) if delivered else (tries + 1, now + min(5.0 * 2**tries, LONGEST_PAUSE))

    def _calls(self, alert: Alert) -> list[EffectCall]:
        payload = {"alarm": alert.key, "text": alert.text, "data": alert.data}
        calls = [EffectCall(name="notify.file", target=str(alarm_file(self._state)), payload=payload)]
        for target in self._targets():
            name, where = ("http.post", target.url) if target.url else ("notify.file", str(self._file(target)))
            calls.append(EffectCall(name=name, target=where or "", payload=payload))
        return calls

    def _targets(self) -> tuple[AlarmTarget, ...]:
        try:
            return self.app.config.alarms
        except BecketError as error:
            log.warning("alarm targets are not known: %s", error)
            return ()

    def _file(self, target: AlarmTarget) -> Path:
        return self._state.root / (target.file or "")

    async def _send(self, alert: Alert, call: EffectCall) -> bool:
        """Keyed by the alarm, the incident and the round: a repeated tick is no second message, a failed one is."""
        source = f"alarm:{alert.key}"
        rounds = [one for one in await self._own.effects(source) if one.call.target == call.target]
        failed = sum(one.state in (EffectState.failed, EffectState.refused, EffectState.unknown) for one in rounds)
        origin = Origin(run_id=source, iteration=failed, phase=f"{alert.first_at:.3f}", action_id="tell")
        try:
            report = await self._door().perform(call, origin, None, Autonomy.release, dry_run=False)
        except (EffectFailed, EffectRefused) as error:
            log.error("alarm %s to %s: %s", alert.key, call.target, error)
            return False
        return report.happened

    def _door(self) -> Door:
        """Over our own store, and the only door that may write the configured alarm files."""
        folders = [self._state.outbox, *(self._file(one).parent for one in self._targets() if one.file)]
        adapters = {**self.app.effects, "notify.file": FileNotice(folders)}
        return Door(self._own, adapters, self.app.redactor, {}, patience=Patience(delays=()))

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
