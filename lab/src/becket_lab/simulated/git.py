"""A git that is a few dictionaries: commits of whole files, refs, workspaces. A contract test compares it with git.

Files are compared as wholes, as git does with files of one line: a change fits where the file is as it was before it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.effect import Permit
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import RefMoved, TreeState, Workspace

Files = Mapping[str, str]
OWN = "refs/becket/"
HEADS = "refs/heads/"


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    tree: str
    files: Files
    parents: tuple[str, ...]
    message: str
    number: int  # older commits have smaller ones


@dataclass(slots=True)
class Checkout:
    """What lies in a workspace: the commit it was opened at, and the files as they are now."""

    sha: str
    files: dict[str, str]
    folder: Path


@dataclass
class ModelGit:
    """Implements the port `Git`. `person_commits` is what a person does in the repository itself."""

    root: Path
    branch: str = "main"
    commits_by_sha: dict[str, Commit] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    checkouts: dict[Path, Checkout] = field(default_factory=dict)  # by the tree's path
    dirty: set[str] = field(default_factory=set)  # paths of the person's work tree that differ from HEAD

    @property
    def common_dir(self) -> Path:
        return self.root / ".git"

    # What people and the other parts of the model do

    def make(self, files: Files, parents: Sequence[str], message: str) -> Commit:
        """The same tree on the same parents with the same message is the same commit."""
        tree = digest(sorted(files.items()))
        sha = digest([tree, list(parents), message])
        if sha not in self.commits_by_sha:
            number = len(self.commits_by_sha)
            self.commits_by_sha[sha] = Commit(sha, tree, dict(files), tuple(parents), message, number)
        return self.commits_by_sha[sha]

    def person_commits(self, changes: Mapping[str, str | None], message: str) -> Commit:
        """On top of the branch; None removes a file."""
        head = self.values.get(HEADS + self.branch)
        files = changed(self.commit(head).files if head else {}, changes)
        made = self.make(files, (head,) if head else (), message)
        self.values[HEADS + self.branch] = made.sha
        return made

    def commit(self, sha: str) -> Commit:
        if sha not in self.commits_by_sha:
            raise GitFailed(f"{sha!r} names no commit in {self.root}")
        return self.commits_by_sha[sha]

    def before(self, sha: str) -> Commit | None:
        parents = self.commit(sha).parents
        return self.commit(parents[0]) if parents else None

    def ancestors(self, sha: str) -> Iterator[Commit]:
        """The commit and everything before it, newest first."""
        waiting, seen = {sha}, set[str]()
        while waiting:
            newest = max((self.commit(one) for one in waiting), key=lambda one: one.number)
            waiting.discard(newest.sha)
            seen.add(newest.sha)
            yield newest
            waiting.update(parent for parent in newest.parents if parent not in seen)

    def at(self, tree: Path) -> dict[str, str]:
        """The files of a workspace, for the programs that run in it."""
        if tree not in self.checkouts:
            raise GitFailed(f"there is no workspace at {tree}")
        return self.checkouts[tree].files

    # The port

    async def resolve(self, revision: str) -> str | None:
        name = revision.removesuffix("^")
        sha = self.values.get(name) or self.values.get(HEADS + name) or (name if name in self.commits_by_sha else None)
        if sha is None or name == revision:
            return sha
        above = self.before(sha)
        return above.sha if above is not None else None

    async def leads_to(self, branch: str) -> str | None:
        return None

    async def tree_of(self, commit: str) -> str:
        return self.commit(await self._sha(commit)).tree

    async def refs(self) -> Mapping[str, str]:
        seen = dict(sorted(item for item in self.values.items() if not item[0].startswith(OWN)))
        return {"HEAD": f"ref: {HEADS}{self.branch}", **seen}

    async def read_bytes(self, revision: str, path: str) -> bytes | None:
        text = self.commit(await self._sha(revision)).files.get(path)
        return None if text is None else text.encode()

    async def read_files(self, commit: str, paths: Collection[str], largest: int) -> Mapping[str, bytes]:
        files = {path: text.encode() for path, text in self.commit(await self._sha(commit)).files.items()}
        return {path: data for path, data in files.items() if path in paths and len(data) <= largest}

    async def listing(self, commit: str) -> Mapping[str, str]:
        files = self.commit(await self._sha(commit)).files
        return {path: f"100644 {digest(text)}" for path, text in sorted(files.items())}

    async def absent_submodules(self, commit: str) -> Sequence[str]:
        return ()

    async def contains(self, commit: str, ancestor: str) -> bool:
        return any(one.sha == ancestor for one in self.ancestors(commit))

    async def commits(self, old: str | None, new: str, limit: int = 100) -> Sequence[str]:
        known = {one.sha for one in self.ancestors(await self._sha(old))} if old else set()
        found: list[str] = []
        for one in self.ancestors(await self._sha(new)):
            if one.sha not in known:
                found.append(one.sha)
                if len(found) >= limit:
                    break
        return found

    async def status(self, workspace: Workspace | None = None, *, untracked: bool = True) -> TreeState:
        if workspace is None:
            return TreeState(
                head=self.values.get(HEADS + self.branch), branch=self.branch, changed=tuple(sorted(self.dirty)),
                untracked=(),
            )  # fmt: skip
        files, base = self.at(workspace.tree), self.commit(workspace.sha).files
        touched = sorted(path for path, text in base.items() if files.get(path) != text)
        new = sorted(path for path in files if path not in base and untracked)
        return TreeState(head=workspace.sha, branch=None, changed=tuple(touched), untracked=tuple(new))

    async def open_workspace(self, folder: Path, revision: str, tree: Path | None = None) -> Workspace:
        sha = await self._sha(revision)
        place = tree or folder / "tree"
        self.checkouts[place] = Checkout(sha, dict(self.commit(sha).files), folder)
        return Workspace(tree=place, git_dir=folder / "git", sha=sha)

    async def find_workspace(self, folder: Path) -> Workspace | None:
        for place, checkout in self.checkouts.items():
            if checkout.folder == folder:
                return Workspace(tree=place, git_dir=folder / "git", sha=checkout.sha)
        return None

    async def rescue(self, workspace: Workspace, name: str, message: str) -> str | None:
        if (await self.status(workspace)).clean:
            return None
        saved = self.make(self.at(workspace.tree), (workspace.sha,), message)
        self.values[f"{OWN}rescue/{name}"] = saved.sha
        return saved.sha

    async def close_workspace(self, folder: Path) -> None:
        for place in [place for place, checkout in self.checkouts.items() if checkout.folder == folder]:
            del self.checkouts[place]

    async def spare_workspace(self, folder: Path) -> None:
        """It keeps none."""

    async def update_ref(self, ref: str, new: str, old: str | None, permit: Permit) -> None:
        if self.values.get(ref) != old:
            raise GitFailed(f"{ref} is at {self.values.get(ref)}, not at {old}")
        self.values[ref] = new

    async def watch(self, branches: Sequence[str], poll: float = 30.0) -> AsyncIterator[RefMoved]:
        """Whoever plays tells of moves at the moment they happen; here only the first values are told."""
        for branch in branches:
            yield RefMoved(branch=branch, old=None, new=self.values.get(HEADS + branch))
        await asyncio.Event().wait()

    async def _sha(self, revision: str) -> str:
        found = await self.resolve(revision)
        if found is None:
            raise GitFailed(f"{revision!r} names no commit in {self.root}")
        return found

    def forget_folders(self, folders: Iterable[Path]) -> None:
        """A run's folder was removed with everything in it."""
        gone = tuple(folders)
        for place, checkout in list(self.checkouts.items()):
            if any(checkout.folder.is_relative_to(folder) for folder in gone):
                del self.checkouts[place]


def changed(files: Files, changes: Mapping[str, str | None]) -> dict[str, str]:
    after = {path: text for path, text in files.items() if path not in changes}
    return after | {path: text for path, text in changes.items() if text is not None}


def digest(value: object) -> str:
    return hashlib.sha1(json.dumps(value, sort_keys=True).encode(), usedforsecurity=False).hexdigest()
