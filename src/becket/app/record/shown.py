"""Documents that the command line's `--json`, the API and the tools of an editor have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from becket.app.compose import App
from becket.app.proposals import Proposal, find, patch, proof_of
from becket.app.record.questions import read_question
from becket.app.record.story import Story
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import Effect
from becket.kernel.contract.errors import Finding, NotFound
from becket.kernel.contract.events import Event
from becket.kernel.contract.handoff import Approval, Handoff
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.receipt import SETUP, StoredReceipt
from becket.kernel.contract.run import Run, Step
from becket.kernel.contract.state import state_seen
from becket.kernel.contract.store import ArtifactRef


class StateShown(Record):
    """A ref as a run found it and as it left it."""

    ref: str
    began: Json
    ended: Json
    looked: bool
    changed: bool


class WholeRun(Record):
    """A run with all its records."""

    run: Run
    steps: tuple[Step, ...]
    conditions: tuple[Condition, ...]
    events: tuple[Event, ...]
    receipts: tuple[StoredReceipt, ...]
    effects: tuple[Effect, ...]
    approvals: tuple[Approval, ...]
    handoffs: tuple[Handoff, ...]
    artifacts: tuple[ArtifactRef, ...]
    calls: tuple[AgentCall, ...]
    state_refs: tuple[StateShown, ...]


def whole_run(story: Story) -> WholeRun:
    names = [name for name in WholeRun.model_fields if name != "state_refs"]
    seen = tuple(StateShown(**one.model_dump(), changed=one.changed) for one in state_seen(story.events))
    return WholeRun(**{name: getattr(story, name) for name in names}, state_refs=seen)


class ProposalShown(Record):
    """A ready repair. `moved`: the branch is no longer where the repair was proven."""

    handoff: Handoff
    run_id: str
    branch: str
    head: str
    sha: str
    base: str
    moved: bool


class ProposedChange(ProposalShown):
    proof: str
    diff: str


def proposal_shown(one: Proposal) -> ProposalShown:
    return ProposalShown(
        handoff=one.handoff, run_id=one.run.run_id, branch=one.target, head=one.head, sha=one.sha, base=one.base,
        moved=one.moved,
    )  # fmt: skip


async def proposed_change(app: App, name: str) -> ProposedChange:
    one = await find(app, name)
    diff, proof = await patch(app, one), await proof_of(app.store, one.run.run_id, one.sha)
    return ProposedChange(**dict(proposal_shown(one)), proof=proof, diff=diff.decode(errors="replace"))


class QuestionShown(Approval):
    """With the change that it is about, or the text; empty where it is about something else."""

    base: str
    candidate: str
    diff: str
    text: str


async def question_shown(app: App, name: str) -> QuestionShown:
    asked = await read_question(app, name)
    diff = asked.diff.decode(errors="replace")
    return QuestionShown(**dict(asked.approval), base=asked.base, candidate=asked.candidate, diff=diff, text=asked.text)


class LoopShown(Record):
    loop_id: str
    goal: str
    triggers: tuple[str, ...]
    autonomy: str
    inputs: dict[str, Json]
    source: str
    digest: str


class LoopsShown(Record):
    """`broken` are the files that do not load."""

    loops: tuple[LoopShown, ...]
    broken: tuple[str, ...]


class WholeLoop(LoopShown):
    spec: dict[str, Json]
    text: str


class FindingShown(Record):
    file: str
    line: int
    column: int
    rule: str
    message: str
    fix: str


class Linted(Record):
    ok: bool
    checked: tuple[str, ...]
    findings: tuple[FindingShown, ...]


def loop_shown(loop: LoadedLoop) -> LoopShown:
    spec = loop.spec
    return LoopShown(
        loop_id=spec.loop_id, goal=spec.goal, triggers=tuple(trigger.kind for trigger in spec.trigger),
        autonomy=spec.autonomy.value, inputs={name: item.model_dump(mode="json") for name, item in spec.inputs.items()},
        source=loop.source, digest=loop.digest,
    )  # fmt: skip


def loops_shown(app: App) -> LoopsShown:
    broken = sorted(file for file, items in app.loops.findings().items() if items)
    return LoopsShown(loops=tuple(map(loop_shown, app.loops.all())), broken=tuple(broken))


def whole_loop(loop: LoadedLoop) -> WholeLoop:
    spec = loop.spec.model_dump(mode="json", by_alias=True)
    return WholeLoop(**dict(loop_shown(loop)), spec=spec, text=loop.text)


def lint_findings(app: App, loop_id: str | None) -> dict[str, Sequence[Finding]]:
    """By file; raises NotFound for a loop that is nowhere."""
    found: dict[str, Sequence[Finding]] = dict(app.loops.findings())
    if loop_id is None:
        return found
    chosen = {file: items for file, items in found.items() if Path(file.split(" (")[0]).stem == loop_id}
    return chosen or {app.loops.get(loop_id).source: ()}


def linted(findings: Mapping[str, Sequence[Finding]]) -> Linted:
    bad = tuple(
        FindingShown(
            file=item.file, line=item.line, column=item.column, rule=item.rule, message=item.message, fix=item.fix
        )
        for items in findings.values()
        for item in items
    )
    return Linted(ok=not bad, checked=tuple(sorted(findings)), findings=bad)


class LogExcerpt(Record):
    """The end of what a step printed. `size` is of all of it, in bytes."""

    run_id: str
    step: str
    size: int
    cut: bool
    text: str


def logs_of(story_receipts: Sequence[StoredReceipt]) -> dict[str, str]:
    """Step -> artifact: the last log of each."""
    return {
        SETUP if item.receipt.kind == SETUP else item.action_id: item.receipt.log
        for item in story_receipts
        if item.receipt.log
    }


async def step_log(app: App, run_id: str, step: str, most: int) -> LogExcerpt:
    """Raises NotFound, with the steps that have one."""
    run = await app.store.get_run(run_id)
    logs = logs_of(await app.store.receipts(run.run_id))
    if step not in logs:
        raise NotFound(f"{run.run_id} keeps no log of {step[:60]!r}; it has {', '.join(logs) or 'none'}")
    path = app.artifacts.path(logs[step])
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - most))
        text = file.read(most).decode(errors="replace")
    return LogExcerpt(run_id=run.run_id, step=step, size=size, cut=size > most, text=text)
