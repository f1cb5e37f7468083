"""Ten thousand commits against the real engine and the real heal loop, in simulated time, on a modelled git.

Held: L2 (main moves while a run works), L3 and L8 (only what is proven is promoted and released).
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.kernel.contract.base import Json
from becket_lab.simulated.ground import Ground, ModelGround, RealGround
from becket_lab.simulated.judge import Judgement, judge
from becket_lab.simulated.play import Moved, Play
from becket_lab.simulated.project import Odds


def played(
    folder: Path, seed: int, proof: float, events: int, odds: Odds | None = None, ground: Ground | None = None
) -> Judgement:
    async def story() -> Judgement:
        play = Play(folder, seed, proof, odds or Odds(), ground)
        await play.run(events)
        assert len(play.people) == events + 1
        return await judge(play)

    return asyncio.run(story())


def held(judgement: Judgement) -> None:
    assert not judgement.wrong, "\n".join(judgement.wrong[:20])


@pytest.mark.parametrize(("seed", "proof", "events"), [(1, 60.0, 60), (2, 240.0, 90), (3, 600.0, 150)])
def test_what_is_promoted_is_proven_and_what_is_proven_is_not_left_lying(
    tmp_path: Path, seed: int, proof: float, events: int
) -> None:
    """L2, L3, L8: nothing unproven, released twice, lost or forgotten, and no run without an end."""
    judgement = played(tmp_path, seed, proof, events)
    held(judgement)
    assert judgement.ready, judgement.ends
    assert judgement.proven, judgement.ends


SLOW = [(seed, proof, events) for proof, events, seeds in (
    (60.0, 500, range(10, 16)), (240.0, 700, range(20, 25)), (600.0, 800, range(30, 34)),
) for seed in seeds]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "proof", "events"), SLOW)
def test_ten_thousand_events(tmp_path: Path, seed: int, proof: float, events: int) -> None:
    """The same, over many seeds; together with the quick ones 10,000 commits."""
    held(played(tmp_path, seed, proof, events))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "proof"), [(40, 240.0), (41, 600.0)])
def test_a_hundred_events_on_a_real_repository(tmp_path: Path, seed: int, proof: float) -> None:
    """The model is not believed alone: the same play with the git program, its workspaces and the promote recipe."""
    held(played(tmp_path, seed, proof, 100, ground=RealGround(tmp_path)))


def test_the_same_seed_tells_the_same_story(tmp_path: Path) -> None:
    """Names of runs differ, and nothing else: a failing seed can be played again."""
    one, two = (played(tmp_path / name, 7, 60.0, 25) for name in ("one", "two"))
    assert summary(one) == summary(two)


def summary(judgement: Judgement) -> list[Json]:
    lasted = [round(ready.until - ready.since, 3) for ready in judgement.ready]
    return [sorted(judgement.ends.items()), lasted, judgement.gate_runs, judgement.reran, judgement.promoted]


@pytest.mark.parametrize("proof", [60.0, 600.0])
def test_a_branch_that_never_rests_ends_in_a_handoff_with_the_proposal(tmp_path: Path, proof: float) -> None:
    """L2: everything is red, agents always repair, people commit faster than any proof: `contended`, not for ever."""
    odds = Odds(red=0.6, torn=0.0, flake=0.0, dirty=0.0, repaired_by_person=0.0, agent=(("repairs", 1.0),))
    judgement = played(tmp_path, 5, proof, 60, odds)
    held(judgement)
    if proof > 500:
        assert judgement.ends["ready_for_handoff: contended"], judgement.ends


def test_the_judge_sees_a_move_without_a_proof(tmp_path: Path) -> None:
    """A check that cannot fail is none: a main that somebody moves by itself, in Becket's name, is found out."""

    async def story() -> Judgement:
        ground = ModelGround(tmp_path)
        play = Play(tmp_path, 1, 60.0, ground=ground)
        await play.run(5)
        before = ground.main
        stray = ground.git.make({"becket.yaml": ""}, (), "from nowhere")
        play.moves.append(Moved(0.0, before, stray.sha, "no such proof"))
        ground.git.values["refs/heads/main"] = stray.sha
        play.watchdog.released += [(before, "a"), (before, "b")]
        return await judge(play)

    wrong = "\n".join(asyncio.run(story()).wrong)
    assert "without a proof" in wrong
    assert "released" in wrong
    assert "is not in main any more" in wrong
