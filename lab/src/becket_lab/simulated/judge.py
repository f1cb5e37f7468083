"""What must hold after a play, read from the journal and from the model's own truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from becket.kernel.contract.run import ENDED, Run, RunStatus, Step, StepState
from becket.kernel.contract.spec import Phase
from becket.kernel.contract.store import RunFilter
from becket_lab.simulated.play import Play
from becket_lab.simulated.project import truly_green

LONGEST_READY = 6.0
"""In proof times: so long a proven candidate may stand there before main has it or a person knows. At each move of main
the new base is judged, and what is red there once more on the last proven commit.
"""


@dataclass(frozen=True, slots=True)
class Ready:
    """A proven candidate, from its first proof until main moved to it or somebody was told."""

    run_id: str
    since: float
    until: float
    end: str


@dataclass(frozen=True, slots=True)
class Story:
    """A run with its steps, in their order."""

    run: Run
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    wrong: tuple[str, ...]
    ready: tuple[Ready, ...]
    ends: Counter[str]
    gate_runs: int
    reran: int
    promoted: int
    proven: int  # commits that were found green or were promoted


async def judge(play: Play) -> Judgement:
    stories = [
        Story(run, await play.system.store.steps(run.run_id))
        for run in await play.system.store.list_runs(RunFilter(limit=None, oldest_first=True))
    ]
    ready = tuple(found for story in stories for found in _ready(story))
    wrong = (
        *_unproven_moves(play, stories),
        *_released_twice(play),
        *_lost_commits(play),
        *_left_open(stories),
        *_broken_steps(stories),
        *_left_ready(play, ready),
    )
    ends = Counter(f"{story.run.status}: {story.run.reason}" for story in stories)
    proven = {step.outputs.get("sha") for story in stories for step in story.steps if step.id == "settle"} - {"", None}
    runs = play.processes.runs
    return Judgement(wrong, ready, ends, runs["whole"], runs["selected"], len(play.moves), len(proven))


def _unproven_moves(play: Play, stories: list[Story]) -> Iterator[str]:
    """Every move of ours goes from the proof's base to the proof's candidate, which is truly green."""
    proofs = {
        str(step.outputs["digest"]): condition.evidence
        for story in stories
        for step in story.steps
        if step.id == "proof"
        for condition in step.conditions
        if condition.ref == "candidate.proven"
    }
    for move in play.moves:
        proof = proofs.get(move.proof)
        if proof is None or proof["base"] != move.old or proof["candidate"] != move.new:
            yield f"main moved from {move.old[:8]} to {move.new[:8]} without a proof of just that: {proof}"
        elif not truly_green(play.on.files(move.new)):
            yield f"main moved to {move.new[:8]}, which is broken"


def _released_twice(play: Play) -> Iterator[str]:
    for sha, count in Counter(sha for sha, _ in play.watchdog.released).items():
        if count > 1:
            yield f"{sha[:8]} was released {count} times"
    for sha, _ in play.watchdog.released:
        if not truly_green(play.on.files(sha)):
            yield f"{sha[:8]} was released, and is broken"


def _lost_commits(play: Play) -> Iterator[str]:
    kept = play.on.history(play.on.main)
    yield from (f"the person's commit {sha[:8]} is not in main any more" for sha in play.people if sha not in kept)


def _left_open(stories: list[Story]) -> Iterator[str]:
    for story in stories:
        run = story.run
        if run.status not in ENDED:
            yield f"{run.run_id} is {run.status} although nothing can happen any more"
        elif run.status is RunStatus.failed:
            yield f"{run.run_id} failed: {run.reason} {run.detail}"


def _broken_steps(stories: list[Story]) -> Iterator[str]:
    """Nothing here is out of order but the agent: a step that fails is the loop's own fault.

    A run whose time is up is cut short, and what closes it misses what was not done any more.
    """
    for story in stories:
        if story.run.reason in ("deadline_passed", "budget_exhausted"):
            continue
        for step in story.steps:
            if step.state is StepState.failed and step.id != "fix":
                yield f"{story.run.run_id}: {step.phase}.{step.id} of iteration {step.iteration} failed: {step.error}"


def _left_ready(play: Play, ready: tuple[Ready, ...]) -> Iterator[str]:
    for one in ready:
        times = (one.until - one.since) / play.proof
        if times > LONGEST_READY:
            yield f"{one.run_id}: a proven candidate stood there for {times:.1f} proof times until {one.end}"


def _ready(story: Story) -> Iterator[Ready]:
    since: float | None = None
    for step in story.steps:
        refs = {condition.ref for condition in step.conditions}
        if "candidate.proven" in refs and since is None:
            since = step.ended_at
        if since is None:
            continue
        if "promoted" in refs or "run.promoted" in refs:
            yield Ready(story.run.run_id, since, step.ended_at, "promoted")
            since = None
        elif "candidate.none" in refs:
            since = None  # it did not fit any more, or was not proven again
        elif step.phase is Phase.notify:
            outcome = _outcome(story, step.iteration)
            if outcome in ("handoff", "wait"):
                yield Ready(story.run.run_id, since, step.ended_at, outcome)
                since = None
    if since is not None:
        yield Ready(story.run.run_id, since, story.run.ended_at or float("inf"), "the end")


def _outcome(story: Story, iteration: int) -> str:
    decided = [
        s for s in story.steps if s.iteration == iteration and s.phase is Phase.decide and "outcome" in s.outputs
    ]
    return str(decided[-1].outputs["outcome"]) if decided else ""
