"""Ask the guard about a candidate, before anything is run to prove it (L21)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from becket.kernel.actions.candidate import REPAIR, current, kept_out_of
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.git import Git
from becket.kernel.contract.guard import Change, ChangeClass, Classification, GuardRule, Refusal
from becket.kernel.contract.made import BaseBranchOrNone, BaseSha, BaseVerdicts, CandidateSha, takes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.spec import Name
from becket.parts.gates.judging.history import since_proven
from becket.parts.gates.section import SET_UP
from becket.parts.guard.actions.side import commands_run, side_of, tests_run
from becket.parts.guard.reading.failing import homes_of, names_tests, places_of
from becket.parts.guard.reading.found.names import LARGEST
from becket.parts.guard.reading.found.reader import wanted
from becket.parts.guard.reading.sentences import against, asked, question
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GUARD, GuardConfig

NAMES = ("guard_ok", "guard_refused", "guard_sent_back", "test_change_asked")
CLASSES = tuple(kind.value for kind in ChangeClass)
_SHOWN = 40

Reader = Callable[[Change, TestSide, Mapping[str, Sequence[str]], Mapping[str, bytes]], Classification]
"""Says what a change newly can do."""


class GuardParams(Record):
    """`failing` are ids of tests that fail on base; `verdicts` are the base's verdicts (artifact digests): they tell
    which tests ran. With `send_back` an agent's change that may not pass, or is powerful, goes back to the agent once
    in a run. Without a candidate it tells of what an agent left and the guard kept out. With `branch`, what the
    change brings back from that branch's last proven commit is nothing new.
    """

    of: Name = "candidate"
    base: BaseSha
    candidate: CandidateSha = ""
    failing: Annotated[tuple[str, ...], takes("plan.failing")] = ()
    verdicts: BaseVerdicts = ()
    send_back: bool = False
    branch: BaseBranchOrNone = ""


def groups(params: GuardParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES), ConditionGroup(object=params.of, names=CLASSES))


async def check(context: ActionContext, params: GuardParams, read: Reader | None = None) -> Result:
    """The rules are those that base has committed: what the candidate says about the guard counts for nothing."""
    from becket.parts.guard.reading.classes.classify import classify  # every start pays for what actions import
    from becket.parts.guard.reading.examine import examine

    read = read or classify
    if not params.candidate:
        return await _tell_kept_out(context, params, kept_out_of(context))
    config = await context.port(Projects).committed(params.base)
    change = await context.port(Candidates).change(params.base, params.candidate)
    side = await side_of(context, params.base, params.verdicts)
    commands = await commands_run(context.port(Git), params.base, config)
    refusals = examine(change, config.section(GUARD), side, commands, config.section(SET_UP))
    refusals = await _but_for_proven_setup(context, params, change, refusals)
    places = await _places(context, params, change.base_paths)
    reading = read(change, side, config.section(GUARD).pure, {})
    if reading.kind is not ChangeClass.plain and params.branch:
        reading = read(change, side, config.section(GUARD).pure, await _as_proven(context, params, change))
    told_against = against(refusals, reading)
    name = _name(refusals)
    if params.send_back and _goes_back(context, config.section(GUARD), name, reading):
        name = "guard_sent_back"
    told = [refusal.model_dump(mode="json") for refusal in refusals]
    digest = digest_of({"base": params.base, "candidate": await context.port(Git).tree_of(params.candidate)})
    as_read = reading.model_dump(mode="json")
    whole = {"digest": digest, "refusals": told, "reading": as_read, "promote": config.section(GUARD).promote}
    kept = json.dumps(whole, indent=1).encode()
    evidence: dict[str, Json] = {
        "base": params.base,
        "candidate": params.candidate,
        "files": len(change.files),
        "refusals": told[:_SHOWN],
        "refusals_left_out": max(len(told) - _SHOWN, 0),
        "against": [] if name == "guard_ok" else told_against,
        "tests_tied": bool(places) or not names_tests(params.failing),
        "full": await context.keep(kept, "guard.json"),
    }
    said = Condition(object=params.of, name=name, group=NAMES, evidence=evidence)
    shown: dict[str, Json] = {
        "findings": as_read["findings"][:_SHOWN],
        "findings_left_out": max(len(reading.findings) - _SHOWN, 0),
    }
    classed = Condition(object=params.of, name=reading.kind.value, group=CLASSES, evidence=shown)
    outputs: dict[str, Json] = {
        "refusals": told,
        "digest": digest,
        "class": reading.kind.value,
        "change": change.digest,
        "asks": asked(refusals),
        "question": question(refusals, reading),
        **(_sent_back(context, name, told_against) if params.send_back else {"sent_back": [], "sent": 0}),
    }
    return Result(outputs=outputs, conditions=(said, classed), note=_summary(refusals, reading))


async def _tell_kept_out(context: ActionContext, params: GuardParams, refusals: tuple[Refusal, ...]) -> Result:
    """There is nothing to read any more, and what is told is what the guard said then."""
    reading = Classification(kind=ChangeClass.plain)
    words = against(refusals, reading)
    goes_back = params.send_back and _iterations_left(context) >= 2 and not _before(context).get("sent")
    name = "guard_sent_back" if goes_back else "guard_refused"
    told = [refusal.model_dump(mode="json") for refusal in refusals]
    evidence: dict[str, Json] = {
        "base": params.base,
        "candidate": "",
        "refusals": told[:_SHOWN],
        "refusals_left_out": max(len(told) - _SHOWN, 0),
        "against": words,
        "full": await context.keep(json.dumps({"refusals": told}, indent=1).encode(), "guard.json"),
    }
    before = _before(context)
    sent: dict[str, Json] = {
        "sent_back": [*before.get("sent_back", []), *(words if goes_back else ())],
        "sent": int(before.get("sent", 0)) + goes_back,
    }
    outputs: dict[str, Json] = {
        "refusals": told, "digest": "", "class": "", "change": "", "asks": "",
        "question": question(refusals, reading), **sent,
    }  # fmt: skip
    said = Condition(object=params.of, name=name, group=NAMES, evidence=evidence)
    return Result(outputs=outputs, conditions=(said,), note=_summary(refusals, reading))


async def _but_for_proven_setup(
    context: ActionContext, params: GuardParams, change: Change, refusals: tuple[Refusal, ...]
) -> tuple[Refusal, ...]:
    """Key files as the last proven commit has them were built from before: a revert needs nobody for these."""
    paths = {refusal.path for refusal in refusals if refusal.rule is GuardRule.setup_files}
    if not paths or not params.branch:
        return refusals
    proven = await since_proven(context, params.branch, params.base)
    now = await context.port(Git).listing(params.candidate)
    then = await context.port(Git).listing(proven[0]) if proven is not None else {}
    known = {path for path in paths if then and then.get(path) == now.get(path)}
    return tuple(one for one in refusals if one.rule is not GuardRule.setup_files or one.path not in known)


async def _as_proven(context: ActionContext, params: GuardParams, change: Change) -> Mapping[str, bytes]:
    """The changed files as the last proven commit before the base has them."""
    found = await since_proven(context, params.branch, params.base)
    paths = [file.path for file in change.files if file.in_candidate]
    return {} if found is None else await context.port(Git).read_files(found[0], paths, LARGEST)


def _name(refusals: Sequence[Refusal]) -> str:
    if not refusals:
        return "guard_ok"
    return "test_change_asked" if all(refusal.asks for refusal in refusals) else "guard_refused"


def _goes_back(context: ActionContext, trust: GuardConfig, name: str, reading: Classification) -> bool:
    """Only what an agent made, while it can be asked again. Where another candidate of the attempt waits, that one is
    tried instead, and the agent may still be told once.
    """
    powerful = reading.kind is ChangeClass.powerful and trust.promote is not ChangeClass.powerful
    if name == "guard_ok" and not powerful:
        return False
    if name == "test_change_asked" and "woken" in context.conditions:
        return False  # a person was asked about it, and may have answered
    candidate = current(context)
    if context.run.dry_run or candidate.kind != REPAIR or candidate.accepted_by:
        return False
    left = _iterations_left(context)
    return left >= 1 if candidate.waiting else left >= 2 and not _before(context).get("sent")


def _iterations_left(context: ActionContext) -> int:
    """In the last one no agent is called any more."""
    return context.spec.max_iterations - context.run.counted


def _sent_back(context: ActionContext, name: str, words: Sequence[str]) -> dict[str, Json]:
    """What the agent is told in its next brief, and whether it was told already: kept through the run."""
    before = _before(context)
    told, sent = list(before.get("sent_back", [])), int(before.get("sent", 0))
    if name != "guard_sent_back":
        return {"sent_back": told, "sent": sent}
    return {"sent_back": [*told, *words], "sent": sent + (not current(context).waiting)}


def _before(context: ActionContext) -> Mapping[str, Json]:
    return context.outputs.get(context.step_id, {})


def _summary(refusals: Sequence[Refusal], reading: Classification) -> str:
    if refusals:
        return f"{len(refusals)} against it, first {refusals[0]}"
    first = next((each for each in reading.findings if each.kind is reading.kind), None)
    return f"{reading.kind}: {first}" if first is not None else reading.kind.value


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


ACTIONS = (
    ActionDef(
        name="guard.check",
        summary="Read a candidate's change by the rules of its base.",
        run=check,
        params=GuardParams,
        raises=groups,
        outputs=("refusals", "digest", "class", "change", "asks", "question", "sent_back", "sent"),
        keeps=("sent_back", "sent"),
        about="guard",
    ),
)
