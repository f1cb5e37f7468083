"""Is main green, at which commit, proven when? The first thing that `becket status` says. Standard library only."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from becket.app.liveness import is_cared_for
from becket.app.state import StateFolder
from becket.kernel.contract.ready import REASONS
from becket.kernel.store.quick import QuickJournal

GREEN, RED, QUEUED, JUDGED_NOW = "green", "red", "queued", "being judged"
OPEN_QUESTION, UNKNOWN = "not decided", "not judged yet"
BUSY = {"running": JUDGED_NOW, "queued": QUEUED}
COLORS = ("_green", "_red", "_undecided")
"""How the names end of what a gate says of the branch."""

JUDGES = "heal"
"""The loop whose word on a commit of the branch counts."""
TRIES = "trial"
"""The loop that only tries gates: its runs are nobody's work, and are not counted."""


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
    open: str = ""  # the status of the run that is not through with what is red
    last_green: str = ""
    behind: int | None = None  # so many commits came since then


def read_main(journal: QuickJournal, state: StateFolder, settings: Mapping[str, Any]) -> MainNow | None:
    """None where the branch has no commit."""
    root = state.root
    branch = str(settings.get("branch") or "main")
    head = _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}^{{commit}}")
    if not head:
        return None
    subject = f"{branch}@{head}"
    return _proven(journal, branch, head, subject) or _judged(journal, state, branch, head, subject)


def _proven(journal: QuickJournal, branch: str, head: str, subject: str) -> MainNow | None:
    row = journal.proof(subject)
    if row is None:
        return None
    repaired = bool(proven_of(row["detail"]).get("repaired"))
    return MainNow(branch, head, GREEN, row["at"], row["run_id"], row["loop_id"], repaired=repaired)


def _judged(journal: QuickJournal, state: StateFolder, branch: str, head: str, subject: str) -> MainNow:
    last = _last_green(journal, branch)
    behind = _git(state.root, "rev-list", "--count", f"{last}..{head}") if last else ""
    known: dict[str, Any] = {"last_green": last, "behind": int(behind) if behind.isdecimal() else None}
    run = journal.last_about(subject, JUDGES)
    if run is None:
        return MainNow(branch, head, **known)
    known |= {"run_id": run["run_id"], "loop_id": run["loop_id"], "at": run["created_at"]}
    alone = run["status"] in BUSY and not is_cared_for(state, run["run_id"], run["worker"])
    now = standing(
        MainNow(branch, head, alone=alone, **known), run["status"], run["reason"], _failing(journal, subject)
    )
    return _whose(journal, now) if not now.open else now


def standing(now: MainNow, status: str, reason: str, failing: int | None) -> MainNow:
    """What is red is red, whatever becomes of it. `failing` is None where the gates did not say so."""
    busy = status if status in (*BUSY, "waiting") else ""
    if failing is not None:
        return replace(now, state=RED, failing=failing, reason=reason, open=busy)
    return replace(now, state=BUSY.get(status, OPEN_QUESTION), reason=reason)


def failing_of(steps: Iterable[Iterable[tuple[str, str, Mapping[str, Any]]]]) -> int | None:
    """By the conditions of each step, the newest first: how many tests of the branch fail; None where it is not red."""
    for conditions in steps:
        of_base = {name: evidence for object_, name, evidence in conditions if object_ == "base"}
        if any(name.endswith(COLORS) for name in of_base):
            red = of_base.get("code_red")
            return None if red is None else int(red.get("failed") or len(red.get("failing") or ()))
    return None


def _failing(journal: QuickJournal, subject: str) -> int | None:
    """A later run that did not judge it takes nothing back."""
    steps = map(json.loads, journal.conditions_about(subject, JUDGES, "base"))
    return failing_of([(one["object"], one["name"], one["evidence"]) for one in step] for step in steps)


def _whose(journal: QuickJournal, now: MainNow) -> MainNow:
    owner = journal.handoff(now.run_id)
    return now if owner is None else replace(now, owner=owner["owner"], ready=owner["reason"] in REASONS)


def _last_green(journal: QuickJournal, branch: str) -> str:
    """By the newest run that proved something."""
    rows = journal.completed(JUDGES, most=20)
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
