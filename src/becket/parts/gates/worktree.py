"""The resident test tree `.worktrees/base`: the branch at an exact commit, for people and for gates that stay warm."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from becket.app.compose import App
from becket.app.liveness import drivers
from becket.app.project import CommittedProjects
from becket.app.state import Lock, holder
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import ActionFailed, BecketError, GitFailed, UsageError
from becket.kernel.contract.git import TreeHealth, Workspace
from becket.kernel.contract.run import RunStatus
from becket.kernel.git.workspace import health, in_the_way
from becket.parts.gates.section import GATES

ENV = ".env"
NOT_DECLARED = "no gate step and no service of the committed becket.yaml declares env_file"
_SPECIAL = re.compile(r"([\\*?\[\]!# ])")


class TreeInUse(BecketError):
    """Somebody else is at work in the resident tree."""


class EnvFile(Record):
    """A file of the person's work tree that the committed becket.yaml asks for, or why it was left out."""

    name: str
    copied: bool
    why: str = ""


class TreeReady(Record):
    """The tree stands at `sha`. `saved` names the rescue of what somebody had left in it."""

    tree: Path
    branch: str
    sha: str
    made: bool  # else it was there and was reset
    mended: bool = False  # it was not as Becket had made it
    saved: str = ""
    env: tuple[EnvFile, ...] = ()


class TreeSeen(Record):
    """What is there now. `sha` is empty where there is no tree; `in_the_way` says why none can be made."""

    tree: Path
    branch: str
    sha: str = ""
    branch_sha: str = ""
    damaged: bool = False
    pruned: bool = False  # the repository has lost the commit
    clean: bool = True
    changed: tuple[str, ...] = ()
    in_the_way: str = ""


async def ensure(app: App, at: str | None = None) -> TreeReady:
    """Make the tree, or reset it to the branch or to a commit of it. What somebody left there is saved first (L7)."""
    branch = app.config.branch
    sha = await _commit(app, branch, at)
    folder, tree = app.state.resident
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Lock(folder.parent / f"{folder.name}.lock") as lock:
        if not lock.acquire():
            raise TreeInUse(f"another becket is at work on {tree}; try again when it is done")
        await _nobody_works(app, tree)
        damaged = health(folder, tree) is TreeHealth.damaged
        names, why = await _declared(app, sha)
        before = await app.git.find_workspace(folder)
        saved = await _saved(app, before, names) if before else ""
        workspace = await app.git.open_workspace(folder, sha, tree)
        env = await _env_files(app, workspace, names, why)
    return TreeReady(
        tree=tree, branch=branch, sha=sha, made=before is None, mended=damaged, saved=saved, env=env
    )  # fmt: skip


async def look(app: App) -> TreeSeen:
    branch = app.config.branch
    folder, tree = app.state.resident
    head = await app.git.resolve(f"refs/heads/{branch}") or ""
    workspace = await app.git.find_workspace(folder)
    if workspace is None:
        taken = in_the_way(app.git.source, folder, tree)
        return TreeSeen(tree=tree, branch=branch, branch_sha=head, in_the_way=taken)
    state = await app.git.status(workspace)
    changed = (*state.changed, *state.untracked)
    damaged = health(folder, tree) is TreeHealth.damaged
    return TreeSeen(
        tree=workspace.tree, branch=branch, sha=workspace.sha, branch_sha=head, damaged=damaged,
        pruned=await app.git.resolve(workspace.sha) is None, clean=state.clean, changed=changed,
    )  # fmt: skip


async def _commit(app: App, branch: str, at: str | None) -> str:
    head = await app.git.resolve(f"refs/heads/{branch}")
    if head is None:
        raise UsageError(f"there is no branch {branch} with a commit; `branch:` in becket.yaml names it")
    if at is None:
        return head
    sha = await app.git.resolve(at)
    if sha is None:
        raise UsageError(f"--at {at}: there is no such commit")
    if not await app.git.contains(head, sha):
        raise UsageError(f"--at {at}: {sha[:12]} is not on {branch}; the tree holds only what {branch} has or had")
    return sha


async def _nobody_works(app: App, tree: Path) -> None:
    """A gate may run in there: its verdict would be about two commits at once."""
    others = {holder(app.state.engine_lock), *(one.pid for one in drivers(app.state))} - {None, os.getpid()}
    pid = next(iter(others), None)
    if pid is not None and (await app.store.count_runs()).get(RunStatus.running):
        raise TreeInUse(f"runs are at work (pid {pid}) and may be using {tree}; wait for them: `becket status`")


async def _saved(app: App, workspace: Workspace, names: Sequence[str]) -> str:
    """The name of the rescue. The same leftovers are saved once."""
    # Links of a set-up and reports of a gate are nobody's work.
    _hide(workspace, names, [*_hidden(workspace), *await _reports(app, workspace.sha)])
    saved = await app.git.rescue(workspace, "test", f"becket: what was left in {workspace.tree.name}")
    return next((item.name for item in await app.git.candidates().rescued() if item.sha == saved), "")


async def _reports(app: App, sha: str) -> list[str]:
    """Where the gates of that commit write theirs: git reads the pattern as they do."""
    try:
        config = await CommittedProjects(app.git, lambda: app.config).committed(sha)
    except (ActionFailed, GitFailed):  # it cannot be read, or was pruned
        return []
    places = (step.report.partition(":")[2] for gate in config.section(GATES).values() for step in gate)
    return [f"/{place.removeprefix('./')}" for place in places if place]


async def _declared(app: App, sha: str) -> tuple[tuple[str, ...], str]:
    """The env files that count as committed, or why there is none (L12)."""
    try:
        config = await CommittedProjects(app.git, lambda: app.config).committed(sha)
    except ActionFailed as error:
        return (), str(error)
    return tuple(dict.fromkeys(file for _, file in config.env_files())), NOT_DECLARED


async def _env_files(app: App, workspace: Workspace, names: Sequence[str], why: str) -> tuple[EnvFile, ...]:
    _hide(workspace, names)
    if not names:
        there = (app.state.root / ENV).is_file()
        return (EnvFile(name=ENV, copied=False, why=why),) if there else ()
    committed = await app.git.listing(workspace.sha)
    return tuple(_copied(app.state.root, workspace.tree, name, name in committed) for name in names)


def _copied(root: Path, tree: Path, name: str, committed: bool) -> EnvFile:
    source, target = root / name, tree / name
    if not _inside(root, source) or not _inside(tree, target):
        return EnvFile(name=name, copied=False, why="it leads out of the work tree")
    if committed:
        return EnvFile(name=name, copied=False, why="the commit has a file of that name")
    if not source.is_file():
        return EnvFile(name=name, copied=False, why=f"{source} is not there")
    try:
        content = source.read_bytes()
        target.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(file, "wb") as opened:
            opened.write(content)
    except OSError as error:
        return EnvFile(name=name, copied=False, why=str(error))
    return EnvFile(name=name, copied=True)


def _inside(top: Path, path: Path) -> bool:
    """Below `top`, links and dots of its folder followed: a commit must not choose a file of the machine to be read."""
    return path.name not in ("", "..") and path.parent.resolve().is_relative_to(top.resolve())


def _hide(workspace: Workspace, names: Sequence[str], beside: Sequence[str] = ()) -> None:
    """From the runtime's own view of the tree: a secret is never part of a commit or a rescue, ignored or not (L25)."""
    lines = ["/" + _SPECIAL.sub(r"\\\1", name.removeprefix("./")) for name in dict.fromkeys((ENV, *names))]
    content = "\n".join([*dict.fromkeys((*beside, *lines)), ""])
    (workspace.git_dir / "info" / "exclude").write_text(content, encoding="utf-8", errors="surrogateescape")


def _hidden(workspace: Workspace) -> list[str]:
    try:
        text = (workspace.git_dir / "info" / "exclude").read_text(encoding="utf-8", errors="surrogateescape")
    except FileNotFoundError:
        return []
    return text.split("\n")[:-1]
