"""becket.yaml version 1: what every loop is bound by. Other sections are brought by parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar, overload

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from becket.kernel.contract.base import Duration, Json, KeyProblem, PositiveDuration, Record, Size
from becket.kernel.contract.caller import Role
from becket.kernel.contract.naming import (
    BranchName,
    DatabaseUrl,
    HttpUrl,
    endpoint_problem,
    is_below,
    is_host,
    is_model,
    is_variable,
)
from becket.kernel.contract.process import Network, SandboxKind
from becket.kernel.contract.run import StartLimits
from becket.kernel.contract.spec import Autonomy, DottedName, Name, Text
from becket.kernel.contract.variables import Variables, WithEnvFile, expanded, place_problem

R = TypeVar("R", bound=Record)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Section(Generic[T_co]):
    """A key of becket.yaml that a part brings, where a Record with defaults does not say enough."""

    kind: Any
    """The type as it is read."""
    default: Callable[[], T_co]
    committed: bool = False  # counts as committed in the base commit; else as in the working copy
    literal: tuple[str, ...] | None = None  # where in it, () everywhere, a `$` is the shell's own


@dataclass(frozen=True, slots=True)
class Names:
    """Marks a parameter that names an entry of a section of becket.yaml, so that lint can look it up."""

    section: str
    rule: str  # what lint calls it when there is none of that name
    optional: tuple[str, ...] = ()  # need not be there


AgentName = Annotated[str, Names("agents", "unknown-agent")]

SkillName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]


class AgentLimits(Record):
    time: PositiveDuration = 1800.0
    turns: int | None = Field(default=None, ge=1, le=10**6)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9)


class Credential(Record):
    """A file of the user that an agent may have in its private HOME: a copy, at the same place below HOME, or `as`."""

    file: Text
    as_: str | None = Field(default=None, alias="as")
    write_back: bool = False  # the agent's new version replaces the user's: for logins that renew themselves

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Json) -> Json:
        return {"file": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _is_put_below_home(self) -> Self:
        if self.as_ is not None and not is_below(self.as_):
            raise KeyProblem("`as` leads out of the agent's HOME", "as", fix="write it like .codex/auth.json")
        if self.as_ is None and ".." in self.file.split("/"):
            fix = "write its real path, and with `as` where it goes"
            raise KeyProblem("`file` leads out of its folder", "file", fix=fix)
        return self


class AgentConfig(Record):
    """One agent. `run` is the command line of an `acp` or `command` agent; `program` another path of codex or claude.

    It sees nothing of the daemon's environment but what `env` names, and nothing of HOME but `credentials`.
    """

    driver: Literal["command", "codex", "claude", "acp"]
    run: str | None = None
    program: str | None = None
    model: str | None = None
    endpoint: str | None = None  # where its model is, if not where the vendor has it: a gateway, a local server
    key: str | None = None  # the variable that holds the model's API key
    args: tuple[str, ...] = ()  # more arguments for codex or claude
    env: tuple[str, ...] = ()  # names of variables that it is given as they are
    set: dict[str, str] = Field(default_factory=dict)  # variables with their values
    credentials: tuple[Credential, ...] = ()
    network: Network | None = None  # without it: its model and `hosts`, and nothing else
    hosts: tuple[str, ...] = ()  # `host` or `host:port` that it may reach, besides its model
    skills: tuple[SkillName, ...] | None = None  # without it: all of them
    limits: AgentLimits = AgentLimits()
    sandbox: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    fallback: tuple[Name, ...] = ()  # who is called instead when this one has no quota, no login or no working model

    @model_validator(mode="after")
    def _has_what_its_driver_needs(self) -> Self:
        if self.driver in ("command", "acp") and not (self.run and self.run.strip()):
            where = "driver" if self.run is None else "run"
            message = f"an agent with `driver: {self.driver}` needs `run`"
            raise KeyProblem(message, where, fix="add `run:`, the program to start with its arguments")
        if self.driver in ("codex", "claude") and self.run:
            message = f"`driver: {self.driver}` knows how to start itself"
            raise KeyProblem(message, "run", fix="use `program` and `args` instead")
        if self.driver in ("command", "acp"):
            for name in ("program", "args", "endpoint", "key"):
                if getattr(self, name):
                    message = f"`{name}` belongs to codex and claude"
                    raise KeyProblem(message, name, fix="put it into `run`, `set` or `env`")
        if self.network is not None and self.hosts:
            raise KeyProblem("`hosts` names the only ways out", "hosts", fix="leave `network` away, or the hosts")
        return self

    @model_validator(mode="after")
    def _names_variables(self) -> Self:
        """Nothing that was written here is repeated: it may be the secret itself (L25)."""
        if self.key is not None and not is_variable(self.key):
            fix = "write it like OPENAI_API_KEY, never the key itself"
            raise KeyProblem("`key` is the name of a variable", "key", fix=fix)
        if not all(map(is_variable, self.env)):
            fix = "write them like GEMINI_API_KEY, without `$` and values"
            raise KeyProblem("`env` lists names of variables", "env", fix=fix)
        if not all(map(is_variable, self.set)) or any("\0" in value for value in self.set.values()):
            fix = "write it like {LOG_LEVEL: debug}"
            raise KeyProblem("`set` has names of variables and their values", "set", fix=fix)
        if "HOME" in (*self.env, *self.set):
            where = "set" if "HOME" in self.set else "env"
            raise KeyProblem("HOME is the agent's own folder", where, fix="remove it; `credentials` puts files there")
        return self

    @model_validator(mode="after")
    def _names_places(self) -> Self:
        if self.model is not None and not is_model(self.model):
            raise KeyProblem("`model` is no name of a model", "model", fix="write it like gpt-5.5")
        if self.endpoint is not None and (problem := endpoint_problem(self.endpoint)):
            raise KeyProblem(problem, "endpoint", fix="write it like https://gateway.example.org/v1")
        for host in self.hosts:
            if not is_host(host):
                fix = "write `host` or `host:port`, without wildcard, scheme and path"
                raise KeyProblem(f"`hosts` has {host[:80]!r}", "hosts", fix=fix)
        return self


class BudgetConfig(Record):
    """What agents may use within one period."""

    agent_time: Duration | None = None
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9)


class PeriodBudgets(Record):
    """By the calendar of this machine: a day begins at midnight, a month on its first."""

    day: BudgetConfig = BudgetConfig()
    month: BudgetConfig = BudgetConfig()


class Budgets(PeriodBudgets):
    """For all loops together, and for each loop; what one run may use stands in its loop."""

    loops: dict[Name, PeriodBudgets] = Field(default_factory=dict)

    def in_usd(self, loop_id: str | None) -> Iterator[str]:
        """The keys that bound the money of this loop's calls; without a loop, those of any."""
        loops = {name: own for name, own in self.loops.items() if loop_id in (None, name)}
        places: list[tuple[str, PeriodBudgets]] = [("budgets", self)]
        for where, own in (*places, *((f"budgets.loops.{name}", own) for name, own in loops.items())):
            for period in ("day", "month"):
                if getattr(own, period).usd is not None:
                    yield f"{where}.{period}.usd"


class HealConfig(Record):
    """How the heal loop repairs. `attempts` agents work at once and are proven one after another."""

    agent: Name | None = None  # without it: `fixer`, or the only one there is
    hold_out: Name | None = None  # the agent that writes hold-out checks; without it, ordinary changes are proposed
    attempts: int = Field(default=1, ge=1, le=8)
    on_exhausted: Literal["handoff", "revert"] = "handoff"


class SandboxConfig(Record):
    """`without` names, in so many words, what the user accepts not to be contained. `readable` are places beside the
    system that every contained program may read: toolchains that Becket does not find by itself.
    """

    use: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    without: tuple[Literal["files", "processes", "network"], ...] = ()
    readable: tuple[Text, ...] = ()

    def places(self, common: Path) -> tuple[Path, ...]:
        """Without what has come to lead into the repository's git directory since it was written."""
        found = (expanded(written, Path.home()) for written in self.readable)
        return tuple(path for path in found if not path.resolve().is_relative_to(common.resolve()))

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Json) -> Json:
        return {"use": value} if isinstance(value, str | SandboxKind) else value

    @model_validator(mode="after")
    def _shows_nothing_secret(self) -> Self:
        for number, written in enumerate(self.readable):
            if problem := place_problem(written, Path.home()):
                fix = "name the toolchain's own folder, like ~/.local/share/tool"
                raise KeyProblem(f"`readable` {problem}", "readable", number, fix=fix)
        return self


class PersonConfig(Record):
    role: Role = "member"
    os_user: str | None = None


def second(values: Sequence[object]) -> int | None:
    """Where a value stands for the second time."""
    return next((number for number, value in enumerate(values) if value in values[:number]), None)


def unshared(named: Mapping[str, Record], section: str, key: str) -> None:
    """Raises KeyProblem where two of a section have the same value at a key."""
    mine = {name: value for name, one in named.items() if (value := getattr(one, key))}
    if (number := second(list(mine.values()))) is not None:
        names = list(mine)
        other = names[list(mine.values()).index(mine[names[number]])]
        message = f"`{section}.{names[number]}` and `{section}.{other}` have the same `{key}`"
        raise KeyProblem(message, names[number], key, fix=f"give one of them another `{key}`")


def _with_logins_of_their_own(people: dict[str, PersonConfig]) -> dict[str, PersonConfig]:
    """A login speaks for one person: who approves must be known."""
    unshared(people, "people", "os_user")
    return people


class AlarmTarget(Record):
    """Where alarms go besides `becket status`: a file, or a signed webhook."""

    file: Text | None = None
    url: HttpUrl | None = None
    secret: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.url is None):
            where = () if self.file is None else ("url",)
            raise KeyProblem("an alarm target has either `file` or `url`", *where, fix="write one of the two")
        if self.file is not None and (self.file.endswith("/") or ".." in self.file.split("/")):
            fix = "write a file below the repository, or its whole path, without `..`"
            raise KeyProblem("an alarm could not be written there", "file", fix=fix)
        if self.secret is not None and self.url is None:
            raise KeyProblem("`secret` signs what goes to a `url`, and a file is not signed", "secret", fix="remove it")
        return self


class Retention(Record):
    """How long ended runs keep their artifacts and events. Open runs and handoffs keep theirs for ever.

    `backups` is how many copies of the journal are kept; the daemon makes one a day.
    `rescues` is how long saved work and the candidates of ended runs are kept; a rescue has no file larger than
    `rescue_file`, and is not larger than `rescue_size`.
    """

    artifacts: PositiveDuration = 30 * 86400.0
    runs: PositiveDuration = 365 * 86400.0
    backups: int = Field(default=7, ge=1, le=1000)
    rescues: Duration = 30 * 86400.0
    rescue_file: Size = 10_000_000
    rescue_size: Size = 50_000_000


class EffectCap(Record):
    """At most `count` effects of one name within `per`."""

    count: int = Field(ge=0, le=10**6)
    per: PositiveDuration = 3600.0


class Config(Record):
    """The whole file. Sections of later loops are reserved so that a typo near them is still an error.

    Parts that are installed bring sections of their own: then the file is read as a model made from this one.
    """

    of_parts: ClassVar[Mapping[object, str]] = MappingProxyType({})
    committed_keys: ClassVar[tuple[str, ...]] = ()
    literal: ClassVar[tuple[tuple[str, ...], ...]] = ()

    version: Literal[1]
    branch: BranchName = "main"
    autonomy: Autonomy = Autonomy.propose
    agents: dict[Name, AgentConfig] = Field(default_factory=dict)
    budgets: Budgets = Budgets()
    heal: HealConfig = HealConfig()
    sandbox: SandboxConfig = SandboxConfig()
    people: Annotated[dict[Name, PersonConfig], AfterValidator(_with_logins_of_their_own)] = Field(default_factory=dict)
    handoff_to: Name | None = None
    alarms: tuple[AlarmTarget, ...] = ()
    retention: Retention = Retention()
    starts: StartLimits = StartLimits()
    effect_caps: dict[DottedName, EffectCap] = Field(default_factory=dict)
    database: DatabaseUrl | None = None  # a Postgres URL; without it, SQLite in the state folder
    chat: dict[str, Json] | None = None
    forge: dict[str, Json] | None = None
    knowledge: dict[str, Json] | None = None
    flaky: dict[str, Json] | None = None
    evolve: dict[str, Json] | None = None

    @overload
    def section(self, kind: type[R]) -> R: ...

    @overload
    def section(self, kind: Section[T_co]) -> T_co: ...

    def section(self, kind: type[R] | Section[T_co]) -> R | T_co:
        """What the file says in a part's own section, or its defaults."""
        if (name := self.of_parts.get(kind)) is not None:
            return getattr(self, name)  # type: ignore[no-any-return]  # the model has it by that type
        return kind.default() if isinstance(kind, Section) else kind()

    def sandbox_of(self, agent: AgentConfig) -> str:
        """An agent's `auto` is what the file says for everything."""
        return self.sandbox.use if agent.sandbox == "auto" else agent.sandbox

    def given(self) -> Iterator[tuple[str, Variables]]:
        """Every command that is given variables, by its place in this file."""
        return _found(self, "", Variables)

    def env_files(self) -> Iterator[tuple[str, str]]:
        """Every file of variables, by the place in this file that names it."""
        return ((place, one.env_file) for place, one in _found(self, "", WithEnvFile) if one.env_file)

    @model_validator(mode="after")
    def _owner_is_known(self) -> Self:
        if self.handoff_to is not None and self.handoff_to not in self.people:
            message = f"handoff_to names {self.handoff_to!r}, who is not in `people`"
            raise KeyProblem(message, "handoff_to", fix=_one_of(self.people, "people"))
        return self

    @model_validator(mode="after")
    def _branch_is_nobodys_proposal(self) -> Self:
        if self.branch.startswith("becket/"):
            fix = "name the branch that they are proposals for, like main"
            raise KeyProblem("branches below `becket/` are Becket's own proposals", "branch", fix=fix)
        return self

    @model_validator(mode="after")
    def _fallbacks_are_known(self) -> Self:
        for name, agent in self.agents.items():
            for number, other in enumerate(agent.fallback):
                if other not in self.agents or other == name:
                    message = f"the fallback {other!r} of the agent {name!r} is no other agent"
                    fix = _one_of([known for known in self.agents if known != name], "agents")
                    raise KeyProblem(message, "agents", name, "fallback", number, fix=fix)
        return self

    @model_validator(mode="after")
    def _healer_is_known(self) -> Self:
        for key, name in (("agent", self.heal.agent), ("hold_out", self.heal.hold_out)):
            if name is not None and name not in self.agents:
                message = f"heal.{key} names {name!r}, which is not in `agents`"
                raise KeyProblem(message, "heal", key, fix=_one_of(self.agents, "agents"))
        return self


def _found(value: object, place: str, kind: type[R]) -> Iterator[tuple[str, R]]:
    """Every record of a kind, by its place; what has a name in a list stands under that name."""
    if isinstance(value, kind):
        yield place, value
    if isinstance(value, Record):
        items: list[tuple[object, object]] = [(name, getattr(value, name)) for name in type(value).model_fields]
    elif isinstance(value, Mapping):
        items = list(value.items())
    else:
        listed = value if isinstance(value, tuple) else ()
        items = [(getattr(one, "name", number), one) for number, one in enumerate(listed)]
    for name, one in items:
        yield from _found(one, f"{place}.{name}" if place else str(name), kind)


def _one_of(known: Iterable[str], section: str) -> str:
    names = ", ".join(known)
    return f"name one of {names}" if names else f"add it to `{section}:`, or remove this"
