"""Makes commits beside every branch: from a workspace's files, from other commits, and always the same ones."""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.candidate import CUT, OPEN, Bar, Barred, BrokenRef, CommitMade, Conflict, Rescued
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.guard import Change
from becket.kernel.contract.naming import ref_problem
from becket.kernel.git.blobs import contents_of
from becket.kernel.git.change import read_change
from becket.kernel.git.lfs import bring
from becket.kernel.git.program import GitOutput, GitPlace, run, shown
from becket.kernel.git.quarantine import Quarantine, quarantine, tidy
from becket.kernel.git.refs import OWN
from becket.kernel.git.repository import GitRepository
from becket.kernel.git.rescue import RESCUE, read_left_out
from becket.kernel.git.work import tree_of_work, work_by_size
from becket.kernel.git.workspace import close_workspace, open_git_dir, private_place

written = CrashPoint("candidate.written", "the commit is made in a folder of ours, and no ref holds it")
kept = CrashPoint("candidate.kept", "a ref holds the commit; the run does not know of it")

R = TypeVar("R")

_AUTHOR = "Becket <becket@localhost>"
_APPLY = ("apply", "--cached", "--3way", "--whitespace=nowarn", "-")
_BLAMED = re.compile(r"^error: (?:patch failed: (.+):\d+|(.+): (?:does not|already|wrong|patch does).*)$", re.MULTILINE)
_DIFF = (
    "diff-tree",
    "-r",
    "--find-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--ignore-submodules=none",
)
_PATCH = ("-p", "--binary", "--full-index", "--unified=3", "--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
_Tree = dict[bytes, bytes]


@dataclass(frozen=True, slots=True)
class _Commit:
    sha: str
    tree: str
    parents: tuple[str, ...]
    at: int
    message: str


class GitCandidates:
    """Writes to the repository's own object store, by places whose configuration is ours alone."""

    def __init__(self, git: GitRepository) -> None:
        self._git = git
        self._source = git.source
        self._place = GitPlace(git.common_dir, private=True)

    async def commit_work(
        self, workspace: Workspace, message: str, keep: str, bar: Bar = OPEN
    ) -> CommitMade | Barred | None:
        parent = await self._read(workspace.sha)
        if refusals := bar.by_size(await work_by_size(workspace)):
            return Barred(refusals=tuple(refusals))

        async def left(new: Quarantine) -> str | Barred | None:
            tree = await tree_of_work(workspace, new)
            if tree == parent.tree:
                return None
            refusals = bar.by_content(await read_change(new.at(self._place), parent.tree, tree))
            if refusals:
                return Barred(refusals=tuple(refusals))
            await asyncio.to_thread(bring, workspace.git_dir, self._git.common_dir)
            return tree

        return await self._commit(left, parent, message, keep)

    async def carry_over(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        moved = await self._read(commit)
        return await self._change(await self._before(moved), moved.sha, onto, folder, message, keep)

    async def undo(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        undone = await self._read(commit)
        return await self._change(undone.sha, await self._before(undone), onto, folder, message, keep)

    async def with_side_of(
        self, commit: str, other: str, belongs: Callable[[str], bool], message: str, keep: str
    ) -> CommitMade:
        one, parent = await self._read(commit), await self._read(other)
        before = await self._listing(one.sha)
        after = _crossed(before, await self._listing(parent.sha), belongs)
        if after == before:
            return CommitMade(sha=one.sha, tree=one.tree, parent=parent.sha)
        moved = _index_info(before, after, len(one.sha))

        async def crossed(new: Quarantine) -> str:
            with tempfile.TemporaryDirectory(prefix="becket-side-") as folder:
                async with self._index(Path(folder) / "side", one.sha, new) as place:
                    await run(place, "update-index", "-z", "--index-info", stdin=moved)
                    return (await run(place, "write-tree", "--missing-ok")).text

        return await self._commit(crossed, parent, message, keep)

    async def with_work(self, commit: str, paths: Iterable[str], message: str, keep: str) -> CommitMade | None:
        """`commit` with these files and folders as the person's work tree has them, without what is ignored; None if
        that makes no difference. Their own index stays as it is.
        """
        parent = await self._read(commit)
        there = [path for path in paths if os.path.lexists(self._git.root / path)]

        async def added(new: Quarantine) -> str | None:
            with tempfile.TemporaryDirectory(prefix="becket-work-") as folder:
                place = replace(new.at(self._git.place), index=Path(folder) / "index")
                await run(place, "read-tree", parent.sha)
                await run(place, "add", "--all", "--", *there, ok=(0, 1))  # 1: something of it is ignored
                tree = (await run(place, "write-tree", "--missing-ok")).text
            return tree if tree != parent.tree else None

        return await self._commit(added, parent, message, keep) if there else None

    async def change(self, old: str, new: str) -> Change:
        return await read_change(self._place, await self._resolved(old), await self._resolved(new))

    async def patch(self, old: str, new: str, limit: int = 2_000_000) -> bytes:
        whole = await self._readable_patch(await self._resolved(old), await self._resolved(new))
        if len(whole) <= limit:
            return whole
        shortened = whole[: whole.rfind(b"\n", 0, limit) + 1]
        remark = f"{CUT}{len(whole) - len(shortened)} of {len(whole)} bytes are left out; it does not apply\n"
        return shortened + remark.encode()

    async def paths(self, old: str, new: str) -> tuple[str, ...]:
        """What differs, by name."""
        output = await run(
            self._place, *_DIFF, "--name-only", "-z", "--end-of-options", await self._resolved(old),
            await self._resolved(new), "--",
        )  # fmt: skip
        return _paths(output)

    async def message(self, sha: str) -> str:
        return (await self._read(sha)).message

    async def forget(self, keep: str) -> None:
        await run(self._place, "update-ref", "--no-deref", "-d", _kept(keep))

    async def missing(self, sha: str) -> str | None:
        """Its files and those of its parents. What came before is the person's, and takes long."""
        return await self._missing([sha])

    async def broken(self) -> tuple[BrokenRef, ...]:
        """Refs of ours whose objects are not all there; a person's gc fails over each of them."""
        kept = await self._git.refs_below(OWN)
        if not kept or await self._missing(kept.values()) is None:
            return ()
        found = [(ref, sha, await self._missing([sha])) for ref, sha in kept.items()]
        return tuple(BrokenRef(ref=ref, sha=sha, missing=missing) for ref, sha, missing in found if missing)

    async def mend(self) -> tuple[BrokenRef, ...]:
        """Remove the broken ones, unless somebody has moved them meanwhile."""
        broken = await self.broken()
        for found in broken:
            await run(self._place, "update-ref", "--no-deref", "-d", found.ref, found.sha)
        return broken

    async def size(self, *rescued: Rescued) -> int:
        """Bytes on the disk that they alone take."""
        shas = [item.sha for item in rescued] + [f"^{item.parent}" for item in rescued if item.parent]
        asked = "".join(f"{sha}\n" for sha in shas).encode()
        if not asked:
            return 0
        return int((await run(self._place, "rev-list", "--objects", "--disk-usage", "--stdin", stdin=asked)).text)

    async def tidy(self) -> None:
        """Of what Becket itself put into the repository's store of objects."""
        await tidy(self._source)

    async def _missing(self, shas: Iterable[str]) -> str | None:
        asked = "".join(f"{sha}\n{sha}^@\n" for sha in shas).encode()
        command = ("rev-list", "--objects", "--quiet", "--no-walk", "--stdin")
        output = await run(self._place, *command, stdin=asked, ok=(0, 1, 128))
        if output.code == 0:
            return None
        return (output.stderr.strip().splitlines() or ["something"])[0].removeprefix("fatal: ")

    async def kept(self) -> tuple[str, ...]:
        """Every kept name that belongs to a run: `candidate/<run>/...` and `crossing/<run>`."""
        listed = await self._git.refs_below(f"{OWN}candidate/", f"{OWN}crossing/")
        return tuple(ref.removeprefix(OWN) for ref in listed)

    async def rescued(self) -> tuple[Rescued, ...]:
        """Those whose commit is there; of the others doctor tells."""
        kept = await self._git.refs_below(RESCUE)
        asked = "".join(f"{sha}\n" for sha in kept.values()).encode()
        listed = (await run(self._place, "cat-file", "--batch-check", stdin=asked)).text.splitlines() if asked else []
        commits = {line.split(" ")[0] for line in listed if " commit " in line}
        raw = await contents_of(self._place, sorted(commits))
        found = [
            _rescued(ref.removeprefix(RESCUE), _parsed(sha, raw[sha])) for ref, sha in kept.items() if sha in commits
        ]
        return tuple(sorted(found, key=lambda item: (-item.at, item.name)))

    async def _change(
        self, old: str, new: str, onto: str, folder: Path, message: str, keep: str
    ) -> CommitMade | Conflict:
        """What leads from `old` to `new`, on top of another commit.

        By the index alone: attributes of the work tree play no part, and nothing has to be checked out.
        """
        parent = await self._read(onto)
        patch = await self._patch(old, new)
        touched = _paths(await run(self._place, *_DIFF, "--name-only", "-z", "--end-of-options", old, new, "--"))
        if not patch:
            return Conflict(paths=(), message=f"{_short(new)} changes nothing against {_short(old)}")

        async def changed(new: Quarantine) -> str | Conflict:
            async with self._index(folder, parent.sha, new) as place:
                applied = await run(place, *_APPLY, stdin=patch, ok=(0, 1, 128))
                if applied.code:
                    return await self._conflict(place, parent, patch, touched, applied)
                tree = (await run(place, "write-tree", "--missing-ok")).text
            return tree if tree != parent.tree else _already_there(parent, touched)

        return await self._commit(changed, parent, message, keep)

    async def _conflict(
        self, place: GitPlace, onto: _Commit, patch: bytes, touched: tuple[str, ...], applied: GitOutput
    ) -> Conflict:
        unmerged = (await run(place, "ls-files", "--unmerged", "-z")).stdout.split(b"\0")[:-1]
        blamed = {one or other for one, other in _BLAMED.findall(applied.stderr)} & set(touched)
        paths = {shown(entry.partition(b"\t")[2]) for entry in unmerged} or blamed or set(touched)
        await run(place, "read-tree", onto.sha)
        reverse = await run(place, "apply", "--cached", "--check", "--reverse", "-", stdin=patch, ok=(0, 1, 128))
        if reverse.code == 0:
            return _already_there(onto, touched)
        told = ", ".join(sorted(paths)[:5]) + (", ..." if len(paths) > 5 else "")
        return Conflict(paths=tuple(sorted(paths)), message=f"the change does not fit onto {_short(onto.sha)}: {told}")

    @asynccontextmanager
    async def _index(self, folder: Path, commit: str, new: Quarantine) -> AsyncIterator[GitPlace]:
        """An index of a commit, in a git directory of its own over an empty tree; what is made goes to the quarantine.

        Empty, but needed: git writes a file there when a new one meets another of the same name.
        """
        workspace = await asyncio.to_thread(open_git_dir, self._source, folder.absolute(), commit)
        try:
            place = new.at(private_place(workspace))
            await run(place, "read-tree", commit)
            yield place
        finally:
            await asyncio.shield(close_workspace(folder.absolute()))

    async def _commit(
        self, tree_in: Callable[[Quarantine], Awaitable[str | R]], parent: _Commit, message: str, keep: str
    ) -> CommitMade | R:
        """The commit of a tree, and the ref that keeps it; or whatever there is instead of a tree."""
        ref = _kept(keep)
        async with quarantine(self._source) as new:

            async def make() -> tuple[CommitMade, Path | None] | R:
                tree = await tree_in(new)
                if not isinstance(tree, str):
                    return tree
                sha = await self._written(new, tree, parent, message)
                return CommitMade(sha=sha, tree=tree, parent=parent.sha), await new.pack(sha, parent.sha)

            result = await new.made(make)
            if not isinstance(result, tuple):
                return result
            made, pack = result
            written()
            await new.name(ref, made.sha, pack)
        kept()
        return made

    async def _written(self, new: Quarantine, tree: str, parent: _Commit, message: str) -> str:
        """Written byte by byte: neither the clock nor anybody's configuration has a part in it."""
        who = f"{_AUTHOR} {parent.at + 1} +0000"
        text = message.replace("\0", "").rstrip("\n")
        body = f"tree {tree}\nparent {parent.sha}\nauthor {who}\ncommitter {who}\n\n{text}\n"
        raw = body.encode("utf-8", "backslashreplace")
        return (await run(new.at(self._place), "hash-object", "-t", "commit", "-w", "--stdin", stdin=raw)).text

    async def _resolved(self, revision: str) -> str:
        sha = await self._git.resolve(revision)
        if sha is None:
            raise GitFailed(f"{revision!r} names no commit in {self._git.root}; was it pruned?")
        return sha

    async def _read(self, revision: str) -> _Commit:
        sha = await self._resolved(revision)
        return _parsed(sha, (await run(self._place, "cat-file", "commit", sha)).stdout)

    async def _before(self, commit: _Commit) -> str:
        """Its first parent; for the first commit of all, the tree without a file."""
        if commit.parents:
            return commit.parents[0]
        return (await run(self._place, "hash-object", "-t", "tree", "--stdin")).text

    async def _patch(self, old: str, new: str, *options: str) -> bytes:
        return (await run(self._place, *options, *_DIFF, *_PATCH, "--end-of-options", old, new, "--")).stdout

    async def _readable_patch(self, old: str, new: str) -> bytes:
        """With names as people write them, unless a reader would have to guess what its bytes mean."""
        patch = await self._patch(old, new, "-c", "core.quotePath=false")
        try:
            patch.decode("utf-8")
        except UnicodeDecodeError:
            return await self._patch(old, new)
        return patch

    async def _listing(self, commit: str) -> _Tree:
        listing = await self._source.listing(commit)
        entries = (entry.partition(b"\t") for entry in listing.split(b"\0")[:-1])
        return {path: meta for meta, _, path in entries}


def _rescued(name: str, commit: _Commit) -> Rescued:
    return Rescued(
        name=name, sha=commit.sha, parent=commit.parents[0] if commit.parents else "",
        subject=commit.message.partition("\n")[0], at=float(commit.at), left_out=read_left_out(commit.message),
    )  # fmt: skip


def _crossed(one: _Tree, other: _Tree, belongs: Callable[[str], bool]) -> _Tree:
    """`other` on the side that belongs, `one` elsewhere. Where a file and a folder collide, the side wins."""
    side = {path: entry for path, entry in other.items() if belongs(shown(path))}
    folders = {parent for path in side for parent in _parents(path)}
    rest = {
        path: entry
        for path, entry in one.items()
        if not belongs(shown(path)) and path not in folders and side.keys().isdisjoint(_parents(path))
    }
    return rest | side


def _parents(path: bytes) -> list[bytes]:
    parts = path.split(b"/")
    return [b"/".join(parts[:depth]) for depth in range(1, len(parts))]


def _index_info(before: _Tree, after: _Tree, width: int) -> bytes:
    """Removals first: then no file is in the way of a folder, or the reverse."""
    gone = [b"0 " + b"0" * width + b"\t" + path for path in before if path not in after]
    put = [b"%b %b\t%b" % (*entry.split(b" ")[::2], path) for path, entry in after.items() if before.get(path) != entry]
    return b"".join(line + b"\0" for line in (*gone, *put))


def _parsed(sha: str, raw: bytes) -> _Commit:
    head, _, message = raw.partition(b"\n\n")
    # A signature's lines begin with a blank; they belong to the header before them.
    headers = [line.partition(b" ") for line in head.split(b"\n") if not line.startswith(b" ")]
    fields = {name: value for name, _, value in headers}
    parents = tuple(value.decode() for name, _, value in headers if name == b"parent")
    try:
        at = int(fields[b"committer"].rsplit(b" ", 2)[1])
        return _Commit(sha, fields[b"tree"].decode(), parents, at, _text(message, fields.get(b"encoding", b"")))
    except (KeyError, IndexError, ValueError) as error:
        raise GitFailed(f"the commit {sha} cannot be read; run `git fsck`") from error


def _text(message: bytes, encoding: bytes) -> str:
    try:
        return message.decode(encoding.decode("ascii") or "utf-8")
    except (LookupError, UnicodeDecodeError):
        return shown(message)


def _kept(keep: str) -> str:
    ref = f"{OWN}{keep}"
    if problem := ref_problem(ref):
        raise GitFailed(problem)
    return ref


def _paths(output: GitOutput) -> tuple[str, ...]:
    return tuple(shown(path) for path in output.stdout.split(b"\0")[:-1])


def _already_there(onto: _Commit, touched: tuple[str, ...]) -> Conflict:
    return Conflict(paths=touched, message=f"the change is already there in {_short(onto.sha)}")


def _short(sha: str) -> str:
    return sha[:12]
