"""A run's own checkout: a shared clone without a remote, cleaned before every use.

Below the workspace's folder lie `tree` (for contained programs, with a `.git` of its own that is never trusted),
`git` (the runtime's own git directory over that tree) and the marker, which says `ready` only when all of it is.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from becket.adapters.git.program import Place, run
from becket.adapters.git.refs import Refs
from becket.adapters.git.status import read_status
from becket.adapters.git.sweep import Inventory, remove, sweep
from becket.contract.crash import CrashPoint
from becket.contract.errors import GitFailed
from becket.contract.git import Workspace

A = TypeVar("A")
B = TypeVar("B")

MARKER = "workspace.json"

before_clone = CrashPoint("workspace.before_clone", "the folder is marked as ours, nothing is in it yet")
after_checkout = CrashPoint("workspace.after_checkout", "the files are there, unchecked and unmarked")
before_marker = CrashPoint("workspace.before_marker", "the workspace is complete, but nobody may believe it yet")


class _State(StrEnum):
    none = "none"
    foreign = "foreign"  # something lies there that Becket did not make
    making = "making"
    ready = "ready"


@dataclass(frozen=True, slots=True)
class Source:
    """The repository that workspaces are made from."""

    place: Place
    refs: Refs
    object_format: str

    @property
    def objects(self) -> Path:
        return self.refs.common_dir / "objects"


def private_place(workspace: Workspace) -> Place:
    """The runtime's own view of a workspace."""
    return Place(workspace.git_dir, workspace.tree, private=True)


async def open_workspace(source: Source, folder: Path, sha: str) -> Workspace:
    """Reset the workspace in `folder` to a commit, or make it; what cannot be reset is made anew."""
    workspace = _workspace(folder, sha)
    state, _ = _read_marker(folder)
    if state is _State.foreign:
        raise GitFailed(f"{folder} holds files that Becket did not make; remove them or choose another folder")
    try:
        if state is _State.ready and _is_folder(workspace.tree) and _is_folder(workspace.git_dir):
            try:
                await _check_out(source, folder, workspace)
                return workspace
            except (GitFailed, OSError):
                pass  # whatever was left there, a new one will not have it
        await _make_anew(source, folder, workspace)
    except OSError as error:
        raise GitFailed(f"the workspace {folder} cannot be made: {error}") from error
    return workspace


def find_workspace(folder: Path) -> Workspace | None:
    state, sha = _read_marker(folder)
    workspace = _workspace(folder, sha)
    ready = state is _State.ready and _is_folder(workspace.tree) and _is_folder(workspace.git_dir)
    return workspace if ready else None


async def close_workspace(folder: Path) -> None:
    """Remove the workspace, and the folder if nothing else is in it. There need not be one."""
    state, _ = _read_marker(folder)
    if state is _State.none:
        return
    if state is _State.foreign:
        raise GitFailed(f"{folder} holds files that Becket did not make; nothing was removed")
    try:
        await asyncio.to_thread(_remove_all, folder)
    except OSError as error:
        raise GitFailed(f"the workspace {folder} cannot be removed: {error}") from error


async def _make_anew(source: Source, folder: Path, workspace: Workspace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    _write_marker(folder, _State.making)
    await asyncio.to_thread(_remove_contents, folder)
    before_clone()
    workspace.tree.mkdir()
    _write_git_dir(workspace.git_dir, source, workspace.sha)
    await _check_out(source, folder, workspace)


async def _check_out(source: Source, folder: Path, workspace: Workspace) -> None:
    """Sweep first: then no file of unknown origin is there when git reads attributes and ignore files.

    A file in place of a folder, or the reverse, is swept as well.
    """
    _write_marker(folder, _State.making)
    listing, refs = await _both(
        run(source.place, "ls-tree", "-r", "-z", "--full-tree", workspace.sha),
        source.refs.listed("refs/heads", "refs/tags"),
    )
    inventory = Inventory.of(listing.stdout)
    await asyncio.to_thread(sweep, workspace.tree, inventory)
    await run(private_place(workspace), "reset", "--hard", "--quiet", workspace.sha)
    after_checkout()
    await _verify(workspace, by_content=inventory.converts)
    await asyncio.to_thread(_write_tree_git_dir, source, workspace, refs)
    before_marker()
    _write_marker(folder, _State.ready, workspace.sha)


async def _both(one: Coroutine[None, None, A], other: Coroutine[None, None, B]) -> tuple[A, B]:
    try:
        async with asyncio.TaskGroup() as tasks:
            first, second = tasks.create_task(one), tasks.create_task(other)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
    return first.result(), second.result()


async def _verify(workspace: Workspace, *, by_content: bool) -> None:
    """HEAD == subject and a clean tree, or no workspace (L4).

    Where attributes convert files, a file may differ from its own commit, and whether git notices depends on the
    clock. With an old date on its index git believes no date and reads every file: the answer is always the same.
    """
    index = workspace.git_dir / "index"
    written = index.stat().st_mtime_ns
    if by_content:
        os.utime(index, (1, 1))
    state = await read_status(private_place(workspace))
    os.utime(index, ns=(written, written))
    if state.head != workspace.sha:
        raise GitFailed(f"{workspace.tree} is at {state.head} instead of {workspace.sha}")
    if not state.clean:
        paths = ", ".join((*state.changed, *state.untracked)[:5])
        raise GitFailed(
            f"{workspace.tree} is not clean right after its checkout ({paths}): the committed files do not survive "
            "their own .gitattributes; `git add --renormalize .` and commit"
        )


def _write_tree_git_dir(source: Source, workspace: Workspace, refs: Mapping[str, str]) -> None:
    """What `git` inside the tree shall see: HEAD, branches and tags, and an index that matches the files."""
    own = workspace.tree / ".git"
    _write_git_dir(own, source, workspace.sha)
    lines = "".join(f"{sha} {ref}\n" for ref, sha in refs.items())
    (own / "packed-refs").write_text("# pack-refs with: sorted \n" + lines, encoding="utf-8")
    shutil.copy2(workspace.git_dir / "index", own / "index")


def _write_git_dir(git_dir: Path, source: Source, sha: str) -> None:
    """What `git clone --shared --no-checkout` makes, without its remote.

    Written by hand: clone copies instead of sharing when the source is shallow, leaves out commits no branch
    reaches, and costs three spawns whenever a tree's `.git` has to be put back.
    """
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "objects/info/alternates").write_text(f"{source.objects}\n", encoding="utf-8")
    (git_dir / "HEAD").write_text(f"{sha}\n", encoding="ascii")
    (git_dir / "config").write_text(_config(source.object_format), encoding="ascii")
    shallow = source.refs.common_dir / "shallow"
    if shallow.exists():
        shutil.copyfile(shallow, git_dir / "shallow")


def _config(object_format: str) -> str:
    """Attributes and ignore rules are those of the commit alone, not of whoever runs Becket."""
    lines = ["[core]", "bare = false", "filemode = true", "logallrefupdates = false"]
    lines += [f"attributesFile = {os.devnull}", f"excludesFile = {os.devnull}"]
    if object_format == "sha1":
        return "\n".join([*lines, "repositoryformatversion = 0", ""])
    return "\n".join([*lines, "repositoryformatversion = 1", "[extensions]", f"objectformat = {object_format}", ""])


def _workspace(folder: Path, sha: str) -> Workspace:
    return Workspace(tree=folder / "tree", git_dir=folder / "git", sha=sha)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _remove_contents(folder: Path) -> None:
    remove(folder / "tree")
    remove(folder / "git")


def _remove_all(folder: Path) -> None:
    _write_marker(folder, _State.making)
    _remove_contents(folder)
    remove(folder / MARKER)
    remove(folder / f"{MARKER}.new")
    if not any(folder.iterdir()):
        folder.rmdir()


def _read_marker(folder: Path) -> tuple[_State, str]:
    """Anything but a readable `ready` is a leftover: the marker is replaced whole, never written in place."""
    try:
        marker = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return _State(marker["state"]), str(marker["sha"])
    except FileNotFoundError:
        foreign = os.path.lexists(folder / "tree") or os.path.lexists(folder / "git")
        return (_State.foreign if foreign else _State.none), ""
    except (OSError, ValueError, KeyError, TypeError):
        return _State.making, ""


def _write_marker(folder: Path, state: _State, sha: str = "") -> None:
    new = folder / f"{MARKER}.new"
    new.write_text(json.dumps({"state": state, "sha": sha}), encoding="utf-8")
    new.replace(folder / MARKER)
