"""What the watchdog knows of services, read from its file by the standard library alone: `becket status` is quick."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from becket.app.state import StateFolder, holder

MOST_RELEASES = 30
MOST_INCIDENTS = 200
"""Of all services together."""
WERE_IN_SERVICE = ("kept", "stopped")


@dataclass(frozen=True, slots=True)
class ServiceNow:
    """One service. `state` is the watchdog's last word; without `supervised` nobody has looked since."""

    name: str
    state: str
    wanted: bool
    supervised: bool
    alive: bool  # the process that was started last
    sha: str = ""  # of the release in service: the last one that was kept
    release_id: str = ""
    unproven: bool = False
    pid: int | None = None
    port: int | None = None
    detail: str = ""
    next_at: float | None = None
    since: float = 0.0
    starts: int = 0
    strikes: int = 0
    releasing: str = ""  # the commit that is being put into service
    building: str = ""  # what was asked for and has no outcome yet


def read_services(state: StateFolder) -> tuple[ServiceNow, ...]:
    """Every service on record; none where there is no record, or it cannot be read."""
    if not state.services_database.exists():
        return ()
    address = f"file:{quote(str(state.services_database))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=2.0)) as conn:
            return _read(conn, holder(state.watchdog_lock) is not None)
    except (sqlite3.Error, ValueError, KeyError):
        return ()


@dataclass(frozen=True, slots=True)
class ReleaseThen:
    """One release of a service, as the book has it. `again`: it was in service, and may be put there again."""

    release_id: str
    sha: str
    state: str
    reason: str
    proof: str
    created_at: float
    changed_at: float
    again: bool


@dataclass(frozen=True, slots=True)
class IncidentThen:
    at: float
    text: str
    over: bool


def read_history(state: StateFolder, name: str) -> tuple[tuple[ReleaseThen, ...], tuple[IncidentThen, ...]]:
    """The last releases of a service, and what its watchdog had to tell of it; the newest first."""
    if not state.services_database.exists():
        return (), ()
    address = f"file:{quote(str(state.services_database))}?mode=ro"
    releases = "SELECT body FROM releases WHERE service = ? ORDER BY number DESC LIMIT ?"
    incidents = "SELECT body FROM incidents ORDER BY number DESC LIMIT ?"
    try:
        with closing(sqlite3.connect(address, uri=True, timeout=2.0)) as conn:
            made = [json.loads(row[0]) for row in conn.execute(releases, (name, MOST_RELEASES))]
            told = [json.loads(row[0]) for row in conn.execute(incidents, (MOST_INCIDENTS,))]
            current = conn.execute("SELECT body FROM services WHERE name = ?", (name,)).fetchone()
            running = json.loads(current[0])["current"] if current else None
            return (
                tuple(_released(one, running) for one in made),
                tuple(IncidentThen(one["at"], one["text"], one["over"]) for one in told if one["service"] == name),
            )
    except (sqlite3.Error, ValueError, KeyError):
        return (), ()


def _released(one: Mapping[str, Any], running: str | None) -> ReleaseThen:
    again = one["state"] in WERE_IN_SERVICE and one["release_id"] != running and not one["never_auto"]
    return ReleaseThen(
        one["release_id"], one["sha"], one["state"], one["reason"], one["proof"], one["created_at"],
        one["changed_at"], again,
    )  # fmt: skip


def _read(conn: sqlite3.Connection, supervised: bool) -> tuple[ServiceNow, ...]:
    services = [json.loads(row[0]) for row in conn.execute("SELECT body FROM services ORDER BY name")]
    asked = [json.loads(row[0]) for row in conn.execute("SELECT body FROM requests WHERE settled = 0 ORDER BY number")]
    return tuple(_one(conn, service, supervised, asked) for service in services)


def _one(
    conn: sqlite3.Connection, service: Mapping[str, Any], supervised: bool, asked: list[dict[str, Any]]
) -> ServiceNow:
    current, trial = _release(conn, service["current"]), _release(conn, service["trial"])
    process = (trial or current).get("process")
    waiting = [one for one in asked if one["service"] == service["name"]]
    return ServiceNow(
        name=service["name"],
        state=service["state"],
        wanted=service["wanted"],
        supervised=supervised,
        alive=_alive(process),
        sha=current.get("sha", ""),
        release_id=current.get("release_id", ""),
        unproven=current.get("unproven", False),
        pid=process["pid"] if process and _alive(process) else None,
        port=(trial or current).get("config", {}).get("port"),
        detail=service["detail"],
        next_at=service["next_at"],
        since=service["changed_at"],
        starts=len(service["life"]["starts"]),
        strikes=service["life"]["strikes"],
        releasing=trial.get("sha", ""),
        building=f"{waiting[0]['op']} {waiting[0]['sha']}".strip() if waiting else "",
    )


def _release(conn: sqlite3.Connection, release_id: str | None) -> dict[str, Any]:
    row = conn.execute("SELECT body FROM releases WHERE release_id = ?", (release_id,)).fetchone()
    return dict(json.loads(row[0])) if row else {}


def _alive(process: Mapping[str, Any] | None) -> bool:
    """Pid and start time (L26); the boot is left out: a start time of another boot hardly ever fits as well."""
    if process is None:
        return False
    try:
        text = Path(f"/proc/{process['pid']}/stat").read_bytes()
    except OSError:
        return False
    fields = text[text.rindex(b")") + 2 :].split()
    return fields[0] not in (b"Z", b"X") and int(fields[19]) == process["started"]
