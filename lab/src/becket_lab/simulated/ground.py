"""Where a play takes place: on the modelled git, or on a small real repository."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

from becket.kernel.contract.base import Json
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.effect import EffectAdapter, EffectCall, LookUpResult, Permit
from becket.kernel.contract.git import Git
from becket.kernel.git.effects import ProposeEffect
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.effect import PromoteEffect
from becket.testing.world import make_repository, run_git
from becket_lab.simulated.candidates import ModelCandidates, ModelPromote, ModelPropose
from becket_lab.simulated.git import HEADS, Files, ModelGit

Changes = Mapping[str, str | None]
Told = Callable[[str, str, str], Awaitable[None]]
"""Hears of every move of the branch that is made, at that moment: old, new, proof."""


class Ground(Protocol):
    """The ports that loops see, and what people and contained programs do there."""

    port: Git
    candidates: Candidates
    promote: EffectAdapter
    propose: EffectAdapter

    @property
    def main(self) -> str: ...

    def person_commits(self, changes: Changes, message: str) -> str:
        """On top of main; None removes a file."""
        ...

    def litter(self, path: str) -> None:
        """Unfinished work in the person's work tree."""
        ...

    def tidy(self, path: str) -> None: ...

    def files(self, sha: str) -> Files: ...

    def history(self, sha: str) -> set[str]:
        """The commit and every one before it."""
        ...

    def at(self, tree: Path) -> dict[str, str]:
        """What a program in a workspace reads."""
        ...

    def put(self, tree: Path, changes: Changes) -> None:
        """What a program in a workspace writes."""
        ...

    def gone(self, folder: Path) -> None:
        """A run's folder was removed."""
        ...


class ModelGround:
    """Nothing of it is on a disk."""

    def __init__(self, folder: Path) -> None:
        self.git = ModelGit(folder / "repo")
        self.port: Git = self.git
        self.candidates: Candidates = ModelCandidates(self.git)
        self.promote: EffectAdapter = ModelPromote(self.git)
        self.propose: EffectAdapter = ModelPropose(self.git)

    @property
    def main(self) -> str:
        return self.git.values[HEADS + self.git.branch]

    def person_commits(self, changes: Changes, message: str) -> str:
        return self.git.person_commits(changes, message).sha

    def litter(self, path: str) -> None:
        self.git.dirty.add(path)

    def tidy(self, path: str) -> None:
        self.git.dirty.discard(path)

    def files(self, sha: str) -> Files:
        return self.git.commit(sha).files

    def history(self, sha: str) -> set[str]:
        return {commit.sha for commit in self.git.ancestors(sha)}

    def at(self, tree: Path) -> dict[str, str]:
        return dict(self.git.at(tree))

    def put(self, tree: Path, changes: Changes) -> None:
        files = self.git.at(tree)
        for path, text in changes.items():
            if text is None:
                files.pop(path, None)
            else:
                files[path] = text

    def gone(self, folder: Path) -> None:
        self.git.forget_folders([folder])


class RealGround:
    """A repository of its own, and the adapters that people use."""

    def __init__(self, folder: Path) -> None:
        self._root = folder / "repo"
        make_repository(self._root)
        repository = discover(self._root)
        self.port: Git = repository
        self.candidates: Candidates = repository.candidates()
        self.promote: EffectAdapter = PromoteEffect(repository, IntentFile(folder / "promotion"))
        self.propose: EffectAdapter = ProposeEffect(repository)
        self._read: dict[str, Files] = {}

    @property
    def main(self) -> str:
        return run_git(self._root, ["rev-parse", "refs/heads/main"])

    def person_commits(self, changes: Changes, message: str) -> str:
        """Only these paths: what else lies about stays where it is."""
        _write(self._root, changes)
        run_git(self._root, ["add", "--all", "--", *changes])
        run_git(self._root, ["commit", "--quiet", "--no-verify", "-m", message, "--", *changes])
        return self.main

    def litter(self, path: str) -> None:
        _write(self._root, {path: f"unfinished {path}\n"})

    def tidy(self, path: str) -> None:
        run_git(self._root, ["checkout", "--quiet", "HEAD", "--", path])

    def files(self, sha: str) -> Files:
        if sha not in self._read:
            listed = run_git(self._root, ["ls-tree", "-r", "--name-only", sha]).splitlines()
            self._read[sha] = {path: run_git(self._root, ["show", f"{sha}:{path}"]) + "\n" for path in listed}
        return self._read[sha]

    def history(self, sha: str) -> set[str]:
        return set(run_git(self._root, ["rev-list", sha]).split())

    def at(self, tree: Path) -> dict[str, str]:
        found = {path.relative_to(tree): path for path in tree.rglob("*") if path.is_file()}
        return {str(name): path.read_text() for name, path in found.items() if name.parts[0] != ".git"}

    def put(self, tree: Path, changes: Changes) -> None:
        _write(tree, changes)

    def gone(self, folder: Path) -> None:
        """The engine has removed it."""


def _write(folder: Path, changes: Changes) -> None:
    for path, text in changes.items():
        target = folder / path
        if text is None:
            target.unlink(missing_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)


class Overheard:
    """The promote effect, with somebody who hears of every move at the moment it is made."""

    def __init__(self, effect: EffectAdapter, told: Told) -> None:
        self._effect = effect
        self._told = told
        self.name, self.class_ = effect.name, effect.class_
        self.needs, self.timeout = effect.needs, effect.timeout

    def check(self, call: EffectCall) -> str | None:
        return self._effect.check(call)

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        result = await self._effect.perform(call, permit)
        if result.get("promoted"):
            await self._told(str(call.payload["old"]), str(call.payload["new"]), str(call.payload["proof"]))
        return result

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return await self._effect.look_up(call, key)
