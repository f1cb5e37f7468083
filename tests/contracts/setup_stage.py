"""What the set-up suites play on: a repository, its state folder, and proofs as a gate runs them."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from git_repos import commit, git, new_repository

from becket.kernel.contract.git import Workspace
from becket.kernel.contract.process import ChildResult, ChildSpec, ChildWatcher, Network, SandboxKind
from becket.kernel.git.repository import discover
from becket.kernel.process import choose
from becket.parts.gates.ports.setup import OpenRuns, SetupFailed, SetupReady
from becket.parts.gates.section import SetupConfig
from becket.parts.gates.setups import CachedSetups


class World:
    """A repository whose state folder is hidden from every child, as in real life."""

    def __init__(self, base: Path, kind: SandboxKind = SandboxKind.none, keep: int = 5) -> None:
        self.later = 0.0
        self.base = base
        self.home = base / "home"
        if not self.home.exists():
            new_repository(self.home)
        self.git = discover(self.home)
        self.processes = choose(kind)
        self.extra: tuple[Path, ...] = ()  # what children may read besides
        self.state = self.home / ".git" / "becket"
        self.setups = CachedSetups(
            self.state / "setups", self.git, self.processes, keep=keep, clock=lambda: time.time() + self.later
        )

    def commit(self, files: dict[str, str]) -> str:
        return commit(self.home, files)

    def remove(self, path: str) -> str:
        git(self.home, "rm", "-r", "--quiet", path)
        return commit(self.home, {})

    def ensure(
        self, sha: str, setup: SetupConfig, run_id: str = "run_1", watcher: ChildWatcher | None = None
    ) -> SetupReady | SetupFailed:
        return asyncio.run(self.asked(sha, setup, run_id, watcher))

    async def asked(
        self, sha: str, setup: SetupConfig, run_id: str = "run_1", watcher: ChildWatcher | None = None
    ) -> SetupReady | SetupFailed:
        hidden = (self.state, self.home / ".git")
        return await self.setups.ensure(sha, setup, run_id, watcher=watcher, hidden=hidden, readable=self.extra)

    def ready(self, sha: str, setup: SetupConfig, run_id: str = "run_1") -> SetupReady:
        answer = self.ensure(sha, setup, run_id)
        assert isinstance(answer, SetupReady), (answer, said(answer))
        return answer

    def failed(self, sha: str, setup: SetupConfig, run_id: str = "run_1") -> SetupFailed:
        answer = self.ensure(sha, setup, run_id)
        assert isinstance(answer, SetupFailed), answer
        return answer

    def trust(self, key: str, run_id: str = "run_1") -> bool:
        return asyncio.run(self.setups.trust(key, run_id))

    def sweep(self, *open_runs: str) -> None:
        asyncio.run(self.setups.sweep(these(*open_runs)))

    def checkout(self, sha: str, name: str = "proof") -> Workspace:
        return asyncio.run(self.git.open_workspace(self.state / "runs" / name, sha))

    def provided(self, sha: str, ready: SetupReady, name: str = "proof") -> Workspace:
        workspace = self.checkout(sha, name)
        self.setups.provide(workspace, ready)
        return workspace

    def clean(self, workspace: Workspace) -> bool:
        inside = git(workspace.tree, "status", "--porcelain", "--untracked-files=all")
        return asyncio.run(self.git.status(workspace)).clean and inside == ""

    def step(self, workspace: Workspace, ready: SetupReady, command: str) -> tuple[ChildResult, str]:
        """One step of a gate: contained, the state folder hidden, the set-up's folder readable."""
        log = self.base / "step.log"
        spec = ChildSpec(
            argv=("sh", "-euc", command),
            tree=workspace.tree,
            output=log,
            timeout=120,
            readable=(workspace.objects, ready.folder, *self.extra),
            hidden=(self.state, self.home / ".git"),
        )
        return asyncio.run(self.processes.run(spec)), log.read_text()

    def entries(self) -> list[str]:
        return sorted(path.name for path in (self.state / "setups").iterdir() if path.is_dir())


def these(*open_runs: str) -> OpenRuns:
    async def asked() -> tuple[str, ...]:
        return open_runs

    return asked


def said(answer: SetupReady | SetupFailed) -> str:
    return answer.log.read_text() if answer.log is not None else ""


def setup(run: str, *key: str, network: Network = Network.none, timeout: float = 60.0) -> SetupConfig:
    return SetupConfig(run=run, key=key or ("lock",), network=network, timeout=timeout)
