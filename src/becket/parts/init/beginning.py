"""`becket init`: what a repository is made of, and its first becket.yaml."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
from fnmatch import fnmatch

from becket.app.state import StateFolder
from becket.kernel.checks.programs import needed
from becket.kernel.contract.base import Record
from becket.kernel.contract.gate import StepTrouble, TriedStep
from becket.kernel.git.repository import discover
from becket.parts.doctor.doctor import Diagnosis, to_look_at
from becket.parts.gates.trial import Tried
from becket.parts.init.detect import Detected, detect
from becket.parts.init.scaffold import ScaffoldResult, leave_out, write_config

FAST, SLOW = "fast", "slow"
LOOPS = ".becket"
LIKELY = ("main", "master")
LOCKS = ("*.lock", "*.lockb", "*-lock.json", "*-lock.yaml", "go.sum", "npm-shrinkwrap.json")
AGENTS = ("claude", "codex", "gemini")
"""Programs that are proposed where they are on PATH, in this order."""


class InitResult(Record):
    """What was found and what was written."""

    branch: str
    detected: Detected
    written: ScaffoldResult
    to_commit: tuple[str, ...] = ("becket.yaml",)


def begin(state: StateFolder, *, force: bool, with_example: bool) -> InitResult:
    branch = asyncio.run(_branch(state))
    found = detect(state.root, files=asyncio.run(_files(state)))
    written = write_config(
        state.root, found, branch, pwd.getpwuid(os.getuid()).pw_name, force=force, with_example=with_example,
        agent=next(filter(shutil.which, AGENTS), None),
    )  # fmt: skip
    return InitResult(branch=branch, detected=found, written=written, to_commit=asyncio.run(_to_commit(state)))


def has_commit(state: StateFolder) -> bool:
    return asyncio.run(discover(state.root).resolve("HEAD")) is not None


def remarks(state: StateFolder, begun: InitResult) -> tuple[Diagnosis, ...]:
    """What the doctor would say of this repository, and programs that the proposal needs and that are not here."""
    found = to_look_at(state.root)
    told = " ".join(one.what for one in found)
    missing = {one.tool: one for ecosystem in begun.detected.ecosystems for one in ecosystem.missing}
    more = [needed(one) for one in missing.values() if f"{one.tool}, which" not in told]
    return (*more, *found)


def keep_green(begun: InitResult, tried: Tried) -> dict[str, str]:
    """Steps that become comments where everything else is green: by name, with the reason.

    Slow ones that are red are checks besides the tests, such as a linter, and a step that ran no test found none: both
    were only our proposal, and a person takes them back in.
    """
    must = [one.step for one in tried.steps if one.step.gate != SLOW and one.step.trouble is not StepTrouble.no_tests]
    if tried.trouble or not any(one.step.gate == FAST for one in tried.steps) or not all(step.green for step in must):
        return {}
    dropped = {one.step.step: _why(one.step) for one in tried.red}
    if dropped:
        leave_out(begun.written.config, dropped)
    return dropped


def _why(step: TriedStep) -> str:
    return step.problem or "; ".join(step.reasons) or "it is red"


async def _files(state: StateFolder) -> frozenset[str]:
    """What a checkout has once everything is committed that is not ignored. A lock file that is not tracked is what a
    tool left behind: nobody has decided yet that the project has one."""
    git = discover(state.root)
    tracked, others = await git.tracked(), await git.untracked()
    left = {name for name in others if any(fnmatch(name.rpartition("/")[2], lock) for lock in LOCKS)}
    return tracked | (others - left)


async def _to_commit(state: StateFolder) -> tuple[str, ...]:
    """What is ours; the loops only where a commit lacks some of them."""
    now = await discover(state.root).status()
    loops = any(path.startswith(f"{LOOPS}/") for path in (*now.changed, *now.untracked))
    return (state.config.name, LOOPS) if loops else (state.config.name,)


async def _branch(state: StateFolder) -> str:
    """The branch that everybody builds on, not the one that happens to be checked out."""
    git = discover(state.root)
    for name in LIKELY:
        if await git.resolve(f"refs/heads/{name}") is not None:
            return name
    return (await git.status()).branch or LIKELY[0]
