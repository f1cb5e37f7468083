"""Make a report of one run from its records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from becket.app.compose import App
from becket.app.parts import installed, load
from becket.app.record.report import evidence as kept
from becket.app.record.report import model as report_model
from becket.app.record.report.ending import ending_of
from becket.app.record.report.plain import because
from becket.app.record.story import Story, read_story
from becket.app.state import holder
from becket.kernel.contract.agent import AgentOutcome, Usage
from becket.kernel.contract.artifacts import Artifacts
from becket.kernel.contract.base import Json
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import UNSETTLED, Handoff, HandoffState
from becket.kernel.contract.part import Part
from becket.kernel.contract.ready import ACCEPT
from becket.kernel.contract.run import DECISION, Run, Step, StepState
from becket.kernel.contract.spec import PHASES, Phase
from becket.kernel.contract.trust import trust_of, trust_words

MOST_LINES = 200
"""Of one part."""


async def read_report(app: App, run_id: str) -> report_model.Report:
    """The report as of now. Raises NotFound."""
    return await report_from(app, await read_story(app, run_id))


async def report_from(app: App, story: Story) -> report_model.Report:
    """Of a story that was read already."""
    now = CurrentFacts(
        spend=await app.store.spent(story.run.run_id),
        trust=trust_of(app.config.model_dump(mode="json", include={"guard"})),
        watched=holder(app.state.daemon_lock) is not None,
        repaired_by=await _repaired_by(app, story.run),
    )
    report = await asyncio.to_thread(report_of, story, app.artifacts, now)
    report = report.model_copy(update={"parts": tuple(await asyncio.to_thread(told_by_parts, story, installed()))})
    return await asyncio.to_thread(without_secrets, report, app.redactor.text)


def told_by_parts(story: Story, parts: Iterable[Part]) -> Iterator[report_model.PartFacts]:
    """What fails in a part is told in its place: no report is lost by it."""
    for part in parts:
        if part.evidence:
            try:
                lines = tuple(str(line) for line in islice(load(part.evidence)(story), MOST_LINES))
            except Exception as error:
                lines = (f"it cannot tell its evidence: {error}",)
            if lines:
                yield report_model.PartFacts(part=part.name, lines=lines)


def without_secrets(report: report_model.Report, redact: Callable[[str], str]) -> report_model.Report:
    """What was recorded before a secret was known is shown without it, too (L25)."""
    return report_model.Report.model_validate(_hidden(report.model_dump(), redact))


def _hidden(value: Json, redact: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {name: _hidden(inner, redact) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_hidden(inner, redact) for inner in value)
    return value


async def _repaired_by(app: App, run: Run) -> str:
    """Whose repair it is that a person accepted: that of the run that left it."""
    left_by = run.inputs.get(ACCEPT)
    calls = await app.store.calls(str(left_by)) if left_by else ()
    return next((call.agent for call in calls if call.end and call.end.outcome is AgentOutcome.changed), "")


@dataclass(frozen=True, slots=True)
class CurrentFacts:
    """What a report tells besides the run's own records. `trust` is said of the configuration as it stands; what the
    guard judged by is in its own record.
    """

    spend: Mapping[str, float] = field(default_factory=dict)
    trust: str = ""
    watched: bool = False  # the daemon is up
    repaired_by: str = ""


def report_of(story: Story, contents: Artifacts, now: CurrentFacts) -> report_model.Report:
    found = kept.Evidence(story, contents)
    guards = tuple(kept.guards(found))
    report = report_model.Report(
        made_at=story.now,
        run=_run(story, now.repaired_by),
        phases=tuple(_phases(story)),
        conditions=tuple(_conditions(story)),
        gates=tuple(kept.gates(found)),
        crossings=tuple(kept.crossings(found)),
        holdouts=tuple(kept.holdouts(found)),
        proofs=tuple(kept.proofs(found)),
        changes=tuple(kept.changes(found)),
        culprits=tuple(kept.culprits(found)),
        guards=guards,
        claims=tuple(kept.claims(found)),
        calls=tuple(_calls(story)),
        receipts=tuple(_receipts(story)),
        effects=tuple(_effects(story)),
        handoffs=tuple(_handoffs(story)),
        approvals=tuple(_approvals(story)),
        spend={kind: amount for kind, amount in sorted(now.spend.items()) if amount},
        trust=next(filter(None, (trust_words(one.promote) for one in guards)), now.trust),
        lost=tuple(found.lost),
    )
    return report.model_copy(update={"end": ending_of(report, watched=now.watched)})


def _run(story: Story, repaired_by: str) -> report_model.RunFacts:
    run = story.run
    return report_model.RunFacts(
        run_id=run.run_id,
        loop_id=run.loop_id,
        goal=story.spec.goal,
        subject=run.subject.name,
        status=run.status.value,
        reason=run.reason,
        detail=run.detail,
        trigger=run.trigger,
        by=run.by,
        dry_run=run.dry_run,
        autonomy=run.autonomy.value if run.autonomy is not None else None,
        iterations=run.iteration,
        began_at=run.created_at,
        ended_at=run.ended_at,
        seconds=max((run.ended_at or story.now) - run.created_at, 0.0),
        worked=run.wall_used,
        retry_of=run.retry_of,
        spec_digest=run.spec_digest,
        chain_head=run.head,
        repaired_by=repaired_by,
    )


def _phases(story: Story) -> Iterator[report_model.PhaseFacts]:
    for iteration in sorted({step.iteration for step in story.steps}):
        for phase in PHASES:
            mine = [step for step in story.steps if (step.iteration, step.phase) == (iteration, phase)]
            if mine:
                yield _phase(story, iteration, phase, mine)


def _phase(story: Story, iteration: int, phase: Phase, steps: list[Step]) -> report_model.PhaseFacts:
    decision = next((step for step in steps if step.id == DECISION), None)
    worked = [step for step in steps if step.state is not StepState.skipped and step is not decision]
    said = decision.outputs if decision is not None else {}
    return report_model.PhaseFacts(
        iteration=iteration,
        phase=phase.value,
        objective=story.spec.phases[phase].objective if phase in story.spec.phases else "",
        seconds=sum(step.ended_at - step.started_at for step in worked),
        steps=tuple(_step(step) for step in steps if step is not decision),
        decision=f"{said.get('outcome', '')}: {said.get('reason', '')}" if said else "",
    )


def _step(step: Step) -> report_model.StepFacts:
    return report_model.StepFacts(
        id=step.id,
        state=step.state.value,
        seconds=step.ended_at - step.started_at,
        attempts=step.attempts,
        raised=tuple(condition.ref for condition in step.conditions),
        note=step.note,
        error=f"{step.error_kind}: {step.error}" if step.error else "",
    )


def _conditions(story: Story) -> Iterator[report_model.ConditionFacts]:
    for item in sorted(story.conditions, key=lambda one: (one.at, one.ref)):
        yield report_model.ConditionFacts(name=item.ref, at=item.at, evidence=item.evidence)


def _receipts(story: Story) -> Iterator[report_model.ReceiptFacts]:
    for item in story.receipts:
        yield report_model.ReceiptFacts(
            digest=item.digest,
            iteration=item.iteration,
            phase=item.phase,
            action=item.action_id,
            kind=item.receipt.kind,
            command=item.receipt.command,
            tree=item.receipt.tree,
            exit_code=item.receipt.exit_code,
            log=item.receipt.log,
            seconds=item.ended_at - item.started_at,
        )


def _calls(story: Story) -> Iterator[report_model.CallFacts]:
    for call in story.calls:
        end = call.end
        usage = end.usage if end is not None else Usage(seconds=max(story.now - call.began_at, 0.0))
        yield report_model.CallFacts(
            iteration=call.iteration,
            action=call.step_id,
            agent=call.agent,
            driver=call.driver,
            model=(end.model if end is not None else "") or call.model,
            version=end.version if end is not None else "",
            outcome=end.outcome.value if end is not None else "",
            reason=end.reason if end is not None else "",
            began_at=call.began_at,
            seconds=usage.seconds,
            turns=usage.turns,
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            usd=usage.usd,
            priced=usage.priced.value,
            over=end.over if end is not None else (),
        )


def _effects(story: Story) -> Iterator[report_model.EffectFacts]:
    for effect in story.effects:
        yield report_model.EffectFacts(
            key=effect.key,
            name=effect.call.name,
            target=effect.call.target,
            state=effect.state.value,
            reason=effect.reason,
            attempts=effect.attempts,
            at=effect.updated_at,
        )


def _handoffs(story: Story) -> Iterator[report_model.HandoffFacts]:
    for item in story.handoffs:
        yield report_model.HandoffFacts(
            handoff_id=item.handoff_id,
            owner=item.owner,
            reason=item.reason,
            next_step=item.next_step,
            state=item.state.value,
            taken_by=item.taken_by,
            commands=_commands(story, item.reason),
            because=because(item.evidence),
            accepted_by=_accepted_by(story, item),
            note=item.note,
            settled_at=None if item.state in UNSETTLED else item.updated_at,
        )


def _accepted_by(story: Story, item: Handoff) -> str:
    said = [event.data for event in story.events if event.kind is EventKind.handoff_changed]
    mine = [one for one in said if (one["handoff_id"], one["state"]) == (item.handoff_id, HandoffState.accepted)]
    return str(mine[-1]["by"]) if mine else ""


def _commands(story: Story, reason: str) -> tuple[str, ...]:
    """A condition that hands over may say by which commands a person goes on."""
    said = next((one.evidence.get("commands") for one in story.conditions if one.ref == reason), None)
    return tuple(map(str, said)) if isinstance(said, list) else ()


def _approvals(story: Story) -> Iterator[report_model.ApprovalFacts]:
    for item in story.approvals:
        yield report_model.ApprovalFacts(
            approval_id=item.approval_id,
            question=item.question,
            bound_to=item.bound_to,
            state=item.state.value,
            decided_by=item.decided_by,
        )
