"""The modelled git of the simulations against the real one: the same random script, and every answer compared."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pytest
from git_repos import git

from becket.kernel.contract.base import Json
from becket.kernel.contract.candidate import Candidates, CommitMade, Conflict
from becket.kernel.contract.effect import EffectAdapter, EffectCall, Origin
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.promote import PROMOTE
from becket.kernel.contract.spec import Autonomy
from becket.kernel.engine.door import Door
from becket.kernel.engine.redact import Redactor
from becket.kernel.git.effects import ProposeEffect
from becket.kernel.git.repository import discover
from becket.kernel.store import open_memory
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.effect import PromoteEffect
from becket.testing.clock import ManualClock
from becket_lab.simulated.candidates import ModelCandidates, ModelPromote, ModelPropose
from becket_lab.simulated.git import ModelGit

PATHS = ("a", "b", "mods/c", "mods/d", "tests/e", "tests/f")
MAIN = "refs/heads/main"
Changes = Mapping[str, str | None]


class Side(Protocol):
    """One implementation, and what only it can do for the script."""

    port: Git
    candidates: Candidates
    effects: tuple[EffectAdapter, ...]

    def person(self, changes: Changes, message: str) -> str: ...

    def litter(self, path: str) -> None: ...

    def tidy(self) -> None: ...

    def edit(self, workspace: Workspace, changes: Changes) -> None: ...


class RealSide:
    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        git(self.home, "init", "--quiet", "--initial-branch=main")
        git(self.home, "commit", "--quiet", "--allow-empty", "-m", "nothing yet")
        repository = discover(self.home)
        self.port: Git = repository
        self.candidates: Candidates = repository.candidates()
        self.effects = (PromoteEffect(repository, IntentFile(folder / "intent")), ProposeEffect(repository))

    def person(self, changes: Changes, message: str) -> str:
        write(self.home, changes)
        git(self.home, "add", "--all")
        git(self.home, "commit", "--quiet", "--allow-empty", "-m", message)
        return git(self.home, "rev-parse", "HEAD")

    def litter(self, path: str) -> None:
        write(self.home, {path: f"{path} unfinished\n"})

    def tidy(self) -> None:
        git(self.home, "reset", "--quiet", "--hard")
        git(self.home, "clean", "-fdq")

    def edit(self, workspace: Workspace, changes: Changes) -> None:
        write(workspace.tree, changes)


class ModelSide:
    def __init__(self, folder: Path) -> None:
        self.git = ModelGit(folder / "home")
        self.git.person_commits({}, "nothing yet")
        self.port: Git = self.git
        self.candidates: Candidates = ModelCandidates(self.git)
        self.effects = (ModelPromote(self.git), ModelPropose(self.git))

    def person(self, changes: Changes, message: str) -> str:
        return self.git.person_commits(changes, message).sha

    def litter(self, path: str) -> None:
        self.git.dirty.add(path)

    def tidy(self) -> None:
        self.git.dirty.clear()

    def edit(self, workspace: Workspace, changes: Changes) -> None:
        files = self.git.at(workspace.tree)
        for path, text in changes.items():
            if text is None:
                files.pop(path, None)
            else:
                files[path] = text


def write(folder: Path, changes: Changes) -> None:
    for path, text in changes.items():
        if text is None:
            (folder / path).unlink(missing_ok=True)
        else:
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)


@dataclass
class Script:
    """Plays one script on one side. Commits are called by the order in which they were made."""

    side: Side
    folder: Path
    chance: random.Random
    shas: list[str] = field(default_factory=list)
    told: list[Json] = field(default_factory=list)
    numbers: int = 0

    async def play(self, steps: int) -> list[Json]:
        self.clock = ManualClock()
        adapters = {effect.name: effect for effect in self.side.effects}
        self.door = Door(open_memory(self.clock), adapters, Redactor({}), {})
        self.shas.append(await self._main())
        for _ in range(3):
            await self._person()
        deeds: list[Callable[[], Awaitable[None]]] = [
            self._person, self._work, self._carry, self._undo, self._mix, self._look, self._promote, self._propose,
        ]  # fmt: skip
        for number in range(steps):
            deed = self.chance.choices(deeds, (3, 3, 3, 2, 1, 2, 4, 1))[0]
            self.told.append([number, deed.__name__])
            await deed()
            self.told.append(self._name(await self._main()))
        return self.told

    async def _main(self) -> str:
        sha = await self.side.port.resolve(MAIN)
        assert sha is not None
        return sha

    def _name(self, sha: str | None) -> int:
        return self.shas.index(sha) if sha in self.shas else -1

    def _any(self) -> str:
        """Mostly a young commit: most pairs of old ones have nothing to do with each other."""
        return self.shas[-1 - min(int(self.chance.expovariate(0.4)), len(self.shas) - 1)]

    def _changes(self) -> dict[str, str | None]:
        paths = self.chance.sample(PATHS, self.chance.choice((1, 1, 2)))
        return {path: None if self.chance.random() < 0.15 else self._text(path) for path in paths}

    def _text(self, path: str) -> str:
        self.numbers += 1
        return f"{path} {self.chance.choice(('x', 'y', str(self.numbers)))}\n"

    async def _person(self) -> None:
        self.numbers += 1
        self.shas.append(self.side.person(self._changes(), f"change {self.numbers}"))

    async def _work(self) -> None:
        sha, folder = self._any(), self.folder / f"ws{self.chance.randrange(2)}"
        workspace = await self.side.port.open_workspace(folder, sha)
        self.side.edit(workspace, self._changes())
        state = await self.side.port.status(workspace)
        self.told.append([self._name(state.head), list(state.changed), list(state.untracked)])
        self.told.append(await self.side.port.find_workspace(folder) is not None)
        self.numbers += 1
        if self.chance.random() < 0.3:
            saved = await self.side.port.rescue(workspace, f"run_{self.numbers}", "left")
            self.told.append([saved is None, len(await self.side.candidates.rescued())])
            await self.side.port.close_workspace(folder)
        else:
            await self._made(await self.side.candidates.commit_work(workspace, f"work {self.numbers}", self._keep()))

    def _keep(self) -> str:
        return f"candidate/{self.numbers}"

    async def _carry(self) -> None:
        commit, onto = self._any(), self._any()
        self.numbers += 1
        moved = await self.side.candidates.carry_over(
            commit, onto, self.folder / "rebase", f"moved {self.numbers}", self._keep()
        )
        await self._made(moved)

    async def _undo(self) -> None:
        commit, onto = self._any(), self._any()
        self.numbers += 1
        undone = await self.side.candidates.undo(
            commit, onto, self.folder / "rebase", f"undone {self.numbers}", self._keep()
        )
        await self._made(undone)

    async def _mix(self) -> None:
        one, other = self._any(), self._any()
        self.numbers += 1
        mixed = await self.side.candidates.with_side_of(
            one, other, lambda path: path.startswith("tests/"), f"mixed {self.numbers}", self._keep()
        )
        await self._made(mixed)

    async def _made(self, made: CommitMade | Conflict | None) -> None:
        if not isinstance(made, CommitMade):
            self.told.append(type(made).__name__)
            return
        self.shas.append(made.sha)
        same_tree = [self._name(sha) for sha in self.shas[-4:] if await self.side.port.tree_of(sha) == made.tree]
        self.told.append([self._name(made.parent), await self._files(made.sha), same_tree])
        self.told.append((await self.side.candidates.message(made.sha)).strip())

    async def _files(self, sha: str) -> Json:
        """Names and contents. The real git tells contents by their own hashes, so the model's are made such ones."""
        listing = await self.side.port.listing(sha)
        if isinstance(self.side, ModelSide):
            files = self.side.git.commit(sha).files
            return {path: f"100644 {blob(text)}" for path, text in sorted(files.items())}
        return dict(sorted(listing.items()))

    async def _look(self) -> None:
        one, other, port = self._any(), self._any(), self.side.port
        path = self.chance.choice(PATHS)
        change = await self.side.candidates.change(one, other)
        self.told.append([[file.path, file.status, file.new().decode()] for file in change.files])
        self.told.append([change.total_files, sorted(change.base_paths)])
        self.told.append([await port.contains(one, other), str(await port.read_bytes(one, path))])
        read = await port.read_files(one, PATHS[:3], 5)
        self.told.append({path: content.decode() for path, content in sorted(read.items())})
        self.told.append([sorted(map(self._name, await port.commits(other, one))), sorted(await port.refs())])
        self.told.append([self._name(sha) for sha in await port.commits(None, one, 3)])
        self.told.append(self._name(await port.resolve(f"{one}^")))

    async def _promote(self) -> None:
        main = await self._main()
        old = main if self.chance.random() < 0.7 else self._any()
        above = [sha for sha in self.shas if sha != main and await self.side.port.contains(sha, main)]
        new = self.chance.choice(above) if above and self.chance.random() < 0.8 else self._any()
        path = self.chance.choice(PATHS)
        if old == new:
            return
        dirty = self.chance.random() < 0.3 and await self.side.port.read_bytes(main, path) is not None
        if dirty:
            self.side.litter(path)
        result = await self._perform(PROMOTE, MAIN, {"new": new, "old": old, "proof": "proof"})
        self.told.append([result.get("promoted"), result.get("reason"), result.get("paths"), dirty])
        self.side.tidy()

    async def _propose(self) -> None:
        sha = self._any()
        self.numbers += 1
        await self._perform("git.propose", f"refs/heads/becket/heal/{self.numbers}", {"new": sha})

    async def _perform(self, name: str, target: str, payload: dict[str, Json]) -> dict[str, Json]:
        self.numbers += 1
        origin = Origin(run_id=f"run_{self.numbers}", iteration=1, phase="decide", action_id="act")
        call = EffectCall(name=name, target=target, payload=payload)
        report = await self.door.perform(call, origin, None, Autonomy.merge, False)
        self.told.append(report.state)
        return report.result


def blob(text: str) -> str:
    data = text.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def compared(folder: Path, seed: int, steps: int) -> None:
    answers = []
    for make in (RealSide, ModelSide):
        here = folder / make.__name__
        here.mkdir()
        answers.append(asyncio.run(Script(make(here), here, random.Random(seed)).play(steps)))
    real, model = answers
    for number, (one, other) in enumerate(zip(real, model, strict=False)):
        assert one == other, f"after {real[max(0, number - 4) : number]}: git says {one}, the model {other}"
    assert len(real) == len(model)


@pytest.mark.parametrize("seed", [1])
def test_the_model_answers_as_git_does(tmp_path: Path, seed: int) -> None:
    """What the simulation rests on: commits, rebases, reverts, workspaces, promotions and proposals."""
    compared(tmp_path, seed, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10, 18))
def test_the_model_answers_as_git_does_at_length(tmp_path: Path, seed: int) -> None:
    compared(tmp_path, seed, 60)
