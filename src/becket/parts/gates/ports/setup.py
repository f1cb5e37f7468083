"""Set-ups: what tests need besides the tree, made once for each key and shown read-only to every proof."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.process import ChildWatcher
from becket.parts.gates.section import SetupConfig

OpenRuns = Callable[[], Awaitable[Collection[str]]]
"""Asks for the runs that have not ended."""


class SetupClash(BecketError):
    """A tree holds something of its own where the set-up's link should go; nothing was replaced."""


class SetupLink(Record):
    """One symbolic link that a tree needs: an absolute target lies in the set-up, a relative one in the tree itself."""

    path: str
    target: Path


class SetupReady(Record):
    """A set-up that this run may use for this commit."""

    key: str
    folder: Path  # `readable` for every child that runs in a tree it is provided to
    links: tuple[SetupLink, ...]
    paths: tuple[str, ...]  # what the links make in the tree, topmost names only
    built: bool  # just now, and not found ready
    trusted: bool
    seconds: float  # that the command took when it was built
    log: Path  # of that command; the caller keeps it, without secrets, as an artifact


class SetupFailed(Record):
    """No set-up for this commit. Nothing of it is used again: the next call tries anew."""

    reason: str
    log: Path | None = None  # None if the command never ran
    exit_code: int | None = None
    environment: bool  # surely not the commit's fault; where False, the log has to tell


class Setups(Protocol):
    """The set-ups of one repository. Safe for many calls at once, from many processes on one machine."""

    async def ensure(
        self,
        sha: str,
        setup: SetupConfig,
        run_id: str,
        *,
        watcher: ChildWatcher | None = None,
        hidden: tuple[Path, ...] = (),
        readable: tuple[Path, ...] = (),
    ) -> SetupReady | SetupFailed:
        """The set-up for one commit: found by its key, or built in a folder that holds only the commit's key files.

        Called before a commit is proven, with base's command. Waits while another call builds the same key. Until it
        is trusted, an entry serves the run that made it, and others for an hour where the sandbox kept it read-only
        from the start. Raises GitFailed; a cancelled build is made anew later.
        """
        ...

    async def trust(self, key: str, run_id: str) -> bool:
        """Let every run use what this run used, because a tree was proven with it. False if there is nothing of it."""
        ...

    def provide(self, workspace: Workspace, ready: SetupReady) -> None:
        """Put the links into a tree that was just checked out, unseen by `git status`; a second call is harmless.

        Raises SetupClash where the tree has something else in the way.
        """
        ...

    async def sweep(self, open_runs: OpenRuns) -> None:
        """Remove what nobody needs: entries of ended runs that were never trusted, but for the latest, and old trusted
        ones.

        Called now and then by a daemon, and by every driver at its end. What open runs use stays; they are asked for
        once it is known what is there, so that a run which begins meanwhile loses nothing.
        """
        ...
