"""The composition root: one opened repository and everything that works on it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TextIO, TypeVar

from becket import __version__
from becket.app.parts import ask, brought_tables, built_in_loops, installed, unique
from becket.app.policy import ConfiguredPolicy
from becket.app.project import CommittedProjects
from becket.app.registry import load_registry
from becket.app.sandboxes import Sandboxes
from becket.app.secrets import secrets_of
from becket.app.settings import LiveSettings, read_settings, tolerated
from becket.app.state import StateFolder, identity, lost_journal
from becket.kernel.contract.action import Registry
from becket.kernel.contract.base import new_id
from becket.kernel.contract.calls import CallLimits
from becket.kernel.contract.candidate import Candidates, RescueRules
from becket.kernel.contract.config import Config
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import Places
from becket.kernel.contract.process import Holds, Processes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.store import Store, WorkerInfo
from becket.kernel.contract.tables import TableStore
from becket.kernel.engine.advance import Engine
from becket.kernel.engine.context import Runtime
from becket.kernel.engine.door import Door
from becket.kernel.engine.event_effect import EventEffect
from becket.kernel.engine.intake import Intake
from becket.kernel.engine.patience import patient
from becket.kernel.engine.redact import Redactor, secret_variables
from becket.kernel.engine.schedule import Scheduler
from becket.kernel.engine.triggers import Triggers
from becket.kernel.git.effects import ProposeEffect, UpdateRefEffect
from becket.kernel.git.repository import GitRepository, discover
from becket.kernel.http import Endpoint, HttpPost
from becket.kernel.notices.console import ConsoleNotice
from becket.kernel.notices.file import FileNotice
from becket.kernel.process import ContainedProcesses, choose
from becket.kernel.spec.book import LoopBook
from becket.kernel.store import FileArtifacts, open_postgres, open_sqlite

T = TypeVar("T")


class App:
    """One repository's parts, each made when it is first asked for."""

    def __init__(
        self, state: StateFolder, store: Store, console: TextIO = sys.stdout, ports: Mapping[type, object] | None = None
    ) -> None:
        self.state = state
        self._given_ports = dict(ports or {})
        self.store = store
        self.worker_id = new_id("wrk")
        self.kick: Callable[[], None] = lambda: None
        self._console = console
        self.settings = LiveSettings(state)
        self.lost_journal: Callable[[], str] = lambda: ""

    @classmethod
    def open(cls, state: StateFolder, console: TextIO = sys.stdout, *, tolerant: bool = False) -> App:
        """Open the repository's store. Raises UsageError or StoreUnavailable with what to do.

        `tolerant`: a becket.yaml that does not load is told in `trouble`, and the defaults stand in for it.
        """
        settings = tolerated(state) if tolerant else read_settings(state, None)
        app = cls(state, open_store(state, settings.config), console)
        app.settings = LiveSettings(state, settings)
        if not settings.config.database and (seen := identity(state.database)) is not None:
            app.lost_journal = partial(lost_journal, state.database, seen)
        return app

    @property
    def config(self) -> Config:
        """becket.yaml as it stands now."""
        return self.settings.now().config

    @property
    def trouble(self) -> str:
        """Why what counts is not the file as it stands; empty where it is."""
        return self.settings.now().trouble

    @cached_property
    def git(self) -> GitRepository:
        git = discover(self.state.root)

        def rules() -> RescueRules:
            from becket.app.rescue_rules import rules

            return rules(self.config.retention, self.redactor)

        git.rescue_rules = rules
        return git

    @cached_property
    def processes(self) -> ContainedProcesses:
        return self.sandboxes.get(self.config.sandbox.use)

    @cached_property
    def sandboxes(self) -> Sandboxes:
        return Sandboxes(lambda: self.config.sandbox.places(self.state.common))

    @cached_property
    def places(self) -> StatePlaces:
        return StatePlaces(self.state)

    @cached_property
    def policy(self) -> ConfiguredPolicy:
        return ConfiguredPolicy(self.settings, self.sandboxes, lambda: self.loops, lambda: self.port(CallLimits))

    @cached_property
    def artifacts(self) -> FileArtifacts:
        return FileArtifacts(self.state.artifacts)

    @cached_property
    def redactor(self) -> Redactor:
        """Knows by value the daemon's own secrets, and those that gates, services and agents are given; those of a
        becket.yaml that changed as soon as it counts.
        """
        redactor = Redactor(secret_variables(os.environ) | secrets_of(self.config, self.state.root))
        self.settings.changed = self.learn_secrets
        return redactor

    def learn_secrets(self, config: Config) -> None:
        """Called for each becket.yaml that is about to count: gates count as committed, logins renew themselves."""
        self.redactor.learn(secrets_of(config, self.state.root))

    @cached_property
    def effects(self) -> dict[str, EffectAdapter]:
        endpoints = {
            target.url: Endpoint(url=target.url, secret=target.secret) for target in self.config.alarms if target.url
        }
        self.state.outbox.mkdir(exist_ok=True)
        adapters: list[EffectAdapter] = [
            ConsoleNotice(self._console),
            FileNotice([self.state.outbox]),
            HttpPost(endpoints, self.redactor.text),
            UpdateRefEffect(self.git),
            ProposeEffect(self.git),
            EventEffect(lambda: self.triggers),
        ]
        own = {adapter.name: adapter for adapter in adapters}
        brought = [(part, ask(part, part.effects, self)) for part in installed() if part.effects]
        return own | unique("effect", ((one.name, one, part) for part, ones in brought for one in ones), own)

    @cached_property
    def registry(self) -> Registry:
        return load_registry(self.effects.values())

    @cached_property
    def loops(self) -> LoopBook:
        return LoopBook(self.state.loops, built_in_loops(), self.registry, lambda: self.config)

    @cached_property
    def door(self) -> Door:
        return Door(patient(self.store), self.effects, self.redactor, self.config.effect_caps)

    @cached_property
    def intake(self) -> Intake:
        return Intake(
            self.store, self.loops, self.git, self.config.branch, self._kicked, limits=lambda: self.config.starts,
            redact=self.redactor.value,
        )  # fmt: skip

    @cached_property
    def triggers(self) -> Triggers:
        return Triggers(
            self.store, self.loops, self.intake, self.git, self.config.branch, on_started=lambda _: self.kick()
        )

    @cached_property
    def scheduler(self) -> Scheduler:
        return Scheduler(self.store, self.loops, self.intake)

    @cached_property
    def projects(self) -> CommittedProjects:
        return CommittedProjects(self.git, lambda: self.config, self.learn_secrets)

    @cached_property
    def _ports(self) -> _Lazily:
        """What actions find behind their ports: the kernel's own, and those of every part."""
        ports: dict[type, object] = {
            Git: self.git, Places: self.places, Projects: self.projects, Candidates: self.git.candidates(),
            TableStore: patient(self.store),
        }  # fmt: skip
        later: dict[type, Callable[[], object]] = {Processes: lambda: self.processes}
        brought = [(part, ask(part, part.ports, self)) for part in installed() if part.ports]
        theirs = ((kind, made, part) for part, made_of in brought for kind, made in made_of.items())
        return _Lazily(ports | self._given_ports, later | unique("port", theirs, {*ports, *later}))

    def port(self, kind: type[T]) -> T:
        """What is behind a port. Raises UsageError where no part brings it."""
        found = self._ports.get(kind)
        if found is None:
            raise UsageError(f"nothing is behind {kind.__name__}; is a part missing? See `becket parts list`")
        return found  # type: ignore[return-value]  # registered under its own type

    @cached_property
    def engine(self) -> Engine:
        return Engine(
            Runtime(
                store=patient(self.store),
                artifacts=self.artifacts,
                door=self.door,
                intake=self.intake,
                loops=self.loops,
                policy=self.policy,
                places=self.places,
                registry=self.registry,
                ports=self._ports,
                redact=self.redactor.text,
                redact_value=self.redactor.value,
                worker=self.worker_id,
            )
        )

    def _kicked(self) -> None:
        """Whoever serves may have changed since this was handed out."""
        self.kick()

    def worker(self, role: str, now: float) -> WorkerInfo:
        return WorkerInfo(
            worker_id=self.worker_id, pid=os.getpid(), host=socket.gethostname(), role=role, version=__version__,
            started_at=now, beat_at=now, dead=False,
        )  # fmt: skip


class _Lazily(dict[type, object]):
    """Ports that are made when an action first asks for them: probing a sandbox costs a process."""

    def __init__(self, ready: Mapping[type, object], later: Mapping[type, Callable[[], object]]) -> None:
        super().__init__(ready)
        self._later = later

    def get(self, kind: type, default: object = None) -> object:
        if kind not in self and kind in self._later:
            self[kind] = self._later[kind]()
        return super().get(kind, default)


class StatePlaces:
    """Where the runs of one repository keep their files."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state

    def of_run(self, run_id: str) -> Path:
        return self._state.runs / run_id

    def resident(self) -> tuple[Path, Path]:
        return self._state.resident

    def hidden(self) -> tuple[Path, ...]:
        return (self._state.folder, self._state.common, Path.home())


def sandbox_here() -> Holds:
    """What the best sandbox of this machine keeps apart."""
    return choose("auto").holds()


def open_store(state: StateFolder, config: Config) -> Store:
    """The journal. Raises UsageError or StoreUnavailable with what to do."""
    state.make()
    if config.database:
        return open_postgres(config.database, brought=brought_tables())
    return open_sqlite(state.database, mark=state.journal_mark, brought=brought_tables())
