"""The composition root: one opened repository and everything that works on it."""

from __future__ import annotations

import os
import pwd
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TextIO, TypeVar

from becket import __version__
from becket.app.config_now import CONFIG_ALERT
from becket.app.parts import built_in_loops, installed, load
from becket.app.project import CommittedProjects
from becket.app.registry import load_registry
from becket.app.sandboxes import Sandboxes
from becket.app.secrets import given_secrets
from becket.app.sections import load_config
from becket.app.state import State, identity
from becket.kernel.contract.action import Registry
from becket.kernel.contract.base import new_id
from becket.kernel.contract.calls import CallLimits, CallWish
from becket.kernel.contract.candidate import Candidates, RescueRules
from becket.kernel.contract.config import AgentConfig, Budgets, Config, PersonConfig
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import Places
from becket.kernel.contract.process import Holds, Processes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.run import Run
from becket.kernel.contract.spec import Autonomy, Budget, LoopSpec
from becket.kernel.contract.store import AlertState, Store, WorkerInfo
from becket.kernel.engine.advance import Engine
from becket.kernel.engine.context import Surroundings
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


@dataclass(frozen=True, slots=True)
class Settings:
    """What counts as becket.yaml. `trouble` says why that is not the file as it stands."""

    stamp: tuple[int, int] | None
    config: Config
    trouble: str = ""


class App:
    """One repository's parts, each made when it is first asked for."""

    def __init__(
        self, state: State, store: Store, console: TextIO = sys.stdout, ports: Mapping[type, object] | None = None
    ) -> None:
        self.state = state
        self._given_ports = dict(ports or {})
        self.store = store
        self.worker_id = new_id("wrk")
        self.kick: Callable[[], None] = lambda: None
        self._console = console
        self._settings: Settings | None = None
        self._told_trouble: str | None = None
        self._journal: tuple[int, int] | None = None

    @classmethod
    def open(cls, state: State, console: TextIO = sys.stdout, *, tolerant: bool = False) -> App:
        """Open the repository's store. Raises UsageError or StoreUnavailable with what to do.

        `tolerant`: a becket.yaml that does not load is told in `trouble`, and the defaults stand in for it.
        """
        settings = tolerated(state) if tolerant else read_settings(state, None)
        app = cls(state, open_store(state, settings.config), console)
        app._settings = settings
        app._journal = None if settings.config.database else identity(state.database)
        return app

    @property
    def config(self) -> Config:
        """becket.yaml as it stands now: read again when the file changed. The last good one while it does not load: a
        slip of the pen must not end what is at work. Raises UsageError only if there never was a good one.
        """
        return self._current().config

    @property
    def trouble(self) -> str:
        """Why what counts is not the file as it stands; empty where it is."""
        return self._current().trouble

    def _current(self) -> Settings:
        last, self._settings = self._settings, read_settings(self.state, self._settings)
        if self._settings is not last and "redactor" in self.__dict__:
            self.redactor.learn(self._secrets(self._settings.config))
        return self._settings

    async def watch_config(self) -> None:
        """A chore: tell of a becket.yaml that does not count, and withdraw it when it does again. Called often."""
        trouble = self._current().trouble
        if trouble == self._told_trouble:
            return
        if trouble:
            await self.store.raise_alert(CONFIG_ALERT, f"{trouble}\n{_LAST_GOOD}", {"file": str(self.state.config)})
        elif any(alert.key == CONFIG_ALERT for alert in await self.store.alerts((AlertState.open, AlertState.told))):
            await self.store.close_alert(CONFIG_ALERT)
        self._told_trouble = trouble

    @cached_property
    def git(self) -> GitRepository:
        git = discover(self.state.root)
        git.rescue_rules = self._rescue_rules
        return git

    def _rescue_rules(self) -> RescueRules:
        from becket.app.rescue_rules import rules

        return rules(self.config.retention, self.redactor)

    @cached_property
    def processes(self) -> ContainedProcesses:
        return self.sandboxes.get(self.config.sandbox.use)

    @cached_property
    def sandboxes(self) -> Sandboxes:
        return Sandboxes(lambda: self.config.sandbox.places(self.state.common))

    def processes_for(self, agent: AgentConfig) -> ContainedProcesses:
        return self.sandboxes.of(self.config, agent)

    @cached_property
    def artifacts(self) -> FileArtifacts:
        return FileArtifacts(self.state.artifacts)

    @cached_property
    def redactor(self) -> Redactor:
        """Knows by value the daemon's own secrets, and those that gates, services and agents are given; those of a
        becket.yaml that changed as soon as it counts.
        """
        return Redactor(secret_variables(os.environ) | self._secrets(self.config))

    def _secrets(self, config: Config) -> dict[str, str]:
        given = given_secrets(config, self.state.root, os.environ)
        for part in installed():
            given |= load(part.secrets)(config, os.environ, Path.home()) if part.secrets else {}
        return given

    def config_of_a_call(self) -> Config:
        """An agent's login may have renewed itself since the last call."""
        config = self.config
        self.redactor.learn(self._secrets(config))
        return config

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
        for part in installed():
            adapters += load(part.effects)(self) if part.effects else ()
        return {adapter.name: adapter for adapter in adapters}

    def lost_journal(self) -> str:
        """Why nothing may be done that the journal could not record, such as to move a branch; or empty."""
        if self._journal is None or identity(self.state.database) == self._journal:
            return ""
        return f"the journal {self.state.database} was removed or replaced; see `becket store check`"

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
        return CommittedProjects(self.git, lambda: self.config, self._learn_secrets)

    def _learn_secrets(self, config: Config) -> None:
        """Gates count as committed: what they are given may not be in the becket.yaml that stands here."""
        self.redactor.learn(self._secrets(config))

    @cached_property
    def _ports(self) -> _Lazily:
        """What actions find behind their ports: the kernel's own, and those of every part."""
        ports: dict[type, object] = {
            Git: self.git, Places: self, Projects: self.projects, Candidates: self.git.candidates(),
        }  # fmt: skip
        later: dict[type, Callable[[], object]] = {Processes: lambda: self.processes}
        for part in installed():
            later |= load(part.ports)(self) if part.ports else {}
        return _Lazily(ports | self._given_ports, later)

    def port(self, kind: type[T]) -> T:
        """What is behind a port. Raises UsageError where no part brings it."""
        found = self._ports.get(kind)
        if found is None:
            raise UsageError(f"nothing is behind {kind.__name__}; is a part missing? See `becket parts list`")
        return found  # type: ignore[return-value]  # registered under its own type

    @cached_property
    def engine(self) -> Engine:
        return Engine(
            Surroundings(
                store=patient(self.store),
                artifacts=self.artifacts,
                door=self.door,
                intake=self.intake,
                loops=self.loops,
                policy=self,
                places=self,
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

    # Policy

    def autonomy(self, spec: LoopSpec, run: Run | None = None) -> Autonomy:
        wished = run.autonomy if run is not None and run.autonomy is not None else Autonomy.release
        if self._current().trouble:
            return Autonomy.observe  # what a person wanted to change is not known
        capped = Autonomy.propose if self.uncontained() else Autonomy.release
        return Autonomy.lowest(self.config.autonomy, spec.autonomy, wished, capped)

    def uncontained(self) -> str:
        """Above `propose`, files, processes and network must be contained, or given up in so many words."""
        if self.config.autonomy.rank <= Autonomy.propose.rank:
            return ""  # nothing to cap; do not probe for it
        return self.sandboxes.missing(self.config)

    def capped_by(self) -> str:
        return "becket.yaml does not load" if self._current().trouble else self.uncontained()

    def budget(self, run: Run, stored: Budget) -> Budget:
        for loop in self.loops.all():
            if loop.spec.loop_id == run.loop_id:
                return loop.spec.budget
        return stored

    def budgets(self) -> Budgets:
        return self.config.budgets

    def unheld(self, run: Run, wish: CallWish) -> str:
        return self.port(CallLimits).unheld(wish.agent, run.loop_id)

    def owner(self) -> str:
        return self.config.handoff_to or self.person()[0]

    # Places

    def of_run(self, run_id: str) -> Path:
        return self.state.runs / run_id

    def resident(self) -> tuple[Path, Path]:
        return self.state.resident

    def hidden(self) -> tuple[Path, ...]:
        return (self.state.folder, self.state.common, Path.home())

    # People

    def person(self) -> tuple[str, PersonConfig]:
        """Who is at the keyboard: the operating-system user, with the role that becket.yaml gives."""
        # Not getpass: it believes $LOGNAME, and a role must not be had by setting a variable (L41).
        user = pwd.getpwuid(os.getuid()).pw_name
        for name, person in self.config.people.items():
            if person.os_user == user:
                return name, person
        # Before anybody is named, whoever owns the checkout is its owner.
        return user, PersonConfig(role="member" if self.config.people else "owner", os_user=user)


class _Lazily(dict[type, object]):
    """Ports that are made when an action first asks for them: probing a sandbox costs a process."""

    def __init__(self, ready: Mapping[type, object], later: Mapping[type, Callable[[], object]]) -> None:
        super().__init__(ready)
        self._later = later

    def get(self, kind: type, default: object = None) -> object:
        if kind not in self and kind in self._later:
            self[kind] = self._later[kind]()
        return super().get(kind, default)


def sandbox_here() -> Holds:
    """What the best sandbox of this machine keeps apart."""
    return choose("auto").holds()


def open_store(state: State, config: Config) -> Store:
    """The journal. Raises UsageError or StoreUnavailable with what to do."""
    if config.database:
        return open_postgres(config.database)
    return open_sqlite(state.make().database, mark=state.journal_mark)


_LAST_GOOD = "Until it is mended the last good one counts, and nothing goes further than `observe`."


def read_settings(state: State, last: Settings | None) -> Settings:
    """Read the file if it changed since `last`. Without a last good one, a file that does not load is a UsageError."""
    stamp = _stamp(state.config)
    if last is None:
        return Settings(stamp, read_config(state))
    if last.stamp == stamp:
        return last
    try:
        return Settings(stamp, _load(state))
    except FileNotFoundError:
        # Perhaps for a moment only: editors and git replace a file by removing it first.
        return Settings(None, last.config, f"{state.config} is gone; restart Becket to go on without it")
    except UsageError as error:
        return Settings(stamp, last.config, str(error))


def tolerated(state: State) -> Settings:
    """For whoever only reads or brakes. Raises the file's own error where the journal may be another than the local
    one: an empty one in its place would tell nothing but lies.
    """
    try:
        return read_settings(state, None)
    except UsageError as error:
        if not state.database.exists() or _may_name_database(state.config.read_text(errors="replace")):
            raise
        return Settings(_stamp(state.config), Config(version=1), str(error))


def _may_name_database(text: str) -> bool:
    """Of a file that does not load; the comments of a first becket.yaml name every key."""
    return any("database" in line.partition("#")[0] for line in text.splitlines())


def read_config(state: State) -> Config:
    """becket.yaml of the working copy, or the defaults where there is none."""
    try:
        return _load(state)
    except FileNotFoundError:
        return Config(version=1)


def _load(state: State) -> Config:
    try:
        text = state.config.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UsageError(f"{state.config} cannot be read: {error}") from None
    return load_config(text, str(state.config), os.environ)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size
