"""The second process: tells a person when the first one, a schedule or a loop is silent (L43), and keeps the first.

It has a small store of its own, so that alarms work when the journal does not; its messages pass the same door.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from becket.app import watchdog_words as words
from becket.app.alerts import TOLD_FOR, approval_alert, handoff_alert
from becket.app.compose import App, open_store
from becket.app.heartbeat import LockHeartbeat
from becket.app.keeper import RESTART_WINDOW, RESTARTS, Keeper, read_restarts
from becket.app.launch import log_to
from becket.app.liveness import (
    DEAF_AFTER,
    LOOK_EVERY,
    TELL_AFTER,
    ProcessObservation,
    Silence,
    daemon_of,
    deaf_driver,
    drivers,
    other_writer,
    traced,
)
from becket.app.locks import Writer, start_is_over
from becket.app.parts import ask, installed
from becket.app.state import Lock, StateFolder, holder
from becket.app.watchdog_store import ALARMS, open_own
from becket.app.writing import WriteBlocker, write_blocker
from becket.kernel.contract.config import AlarmTarget
from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.errors import BecketError, EffectFailed, EffectRefused, StoreDamaged
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.part import Part
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import Alert, AlertState, Store
from becket.kernel.contract.watch import Channel, WatchdogTask
from becket.kernel.engine.deadman import Alarm, DeadManSwitch, SignsOfLife, signs_of_life
from becket.kernel.engine.door import Door, Patience
from becket.kernel.notices.file import FileNotice
from becket.kernel.store import open_memory
from becket.kernel.store.damage import damaged

log = logging.getLogger("becket.watchdog")

THREAD_PATIENCE = 60.0
"""To end a deaf daemon takes its keeper a while."""
ALARM_FILE = "alarms.jsonl"
LONGEST_PAUSE = 300.0


def run_watchdog(state: StateFolder) -> int:
    """Watch until SIGTERM, or until nobody wants the daemon or a service any more."""
    with Lock(state.make().watchdog_lock) as lock:
        if not lock.acquire():
            return 0  # another one watches
        start_is_over()
        log_to(state, "watchdog")
        log.info("watchdog %d begins", os.getpid())
        asyncio.run(_watch(state, lock))
        log.info("watchdog %d ends", os.getpid())
    return 0


async def _watch(state: StateFolder, lock: Lock) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    own = await open_own(state.watchdog_database)
    keeper = Keeper(state, daemon_of(state), state.wanted.exists, gives_up=True)
    watchdog = Watchdog(state, own, keeper)
    switch = DeadManSwitch(watchdog.read, own, watchdog.tell, certain=watchdog.certain, worked=time.monotonic)
    keeper.start()
    for each in watchdog.watched:
        each.start()
    pulse = LockHeartbeat(lock, watchdog.well)
    pulse.begin()
    try:
        while not stop.is_set() and watchdog.is_wanted():
            await _tick(watchdog, switch)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), LOOK_EVERY)
    finally:
        pulse.end()
        keeper.stop()
        for each in watchdog.watched:
            await asyncio.to_thread(each.stop)
        await own.close()
        await watchdog.close()


async def _tick(watchdog: Watchdog, switch: DeadManSwitch) -> None:
    try:
        for each in watchdog.watched:
            try:
                each.look()
            except BecketError:
                raise
            except Exception:  # a part's fault takes no alarm away
                log.exception("%s", type(each).__name__)
        watchdog.look_at_journal()
        for each in watchdog.watched:
            await each.report(watchdog.own)
        await switch.tick()
        await watchdog.tell_alerts()
        await watchdog.tell_people()
    except BecketError as error:
        watchdog.log_once(str(error))
        await watchdog.tell_without_record()
    except Exception:
        log.exception("tick")
    else:
        watchdog.log_once("")


class Watchdog:
    """Reads the journal and tells people. What it needs no journal for, it is certain of."""

    def __init__(
        self,
        state: StateFolder,
        own: Store,
        keeper: Keeper | None = None,
        watched: Sequence[WatchdogTask] | None = None,
        tell_after: float = TELL_AFTER,
    ) -> None:
        self.state = state
        self.own = own
        self.keeper = keeper or Keeper(state, daemon_of(state), state.wanted.exists, gives_up=True)
        self.watched = watched_in(state) if watched is None else tuple(watched)
        self._app: App | None = None
        self._journal: Store | None = None
        self._damaged = False  # when last looked at
        self._engine = Silence(2 * LOOK_EVERY)
        self._writer = Writer(state.database)
        self._hindered: tuple[WriteBlocker, float] | None = (
            None  # what keeps the journal from being written, since when
        )
        self._tried: dict[str, tuple[int, float]] = {}
        self._tell_after = tell_after
        self._logged = self._unrecorded = ""

    @property
    def app(self) -> App:
        """Over our own store, so that alarms go out whatever is the matter with the journal."""
        if self._app is None:
            self._app = App(self.state, self.own, sys.stderr)
        return self._app

    @property
    def journal(self) -> Store:
        """Opened when first needed: a broken configuration must not keep the watchdog from watching."""
        if self._journal is None:
            self._journal = open_store(self.state, self.app.config)
        return self._journal

    async def read(self) -> SignsOfLife:
        try:
            if self._damaged and (wrong := await self.journal.faults()):
                raise damaged(self.state.database, wrong[0])  # though what is read first may look well
            view = await signs_of_life(self.journal, self.app.loops)
        except StoreDamaged:
            self._damaged = True
            await self.close()  # there may be a restored one the next time
            raise
        self._damaged = False
        daemon = holder(self.state.daemon_lock)
        return view.model_copy(
            update={
                "unwritable": self._hindered is not None,
                "daemon_gone": daemon is None,
                "daemon_expected": self.state.wanted.exists(),
                "daemon_why": self._why(daemon),
            }
        )

    def _why(self, daemon: int | None) -> str:
        """What is known of a daemon that does not work."""
        if daemon is not None:
            return other_writer(self.state, daemon)
        ended = self.keeper.trouble.ended
        return f"The watchdog found it unresponsive ({ended}) and starts it again." if ended else ""

    def well(self) -> bool:
        """No thread of this process hangs; one that does is mended by the daemon, which replaces the process."""
        return not any(each.hangs() for each in self.watched) and self.keeper.alive(DEAF_AFTER + THREAD_PATIENCE)

    def is_wanted(self) -> bool:
        return self.state.wanted.exists() or any(each.wanted() for each in self.watched)

    def certain(self) -> tuple[Alarm, ...]:
        """What is wrong whatever the journal says."""
        found = (self._gave_up(), self._stuck(), self._engine_deaf(), self._hangs(), self._unwritable())
        return tuple(alarm for alarm in found if alarm is not None)

    def _gave_up(self) -> Alarm | None:
        restarts = read_restarts(self.state.daemon_restarts)
        if not restarts.given_up or not self.state.wanted.exists() or holder(self.state.daemon_lock) is not None:
            return None
        return words.gave_up(RESTARTS, RESTART_WINDOW, restarts.why, self.state.logs)

    def _stuck(self) -> Alarm | None:
        pid = self.keeper.trouble.stuck
        return None if pid is None else words.stuck(pid)

    def _engine_deaf(self) -> Alarm | None:
        """A command that drives its own run is a person's, and never ended by us."""
        driver = max(drivers(self.state), key=lambda one: one.silent, default=None)
        if driver is None:
            return None
        silent = self._engine.of(
            ProcessObservation(driver.pid, driver.sign, excused=traced(driver.pid)), time.monotonic()
        )
        return words.engine_deaf(deaf_driver(driver)) if silent > DEAF_AFTER else None

    def look_at_journal(self) -> None:
        """Can it be written? Called before each look at what is in it."""
        found, now = write_blocker(self.state, self._writer), time.monotonic()
        if found is None or self._hindered is None or found != self._hindered[0]:
            self._hindered = None if found is None else (found, now)
            self._unrecorded = ""

    def _unwritable(self) -> Alarm | None:
        if self._hindered is None or time.monotonic() - self._hindered[1] < self._tell_after:
            return None
        return words.unwritable(self._hindered[0].text)

    def log_once(self, trouble: str) -> None:
        """What lasts is no news at every look."""
        if trouble and trouble != self._logged:
            log.error("%s", trouble)
        self._logged = trouble

    async def tell_without_record(self) -> None:
        """On a full disk our own store cannot be written either: what stands in the way is told once all the same,
        wherever it still can be.
        """
        alarm = self._unwritable()
        if alarm is None or alarm.text == self._unrecorded:
            return
        self._unrecorded, memory = alarm.text, open_memory()
        alert = await memory.raise_alert(alarm.key, alarm.text, alarm.data)
        for call in (*self._calls(alert), *self._calls_of_channels(alert)):
            await self._send(alert, call, memory)

    def _hangs(self) -> Alarm | None:
        told = next((said for each in self.watched if (said := each.hangs())), None)
        return None if told is None else words.hangs(*told)

    async def tell(self, alert: Alert) -> bool:
        """Deliver an alarm everywhere it should go; delivered means that every target has it."""
        log.warning("%s", alert.text)
        late = alert.first_at < await self.own.now() - TOLD_FOR
        calls = self._calls(alert) + ([] if late else self._calls_of_channels(alert))
        return all([await self._send(alert, call) for call in calls])

    async def tell_alerts(self) -> None:
        """Incidents of services, and the journal's own alerts (a loop that could not be started), go the same way."""
        for alert in await self.own.alerts((AlertState.open,)):
            if alert.key == ALARMS or any(each.tells(alert) for each in self.watched):
                await self._tell_from(self.own, alert)
        for alert in await self.journal.alerts((AlertState.open,)):
            await self._tell_from(self.journal, alert)

    async def tell_people(self) -> None:
        """Handoffs and questions of the last day, each once, by the channels of parts alone."""
        if not self._channels():
            return
        handoffs = await self.journal.handoffs((HandoffState.open,))
        asked = await self.journal.approvals(open_only=True)
        for alert in (*map(handoff_alert, handoffs), *map(approval_alert, asked)):
            await self._tell_person(alert)

    async def _tell_person(self, alert: Alert) -> None:
        now = await self.own.now()
        tries, at = self._tried.get(alert.key, (0, 0.0))
        if alert.first_at < now - TOLD_FOR or now < at:
            return
        told = all([await self._send(alert, call) for call in self._calls_of_channels(alert)])
        self._tried[alert.key] = (0, math.inf) if told else (tries + 1, now + min(5.0 * 2**tries, LONGEST_PAUSE))

    async def _tell_from(self, store: Store, alert: Alert) -> None:
        now = await self.own.now()
        tries, at = self._tried.get(alert.key, (0, 0.0))
        if now >= at:
            delivered = await self.tell(alert)
            await store.alert_told(alert.key, delivered)
            self._tried[alert.key] = (0, 0.0) if delivered else (tries + 1, now + min(5.0 * 2**tries, LONGEST_PAUSE))

    def _calls(self, alert: Alert) -> list[EffectCall]:
        payload = {"alarm": alert.key, "text": alert.text, "data": alert.data}
        calls = [EffectCall(name="notify.file", target=str(alarm_file(self.state)), payload=payload)]
        for target in self._targets():
            name, where = ("http.post", target.url) if target.url else ("notify.file", str(self._file(target)))
            calls.append(EffectCall(name=name, target=where or "", payload=payload))
        return calls

    def _calls_of_channels(self, alert: Alert) -> list[EffectCall]:
        return [call for channel in self._channels() if (call := _call_of(channel, alert)) is not None]

    def _channels(self) -> list[Channel]:
        return [channel for part in installed() if part.channel and (channel := self._channel(part)) is not None]

    def _channel(self, part: Part) -> Channel | None:
        """One that fails takes no other with it."""
        try:
            found: Channel | None = ask(part, part.channel, self.app)
        except BecketError as error:
            log.warning("this way to reach a person is not known: %s", error)
            return None
        return found

    def _targets(self) -> tuple[AlarmTarget, ...]:
        try:
            return self.app.config.alarms
        except BecketError as error:
            log.warning("alarm targets are not known: %s", error)
            return ()

    def _file(self, target: AlarmTarget) -> Path:
        return self.state.root / (target.file or "")

    async def _send(self, alert: Alert, call: EffectCall, own: Store | None = None) -> bool:
        """Keyed by the alarm, the incident and the round: a repeated tick is no second message, a failed one is."""
        own, source = own or self.own, f"alarm:{alert.key}"
        rounds = [one for one in await own.effects(source) if one.call.target == call.target]
        failed = sum(one.state in (EffectState.failed, EffectState.refused, EffectState.unknown) for one in rounds)
        origin = Origin(run_id=source, iteration=failed, phase=f"{alert.first_at:.3f}", action_id="tell")
        try:
            report = await self._door(own).perform(call, origin, None, Autonomy.release, dry_run=False)
        except (EffectFailed, EffectRefused) as error:
            log.error("alarm %s to %s: %s", alert.key, call.target, error)
            return False
        return report.happened

    def _door(self, own: Store) -> Door:
        """The only door that may write the configured alarm files."""
        folders = [self.state.outbox, *(self._file(one).parent for one in self._targets() if one.file)]
        adapters = {**self.app.effects, "notify.file": FileNotice(folders)}
        adapters |= {channel.adapter.name: channel.adapter for channel in self._channels()}
        return Door(own, adapters, self.app.redactor, {}, patience=Patience(delays=()))

    async def close(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            await journal.close()


def alarm_file(state: StateFolder) -> Path:
    """Where every alarm is written, whatever else is configured."""
    return state.outbox / ALARM_FILE


def watched_in(state: StateFolder) -> tuple[WatchdogTask, ...]:
    """One that fails is told in the log: no alarm and no other part's work is lost by it."""
    found: list[WatchdogTask] = []
    for part in installed():
        if part.watched:
            try:
                found.append(ask(part, part.watched, state))
            except BecketError as error:
                log.error("%s", error)
    return tuple(found)


def _call_of(channel: Channel, alert: Alert) -> EffectCall | None:
    try:
        return channel.call(alert)
    except Exception as error:
        log.warning("%s cannot tell of %s: %s", type(channel).__name__, alert.key, error)
        return None
