"""What a run's steps left behind, found by outputs, conditions and kinds of receipts; no name counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from becket.app.record.report import model as report_model
from becket.app.record.report.diff import files_of, is_cut, shortened
from becket.app.record.story import Story
from becket.kernel.contract.artifacts import Artifacts
from becket.kernel.contract.base import Json
from becket.kernel.contract.gate import GateVerdict
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Step, StepState

LARGEST = 8_000_000
LONGEST_SUMMARY = 12_000


class Evidence:
    """Reads the artifacts of a story's recorded steps. What is gone or was changed is never told from: see `lost`."""

    def __init__(self, story: Story, contents: Artifacts) -> None:
        self._story = story
        self._contents = contents
        self.lost: list[str] = []

    def done(self) -> Iterator[Step]:
        return (step for step in self._story.steps if step.state is StepState.done)

    def receipts(self, kind: str) -> Iterator[StoredReceipt]:
        return (item for item in self._story.receipts if item.receipt.kind == kind)

    def step_of(self, item: StoredReceipt) -> Step | None:
        place = (item.iteration, item.phase, item.action_id)
        return next((step for step in self._story.steps if (step.iteration, step.phase, step.id) == place), None)

    def kept_as(self, step: Step | None, output: str) -> str:
        """The digest of the artifact that the step itself kept and names in this output, or ""."""
        digest = str(step.outputs.get(output, "")) if step is not None else ""
        return digest if step is not None and digest in step.artifacts else ""

    def text(self, digest: str, what: str) -> str:
        """The content, or "" with a line in `lost`."""
        if not digest:
            return ""
        if not self._contents.check(digest):
            self.lost.append(f"{what}: the artifact {digest[:12]} is gone, or was changed")
            return ""
        return self._contents.read(digest, LARGEST).decode("utf-8", "replace")

    def document(self, digest: str, what: str) -> dict[str, Json]:
        text = self.text(digest, what)
        try:
            loaded = json.loads(text) if text else {}
        except ValueError:
            loaded = {}
        return loaded if isinstance(loaded, dict) else {}


def _texts(body: Mapping[str, Json], *names: str) -> dict[str, Any]:
    """What a receipt or document says under these names; it may be of another version."""
    return {name: str(body.get(name, "")) for name in names}


def gates(found: Evidence) -> Iterator[report_model.GateFacts]:
    for item in found.receipts("verdict"):
        step, body = found.step_of(item), item.receipt.body
        name = f"the gate {body.get('gate')} of {body.get('of')}"
        verdict = _verdict(found.text(found.kept_as(step, "verdict"), name))
        summary = found.text(found.kept_as(step, "summary"), f"the summary of {name}")
        yield report_model.GateFacts(
            iteration=item.iteration,
            action=item.action_id,
            **_texts(body, "of", "gate", "commit", "defined_by", "color"),
            receipt=item.digest,
            steps=tuple(_gate_steps(verdict)),
            summary=summary[:LONGEST_SUMMARY],
        )


def _verdict(text: str) -> GateVerdict | None:
    try:
        return GateVerdict.model_validate_json(text) if text else None
    except ValidationError:
        return None


def _gate_steps(verdict: GateVerdict | None) -> Iterator[report_model.GateStepFacts]:
    for step in verdict.steps if verdict is not None else ():
        yield report_model.GateStepFacts(
            step=step.step,
            color=step.color.value,
            tests_run=step.tests_run,
            counts_tests=step.counts_tests,
            seconds=step.seconds,
            exit_code=step.exit_code,
            end=step.end,
            failing=step.failing,
            failed=max(step.failed, len(step.failing)),
            reasons=step.reasons,
            receipt=step.receipt,
            log=step.log,
            reused_from=step.reused_from,
        )


def crossings(found: Evidence) -> Iterator[report_model.CrossingFacts]:
    for item in found.receipts("crossing"):
        body = item.receipt.body
        yield report_model.CrossingFacts(
            iteration=item.iteration,
            **_texts(body, "base", "candidate", "tried", "says"),
            receipt=item.digest,
            tests=tuple(test for crossing in body.get("crossings", ()) for test in _crossed(crossing)),
        )


def _crossed(crossing: Mapping[str, Json]) -> Iterator[report_model.CrossedTest]:
    for test in crossing.get("failed_on_parent", ()):
        yield report_model.CrossedTest(
            test=str(test),
            **_texts(crossing, "gate", "step", "parent", "child"),
            against=tuple(map(str, crossing.get("against", ()))),
        )


def holdouts(found: Evidence) -> Iterator[report_model.HoldoutFacts]:
    for item in found.receipts("holdout"):
        body = item.receipt.body
        yield report_model.HoldoutFacts(
            iteration=item.iteration,
            **_texts(body, "candidate", "oracle", "agent", "says"),
            receipt=item.digest,
            checks=tuple(_held_out(name, row) for name, row in body.get("checks", {}).items()),
            left_out={str(name): str(why) for name, why in body.get("left_out", {}).items()},
        )


def _held_out(name: str, row: Mapping[str, Json]) -> report_model.HeldOutCheck:
    ends = {place: tuple(row.get(place) or ()) for place in ("oracle", "parent", "candidate")}
    return report_model.HeldOutCheck(name=name, artifact=str(row.get("digest", "")), **ends)


def proofs(found: Evidence) -> Iterator[report_model.ProofFacts]:
    for item in found.receipts("proof"):
        body = item.receipt.body
        yield report_model.ProofFacts(
            iteration=item.iteration,
            **_texts(body, "base", "candidate", "says"),
            receipt=item.digest,
            gates=dict(body.get("gates", {})),
            parts=dict(body.get("parts", {})),
            reused=dict(body.get("reused", {})),
            against=tuple(map(str, body.get("against", ()))),
        )


def changes(found: Evidence) -> Iterator[report_model.ChangeFacts]:
    """Steps that name a commit and keep its patch. The same commit looked at again is told once."""
    seen: set[str] = set()
    for step in found.done():
        patch, commit = found.kept_as(step, "patch"), str(step.outputs.get("sha", ""))
        if not patch or not commit or commit in seen:
            continue
        seen.add(commit)
        text = found.text(patch, f"the patch of {commit[:12]}")
        diff, left_out = shortened(text)
        yield report_model.ChangeFacts(
            iteration=step.iteration,
            action=step.id,
            kind=str(step.outputs.get("kind", "")),
            commit=commit,
            parent=str(step.outputs.get("parent", "")),
            patch=patch,
            files=tuple(files_of(text)),
            diff=diff,
            left_out=left_out,
            kept_whole=not is_cut(text),
        )


def culprits(found: Evidence) -> Iterator[report_model.CulpritFacts]:
    """Steps that raise a condition of the object `culprit`. What a later iteration knows already is told once."""
    seen: set[tuple[Json, ...]] = set()
    for step in found.done():
        made = step.outputs if any(one.object == "culprit" for one in step.conditions) else {}
        key = tuple(made.get(name) for name in ("base", "sha", "runs"))
        if made and key not in seen:
            seen.add(key)
            yield report_model.CulpritFacts(
                iteration=step.iteration,
                commit=str(made.get("sha", "")),
                subject=str(made.get("subject", "")),
                why=str(made.get("why", "")),
                confidence=float(made.get("confidence", 0.0)),
                runs=int(made.get("runs", 0)),
            )


def guards(found: Evidence) -> Iterator[report_model.GuardFacts]:
    """A run that waits looks at the same candidate again and again: what it finds each time is told once."""
    seen: set[tuple[str, str]] = set()
    for step in found.done():
        digest, says = _kept_whole(step), ", ".join(condition.ref for condition in step.conditions)
        made = found.document(digest, "the guard")
        if made and (digest, says) not in seen:
            seen.add((digest, says))
            yield _guard(step, says, made)


def _kept_whole(step: Step) -> str:
    """Conditions hold only the first refusals; their evidence names the artifact that has all."""
    return next((str(one.evidence["full"]) for one in step.conditions if "full" in one.evidence), "")


def _guard(step: Step, says: str, made: Mapping[str, Json]) -> report_model.GuardFacts:
    reading = made.get("reading") or {}
    candidates = [one.evidence["candidate"] for one in step.conditions if one.evidence.get("candidate")]
    return report_model.GuardFacts(
        iteration=step.iteration,
        candidate=str(candidates[0]) if candidates else "",
        says=says,
        refusals=tuple(_remark(one, "fix") for one in made.get("refusals", ())),
        change_class=str(reading.get("kind", "")),
        findings=tuple(_finding(one) for one in reading.get("findings", ())),
        promote=str(made.get("promote", "")),
    )


def _finding(one: Mapping[str, Json]) -> report_model.FindingFacts:
    texts = _texts(one, "kind", "power", "path", "message", "shown")
    return report_model.FindingFacts(line=int(one.get("line", 0)), **texts)


def _remark(one: Mapping[str, Json], more: str) -> report_model.RemarkFacts:
    texts = _texts(one, "rule", "path", "message")
    return report_model.RemarkFacts(line=int(one.get("line", 0)), more=str(one.get(more, "")), **texts)


def claims(found: Evidence) -> Iterator[report_model.AgentClaim]:
    """Outputs named `said` are an agent's words; the conditions beside them are the runtime's judgement."""
    for step in found.done():
        said = step.outputs.get("said")
        if isinstance(said, str):
            agent = next((one for one in step.conditions if one.object == "agent"), None)
            yield report_model.AgentClaim(
                iteration=step.iteration,
                action=step.id,
                agent=str(agent.evidence.get("agent", "")) if agent is not None else "",
                judged=f"{agent.name}: {agent.evidence.get('reason', '')}" if agent is not None else "",
                said=said,
            )
