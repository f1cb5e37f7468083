"""Ask the guard about a candidate, before anything is run to prove it (L21)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from becket.actions.side import gate_commands, side_of, tests_run
from becket.contract.action import ActionContext, ActionDef, Result
from becket.contract.base import Json, Record, digest_of
from becket.contract.candidate import Candidates
from becket.contract.condition import Condition, ConditionGroup
from becket.contract.git import Git
from becket.contract.guard import ChangeClass, FailingTest, Note, Refusal
from becket.contract.project import Projects
from becket.contract.spec import Name
from becket.verifiers.guard.classes.classify import classify
from becket.verifiers.guard.examine import examine
from becket.verifiers.guard.failing import homes_of, names_tests, places_of
from becket.verifiers.guard.found.names import LARGEST
from becket.verifiers.guard.found.reader import wanted
from becket.verifiers.guard.remarks import remarks

NAMES = ("guard_ok", "guard_refused", "test_change_asked")
CLASSES = tuple(kind.value for kind in ChangeClass)
_SHOWN = 40


class GuardParams(Record):
    """`failing` are ids of tests that fail on base: values in them that the repair compares with are noted.

    `verdicts` are the base's verdicts (artifact digests): they tell which tests ran.
    """

    of: Name = "candidate"
    base: str
    candidate: str
    failing: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()


def groups(params: GuardParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES), ConditionGroup(object=params.of, names=CLASSES))


async def check(context: ActionContext, params: GuardParams) -> Result:
    """The rules are those that base has committed: what the candidate says about the guard counts for nothing."""
    config = await context.port(Projects).committed(params.base)
    change = await context.port(Candidates).change(params.base, params.candidate)
    side = await side_of(context, params.base, params.verdicts)
    refusals = examine(change, config.guard, side, gate_commands(config))
    places = await _places(context, params, change.base_paths)
    notes = remarks(change, side, await _failing(context.port(Git), params.base, places))
    reading = classify(change, side, config.guard.pure)
    told = [_told(refusal) for refusal in refusals]
    noted = [_told(note) for note in notes]
    digest = digest_of({"base": params.base, "candidate": await context.port(Git).tree_of(params.candidate)})
    read = reading.model_dump(mode="json")
    kept = json.dumps({"digest": digest, "refusals": told, "notes": noted, "reading": read}, indent=1).encode()
    evidence: dict[str, Json] = {
        "base": params.base,
        "candidate": params.candidate,
        "files": len(change.files),
        "refusals": told[:_SHOWN],
        "refusals_left_out": max(len(told) - _SHOWN, 0),
        "notes": noted,
        "tests_tied": bool(places) or not names_tests(params.failing),
        "full": await context.keep(kept, "guard.json"),
    }
    said = Condition(object=params.of, name=_name(refusals), group=NAMES, evidence=evidence)
    shown: dict[str, Json] = {
        "findings": read["findings"][:_SHOWN],
        "findings_left_out": max(len(reading.findings) - _SHOWN, 0),
    }
    classed = Condition(object=params.of, name=reading.kind.value, group=CLASSES, evidence=shown)
    outputs: dict[str, Json] = {"refusals": told, "notes": noted, "digest": digest, "class": reading.kind.value}
    return Result(outputs=outputs, conditions=(said, classed), note=_summary(refusals, notes))


def _name(refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return "guard_ok"
    return "test_change_asked" if all(refusal.asks for refusal in refusals) else "guard_refused"


def _told(item: Refusal | Note) -> dict[str, Json]:
    return item.model_dump(mode="json")


def _summary(refusals: Sequence[Refusal], notes: Sequence[Note]) -> str:
    if not refusals:
        return f"nothing against it; {len(notes)} to look at" if notes else ""
    return f"{len(refusals)} against it, first {refusals[0]}"


async def _places(context: ActionContext, params: GuardParams, paths: frozenset[str]) -> tuple[tuple[str, str], ...]:
    """Where the failing tests stand. Only for those whose ids and reports name no file the texts are searched."""
    if found := places_of(params.failing, paths):
        return found
    ran = await tests_run(context, params.base, params.verdicts)
    if found := homes_of(params.failing, ran.homes, paths):
        return found
    if not names_tests(params.failing):
        return ()
    texts = await context.port(Git).read_files(params.base, wanted(paths), LARGEST)
    return places_of(params.failing, paths, texts.get)


async def _failing(git: Git, base: str, places: Sequence[tuple[str, str]]) -> tuple[FailingTest, ...]:
    found = [(path, name, await git.read_bytes(base, path)) for path, name in places]
    return tuple(FailingTest(path, partial(bytes, data), name) for path, name, data in found if data is not None)


ACTIONS = (
    ActionDef(
        name="guard.check",
        summary="Read a candidate's change by the rules of its base.",
        run=check,
        params=GuardParams,
        raises=groups,
        outputs=("refusals", "notes", "digest", "class"),
    ),
)
