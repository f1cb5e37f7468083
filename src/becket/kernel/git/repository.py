"""The person's repository behind the Git port. `discover` finds it; everything else names it in full."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from becket.kernel.contract.candidate import RescueRules
from becket.kernel.contract.effect import Permit
from becket.kernel.contract.errors import GitFailed, UsageError
from becket.kernel.contract.git import RefMoved, TreeState, Workspace
from becket.kernel.contract.naming import ref_problem
from becket.kernel.git import workspace as workspaces
from becket.kernel.git.blobs import by_path, files_of, listing
from becket.kernel.git.history import History
from becket.kernel.git.move import move_ref, propose_ref, withdraw_ref
from becket.kernel.git.program import GitCommandFailed, GitOutput, GitPlace, run, run_at_start
from becket.kernel.git.refs import OWN, SHA, Refs
from becket.kernel.git.resident import exclude
from becket.kernel.git.spare import keep
from becket.kernel.git.status import read_status
from becket.kernel.git.submodules import absent

if TYPE_CHECKING:
    from becket.kernel.git.candidates import GitCandidates
    from becket.kernel.git.remote import GitRemote

MOST_REMEMBERED = 256
MIN_VERSION = (2, 32)  # the first that can be told to ignore the person's configuration


def version() -> tuple[int, ...]:
    """Of the git program on the PATH. Called by doctor, and compared with MIN_VERSION."""
    said = run_at_start(Path("/"), "version").text
    number = re.search(r"\d+(?:\.\d+)+", said)
    if number is None:
        raise GitFailed(f"`git version` said {said!r}; is it git that is on the PATH?")
    return tuple(int(part) for part in number[0].split("."))


def discover(path: Path) -> GitRepository:
    """The repository that holds `path`. Called once, at start; blocks for one spawn."""
    if not path.is_dir():
        raise UsageError(f"{path} is not a folder; start Becket in a git repository")
    questions = ("--git-dir", "--git-common-dir", "--show-object-format", "--is-bare-repository", "--show-toplevel")
    output = run_at_start(path, "rev-parse", "--path-format=absolute", *questions)
    answers = os.fsdecode(output.stdout).splitlines()
    if len(answers) < 4:
        raise _not_found(path, output)
    git_dir, common_dir, object_format, bare, *top = answers
    if bare == "true":
        return GitRepository(Path(git_dir), Path(git_dir), Path(common_dir), object_format)
    if len(top) != 1:
        raise UsageError(f"{path} lies inside a git directory; start Becket in the work tree")
    return GitRepository(Path(top[0]), Path(git_dir), Path(common_dir), object_format)


def _not_found(path: Path, output: GitOutput) -> UsageError:
    if "not a git repository" in output.stderr:
        return UsageError(f"{path} is not in a git repository; run `git init` there, or start Becket in one")
    return UsageError(f"git refuses the repository at {path}: {output.stderr.strip()}")


class GitRepository:
    """One repository, reached by the git program. Holds no process and no open file between calls."""

    def __init__(self, root: Path, git_dir: Path, common_dir: Path, object_format: str = "sha1") -> None:
        self.root = root
        self.common_dir = common_dir
        self.place = GitPlace(git_dir, None if root == git_dir else root)
        """The person's own repository and work tree."""
        self.ref_store = Refs(self.place, common_dir)
        history = History(self.place, common_dir, common_dir / "becket" / "history")
        self.source = workspaces.Source(self.place, self.ref_store, object_format, history)
        """For the adapter's other parts."""
        self.degraded: str | None = None
        """Why watching is slower than it should be; None if it is not. Shown by doctor and status."""
        self._trees: dict[str, str] = {}
        self.rescue_rules: Callable[[], RescueRules] = RescueRules

    @property
    def bare(self) -> bool:
        return self.place.work_tree is None

    async def resolve(self, revision: str) -> str | None:
        if "\0" in revision:
            return None
        if revision in self._trees:  # a commit stays what it is
            return revision
        if revision.startswith("refs/heads/") and not ref_problem(revision) and (value := await self.value(revision)):
            return value
        if SHA.fullmatch(revision) and (commit := await self._known_commit(revision)):
            return commit
        command = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        output = await run(self.place, *command, ok=(0, 1, 128))
        if output.code == 128 and output.stderr:  # silent where the revision is well formed and leads nowhere
            raise GitCommandFailed(command, self.place.cwd, output.code, output.stderr)
        return output.text or None

    async def _known_commit(self, name: str) -> str | None:
        """Asked for together with its tree: whoever names a commit in full mostly wants that next."""
        asked = f"{name}^{{commit}}\n{name}^{{tree}}\n".encode()
        output = await run(self.place, "cat-file", "--batch-check=%(objectname)", stdin=asked)
        commit, tree = output.text.splitlines()
        if not SHA.fullmatch(commit):
            return None
        if SHA.fullmatch(tree):
            self._remember_tree(commit, tree)
        return commit

    async def value(self, ref: str) -> str | None:
        """What a full ref name holds, unpeeled; None if it does not exist."""
        return await self.ref_store.value(ref)

    async def leads_to(self, branch: str) -> str | None:
        target = self.ref_store.leads_to(f"refs/heads/{branch}")
        return target and target.removeprefix("refs/heads/")

    async def tree_of(self, commit: str) -> str:
        if commit in self._trees:
            return self._trees[commit]
        output = await run(self.place, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")
        if SHA.fullmatch(commit) and commit != output.text:  # neither a name, which may move, nor a tree
            self._remember_tree(commit, output.text)
        return output.text

    def _remember_tree(self, commit: str, tree: str) -> None:
        if len(self._trees) >= MOST_REMEMBERED:
            self._trees.clear()
        self._trees[commit] = tree

    async def refs(self) -> Mapping[str, str]:
        """HEAD is told as `ref: refs/heads/...` unless it is detached: a switch of branch counts as a move."""
        listed = await self.ref_store.listed()
        ours_left_out = {ref: sha for ref, sha in listed.items() if not ref.startswith(OWN)}
        return {"HEAD": await self.ref_store.head(), **ours_left_out}

    async def read_bytes(self, revision: str, path: str) -> bytes | None:
        if "\n" in revision or "\n" in path:
            raise GitFailed(f"{revision}:{path!r} cannot be read: a line break is not supported here")
        name = f"{revision}:{path.removeprefix('./')}"
        output = await run(self.place, "cat-file", "--batch", stdin=f"{name}\n".encode(errors="surrogateescape"))
        header, _, content = output.stdout.partition(b"\n")
        fields = header.split(b" ")
        if len(fields) == 3 and fields[1] == b"blob" and fields[2].isdigit():
            return content[: int(fields[2])]
        if await self.resolve(revision) is None:
            raise GitFailed(f"{revision!r} names no commit in {self.root}, so {path} cannot be read from it")
        return None

    async def read_files(self, commit: str, paths: Collection[str], largest: int) -> Mapping[str, bytes]:
        return await files_of(self.place, await self.listing(commit), paths, largest)

    async def refs_below(self, *prefixes: str) -> Mapping[str, str]:
        return await self.ref_store.listed(*(prefix.rstrip("/") for prefix in prefixes))

    async def listing(self, commit: str) -> Mapping[str, str]:
        listed = self.source.listing(commit) if SHA.fullmatch(commit) else listing(self.place, commit)
        return by_path(await listed)

    async def tracked(self) -> frozenset[str]:
        """The files of the work tree that git tracks, its submodules' not among them."""
        return await self._files("--cached")

    async def untracked(self) -> frozenset[str]:
        """The files that it neither tracks nor ignores."""
        return await self._files("--others", "--exclude-standard")

    async def _files(self, *which: str) -> frozenset[str]:
        names = (await run(self.place, "ls-files", "-z", *which)).stdout.split(b"\0")
        return frozenset(name.decode(errors="surrogateescape") for name in names if name)

    async def absent_submodules(self, commit: str) -> Sequence[str]:
        links = (await self.source.inventory(commit)).submodules
        return await absent(self.source.git_dirs, links, await self.source.modules(commit)) if links else ()

    async def contains(self, commit: str, ancestor: str) -> bool:
        if commit == ancestor and commit in self._trees:
            return True
        asked = ("merge-base", "--is-ancestor", ancestor, commit)
        return (await run(self.place, *asked, ok=(0, 1))).code == 0

    async def has_change(self, head: str, commit: str) -> bool:
        """Does the same change as this commit's stand before `head`, as whatever commit?"""
        told = await run(self.place, "cherry", head, commit, f"{commit}^")
        return told.text.startswith("- ")

    async def commits(self, old: str | None, new: str, limit: int = 100) -> Sequence[str]:
        excluded = (f"^{old}",) if old else ()
        output = await run(self.place, "rev-list", f"--max-count={limit}", "--end-of-options", new, *excluded, "--")
        return output.text.split()

    async def status(self, workspace: Workspace | None = None, *, untracked: bool = True) -> TreeState:
        if workspace is not None:
            return await workspaces.status(self.source, workspace, untracked=untracked)
        if self.bare:
            raise GitFailed(f"{self.root} is a bare repository: it has no work tree to look at")
        return await read_status(self.place, untracked=untracked)

    async def open_workspace(self, folder: Path, revision: str, tree: Path | None = None) -> Workspace:
        sha = await self.resolve(revision)
        if sha is None:
            raise GitFailed(f"{revision!r} names no commit in {self.root}; nothing was checked out")
        place = None if tree is None else Path(os.path.normpath(tree.absolute()))
        workspace = await workspaces.open_workspace(self.source, folder.absolute(), sha, place)
        if place is not None and not self.bare and place.is_relative_to(self.root):
            exclude(self.root, place, self.common_dir)
        return workspace

    async def rescue(self, workspace: Workspace, name: str, message: str) -> str | None:
        from becket.kernel.git.rescue import rescue

        return await rescue(self, workspace, name, message)

    async def find_workspace(self, folder: Path) -> Workspace | None:
        return workspaces.find_workspace(folder.absolute())

    async def close_workspace(self, folder: Path) -> None:
        await workspaces.close_workspace(folder.absolute())

    async def spare_workspace(self, folder: Path) -> None:
        workspace = await self.find_workspace(folder)
        if workspace is not None and workspace.tree.parent == workspace.git_dir.parent:
            await keep(self.source, workspace)

    async def update_ref(self, ref: str, new: str, old: str | None, permit: Permit) -> None:
        await move_ref(self.ref_store, ref, new, old, permit)

    async def propose(self, ref: str, new: str, permit: Permit) -> None:
        """Make a branch below `refs/heads/becket/`. An effect: demands the door's permit."""
        await propose_ref(self.ref_store, ref, new, permit)

    async def withdraw(self, ref: str, at: str) -> bool:
        """Remove a branch below `refs/heads/becket/` whose commit a person accepted. False: it stays."""
        return await withdraw_ref(self.ref_store, ref, at)

    def candidates(self) -> GitCandidates:
        from becket.kernel.git.candidates import GitCandidates

        return GitCandidates(self)

    def remote(self) -> GitRemote:
        from becket.kernel.git.remote import GitRemote

        return GitRemote(self.ref_store)

    def watch(self, branches: Sequence[str], poll: float = 30.0) -> AsyncIterator[RefMoved]:
        from becket.kernel.git.watch import watch

        possible = tuple(branch for branch in branches if ref_problem(f"refs/heads/{branch}") is None)
        return watch(self.ref_store, possible, poll, self._note)

    def _note(self, degraded: str | None) -> None:
        self.degraded = degraded
