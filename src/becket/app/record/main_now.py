"""Is main green, at which commit, proven when? The first thing that `becket status` says. Standard library only."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from becket.app.signs import is_cared_for
from becket.app.state import State
from becket.kernel.contract.ready import REASONS

GREEN, RED, QUEUED, JUDGED_NOW = "green", "red", "queued", "being judged"
OPEN_QUESTION, UNKNOWN = "not decided", "not judged yet"
JUDGES = "heal"
"""The loop whose word on a commit of the branch counts."""


@dataclass(frozen=True, slots=True)
class MainNow:
    """The branch as it stands. `state` is one of the words above."""

    branch: str
    head: str
    state: str = UNKNOWN
    at: float | None = None  # when it was proven, or when whoever judges it began
    run_id: str = ""
    loop_id: str = ""
    alone: bool = False  # nobody is there for the run that is to judge it
    repaired: bool = False
    failing: int = 0
    reason: str = ""  # why nobody can tell
    owner: str = ""  # a person has it
    ready: bool = False  # a proven repair waits to be taken
    last_green: str = ""
    behind: int | None = None  # so many commits came since then


def read_main(conn: sqlite3.Connection, state: State, settings: Mapping[str, Any]) -> MainNow | None:
    """None where the branch has no commit."""
    root = state.root
    branch = str(settings.get("branch") or "main")
    head = _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    if not head:
        return None
    subject = f"{branch}@{head}"
    return _proven(conn, branch, head, subject) or _judged(conn, state, branch, head, subject)


def _proven(conn: sqlite3.Connection, branch: str, head: str, subject: str) -> MainNow | None:
    row = conn.execute(
        "SELECT facts.run_id AS run_id, facts.at AS at, runs.loop_id AS loop_id, runs.detail AS detail FROM facts "
        "JOIN runs ON runs.run_id = facts.run_id WHERE facts.fact = 'proven' AND facts.subject_key = ? "
        "ORDER BY facts.number DESC LIMIT 1",
        (subject,),
    ).fetchone()
    if row is None:
        return None
    repaired = bool(proven_of(row["detail"]).get("repaired"))
    return MainNow(branch, head, GREEN, row["at"], row["run_id"], row["loop_id"], repaired)


def _judged(conn: sqlite3.Connection, state: State, branch: str, head: str, subject: str) -> MainNow:
    last = _last_green(conn, branch)
    behind = _git(state.root, "rev-list", "--count", f"{last}..{head}") if last else ""
    known: dict[str, Any] = {"last_green": last, "behind": int(behind) if behind.isdecimal() else None}
    run = conn.execute(
        "SELECT run_id, loop_id, status, reason, worker, created_at FROM runs WHERE subject = ? AND loop_id = ? "
        "AND status NOT IN ('cancelled', 'completed_dry_run') ORDER BY number DESC LIMIT 1",
        (subject, JUDGES),
    ).fetchone()
    if run is None:
        return MainNow(branch, head, **known)
    known |= {"run_id": run["run_id"], "loop_id": run["loop_id"], "at": run["created_at"]}
    if run["status"] in ("queued", "running"):
        alone = not is_cared_for(state, run["run_id"], run["worker"])
        return MainNow(branch, head, JUDGED_NOW if run["status"] == "running" else QUEUED, alone=alone, **known)
    return _ended(conn, MainNow(branch, head, OPEN_QUESTION, reason=run["reason"], **known))


def _ended(conn: sqlite3.Connection, now: MainNow) -> MainNow:
    owner = conn.execute(
        "SELECT owner, reason FROM handoffs WHERE run_id = ? AND state IN ('open', 'taken', 'accepted')", (now.run_id,)
    ).fetchone()
    if owner is not None:
        now = replace(now, owner=owner["owner"], ready=owner["reason"] in REASONS)
    red = conn.execute(
        "SELECT evidence FROM conditions WHERE run_id = ? AND object = 'base' AND name = 'code_red'", (now.run_id,)
    ).fetchone()
    if red is None:
        return now
    return replace(now, state=RED, failing=len(json.loads(red["evidence"]).get("failing") or ()))


def _last_green(conn: sqlite3.Connection, branch: str) -> str:
    """By the newest run that proved something."""
    rows = conn.execute(
        "SELECT subject, detail FROM runs WHERE loop_id = ? AND status = 'completed' ORDER BY number DESC LIMIT 20",
        (JUDGES,),
    )
    found = (str(proven_of(row["detail"]).get("sha", "")) for row in rows if row["subject"].startswith(f"{branch}@"))
    return next(filter(None, found), "")


def proven_of(detail: str) -> Mapping[str, Any]:
    """What a completed run says of its branch."""
    found = json.loads(detail).get("main_proven")
    return found if isinstance(found, dict) else {}


def _git(root: Path, *arguments: str) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    told = subprocess.run(
        ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False, env=clean, timeout=10
    )
    return told.stdout.strip() if told.returncode == 0 else ""
