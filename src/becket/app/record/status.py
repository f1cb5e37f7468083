"""What `becket status` shows, read from the journal's file directly: the standard library answers in milliseconds."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from becket.app.config_now import CONFIG_ALERT, config_trouble, is_mended
from becket.app.liveness import LEASE, deaf_for, driver_trouble, drivers, is_cared_for
from becket.app.record.main_now import TRIES, MainNow, read_main
from becket.app.record.quota import QUOTA, QuotaNow, read_quota
from becket.app.record.services_now import ServiceNow, read_services
from becket.app.state import StateFolder, holder
from becket.app.writing import undecided, unwritable
from becket.kernel.contract.trust import trust_of
from becket.kernel.store.damage import damaged, is_damage, look_before_opening
from becket.kernel.store.mark import objection, read_mark
from becket.kernel.store.quick import QuickJournal, Row, quick_journal

MOST = 20
"""Of each kind this many are listed; the counts are always whole."""

HANDED, SETTLED = "ready_for_handoff", "settled"

UNRECORDED_AFTER = 25.0
"""Seconds: a beat is due every 10."""


@dataclass(frozen=True, slots=True)
class AutonomyNow:
    """`allowed` is lower than `configured` where the machine cannot hold what the level demands."""

    configured: str  # empty where the file that says it does not load
    allowed: str
    because: str = ""

    @property
    def why(self) -> str:
        said = f"becket.yaml says {self.configured}; " if self.configured else ""
        return f" ({said}{self.because})" if self.because else ""


NOT_LOADED = AutonomyNow("", "observe", "becket.yaml does not load")
"""What a person wanted to change is not known."""


@dataclass(frozen=True, slots=True)
class RunNow:
    run_id: str
    loop_id: str
    subject: str
    status: str
    held: bool
    iteration: int
    phase: str  # of the last finished step; empty before the first
    step: str
    since: float
    waits_for: tuple[str, ...] = ()
    wakes_on: tuple[str, ...] = ()
    looks_at: float | None = None  # when it looks again by itself
    until: float | None = None  # when it gives up
    quota: QuotaNow | None = None
    nobody_since: float | None = None  # it is queued or counts as at work, and nobody has cared for it since then


@dataclass(frozen=True, slots=True)
class HandoffNow:
    handoff_id: str
    run_id: str
    loop_id: str
    subject: str
    owner: str
    reason: str
    next_step: str
    state: str
    taken_by: str | None
    since: float
    cause: str = ""  # the first action that failed, with what it said


@dataclass(frozen=True, slots=True)
class ApprovalNow:
    approval_id: str
    run_id: str
    question: str
    bound_to: str
    role: str
    asked_at: float
    expires_at: float


@dataclass(frozen=True, slots=True)
class PauseNow:
    scope: str
    by: str
    via: str | None
    note: str
    at: float


@dataclass(frozen=True, slots=True)
class FireNow:
    loop_id: str
    at: float


@dataclass(frozen=True, slots=True)
class AlertNow:
    key: str
    text: str
    count: int
    since: float
    source: str  # engine | watchdog


@dataclass(frozen=True, slots=True)
class SpentNow:
    """What agents used since midnight. `unpriced` calls are not in `usd`; `open` ones are in nothing but `calls`."""

    calls: int
    open: int
    seconds: float
    tokens: int
    usd: float
    unpriced: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one moment."""

    root: str
    configured: bool  # is there a becket.yaml?
    autonomy: AutonomyNow | None
    daemon: int | None
    engine: int | None  # who moves whatever is queued
    watchdog: int | None
    wanted: bool  # the daemon is supposed to be up
    now: float
    drivers: tuple[int, ...] = ()  # commands that each drive a run of their own
    main: MainNow | None = None  # the branch that heal keeps green, as far as the journal tells
    starting: int | None = None  # a daemon that is on its way up
    daemon_deaf: float = 0.0  # seconds without a sign of life, where they are too many
    watchdog_deaf: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)
    running: tuple[RunNow, ...] = ()
    queued: tuple[RunNow, ...] = ()
    waiting: tuple[RunNow, ...] = ()
    handoffs: tuple[HandoffNow, ...] = ()
    approvals: tuple[ApprovalNow, ...] = ()
    paused: tuple[PauseNow, ...] = ()
    fires: tuple[FireNow, ...] = ()
    alerts: tuple[AlertNow, ...] = ()
    services: tuple[ServiceNow, ...] = ()
    spent: SpentNow | None = None  # by agents, today
    trust: str = ""  # said where every class of change is trusted
    trouble: str = ""  # what kept the rest from being read
    unwritable: str = ""  # why the journal cannot be written now


def take(state: StateFolder, now: float | None = None, *, counting: bool = True) -> Snapshot:
    """The repository's snapshot; how many runs there are is counted only if wanted: that looks at all of them.

    Raises UsageError or StoreUnavailable only where nothing can be said at all.
    """
    settings, trouble = _settings(state)
    trouble = trouble or config_trouble(state)
    if isinstance(settings.get("database"), str):
        from becket.app.record.overview import take_from_store

        return take_from_store(state)
    base = outline(state, settings, time.time() if now is None else now, trouble)
    look_before_opening(state.database, state.journal_mark)
    if not state.database.exists():
        return with_alarms(base, state)
    kept = read_mark(state.journal_mark)
    try:
        with quick_journal(state.database) as journal:
            if journal.has_tables(state.database) and (wrong := objection(kept, journal.mark())):
                raise damaged(state.database, wrong)
            main = read_main(journal, state, settings)
            return with_alarms(replace(_read(journal, base, state, counting), main=main), state)
    except ValueError as error:
        raise damaged(state.database, f"a row cannot be read ({error})") from error
    except sqlite3.Error as error:
        if is_damage(error):
            raise damaged(state.database, str(error)) from error
        raise undecided(state, error) from error


def outline(state: StateFolder, settings: Mapping[str, Any], now: float, trouble: str = "") -> Snapshot:
    """What can be said without the journal."""
    daemon = holder(state.daemon_lock)
    return Snapshot(
        root=str(state.root),
        configured=state.config.exists(),
        autonomy=NOT_LOADED if trouble else autonomy_of(state, daemon) or _autonomy(settings),
        daemon=daemon,
        engine=holder(state.engine_lock),
        drivers=tuple(one.pid for one in drivers(state)),
        watchdog=holder(state.watchdog_lock),
        wanted=state.wanted.exists(),
        now=now,
        starting=holder(state.daemon_start),
        daemon_deaf=deaf_for(state.daemon_lock),
        watchdog_deaf=deaf_for(state.watchdog_lock),
        services=read_services(state),
        trust=trust_of(settings),
        trouble=trouble or driver_trouble(state),
        unwritable=unwritable(state),
    )


def names_database(state: StateFolder) -> bool:
    """Is the journal somewhere else, or may it be? What cannot be read may name one."""
    settings, trouble = _settings(state)
    return bool(trouble) or isinstance(settings.get("database"), str)


def _settings(state: StateFolder) -> tuple[Mapping[str, Any], str]:
    """becket.yaml without its checks: doctor is for those."""
    try:
        text = state.config.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}, ""
    except (OSError, UnicodeDecodeError) as error:
        return {}, f"becket.yaml cannot be read: {error}"
    import yaml

    try:
        loaded = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe
    except yaml.YAMLError:
        return {}, "becket.yaml is not YAML; `becket doctor` shows where"
    return (loaded, "") if isinstance(loaded, dict) else ({}, "becket.yaml holds no settings; see `becket doctor`")


def autonomy_of(state: StateFolder, daemon: int | None) -> AutonomyNow | None:
    """As the living daemon found it out for itself; None if it has not."""
    try:
        told = json.loads(state.autonomy.read_text(encoding="utf-8"))
        pid, now = int(told.pop("pid")), AutonomyNow(**told)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return now if daemon is not None and pid == daemon else None


_LEVELS = ("observe", "propose", "merge", "release")
_LACKS = {"landlock": {"processes", "network"}, "none": {"files", "processes", "network"}}


def _autonomy(settings: Mapping[str, Any]) -> AutonomyNow:
    """The cap that can be known without trying the sandbox; `becket doctor` tries it."""
    configured = str(settings.get("autonomy", "propose"))
    if configured not in _LEVELS[2:]:
        return AutonomyNow(configured, configured)
    sandbox = settings.get("sandbox", "auto")
    use = sandbox.get("use", "auto") if isinstance(sandbox, dict) else str(sandbox)
    without = set(sandbox.get("without") or ()) if isinstance(sandbox, dict) else set()
    lacks = {part for each in (use, *_of_agents(settings)) for part in _lacks(use if each == "auto" else each)}
    missing = sorted(lacks - without)
    if not missing:
        return AutonomyNow(configured, configured)
    return AutonomyNow(configured, "propose", f"no sandbox here holds {' and '.join(missing)}")


def _of_agents(settings: Mapping[str, Any]) -> list[str]:
    agents = settings.get("agents")
    found = agents.values() if isinstance(agents, dict) else ()
    return [str(agent.get("sandbox", "auto")) for agent in found if isinstance(agent, dict)]


def _lacks(use: str) -> set[str]:
    if use in ("auto", "bwrap"):
        use = "bwrap" if shutil.which("bwrap") else "landlock"
    return _LACKS.get(use, set())


def _read(journal: QuickJournal, base: Snapshot, state: StateFolder, counting: bool = True) -> Snapshot:
    return replace(
        base,
        counts=counted(journal.counts(but_of=TRIES), journal.handed()) if counting else {},
        running=_runs(journal, "running", base.now, state),
        queued=_runs(journal, "queued", base.now, state),
        waiting=_runs(journal, "waiting", base.now, state),
        handoffs=_handoffs(journal),
        approvals=_approvals(journal, base.now),
        paused=tuple(
            PauseNow(row["scope"], row["set_by"], dict(row).get("via"), row["note"], row["at"])
            for row in journal.brakes()  # an older journal says not by which way in
        ),
        fires=tuple(FireNow(row["name"].split(":")[1], row["due_at"]) for row in journal.fires(MOST)),
        alerts=_still_true(_alerts(journal, "engine"), base, state),
        spent=_spent(journal, midnight(base.now)),
        unwritable=base.unwritable or _unrecorded(journal, base),
    )


def _still_true(alerts: tuple[AlertNow, ...], base: Snapshot, state: StateFolder) -> tuple[AlertNow, ...]:
    """Without the one about a becket.yaml that loads again, while no daemon is up to take it back."""
    mended = is_mended(state, base.trouble)
    return tuple(alert for alert in alerts if alert.key != CONFIG_ALERT or not mended)


def counted(by_status: Mapping[str, int], unsettled: int) -> dict[str, int]:
    """Runs by status; of those handed off, the ones that nobody has to do anything about any more count as settled."""
    handed = by_status.get(HANDED, 0)
    found = {**by_status, HANDED: min(unsettled, handed), SETTLED: handed - min(unsettled, handed)}
    return {name: count for name, count in sorted(found.items()) if count}


def _unrecorded(journal: QuickJournal, base: Snapshot) -> str:
    """Whatever the cause: an engine that lives and whose beats do not come into the journal cannot write it."""
    pid = next((one for one in (base.engine, *base.drivers) if one is not None), None)
    if pid is None or base.daemon_deaf or base.trouble:
        return ""
    last = journal.last_beat(pid)
    if last is None or base.now - last < UNRECORDED_AFTER:
        return ""
    return (
        f"The engine (pid {pid}) lives and could record nothing for {base.now - last:.0f} s: it cannot write "
        "the journal. `becket watch logs` says why; nothing is lost."
    )


def with_alarms(base: Snapshot, state: StateFolder) -> Snapshot:
    """The watchdog keeps its own small store, so that its alarms survive a broken journal."""
    if not state.watchdog_database.exists():
        return base
    try:
        with quick_journal(state.watchdog_database) as journal:
            return replace(base, alerts=(*base.alerts, *_alerts(journal, "watchdog")))
    except (sqlite3.Error, ValueError) as error:
        return replace(base, trouble=f"the watchdog's store cannot be read: {error}")


def _runs(journal: QuickJournal, status: str, now: float, state: StateFolder) -> tuple[RunNow, ...]:
    rows = journal.of_status(status, MOST)
    return tuple(_run(journal, row, now, is_cared_for(state, row["run_id"], row["worker"])) for row in rows)


def nobody_since(row: Mapping[str, Any], now: float, cared_for: bool) -> float | None:
    """Since when nobody is at work on a run that is queued or counts as at work; None if somebody is."""
    if row["status"] == "running":
        until = row["lease_until"] or 0.0
        return until if until <= now else None if cared_for else min(until - LEASE, now)
    return row["updated_at"] if row["status"] == "queued" and not cared_for else None


def _run(journal: QuickJournal, row: Row, now: float, cared_for: bool) -> RunNow:
    status, waits_for = row["status"], tuple(json.loads(row["waiting_on"]))
    step = journal.last_step(row["run_id"], row["iteration"])
    wakes = journal.wakeups(row["run_id"])
    since = row["created_at"]
    if status == "running":
        since = journal.claimed_at(row["run_id"]) or row["updated_at"]
    elif status == "waiting":
        since = min(json.loads(row["waits_since"]).values(), default=row["updated_at"])
    return RunNow(
        run_id=row["run_id"], loop_id=row["loop_id"], subject=row["subject"], status=status, held=bool(row["held"]),
        iteration=row["iteration"], phase=step["phase"] if step else "", step=step["id"] if step else "", since=since,
        waits_for=waits_for, wakes_on=tuple(dict.fromkeys(wake["wake"] for wake in wakes)),
        looks_at=min((wake["due"] for wake in wakes if wake["due"] < wake["expires"]), default=None),
        until=min((wake["expires"] for wake in wakes), default=None),
        quota=read_quota(journal, row["run_id"]) if QUOTA in waits_for else None,
        nobody_since=nobody_since(dict(row), now, cared_for),
    )  # fmt: skip


def _handoffs(journal: QuickJournal) -> tuple[HandoffNow, ...]:
    return tuple(
        HandoffNow(
            row["handoff_id"], row["run_id"], row["loop_id"], row["subject"], row["owner"], row["reason"],
            row["next_step"], row["state"], row["taken_by"], row["created_at"], cause_of(json.loads(row["evidence"])),
        )
        for row in journal.handoffs(MOST)
    )  # fmt: skip


def cause_of(evidence: Any) -> str:
    """What a handoff's reason alone does not tell: that main is gone, or no file can be opened."""
    errors = evidence.get("errors") if isinstance(evidence, dict) else None
    return str(errors[0]) if isinstance(errors, list) and errors else ""


def _approvals(journal: QuickJournal, now: float) -> tuple[ApprovalNow, ...]:
    return tuple(
        ApprovalNow(
            row["approval_id"], row["run_id"], row["question"], row["bound_to"], row["role"], row["asked_at"],
            row["expires_at"],
        )
        for row in journal.questions(now, MOST)
    )  # fmt: skip


def midnight(now: float) -> float:
    """When the day began, by this machine's time zone."""
    there = time.localtime(now)
    return time.mktime((there.tm_year, there.tm_mon, there.tm_mday, 0, 0, 0, 0, 0, -1))


def _spent(journal: QuickJournal, since: float) -> SpentNow | None:
    results = journal.calls_since(since)
    if not results:
        return None
    used = [json.loads(result)["usage"] for result in results if result is not None]
    return SpentNow(
        calls=len(results),
        open=len(results) - len(used),
        seconds=sum(item["seconds"] for item in used),
        tokens=sum(item["input_tokens"] + item["output_tokens"] for item in used),
        usd=sum(item["usd"] for item in used),
        unpriced=sum(item["priced"] == "unknown" for item in used),
    )


def _alerts(journal: QuickJournal, source: str) -> tuple[AlertNow, ...]:
    rows = journal.alerts(MOST)
    return tuple(AlertNow(row["key"], row["text"], row["count"], row["first_at"], source) for row in rows)
