"""`becket init`: what a repository is made of, and its first becket.yaml."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil

from becket.adapters.git.repository import discover
from becket.app.state import State
from becket.contract.base import Record
from becket.setup.detect import Detected, detect
from becket.setup.scaffold import ScaffoldResult, write_config

LIKELY = ("main", "master")
AGENTS = ("claude", "codex", "gemini")
"""Programs that are proposed where they are on PATH, in this order."""


class Begun(Record):
    """What was found and what was written."""

    branch: str
    detected: Detected
    written: ScaffoldResult


def begin(state: State, *, force: bool, with_example: bool) -> Begun:
    branch = asyncio.run(_branch(state))
    found = detect(state.root)
    written = write_config(
        state.root, found, branch, pwd.getpwuid(os.getuid()).pw_name, force=force, with_example=with_example,
        agent=next(filter(shutil.which, AGENTS), None),
    )  # fmt: skip
    return Begun(branch=branch, detected=found, written=written)


async def _branch(state: State) -> str:
    """The branch that everybody builds on, not the one that happens to be checked out."""
    git = discover(state.root)
    for name in LIKELY:
        if await git.resolve(f"refs/heads/{name}") is not None:
            return name
    return (await git.status()).branch or LIKELY[0]
