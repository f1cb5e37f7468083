"""Was a red step ever green? What never was is a question to a person: nobody can tell a bug from a wrong gate."""

from __future__ import annotations

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.config import Config
from becket.kernel.contract.gate import EVER_GREEN, GateVerdict, StepVerdict, ever_green, green_at
from becket.kernel.contract.git import Git
from becket.kernel.contract.made import BaseBranch, BaseSha, BaseVerdicts
from becket.kernel.contract.project import Projects
from becket.parts.gates.judging.gate import seen_green
from becket.parts.gates.judging.history import MOST_COMMITS, since_proven
from becket.parts.gates.judging.step import run_step
from becket.parts.gates.judging.tree import open_tree
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.section import GATES

NEVER = "never_green"
OLDER = 3
"""So many commits before base are tried, where nobody knows one at which a step was green."""
MOST_REASONS = 20
OUTPUTS = ("base", "green", "tried")


class EverParams(Record):
    """`verdicts` are the red verdicts of `base`, as artifacts; `anyway`: a person says that it is a bug of the code."""

    base: BaseSha
    branch: BaseBranch
    verdicts: BaseVerdicts
    anyway: bool = False


async def look(context: ActionContext, params: EverParams) -> Result:
    made = context.outputs.get(context.step_id, {})
    if made.get("base") == params.base:
        return Result(outputs=dict(made), note="as this run found it before")
    red = [step for step in await _red(context, params) if not params.anyway]
    config = await context.port(Projects).committed(params.base)
    commands = {step: _command(config, step) for step in red}
    greens = {step: await _known(context, params, step, commands[step]) for step in red}
    tried: list[str] = []
    if nowhere := [step for step, green in greens.items() if not green]:
        tried = list(await context.port(Git).commits(None, params.base, OLDER + 1))[1:]
        greens |= {step: await _try(context, params, step, tried) or greens[step] for step in nowhere}
    found = {step.step: green for step, green in greens.items() if green is not None}
    facts: dict[str, str] = {}
    for step, green in greens.items():
        facts |= seen_green(step.gate, step.step, commands[step], green) if green else {}
    first = next((green for green in found.values() if green), "")
    outputs: dict[str, Json] = {"base": params.base, "green": first, "tried": list(tried)}
    never = [step for step, green in greens.items() if green is None]
    said = (_never(params, never, tried),) if never else ()
    return Result(outputs=outputs, conditions=said, facts=facts)


async def _red(context: ActionContext, params: EverParams) -> list[StepVerdict]:
    found = [GateVerdict.model_validate_json(await context.read(digest)) for digest in params.verdicts if digest]
    return [step for verdict in found if verdict.commit == params.base for step in verdict.steps if not step.green]


def _command(config: Config, step: StepVerdict) -> str:
    return next(one.run for one in config.section(GATES)[step.gate] if one.name == step.step)


async def _known(context: ActionContext, params: EverParams, step: StepVerdict, command: str) -> str | None:
    """The commit at which it was green by the records, empty where they only say that it was; None if they do not."""
    proven = await since_proven(context, params.branch, params.base)
    if proven is not None:
        config = await context.port(Projects).committed(proven[0])
        if any(one.name == step.step for one in config.section(GATES).get(step.gate, ())):
            return proven[0]
    for commit in await context.port(Git).commits(None, params.base, MOST_COMMITS):
        if await context.known(green_at(step.gate, step.step, command), commit):
            return commit
    return "" if await context.known(ever_green(step.gate, step.step, command), EVER_GREEN) else None


async def _try(context: ActionContext, params: EverParams, red: StepVerdict, commits: list[str]) -> str | None:
    for commit in commits:
        proof = await open_tree(context, commit, params.base)
        if isinstance(proof, SetupFailed):
            continue
        step = next(each for each in proof.config.section(GATES)[red.gate] if each.name == red.step)
        if (await run_step(context, red.gate, step, proof, label=f"before-{commit[:12]}")).verdict.green:
            return commit
    return None


def _never(params: EverParams, steps: list[StepVerdict], tried: list[str]) -> Condition:
    names = [f"{step.gate}/{step.step}" for step in steps]
    before = f", nor at the {len(tried)} commits before it" if tried else ""
    why = f"{', '.join(names)} was never green here: not at {params.base[:12]}{before}; no agent was called"
    evidence: dict[str, Json] = {
        "why": why,
        "failing": [name for step in steps for name in step.failing][:MOST_REASONS],
        "reasons": [f"{step.step}: {reason}" for step in steps for reason in step.reasons][:MOST_REASONS],
        "next": [
            f"see it fail, and mend becket.yaml or the machine: `becket gates try {' '.join(names)}`",
            f"if an older commit was green, show that: `becket gates try {' '.join(names)} --at SHA`",
            "if it is a bug all the same, let it be repaired: `becket run heal --with repair_never_green=true`",
        ],
    }
    return Condition(name=NEVER, evidence=evidence)


ACTIONS = (
    ActionDef(
        name="gate.ever_green",
        summary="Tell whether each red step was green once, by the records or on a few older commits.",
        run=look,
        params=EverParams,
        raises=(ConditionGroup(names=(NEVER,)),),
        outputs=OUTPUTS,
        keeps=OUTPUTS,
        about="ever",
    ),
)
