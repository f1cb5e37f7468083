"""What every attendant of a service needs: its memory, its processes, and where a release comes from."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from becket.app.project import CommittedProjects
from becket.app.settings import read_config
from becket.app.state import StateFolder
from becket.kernel.contract.base import new_id
from becket.kernel.contract.errors import BecketError, UsageError
from becket.kernel.contract.process import SandboxKind
from becket.kernel.engine.redact import Redactor, secret_variables
from becket.kernel.git.repository import GitRepository, discover
from becket.kernel.process import choose
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.ports import Launch, Release, ServiceRequest, Smokes
from becket.parts.services.process import ContainedSmokes, ProcessHost, service_environment
from becket.parts.services.section import SERVICES, ServiceConfig
from becket.parts.services.supervise import Rules


@dataclass
class ServiceContext:
    """One per watchdog. Git and the sandbox are touched only when something is built, never to restart (L33)."""

    state: StateFolder
    book: SqliteServiceStore
    host: ProcessHost = field(default_factory=ProcessHost)
    rules: Rules = field(default_factory=Rules)
    clock: Callable[[], float] = time.time
    grace: float = 10.0  # between TERM and KILL
    free_within: float = 10.0  # until the port of an ended release has no listener
    look_every: float = 1.0

    @cached_property
    def git(self) -> GitRepository:
        return discover(self.state.root)

    @cached_property
    def smokes(self) -> Smokes:
        return make_smokes(self.state)

    async def head(self) -> str:
        branch = read_config(self.state).branch
        found = await self.git.resolve(f"refs/heads/{branch}")
        if found is None:
            raise UsageError(f"{branch} has no commit here; is `branch:` in becket.yaml right?")
        return found

    async def committed(self, service: str, sha: str) -> ServiceConfig:
        """The service as the commit itself says."""
        config = await CommittedProjects(self.git, lambda: read_config(self.state)).committed(sha)
        if service not in config.section(SERVICES):
            known = ", ".join(sorted(config.section(SERVICES))) or "none"
            raise UsageError(f"becket.yaml at {sha[:12]} has no service {service!r}; it has {known}. Commit it first")
        return config.section(SERVICES)[service]

    async def new_release(self, request: ServiceRequest, sha: str) -> Release:
        now = self.clock()
        return Release(
            release_id=new_id("rel"), service=request.service, sha=sha, marker=secrets.token_hex(16),
            folder=self.state.releases / request.service / sha, config=await self.committed(request.service, sha),
            request=request.key, proof=request.proof, unproven=not request.sha, created_at=now, changed_at=now,
        )  # fmt: skip

    def launch(self, release: Release, command: str) -> Launch:
        """Raises UsageError where the env_file is missing."""
        config = release.config
        return Launch(
            command=command.replace("{port}", str(config.port or "")),
            tree=release.tree,
            env={**service_environment(config, self.state.root, os.environ), "BECKET_SERVICE": release.service},
            marker=release.marker,
            log=self.log(release.service),
        )

    def stop_launch(self, release: Release) -> Launch | None:
        try:
            return self.launch(release, release.config.stop) if release.config.stop else None
        except BecketError:
            return None  # it ends by signal all the same

    def log(self, service: str) -> Path:
        return service_log(self.state, service)


def service_log(state: StateFolder, service: str, kind: str = "service") -> Path:
    """`kind` is service, build or smoke."""
    return state.logs / f"{kind}.{service}.log"


def make_smokes(state: StateFolder) -> ContainedSmokes:
    """Contained as everything that runs the user's code is."""
    sandbox = read_config(state).sandbox.use
    processes = choose("auto" if sandbox == "auto" else SandboxKind(sandbox))
    hidden = (state.folder, state.common, Path.home())
    redact = Redactor(secret_variables(os.environ)).text
    return ContainedSmokes(processes, state.root, hidden=hidden, redact=redact)
