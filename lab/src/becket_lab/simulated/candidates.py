"""Commits beside every branch, and the three effects on refs, over the modelled git."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.candidate import OPEN, Bar, Barred, CommitMade, Conflict, Rescued
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.guard import Change, ChangedFile, ChangeStatus
from becket.kernel.contract.promote import PROMOTE, WhyNot
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket_lab.simulated.git import OWN, Commit, Files, ModelGit, changed


class ModelCandidates:
    """Implements the port `Candidates`."""

    def __init__(self, git: ModelGit) -> None:
        self._git = git

    async def commit_work(
        self, workspace: Workspace, message: str, keep: str, bar: Bar = OPEN
    ) -> CommitMade | Barred | None:
        files, before = self._git.at(workspace.tree), self._git.commit(workspace.sha).files
        if files == before:
            return None
        if refusals := bar.by_content(_change(before, files)):
            return Barred(refusals=tuple(refusals))
        return self._kept(files, workspace.sha, message, keep)

    async def carry_over(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        return self._moved(self._before(commit), self._git.commit(commit).files, onto, message, keep)

    async def undo(self, commit: str, onto: str, folder: Path, message: str, keep: str) -> CommitMade | Conflict:
        return self._moved(self._git.commit(commit).files, self._before(commit), onto, message, keep)

    async def with_side_of(
        self, commit: str, other: str, belongs: Callable[[str], bool], message: str, keep: str
    ) -> CommitMade:
        one = self._git.commit(commit)
        rest = {path: text for path, text in one.files.items() if not belongs(path)}
        side = {path: text for path, text in self._git.commit(other).files.items() if belongs(path)}
        if rest | side == one.files:
            return CommitMade(sha=one.sha, tree=one.tree, parent=other)
        return self._kept(rest | side, other, message, keep)

    async def change(self, old: str, new: str) -> Change:
        return _change(await self._files(old), await self._files(new))

    async def patch(self, old: str, new: str, limit: int = 2_000_000) -> bytes:
        before, after = (await self._files(old)), (await self._files(new))
        touched = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        lines = [f"--- a/{p}\n+++ b/{p}\n-{before.get(p, '')}\n+{after.get(p, '')}\n" for p in touched]
        return "".join(lines).encode()[:limit]

    async def message(self, sha: str) -> str:
        return self._git.commit(sha).message

    async def forget(self, keep: str) -> None:
        self._git.values.pop(OWN + keep, None)

    async def missing(self, sha: str) -> str | None:
        return None if sha in self._git.commits_by_sha else f"missing commit {sha}"

    async def rescued(self) -> tuple[Rescued, ...]:
        prefix = f"{OWN}rescue/"
        found = [(ref.removeprefix(prefix), sha) for ref, sha in self._git.values.items() if ref.startswith(prefix)]
        made = [(name, self._git.commit(sha)) for name, sha in found]
        newest_first = sorted(made, key=lambda item: (-item[1].number, item[0]))
        return tuple(
            Rescued(name=name, sha=one.sha, parent=one.parents[0], subject=one.message, at=float(one.number))
            for name, one in newest_first
        )

    async def _files(self, revision: str) -> Files:
        return self._git.commit(await self._git.resolve(revision) or revision).files

    def _before(self, commit: str) -> Files:
        parent = self._git.before(commit)
        return parent.files if parent is not None else {}

    def _moved(self, old: Files, new: Files, onto: str, message: str, keep: str) -> CommitMade | Conflict:
        target = self._git.commit(onto)
        touched = sorted(path for path in {*old, *new} if old.get(path) != new.get(path))
        if not touched:
            return Conflict(paths=(), message="it changes nothing")
        clashing = tuple(path for path in touched if not _fits(old.get(path), new.get(path), target.files.get(path)))
        if clashing:
            return Conflict(paths=clashing, message=f"the change does not fit: {', '.join(clashing)}")
        files = changed(target.files, {path: new.get(path) for path in touched})
        if files == target.files:
            return Conflict(paths=tuple(touched), message="the change is already there")
        return self._kept(files, onto, message, keep)

    def _kept(self, files: Files, parent: str, message: str, keep: str) -> CommitMade:
        made = self._git.make(files, (parent,), message)
        self._git.values[OWN + keep] = made.sha
        return CommitMade(sha=made.sha, tree=made.tree, parent=parent)


def _fits(old: str | None, new: str | None, found: str | None) -> bool:
    """What is there is as before, or as it shall be; only a file that shall go must be as it was."""
    return found == old or (new is not None and found == new)


def _change(before: Files, after: Files) -> Change:
    differing = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
    files = tuple(_changed_file(path, before.get(path), after.get(path)) for path in differing)
    return Change(files, len(before), frozenset(before))


def _changed_file(path: str, before: str | None, after: str | None) -> ChangedFile:
    status = ChangeStatus.added if before is None else ChangeStatus.deleted if after is None else ChangeStatus.modified
    old, new = (before or "").encode(), (after or "").encode()
    return ChangedFile(
        path=path, old_path=path, status=status,
        old_mode="000000" if before is None else "100644", new_mode="000000" if after is None else "100644",
        old_size=len(old), new_size=len(new), old=partial(bytes, old), new=partial(bytes, new),
        old_id=digest_of(before), new_id=digest_of(after),
    )  # fmt: skip


class ModelPromote:
    """Moves a branch as the tested recipe does, by fast-forward from an exact value and never over anybody's work."""

    name = PROMOTE
    class_ = EffectClass.queryable
    needs = Autonomy.merge
    timeout = 30.0

    def __init__(self, git: ModelGit) -> None:
        self._git = git

    def check(self, call: EffectCall) -> str | None:
        return None if set(call.payload) == {"new", "old", "proof"} else "the payload must be exactly {new, old, proof}"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        old, new = str(call.payload["old"]), str(call.payload["new"])
        value = self._git.values[call.target]
        if value != old:
            return self._refused(call, WhyNot.main_moved)
        if not await self._git.contains(new, old):
            return self._refused(call, WhyNot.not_fast_forward)
        if paths := self._in_the_way(self._git.commit(old), self._git.commit(new)):
            return self._refused(call, WhyNot.main_dirty, paths)
        self._git.values[call.target] = new
        return {"promoted": True, "main": new, "worktree": str(self._git.root)}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.yes if self._git.values[call.target] == call.payload["new"] else LookUpResult.no

    def _in_the_way(self, old: Commit, new: Commit) -> list[str]:
        return sorted(path for path in self._git.dirty if old.files.get(path) != new.files.get(path))

    def _refused(self, call: EffectCall, why: WhyNot, paths: list[str] | None = None) -> dict[str, Json]:
        main = self._git.values[call.target]
        return {"promoted": False, "reason": why.value, "message": why.value, "paths": paths or [], "main": main}


class ModelPropose:
    """Offers a commit as a branch below `refs/heads/becket/`."""

    name = "git.propose"
    class_ = EffectClass.queryable
    needs = Autonomy.propose
    timeout = 30.0

    def __init__(self, git: ModelGit) -> None:
        self._git = git

    def check(self, call: EffectCall) -> str | None:
        return None if call.target.startswith("refs/heads/becket/") else "only branches below becket/ are proposals"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        self._git.values[call.target] = str(call.payload["new"])
        return {"ref": call.target, "new": call.payload["new"]}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.yes if self._git.values.get(call.target) == call.payload["new"] else LookUpResult.no
