"""Every loop as it stands: whether it loads, how it fares, what it did last and when it gives the next sign of life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from becket.app.compose import App
from becket.app.record.run_pages import RunLine, lines_of
from becket.app.record.status import PauseNow, Snapshot
from becket.kernel.contract.errors import Finding
from becket.kernel.contract.loop import LoadedLoop


class LoopHealth(StrEnum):
    well = "well"
    paused = "paused"
    silent = "silent"  # its schedule fired nothing
    failing = "failing"  # its last runs all failed
    not_proven = "lint finds problems"
    broken = "does not load"

    @property
    def tone(self) -> str:
        return {"well": "good", "paused": "unsure"}.get(self.value, "bad")


@dataclass(frozen=True, slots=True)
class LoopNow:
    """`loop` is None where its file does not load."""

    loop_id: str
    source: str
    loop: LoadedLoop | None
    findings: tuple[Finding, ...]
    health: LoopHealth
    pause: PauseNow | None = None
    last: RunLine | None = None  # among the newest runs of all
    fires_at: float | None = None

    @property
    def wakes_on(self) -> tuple[str, ...]:
        """The kinds of its triggers."""
        return tuple(dict.fromkeys(trigger.kind for trigger in self.loop.spec.trigger)) if self.loop else ()


async def loops_now(app: App, now: Snapshot) -> tuple[LoopNow, ...]:
    findings = {file: tuple(items) for file, items in app.loops.findings().items()}
    loaded = sorted(app.loops.all(), key=lambda loop: loop.spec.loop_id)
    last = {line.run.loop_id: line for line in await lines_of(app, await app.store.newest_of_loops())}
    own = [_own(loop, findings, now, last) for loop in loaded]
    broken = [
        LoopNow(Path(file).stem, file, None, tuple(items), LoopHealth.broken)
        for file, items in app.loops.broken().items()
    ]
    return (*own, *broken)


def _own(
    loop: LoadedLoop, findings: Mapping[str, tuple[Finding, ...]], now: Snapshot, last: Mapping[str, RunLine]
) -> LoopNow:
    name = loop.spec.loop_id
    mine = findings.get(loop.source, ()) or findings.get(f"{name} (built in)", ())
    pause = next((item for item in now.paused if item.scope in ("all", f"loop:{name}")), None)
    fires = min((fire.at for fire in now.fires if fire.loop_id == name), default=None)
    return LoopNow(
        name, loop.source, loop, mine, _health(name, mine, now, pause is not None), pause, last.get(name), fires
    )


def _health(name: str, findings: tuple[Finding, ...], now: Snapshot, paused: bool) -> LoopHealth:
    """By the alarms of the watchdog, which counts failures and watches the schedules."""
    alarms = {alert.key for alert in now.alerts}
    if findings:
        return LoopHealth.not_proven
    if f"loop_failing:{name}" in alarms:
        return LoopHealth.failing
    if any(key.startswith(f"schedule_silent:{name}") for key in alarms):
        return LoopHealth.silent
    return LoopHealth.paused if paused else LoopHealth.well
