"""A registry for the corpus: actions and verifiers that declare what real ones would, and never run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from becket.app.sections import load_config
from becket.kernel.contract.action import ActionContext, ActionDef, EffectInfo, Registry, Result, Verdict, VerifierDef
from becket.kernel.contract.base import Duration, Json, Record
from becket.kernel.contract.condition import ConditionGroup, Lifetime
from becket.kernel.contract.config import AgentName, Config
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.spec.load import load_spec
from becket.parts.gates.section import GateName
from becket.parts.services.section import ServiceName


async def _never(_: ActionContext, __: Any) -> Result:
    raise AssertionError("lint must not run actions")


async def _never_verify(_: ActionContext, __: Any) -> Verdict:
    raise AssertionError("lint must not run verifiers")


class At(Record):
    at: str


class Of(Record):
    of: str = "candidate"


class GateParams(Record):
    of: str
    gate: Literal["fast", "slow"]
    reruns: int = Field(default=0, ge=0, le=5)
    patience: Duration = 60.0


class NamedGateParams(Record):
    gate: GateName = "fast"


class FixParams(Record):
    agent: AgentName = ""
    prompt: str = ""
    hints: tuple[str, ...] = ()
    turns: int = 20


class ReleaseParams(Record):
    service: ServiceName = ""


class AskParams(Record):
    question: str
    bound_to: str
    role: Literal["owner", "approver"] = "approver"
    expires_in: Duration = 86400.0


class StartParams(Record):
    loop: str
    subject: str | None = None
    inputs: dict[str, Json] = Field(default_factory=dict)
    from_: str = Field(default="", alias="from")
    max_chain: int | None = None


class TextParams(Record):
    text: str


class FileParams(Record):
    path: str = Field(pattern=r"^[^/].*$")
    text: str


class PostParams(Record):
    url: str = Field(pattern=r"^https?://")
    body: dict[str, Json] = Field(default_factory=dict)
    tries: int = 1
    least: int = 0

    @model_validator(mode="after")
    def _tries_are_enough(self) -> PostParams:
        if self.least > self.tries:
            raise ValueError("`least` must not be more than `tries`")
        return self


class RefParams(Record):
    ref: str
    to: str


class EventParams(Record):
    name: str
    data: dict[str, Json] = Field(default_factory=dict)


def _gate_groups(params: GateParams) -> tuple[ConditionGroup, ...]:
    names = tuple(f"{params.gate}_{verdict}" for verdict in ("green", "red", "undecided"))
    return (ConditionGroup(object=params.of, names=names),)


def _kinds_of_red(params: Of) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=("code_red", "environment_red", "flaky_red")),)


def _run_wide(*names: str) -> ConditionGroup:
    return ConditionGroup(names=names, life=Lifetime.run)


_CANDIDATE = ConditionGroup(object="candidate", names=("exists",), life=Lifetime.run)

_ACTIONS = (
    ActionDef("git.read_base", "reads the head", _never, outputs=("sha", "branch")),
    ActionDef("workspace.checkout", "checks out", _never, At, outputs=("path",)),
    ActionDef("gate.run", "runs a gate", _never, GateParams, _gate_groups, ("receipt", "failures")),
    ActionDef("gate.again", "runs a gate of becket.yaml", _never, NamedGateParams),
    ActionDef("gate.classify", "classifies a failure", _never, Of, _kinds_of_red, ("report",)),
    ActionDef("candidate.rebase", "rebases", _never, raises=(_run_wide("main_moved"),)),
    ActionDef(
        "agent.fix", "asks an agent", _never, FixParams,
        (_CANDIDATE, _run_wide("fix_exhausted"), _run_wide("agent_quota")), ("patch", "summary"), calls_agent=True,
    ),
    ActionDef(
        "guard.check", "checks the change", _never,
        raises=(ConditionGroup(object="candidate", names=("guarded", "refused")), _run_wide("guard_refused"),
                _run_wide("test_change_asked")),
        signals=("approval",),
    ),
    ActionDef(
        "crossing.prove", "proves", _never, Of,
        (ConditionGroup(object="candidate", names=("proven", "unproven", "undecided")),
         ConditionGroup(names=("environment_broken", "undecided"))), ("receipt",),
    ),
    ActionDef(
        "promote", "moves main", _never,
        raises=(_run_wide("main_proven", "main_dirty", "contended", "proposed"),), effects=("git.update_ref",),
        facts=("proven",),
    ),
    ActionDef(
        "release.run", "releases", _never, ReleaseParams,
        raises=(_run_wide("release_settled", "release_rolled_back"),), effects=("service.release",),
    ),
    ActionDef(
        "approval.ask", "asks a person", _never, AskParams,
        (_run_wide("asked", "approved", "denied"),), ("approval",), signals=("approval",),
    ),
    ActionDef(
        "run.start", "starts a child", _never, StartParams, (_run_wide("child_open", "child_done"),), ("run",),
        signals=("child",),
    ),
    ActionDef("notify.console", "prints", _never, TextParams),
    ActionDef("notify.file", "writes a line", _never, FileParams, effects=("notify.file",)),
    ActionDef(
        "http.post", "posts", _never, PostParams,
        (ConditionGroup(object="post", names=("ok", "refused")),), ("answer",), ("http.post",),
    ),
    ActionDef(
        "git.update_ref", "moves a ref", _never, RefParams, (_run_wide("ref_moved"),), effects=("git.update_ref",),
    ),
    ActionDef("event.post", "posts an event", _never, EventParams, (_run_wide("posted"),), effects=("event.post",)),
)  # fmt: skip

_VERIFIERS = (
    VerifierDef("head_is_base", "HEAD is the subject", _never_verify),
    VerifierDef("refs_untouched", "no ref moved", _never_verify),
    VerifierDef("tree_clean", "nothing is uncommitted", _never_verify),
    VerifierDef("nothing_left_running", "no process is left", _never_verify),
    VerifierDef("gate.green", "the gate is green", _never_verify, GateParams),
    VerifierDef("file.exists", "a file is there", _never_verify, FileParams),
)

_EFFECTS = (
    EffectInfo("notify.file", EffectClass.repeatable, Autonomy.observe),
    EffectInfo("http.post", EffectClass.keyed, Autonomy.propose),
    EffectInfo("event.post", EffectClass.keyed, Autonomy.observe),
    EffectInfo("git.update_ref", EffectClass.queryable, Autonomy.merge),
    EffectInfo("service.release", EffectClass.keyed, Autonomy.release),
)

REGISTRY = Registry(
    actions={action.name: action for action in _ACTIONS},
    verifiers={verifier.name: verifier for verifier in _VERIFIERS},
    effects={effect.name: effect for effect in _EFFECTS},
)

CONFIG: Config = load_config(
    """
version: 1
gates: {fast: [{name: unit, run: make test}]}
agents: {fixer: {driver: claude}}
services: {main: {start: serve}}
""",
    "becket.yaml",
    {},
)

_OTHER = """
version: 1
loop_id: {name}
goal: stands beside the spec under test
trigger: [{trigger}]
inputs: {{{inputs}}}
max_iterations: 1
deadline: 1h
autonomy: merge
stop_conditions: [check.pass]
phases:
  act: {{objective: do, actions: [{action}]}}
  verify: {{objective: check, verifiers: [{{id: check, run: "true"}}]}}
"""


def _other(
    name: str, trigger: str = "manual: {}", action: str = "", inputs: str = "from: {optional: true}"
) -> LoadedLoop:
    text = _OTHER.format(name=name, trigger="{" + trigger + "}", action=action, inputs=inputs)
    return LoadedLoop(spec=load_spec(text, f"{name}.yaml"), text=text, digest=name, source=f"{name}.yaml")


OTHERS = (
    _other("build"),
    _other("measure", inputs="folder: {type: path}"),
    _other("deploy", "after: {loop: cycle}"),
    _other("report", "after: {loop: deploy}"),
    _other("bounded", "after: {loop: cycle, max_chain: 2}"),
    _other("mover", action="{id: move, uses: git.update_ref, with: {ref: refs/heads/main, to: '{sha}'}}"),
)
