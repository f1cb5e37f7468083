"""What an agent's program has around it: its environment, a private HOME, its ways out, and nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from becket.kernel.contract.agent import AgentOutcome, AgentReport, CallContext, CallFiles
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec, Network, Processes
from becket.kernel.contract.removal import removed
from becket.parts.agents.adapters import private
from becket.parts.agents.adapters.versions import INSTALL
from becket.parts.agents.section import Price
from becket.parts.agents.unseen import unseen_program

OUTPUT_CAP = 32_000_000
"""Bytes of one call's transcript, and of its log: of more than that, the beginning and the end are kept."""


class CallImpossible(Exception):
    """The call cannot be made as the agent is configured; nothing was started."""

    def __init__(self, outcome: AgentOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome

    def report(self) -> AgentReport:
        return AgentReport(ended=False, error=str(self), outcome_hint=self.outcome)


@dataclass(frozen=True, slots=True)
class ProgramNeeds:
    """What a driver needs for its program."""

    program: str | None = None  # its name on PATH, where `program` is not configured; None: a shell starts it
    skills: str = ""  # where below HOME the program looks for skills
    hosts: tuple[str, ...] = ()  # where its vendor has models and logins; not needed where `endpoint` is set
    env: Mapping[str, str] = field(default_factory=dict)  # of the driver; the configuration's `set` wins
    keys: tuple[str, ...] = ()  # names that the value of the variable `key` is given under; its own if empty


@dataclass(frozen=True, slots=True)
class CallEnvironment:
    """The environment of one call, in place until the `with` block ends."""

    program: Path | None
    home: Path
    files: CallFiles
    env: Mapping[str, str]
    network: Network
    reach: tuple[str, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]
    memory: Path | None = None  # for what a driver keeps of its sessions; out of the agent's reach

    def child(
        self,
        argv: tuple[str, ...],
        tree: Path,
        seconds: float,
        *,
        stdin: bytes = b"",
        part: int = 1,
        env: Mapping[str, str] | None = None,
    ) -> ChildSpec:
        """The spec of one child. A call that resumes within itself has several parts, each with files of its own."""
        output, stdout = part_of(self.files.log, part), part_of(self.files.raw, part)
        return ChildSpec(
            argv=argv,
            tree=tree,
            env={**self.env, **(env or {})},
            network=self.network,
            timeout=max(seconds, 0.001),
            output=output,
            output_cap=OUTPUT_CAP,
            stdout=stdout,
            readable=self.readable,
            hidden=self.hidden,
            stdin=stdin,
            home=self.home,
            reach=self.reach,
        )


@dataclass(frozen=True, slots=True)
class DriverContext:
    """What the application gives to every driver. `home` is the user's: credentials are looked for in it."""

    processes: Processes
    hidden: tuple[Path, ...]
    skills: Mapping[str, Path]
    prices: Callable[[str], Price | None]
    environ: Mapping[str, str]
    home: Path
    redact: Callable[[str], str] = str  # takes secrets out of what is told of a call
    shown: tuple[str, ...] = ()  # `sandbox.readable`, as it is written

    @contextmanager
    def prepare(self, config: AgentConfig, wants: ProgramNeeds, call_context: CallContext) -> Iterator[CallEnvironment]:
        """Make everything ready for one call, and take the credentials back after it.

        Raises CallImpossible if a program, a variable or a credential is missing: the call's report then says so.
        """
        program = self.program(config, wants)
        env = self._environment(config, wants)
        with ExitStack() as stack:
            home = call_context.home or _temporary(stack)
            files = call_context.files or CallFiles(_temporary(stack))
            files.folder.mkdir(parents=True, exist_ok=True)
            lent = self._furnish(home, config, wants)
            stack.callback(private.take_back, lent)
            missing = [str(loan.source) for loan in lent if not loan.there]
            if missing:
                raise CallImpossible(
                    AgentOutcome.auth_missing, f"no credentials at {', '.join(missing)}: log in there first"
                )
            network, reach = ways_out(config, wants)
            readable = (*call_context.readable, *(package_of(program, self.home) if program else ()))
            memory = home.with_name(f"{home.name}.sessions.json") if call_context.home else None
            yield CallEnvironment(program, home, files, env, network, reach, readable, self.hidden, memory)

    def _furnish(self, home: Path, config: AgentConfig, wants: ProgramNeeds) -> tuple[private.LentCredential, ...]:
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            home.chmod(0o700)
            private.put_skills(self._chosen(config), home, wants.skills)
            return private.lend(config.credentials, self.home, home)
        except OSError as error:  # whatever an earlier call did to it
            raise CallImpossible(AgentOutcome.crashed, f"its HOME cannot be made ready: {error}") from error

    def program(self, config: AgentConfig, wants: ProgramNeeds) -> Path | None:
        """Where the program really is; Unfit if it is nowhere."""
        if wants.program is None:
            if hidden := unseen_program(config, self.processes, self.environ, self.home, self.shown):
                raise CallImpossible(AgentOutcome.not_found, hidden)
            return None
        named = str(Path(config.program).expanduser()) if config.program else wants.program
        found = shutil.which(named, path=self.environ.get("PATH"))
        if found is None:
            what = f"{config.program} is no program" if config.program else f"{wants.program} is not installed"
            advice = f"{INSTALL[wants.program]}, or set `program`" if wants.program in INSTALL else "set `program`"
            raise CallImpossible(AgentOutcome.not_found, f"{what}; {advice}")
        return Path(found).resolve()

    def _environment(self, config: AgentConfig, wants: ProgramNeeds) -> dict[str, str]:
        named = (*config.env, *((config.key,) if config.key else ()))
        missing = [name for name in named if not self.environ.get(name)]
        if missing:
            variables = "the variable" if len(missing) == 1 else "the variables"
            raise CallImpossible(
                AgentOutcome.auth_missing, f"{variables} {', '.join(missing)} must be set where Becket runs"
            )
        env = {**wants.env, **config.set, **{name: self.environ[name] for name in config.env}}
        if config.key:
            env |= dict.fromkeys(wants.keys or (config.key,), self.environ[config.key])
        return env

    def _chosen(self, config: AgentConfig) -> Mapping[str, Path]:
        names = tuple(self.skills) if config.skills is None else config.skills
        unknown = [name for name in names if name not in self.skills]
        if unknown:
            there = ", ".join(self.skills) or "none"
            raise UsageError(f"no skill is called {', '.join(unknown)}; there is: {there}")
        return {name: self.skills[name] for name in names}


def part_of(path: Path, part: int) -> Path:
    """`raw.jsonl` -> `raw-2.jsonl` for the second part."""
    return path if part == 1 else path.with_name(f"{path.stem}-{part}{path.suffix}")


def parts_of(path: Path) -> list[Path]:
    """All parts that there are, in order."""
    found: list[Path] = []
    while (piece := part_of(path, len(found) + 1)).exists():
        found.append(piece)
    return found


def package_of(program: Path, home: Path) -> tuple[Path, ...]:
    """What must be readable for the program to run: its topmost node_modules, else its folder; never a whole home."""
    real = program.resolve()
    modules = [folder for folder in real.parents if folder.name == "node_modules"]
    place = modules[-1] if modules else real.parent
    return (real,) if home.resolve().is_relative_to(place) else (place,)


def ways_out(config: AgentConfig, wants: ProgramNeeds) -> tuple[Network, tuple[str, ...]]:
    if config.network is not None:
        return config.network, ()
    models = (_host_of(config.endpoint),) if config.endpoint else wants.hosts
    return Network.none, tuple(dict.fromkeys(_with_port(host) for host in (*models, *config.hosts)))


def _host_of(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if not parts.hostname:
        raise UsageError(f"`endpoint: {endpoint}` is no address; write it like https://gateway.example.org/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{host}:{parts.port or (80 if parts.scheme == 'http' else 443)}"


def _with_port(host: str) -> str:
    bare = host.startswith("[") and host.endswith("]")
    return host if ":" in host and not bare else f"{host}:443"


def _temporary(stack: ExitStack) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="becket-agent-")).resolve()
    stack.callback(removed, folder)
    return folder
