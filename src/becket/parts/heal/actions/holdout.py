"""The hold-out proof: checks that an independent agent wrote, that nobody who repairs has seen, pass on the candidate.

A check counts only if it passes on the last proven commit, the oracle; and one of those that count must fail on the red
parent, or they say nothing about what is broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated

from becket.kernel.actions.candidate import REVERT, current
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.condition import Condition, ConditionGroup
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.git import Git
from becket.kernel.contract.guard import ChangeClass
from becket.kernel.contract.made import BaseBranch, BaseSha, BaseVerdicts, CandidateSha, takes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.receipt import Receipt
from becket.kernel.contract.spec import Autonomy, Name
from becket.parts.gates.copies import why_not
from becket.parts.gates.judging.history import since_proven
from becket.parts.gates.judging.reference import red_without_tests
from becket.parts.guard.actions.side import side_of
from becket.parts.guard.reading.failing import places_of
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GUARD
from becket.parts.heal.holdouts.languages import CheckLanguage, language_of, spoken
from becket.parts.heal.holdouts.running import Check, CheckExits, Trial, forget_places, trial, write_whole
from becket.parts.heal.holdouts.writing import CheckRequest, NoChecksWritten, WrittenChecks, kept, write

checks_counted = CrashPoint("holdout.counted", "it is known which checks count; the candidate has not met them")
candidate_tried = CrashPoint("holdout.tried", "the candidate has met the checks; no receipt says how it went")

PASSED, FAILED, NOTHING, WAITS = NAMES = ("holdout_passed", "holdout_failed", "holdout_nothing", "holdout_waits")
TOLD_TO_THE_FIXER = "independent checks of the same behaviour fail with your change"
"""All that a repairing agent hears of them: who knows a check can answer it without being right."""

NOT_CONFIGURED = (
    "no agent is configured to write hold-out checks; name one with `heal: {hold_out: AGENT}` in becket.yaml"
)
MOST_READ = 2_000_000
_COUNTED = "counted.json"


class HoldoutParams(Record):
    """`verdicts` and `summaries` are the base's, as artifacts; `commits` says for each summary what it is about."""

    of: Name = "candidate"
    base: BaseSha
    candidate: CandidateSha
    branch: BaseBranch
    failing: Annotated[tuple[str, ...], takes("plan.failing")] = ()
    verdicts: BaseVerdicts = ()
    summaries: Annotated[tuple[str, ...], takes("base.summary", each=True)] = ()
    commits: Annotated[tuple[str, ...], takes("base.commit", each=True)] = ()


class CountedChecks(Record):
    """Which of the checks count, and how each ended before the repair."""

    about: str
    oracle: str
    agent: str
    checks: tuple[Check, ...]
    right: dict[str, CheckExits]  # on the oracle
    broken: dict[str, CheckExits]  # on the red parent
    left_out: dict[str, str]  # by name: why it counts for nothing

    @property
    def useless(self) -> str:
        """Why they prove nothing, or nothing."""
        if not self.checks:
            told = "; ".join(f"{name}: {why}" for name, why in list(self.left_out.items())[:5])
            return f"none of the {len(self.left_out)} hold-out checks counts: {told}"
        if all(exits.passed for exits in self.broken.values()):
            return "every hold-out check passes on the red commit too, so they say nothing about what is broken"
        return ""


@dataclass(frozen=True, slots=True)
class CheckBasis:
    """What the checks are held against: the tests of base, and the languages it is written in."""

    side: TestSide
    tests: tuple[str, ...]  # paths of the test side, but for names that the product has too
    failing: tuple[str, ...]  # texts of the files with the failing tests
    languages: tuple[CheckLanguage, ...]
    unsupported: str


def groups(params: HoldoutParams) -> tuple[ConditionGroup, ...]:
    return (ConditionGroup(object=params.of, names=NAMES),)


async def check(context: ActionContext, params: HoldoutParams) -> Result:
    forget_places(context)
    if why := await _needless(context, params):
        return _nothing(params, why)
    try:
        counted = await _counted(context, params)
        if counted.useless:
            return await _result(context, params, counted, {}, NOTHING, counted.useless)
        exits = await _on_candidate(context, params, counted)
    except NoChecksWritten as none:
        return _nothing(params, f"there are no hold-out checks: {none}", none.until)
    except ActionFailed as failed:
        if failed.retryable:
            raise
        return _nothing(params, f"there are no hold-out checks: {failed}")  # the repair itself is not lost for it
    candidate_tried()
    failing = [name for name, each in exits.items() if not each.passed]
    why = f"{len(failing)} of {len(exits)} hold-out checks fail on it" if failing else ""
    return await _result(context, params, counted, exits, FAILED if failing else PASSED, why)


async def _needless(context: ActionContext, params: HoldoutParams) -> str:
    """Where the outcome could not let main move, nobody is paid for it."""
    promote = (await context.port(Projects).committed(params.base)).section(GUARD).promote
    if current(context).kind == REVERT:
        return "a revert needs none: it brings back what was proven"
    if promote is not ChangeClass.ordinary:
        return f"none is asked for with `guard: {{promote: {promote}}}`"
    if not context.autonomy.allows(Autonomy.merge):
        return f"{context.autonomy_told}: it is proposed in any case"
    if red := await red_without_tests(context, params.verdicts, params.base):
        return f"the red step {red[0]} named no tests, so there is nothing to write checks about"
    return "" if context.port(Projects).current().heal.hold_out else NOT_CONFIGURED


async def _counted(context: ActionContext, params: HoldoutParams) -> CountedChecks:
    proven = await since_proven(context, params.branch, params.base)
    if proven is None:
        raise NoChecksWritten(
            f"no commit before {params.base[:12]} is known to be green, so nothing says what is right"
        )
    ground = await _ground(context, params)
    if ground.unsupported:
        raise NoChecksWritten(ground.unsupported)
    agent = context.port(Projects).current().heal.hold_out or ""
    evidence = await _evidence(context, params)
    wanted = CheckRequest(agent, proven[0], params.failing, evidence, ground.languages)
    about = digest_of({"wanted": wanted.about, "base": params.base})
    file = context.folder("holdout") / _COUNTED
    if file.exists() and (found := CountedChecks.model_validate_json(file.read_text("utf-8"))).about == about:
        return found
    done = await _count(context, params, wanted, ground, about)
    write_whole(file, done.model_dump_json())
    checks_counted()
    return done


async def _count(
    context: ActionContext, params: HoldoutParams, wanted: CheckRequest, ground: CheckBasis, about: str
) -> CountedChecks:
    async with trial(context, wanted.oracle, params.base, ground.side.belongs) as oracle:
        written = kept(context, wanted.about) or await _write(context, wanted, oracle)
        texts = await _texts(context, written.checks)
        left_out = {name: why for name, text in texts.items() if (why := _why_not(name, text, ground))}
        honest = [check for check in written.checks if check.name not in left_out]
        right = await oracle.rounds([(each, texts[each.name]) for each in honest], 2)
    left_out |= {name: _wrong(exits, wanted) for name, exits in right.items() if not exits.passed}
    counting = tuple(each for each in honest if each.name not in left_out)
    broken: dict[str, CheckExits] = {}
    if counting:
        async with trial(context, params.base, params.base, ground.side.belongs) as parent:
            broken = await parent.rounds([(each, texts[each.name]) for each in counting], 1)
    return CountedChecks(
        about=about, oracle=wanted.oracle, agent=written.agent, checks=counting, right=right, broken=broken,
        left_out=left_out,
    )  # fmt: skip


async def _write(context: ActionContext, wanted: CheckRequest, oracle: Trial) -> WrittenChecks:
    for language in wanted.languages:
        if not await oracle.can_run(language):
            raise NoChecksWritten(f"this machine cannot run checks in {language.name}: {oracle.shown(language)}")
    return await write(context, wanted, oracle)


def _why_not(name: str, text: str, ground: CheckBasis) -> str:
    language = language_of(name)
    assert language is not None, "only checks of languages that were asked for are taken"
    return why_not(text, language.frameworks, ground.failing, ground.tests)


def _wrong(exits: CheckExits, wanted: CheckRequest) -> str:
    return f"it fails on {wanted.oracle[:12]}, which is known to be right ({', '.join(map(str, exits.ends))})"


async def _on_candidate(context: ActionContext, params: HoldoutParams, counted: CountedChecks) -> dict[str, CheckExits]:
    side = await side_of(context, params.base, ())
    texts = await _texts(context, counted.checks)
    async with trial(context, params.candidate, params.base, side.belongs) as tree:
        return await tree.rounds([(each, texts[each.name]) for each in counted.checks], 2)


async def _texts(context: ActionContext, checks: Sequence[Check]) -> dict[str, str]:
    return {each.name: (await context.read(each.digest)).decode("utf-8", "replace") for each in checks}


async def _ground(context: ActionContext, params: HoldoutParams) -> CheckBasis:
    git = context.port(Git)
    side = await side_of(context, params.base, ())
    paths = (await git.listing(params.base)).keys()
    tests = tuple(path for path in paths if side.belongs(path))
    files = list(dict.fromkeys(path for path, _ in places_of(params.failing, paths)))
    product = [path for path in paths if not side.belongs(path)]
    languages, unsupported = spoken(files, product)
    read, left = [], MOST_READ
    for path in files or tests:
        data = await git.read_bytes(params.base, path) if left > 0 else None
        left -= len(data or b"")
        read.append((data or b"").decode("utf-8", "replace"))
    stems = {PurePosixPath(path).stem for path in product}
    own = tuple(path for path in tests if PurePosixPath(path).stem not in stems)
    return CheckBasis(side, own, tuple(read), languages, unsupported)


async def _evidence(context: ActionContext, params: HoldoutParams) -> str:
    digests = about_base(params.summaries, params.commits, params.base)
    return "\n\n".join([(await context.read(digest)).decode("utf-8", "replace") for digest in digests])


def about_base(summaries: Sequence[str], commits: Sequence[str], base: str) -> list[str]:
    """The summaries of this base: `commits` says what each is about; without, all are."""
    about = commits if len(commits) == len(summaries) else [base] * len(summaries)
    return [digest for digest, sha in zip(summaries, about, strict=True) if digest and sha == base]


def _nothing(params: HoldoutParams, why: str, until: float | None = None) -> Result:
    name = NOTHING if until is None else WAITS
    said = Condition(object=params.of, name=name, group=NAMES, evidence={"why": why, "until": until})
    outputs: dict[str, Json] = {"state": name, "why": why, "digest": "", "receipt": "", "checks": []}
    return Result(outputs=outputs, conditions=(said,), note=why)


async def _result(
    context: ActionContext,
    params: HoldoutParams,
    counted: CountedChecks,
    exits: dict[str, CheckExits],
    name: str,
    why: str,
) -> Result:
    body: dict[str, Json] = {
        "base": params.base,
        "candidate": params.candidate,
        "oracle": counted.oracle,
        "agent": counted.agent,
        "checks": {each.name: _row(each, counted, exits) for each in counted.checks},
        "left_out": dict(counted.left_out),
    }
    now = await context.now()
    shown = "\n".join(f"### {name}\n{text}" for name, text in (await _texts(context, counted.checks)).items())
    log = await context.keep(shown.encode(), "holdout.checks.txt")
    proof = Receipt(kind="holdout", tree=params.candidate, log=log, body={**body, "says": name})
    receipt = await context.receipt(proof, now, now)
    evidence: dict[str, Json] = {
        "why": why, "oracle": counted.oracle, "agent": counted.agent, "receipt": receipt,
        "counted": len(counted.checks), "left_out": dict(counted.left_out),
    }  # fmt: skip
    said = Condition(object=params.of, name=name, group=NAMES, evidence=evidence)
    outputs: dict[str, Json] = {
        "state": name,
        "why": why,
        "digest": digest_of(body),
        "receipt": receipt,
        "checks": [f"holdout.{each.name}" for each in counted.checks],
    }
    return Result(outputs=outputs, conditions=(said,), note=why)


def _row(check: Check, counted: CountedChecks, exits: dict[str, CheckExits]) -> dict[str, Json]:
    on = {"oracle": counted.right, "parent": counted.broken, "candidate": exits}
    ends: dict[str, Json] = {tree: list(found[check.name].ends) for tree, found in on.items() if check.name in found}
    return {"digest": check.digest, **ends}


ACTIONS = (
    ActionDef(
        name="holdout.check",
        summary="Let an independent agent write checks, and see whether the candidate passes them unseen.",
        run=check,
        params=HoldoutParams,
        raises=groups,
        outputs=("state", "why", "digest", "receipt", "checks"),
        keeps=("state",),
        about="holdout",
        calls_agent=True,
    ),
)
