"""becket.yaml version 1: what the repository says about its gates, services, agents and people."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from becket.contract.base import Duration, Json, KeyProblem, Record, Size
from becket.contract.process import Network, SandboxKind
from becket.contract.spec import Autonomy, Name, Text

ReportFormat = Annotated[
    str, StringConstraints(pattern=r"^(plain|(junit|pytest|go|cargo|tap)(:.+)?)$")
]  # junit:FILE, or the format of the step's own output


class RemoteConfig(Record):
    name: str = "origin"
    fetch: Duration = 30.0
    push: Literal["after_promote", "never"] = "never"


class GateStep(Record):
    """One named step of a gate."""

    name: Name
    run: Text
    timeout: Duration = 600.0
    network: Network = Network.none
    inputs: tuple[str, ...] = ()
    report: ReportFormat = "plain"
    rerun: str | None = None
    min_tests: int = Field(default=0, ge=0)
    parallel: bool = False
    env_file: str | None = None


class SetupConfig(Record):
    """What the tests need besides the tree; cached by the content of the key files."""

    run: Text
    key: Annotated[tuple[str, ...], Field(min_length=1)]
    network: Network = Network.none
    timeout: Duration = 1800.0


class GuardConfig(Record):
    protected: tuple[str, ...] = ()
    max_deleted_share: float = Field(default=0.2, ge=0, le=1)
    max_file: Size = 5_000_000


class HealthConfig(Record):
    url: str = "/health"
    samples: int = Field(default=5, ge=1)
    soak: Duration = 10.0


class ServiceConfig(Record):
    start: Text
    build: str | None = None
    stop: str | None = None
    port: int | None = Field(default=None, ge=1, le=65535)
    health: HealthConfig = HealthConfig()
    shared: tuple[str, ...] = ()
    env_file: str | None = None
    migrates: bool = False


class AgentLimits(Record):
    time: Duration = 1800.0
    turns: int | None = Field(default=None, ge=1)
    tokens: int | None = Field(default=None, ge=0, le=10**12)
    usd: float | None = Field(default=None, ge=0, le=10**9)


class AgentConfig(Record):
    driver: Literal["command", "codex", "claude", "acp"]
    run: str | None = None
    network: Network = Network.full  # an agent talks to its model; a scripted one needs nothing
    model: str | None = None
    limits: AgentLimits = AgentLimits()
    sandbox: Literal["auto", "bwrap", "landlock", "none"] = "auto"

    @model_validator(mode="after")
    def _command_has_run(self) -> Self:
        if self.driver == "command" and not self.run:
            raise KeyProblem("an agent with `driver: command` needs `run`: the program to start", "driver")
        return self


class HealConfig(Record):
    """How the heal loop repairs. `attempts` agents work at once and are proven one after another."""

    agent: Name | None = None  # without it: `fixer`, or the only one there is
    attempts: int = Field(default=1, ge=1, le=8)
    on_exhausted: Literal["handoff", "revert"] = "handoff"


class SandboxConfig(Record):
    """`without` names, in so many words, what the user accepts not to be contained."""

    use: Literal["auto", "bwrap", "landlock", "none"] = "auto"
    without: tuple[Literal["files", "processes", "network"], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Json) -> Json:
        return {"use": value} if isinstance(value, str | SandboxKind) else value


class PersonConfig(Record):
    role: Literal["owner", "approver", "member"] = "member"
    os_user: str | None = None


class AlarmTarget(Record):
    """Where alarms go besides `becket status`: a file, or a signed webhook."""

    file: str | None = None
    url: str | None = None
    secret: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.url is None):
            raise ValueError("an alarm target has either `file` or `url`")
        return self


class Retention(Record):
    """How long ended runs keep their artifacts and events. Open runs and handoffs keep theirs for ever."""

    artifacts: Duration = 30 * 86400.0
    runs: Duration = 365 * 86400.0


class EffectCap(Record):
    """At most `count` effects of one name within `per`."""

    count: int = Field(ge=0)
    per: Duration = 3600.0


class Config(Record):
    """The whole file. Sections of later loops are reserved so that a typo near them is still an error."""

    version: Literal[1]
    branch: str = "main"
    remote: RemoteConfig | None = None
    autonomy: Autonomy = Autonomy.propose
    gates: dict[Name, tuple[GateStep, ...]] = Field(default_factory=dict)
    setup: SetupConfig | None = None
    test_side: tuple[str, ...] = ()
    guard: GuardConfig = GuardConfig()
    services: dict[Name, ServiceConfig] = Field(default_factory=dict)
    agents: dict[Name, AgentConfig] = Field(default_factory=dict)
    heal: HealConfig = HealConfig()
    sandbox: SandboxConfig = SandboxConfig()
    people: dict[Name, PersonConfig] = Field(default_factory=dict)
    handoff_to: Name | None = None
    alarms: tuple[AlarmTarget, ...] = ()
    retention: Retention = Retention()
    effect_caps: dict[str, EffectCap] = Field(default_factory=dict)
    database: str | None = None  # a Postgres URL; without it, SQLite in the state folder
    chat: dict[str, Json] | None = None
    forge: dict[str, Json] | None = None
    web: dict[str, Json] | None = None
    knowledge: dict[str, Json] | None = None
    flaky: dict[str, Json] | None = None
    evolve: dict[str, Json] | None = None

    @model_validator(mode="after")
    def _owner_is_known(self) -> Self:
        if self.handoff_to is not None and self.handoff_to not in self.people:
            raise KeyProblem(f"handoff_to names {self.handoff_to!r}, who is not in `people`", "handoff_to")
        return self

    @model_validator(mode="after")
    def _steps_have_names_of_their_own(self) -> Self:
        for gate, steps in self.gates.items():
            names = [step.name for step in steps]
            if len(set(names)) < len(names):
                raise KeyProblem(f"two steps of the gate {gate!r} have the same name", "gates")
        return self


COMMITTED_KEYS = ("gates", "setup", "test_side", "guard", "services")
"""Count as committed in the base commit; the others as in the working copy."""
