"""Ask the guard about a candidate, before anything is run to prove it (L21)."""

from __future__ import annotations

import json
from collections.abc import Sequence

from becket.contract.action import ActionContext, ActionDef, Result
from becket.contract.base import Json, Record, digest_of
from becket.contract.candidate import Candidates
from becket.contract.condition import Condition, ConditionGroup
from becket.contract.config import Config
from becket.contract.git import Git
from becket.contract.guard import ChangeClass, Reading, Refusal
from becket.contract.project import Projects
from becket.contract.spec import Name
from becket.verifiers.guard.classes.classify import classify
from becket.verifiers.guard.examine import examine
from becket.verifiers.guard.side import test_side_of

NAMES = ("guard_ok", "guard_refused", "test_change_asked")
CLASSES = tuple(kind.value for kind in ChangeClass)
_SHOWN = 40


class GuardParams(Record):
    of: Name = "candidate"
    base: str
    candidate: str


def groups(params: GuardParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES), ConditionGroup(object=params.of, names=CLASSES))


async def check(context: ActionContext, params: GuardParams) -> Result:
    """The rules are those that base has committed: what the candidate says about the guard counts for nothing."""
    config = await context.port(Projects).committed(params.base)
    change = await context.port(Candidates).change(params.base, params.candidate)
    side = test_side_of(config)
    refusals = examine(change, config.guard, side.globs, gate_commands(config))
    reading = classify(change, side, config.guard.pure)
    told = [refusal.model_dump(mode="json") for refusal in refusals]
    read = reading.model_dump(mode="json")
    digest = digest_of({"base": params.base, "candidate": await context.port(Git).tree_of(params.candidate)})
    kept = json.dumps({"digest": digest, "refusals": told, "reading": read}, indent=1).encode()
    evidence: dict[str, Json] = {
        "base": params.base,
        "candidate": params.candidate,
        "files": len(change.files),
        "refusals": told[:_SHOWN],
        "refusals_left_out": max(len(told) - _SHOWN, 0),
        "full": await context.keep(kept, "guard.json"),
    }
    said = Condition(object=params.of, name=_name(refusals), group=NAMES, evidence=evidence)
    left_out = max(len(reading.findings) - _SHOWN, 0)
    shown: dict[str, Json] = {"findings": read["findings"][:_SHOWN], "findings_left_out": left_out}
    classed = Condition(object=params.of, name=reading.kind.value, group=CLASSES, evidence=shown)
    outputs: dict[str, Json] = {"refusals": told, "digest": digest, "class": reading.kind.value}
    return Result(outputs=outputs, conditions=(said, classed), note=_summary(refusals, reading))


def gate_commands(config: Config) -> tuple[str, ...]:
    """Everything that base's gates and set-up run: programs of the tree named here are part of the proof."""
    steps = [step for gate in config.gates.values() for step in gate]
    runs = [*(step.run for step in steps), *(step.rerun for step in steps), config.setup.run if config.setup else None]
    return tuple(run for run in runs if run)


def _name(refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return "guard_ok"
    return "test_change_asked" if all(refusal.asks for refusal in refusals) else "guard_refused"


def _summary(refusals: Sequence[Refusal], reading: Reading) -> str:
    if refusals:
        return f"{len(refusals)} against it, first {refusals[0]}"
    first = next((each for each in reading.findings if each.kind is reading.kind), None)
    return f"{reading.kind}: {first}" if first is not None else reading.kind.value


ACTIONS = (
    ActionDef(
        name="guard.check",
        summary="Read a candidate's change by the rules of its base.",
        run=check,
        params=GuardParams,
        raises=groups,
        outputs=("refusals", "digest", "class"),
    ),
)
