"""A run's own checkout: a shared clone without a remote, cleaned before every use.

Below the workspace's folder lie `tree` (for contained programs, with a `.git` of its own that is never trusted),
`objects` (the only ones that this `.git` shares), `git` (the runtime's own git directory over that tree, which shares
the repository's) and the marker, which says `ready` only when all of it is.
The tree may also lie somewhere else, where people look; the marker knows where.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import GitFailed, PlaceTaken
from becket.kernel.contract.git import OBJECTS, TreeHealth, TreeState, Workspace
from becket.kernel.contract.removal import NotRemoved, opened, remove
from becket.kernel.git import lfs, spare
from becket.kernel.git.blobs import listing
from becket.kernel.git.history import History
from becket.kernel.git.program import GitPlace, run
from becket.kernel.git.refs import Refs
from becket.kernel.git.resident import Resident, check_free, check_place, no_folder
from becket.kernel.git.status import read_status
from becket.kernel.git.submodules import fill, remember
from becket.kernel.git.sweep import Inventory, stuck_on, sweep

A = TypeVar("A")
B = TypeVar("B")

log = logging.getLogger("becket.git")

MARKER = "workspace.json"
ASIDE = ".aside-"
MOST_KNOWN = 4

before_clone = CrashPoint("workspace.before_clone", "the folder is marked as ours, nothing is in it yet")
after_checkout = CrashPoint("workspace.after_checkout", "the files are there, unchecked and unmarked")
before_marker = CrashPoint("workspace.before_marker", "the workspace is complete, but nobody may believe it yet")


class _State(StrEnum):
    none = "none"
    foreign = "foreign"  # something lies there that Becket did not make
    making = "making"
    ready = "ready"


@dataclass(frozen=True, slots=True)
class _Marker:
    """Anything but a readable `ready` is a leftover: the marker is replaced whole, never written in place."""

    state: _State
    sha: str = ""
    resident: Resident | None = None

    @classmethod
    def read(cls, folder: Path) -> _Marker:
        try:
            found = json.loads((folder / MARKER).read_text(encoding="utf-8"))
            return cls(_State(found["state"]), str(found["sha"]), _resident(folder, found.get("resident")))
        except FileNotFoundError:
            foreign = any(os.path.lexists(folder / name) for name in ("tree", "git", OBJECTS))
            return cls(_State.foreign if foreign else _State.none)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(_State.making)

    def write(self, folder: Path) -> None:
        told: dict[str, object] = {"state": self.state, "sha": self.sha}
        if self.resident is not None:
            # Relative: a repository that is moved or copied as a whole keeps its own tree, and only that.
            told["resident"] = {
                "path": os.path.relpath(self.resident.path, folder),
                "token": self.resident.token,
                "identity": self.resident.identity,
            }
        new = folder / f"{MARKER}.new"
        new.write_text(json.dumps(told), encoding="utf-8")
        new.replace(folder / MARKER)


def _resident(folder: Path, found: Mapping[str, str] | None) -> Resident | None:
    if found is None:
        return None
    path = Path(os.path.normpath(folder / found["path"]))
    return Resident(path, str(found["token"]), str(found["identity"]))


@dataclass(frozen=True, slots=True)
class Source:
    """The repository that workspaces are made from."""

    place: GitPlace
    refs: Refs
    object_format: str
    history: History

    known: dict[str, Inventory] = field(default_factory=dict)  # of the commits that were checked out last
    listed: dict[str, bytes] = field(default_factory=dict)  # of those that were looked at last

    @property
    def objects(self) -> Path:
        return self.refs.common_dir / "objects"

    @property
    def git_dirs(self) -> tuple[Path, ...]:
        """A linked worktree has submodules of its own, beside those of the first one."""
        return tuple(dict.fromkeys((self.place.git_dir, self.refs.common_dir)))

    async def modules(self, sha: str) -> bytes:
        """The commit's .gitmodules."""
        return (await run(self.place, "cat-file", "blob", f"{sha}:.gitmodules", ok=(0, 128))).stdout

    async def listing(self, sha: str) -> bytes:
        """What a commit holds, by its full name: that never changes, and many ask about the same few."""
        if sha not in self.listed:
            found = await listing(self.place, sha)
            if len(self.listed) >= MOST_KNOWN:
                self.listed.clear()
            self.listed[sha] = found
        return self.listed[sha]

    async def inventory(self, sha: str) -> Inventory:
        if sha not in self.known:
            inventory = Inventory.of(await self.listing(sha))
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.known[sha] = inventory
        return self.known[sha]


def private_place(workspace: Workspace) -> GitPlace:
    """The runtime's own view of a workspace."""
    return GitPlace(workspace.git_dir, workspace.tree, private=True)


def standing_place(workspace: Workspace) -> GitPlace:
    """The same, for a look at what is there. It needs the commit, which a person may have amended and pruned since:
    the packs that the tree was given have it still.
    """
    quoted = json.dumps(os.fspath(workspace.objects), ensure_ascii=False)  # a colon would end the name
    more = (("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted),) if workspace.objects.is_dir() else ()
    return replace(private_place(workspace), variables=more)


async def open_workspace(source: Source, folder: Path, sha: str, tree: Path | None = None) -> Workspace:
    """Reset the workspace in `folder` to a commit, or make it; what cannot be reset is made anew."""
    if tree is None and not os.path.lexists(folder):
        spare.take(source, folder)
    marker = _Marker.read(folder)
    if marker.state is _State.foreign:
        raise GitFailed(f"{folder} holds files that Becket did not make; remove them or choose another folder")
    resident = _claimed(source, folder, marker, tree)
    try:
        if resident is not None and tree is not None and resident.path != tree:
            resident = replace(resident, path=resident.path.rename(tree))  # after a crash here `_followed` finds it
        workspace = _workspace(folder, sha, resident)
        if resident is not None and resident.replaced and any(workspace.tree.iterdir()):
            log.warning("%s is not the folder that Becket made; it was moved to %s", tree, _move_aside(workspace.tree))
        if marker.state is _State.ready and _is_folder(workspace.tree) and _is_folder(workspace.git_dir):
            try:
                await _check_out(source, folder, workspace, resident, again=marker.sha == sha)
                return workspace
            except (GitFailed, OSError) as error:  # whatever was left there, a new one will not have it
                log.warning("%s cannot be reset and is made anew: %s", workspace.tree, error)
        await _make_anew(source, folder, workspace, resident)
        spare.begin(workspace)
    except OSError as error:
        raise GitFailed(f"the workspace {folder} cannot be made: {error}") from error
    return workspace


def _claimed(source: Source, folder: Path, marker: _Marker, tree: Path | None) -> Resident | None:
    """The tree that may be reset, where it is now: it is ours still if it has another name in the same folder, which
    earlier versions gave it. Nothing that is not known to be ours is ever emptied.
    """
    known = _followed(marker.resident, tree)
    elsewhere = known is not None and known.path != tree and known.ours
    if known is not None and elsewhere and (tree is None or known.path.parent != tree.parent):
        raise PlaceTaken(
            f"the workspace {folder} has its tree at {known.path}; remove that tree before it gets another"
        )
    if tree is None:
        return None
    try:
        check_place(tree, source.refs.common_dir)
        if known is not None and known.path == tree and (known.ours or known.replaced):
            return known
        check_free(tree)
    except OSError as error:
        raise GitFailed(f"{tree} cannot be looked at: {error}") from error
    return known if known is not None and elsewhere else Resident(tree)


def _followed(known: Resident | None, tree: Path | None) -> Resident | None:
    """The same, at its new place where a person moved the worktree around it."""
    if known is None or tree is None or os.path.lexists(known.path):
        return known
    moved = replace(known, path=tree)
    return moved if moved.same_folder else known


def find_workspace(folder: Path) -> Workspace | None:
    marker = _Marker.read(folder)
    workspace = _workspace(folder, marker.sha, marker.resident)
    ready = marker.state is _State.ready and _is_folder(workspace.tree) and _is_folder(workspace.git_dir)
    return workspace if ready and (marker.resident is None or marker.resident.ours) else None


def health(folder: Path, tree: Path) -> TreeHealth:
    """Of a tree where people look, without touching it."""
    marker = _Marker.read(folder)
    known = _followed(marker.resident, tree)
    if no_folder(tree) is not None:
        return TreeHealth.blocked
    if not tree.exists() or marker.state is _State.making:
        return TreeHealth.none
    if known is None or known.path != tree or not known.ours:
        if known is not None and known.path == tree and known.replaced:
            return TreeHealth.damaged
        return TreeHealth.foreign if any(tree.iterdir()) else TreeHealth.none
    return TreeHealth.good if known.signed else TreeHealth.damaged


def in_the_way(source: Source, folder: Path, tree: Path) -> str:
    """Why no tree can be made at that place; empty if one can."""
    try:
        _claimed(source, folder, _Marker.read(folder), tree)
    except PlaceTaken as taken:
        return str(taken)
    return ""


def set_aside(tree: Path) -> tuple[Path, ...]:
    """What was moved out of the way when a new tree was made in its place."""
    return tuple(sorted(tree.parent.glob(f"*{ASIDE}*")))


async def status(source: Source, workspace: Workspace, *, untracked: bool) -> TreeState:
    """As git outside sees it: nothing that a contained program did in its tree makes this wait for ever."""
    try:
        with opened(os.fspath(workspace.tree)):
            pass  # so that git may go in
    except OSError as error:
        raise GitFailed(f"{workspace.tree} cannot be looked at: {error}") from error
    folders = None if untracked else (await source.inventory(workspace.sha)).folders
    if odd := await asyncio.to_thread(stuck_on, workspace.tree, folders):
        return TreeState(head=workspace.sha, branch=None, changed=odd, untracked=())
    return await read_status(standing_place(workspace), untracked=untracked)


def open_git_dir(source: Source, folder: Path, sha: str) -> Workspace:
    """The runtime's own git directory over an empty tree: for work that an index is enough for."""
    marker = _Marker.read(folder)
    if marker.state is _State.foreign or marker.resident is not None:
        raise GitFailed(f"{folder} holds something else than a workspace of its own; choose another folder")
    workspace = _workspace(folder, sha)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _begin(source, folder, workspace, None)
    except OSError as error:
        raise GitFailed(f"the folder {folder} cannot be made: {error}") from error
    return workspace


async def close_workspace(folder: Path) -> None:
    """Remove the workspace, and the folder if nothing else is in it. There need not be one."""
    marker = _Marker.read(folder)
    if marker.state is _State.none:
        return
    if marker.state is _State.foreign:
        raise GitFailed(f"{folder} holds files that Becket did not make; nothing was removed")
    try:
        if marker.resident is not None and not marker.resident.ours:
            check_free(marker.resident.path)
        await asyncio.to_thread(_remove_all, folder, marker.resident)
    except OSError as error:
        raise GitFailed(f"the workspace {folder} cannot be removed: {error}") from error


async def _make_anew(source: Source, folder: Path, workspace: Workspace, resident: Resident | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    await asyncio.to_thread(_begin, source, folder, workspace, resident)
    await _check_out(source, folder, workspace, resident)


def _begin(source: Source, folder: Path, workspace: Workspace, resident: Resident | None) -> None:
    _Marker(_State.making, resident=resident and resident.made()).write(folder)
    _clear(workspace.tree)
    _remove_below(folder)
    before_clone()
    workspace.tree.mkdir(parents=resident is not None)
    _write_git_dir(workspace.git_dir, source, workspace.sha, source.objects)


async def _check_out(
    source: Source, folder: Path, workspace: Workspace, resident: Resident | None, *, again: bool = False
) -> None:
    """`again`: it was at this commit before, and perhaps nothing in it has changed since."""
    resident = resident and resident.made()
    _Marker(_State.making, resident=resident).write(folder)
    _, refs = await _both(_put_files(source, workspace, again=again), _put_objects(source, workspace))
    await asyncio.to_thread(_write_tree_git_dir, source, workspace, refs)
    if resident is not None:
        resident.sign()
    before_marker()
    _Marker(_State.ready, workspace.sha, resident).write(folder)


async def _put_files(source: Source, workspace: Workspace, *, again: bool) -> None:
    """Sweep first: then no file of unknown origin is there when git reads attributes and ignore files.

    A file in place of a folder, or the reverse, is swept as well. The status that tells whether anything changed is
    the one that would be asked for after a reset.
    """
    inventory = await source.inventory(workspace.sha)
    _write_config(workspace.git_dir, source)
    await asyncio.to_thread(sweep, workspace.tree, inventory)
    untouched = again and not inventory.converts and await _stands_at(workspace)
    if not untouched:
        await run(private_place(workspace), "reset", "--hard", "--quiet", workspace.sha)
    if inventory.converts and lfs.in_use(source.refs.common_dir):
        await lfs.fill(private_place(workspace))
    after_checkout()
    if not untouched:
        await _verify(workspace, by_content=inventory.converts)
    links = inventory.submodules
    text = await source.modules(workspace.sha) if links else b""
    remember(workspace.git_dir, await fill(source.git_dirs, workspace.tree, links, text) if text else ())


async def _put_objects(source: Source, workspace: Workspace) -> Mapping[str, str]:
    refs = await source.refs.listed("refs/heads", "refs/tags")
    return await source.history.provide(workspace.sha, refs, workspace.objects)


async def _stands_at(workspace: Workspace) -> bool:
    state = await read_status(private_place(workspace))
    return state.head == workspace.sha and state.clean


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
    """What `git` inside the tree shall see: HEAD, branches and tags before it, and an index that matches the files."""
    own = workspace.tree / ".git"
    _write_git_dir(own, source, workspace.sha, workspace.objects)
    lines = "".join(f"{sha} {ref}\n" for ref, sha in refs.items())
    (own / "packed-refs").write_text("# pack-refs with: sorted \n" + lines, encoding="utf-8")
    shutil.copy2(workspace.git_dir / "index", own / "index")


def _write_git_dir(git_dir: Path, source: Source, sha: str, objects: Path) -> None:
    """What `git clone --shared --no-checkout` makes, without its remote.

    Written by hand: clone copies instead of sharing when the source is shallow, leaves out commits no branch
    reaches, and costs three spawns whenever a tree's `.git` has to be put back.
    """
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (git_dir / folder).mkdir(parents=True)
    (git_dir / "objects/info/alternates").write_text(f"{objects}\n", encoding="utf-8")
    (git_dir / "HEAD").write_text(f"{sha}\n", encoding="ascii")
    _write_config(git_dir, source)
    shallow = source.refs.common_dir / "shallow"
    if shallow.exists():
        shutil.copyfile(shallow, git_dir / "shallow")


def _write_config(git_dir: Path, source: Source) -> None:
    """Anew for every checkout: git-lfs may have come, or gone."""
    large = lfs.CONFIG if lfs.in_use(source.refs.common_dir) else ""
    (git_dir / "config").write_text(_config(source.object_format) + large, encoding="ascii")


def _config(object_format: str) -> str:
    """Attributes and ignore rules are those of the commit alone, not of whoever runs Becket."""
    lines = ["[core]", "bare = false", "filemode = true", "logallrefupdates = false"]
    lines += [f"attributesFile = {os.devnull}", f"excludesFile = {os.devnull}"]
    if object_format == "sha1":
        return "\n".join([*lines, "repositoryformatversion = 0", ""])
    return "\n".join([*lines, "repositoryformatversion = 1", "[extensions]", f"objectformat = {object_format}", ""])


def _workspace(folder: Path, sha: str, resident: Resident | None = None) -> Workspace:
    own = Workspace.below(folder, sha)
    return own if resident is None else own.model_copy(update={"tree": resident.path})


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _clear(tree: Path) -> None:
    """Whatever resists is set aside: it must not keep a new tree from being made."""
    try:
        remove(tree)
    except NotRemoved as error:
        log.warning("%s; it was moved to %s: remove it by hand", error, _move_aside(tree))


def _move_aside(tree: Path) -> Path:
    return tree.rename(tree.with_name(f"{tree.name}{ASIDE}{secrets.token_hex(4)}"))


def _remove_below(folder: Path) -> None:
    remove(folder / "git")
    remove(folder / OBJECTS)


def _remove_all(folder: Path, resident: Resident | None) -> None:
    _Marker(_State.making, resident=resident and resident.made()).write(folder)
    remove(resident.path if resident else folder / "tree")
    _remove_below(folder)
    remove(folder / MARKER)
    remove(folder / f"{MARKER}.new")
    if not any(folder.iterdir()):
        folder.rmdir()
