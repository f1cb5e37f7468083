"""A proven commit on its way to main, told as stories: it arrives, it waits, it is handed over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from promote_stage import LOOP, PROMOTION, Stage

from becket.kernel.contract.condition import Condition
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.run import Run, RunStatus, Step
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import RunFilter
from becket.testing.crashes import Crashed, crashing
from becket.testing.effects import RecordedEffect

REFUSED = "main_moved, main_dirty, main_busy, promote_refused"


@pytest.fixture(params=["memory", "sqlite"])
def stage(tmp_path: Path, request: pytest.FixtureRequest) -> Stage:
    return Stage(tmp_path, store=request.param)


def raised(step: Step) -> dict[str, Condition]:
    return {condition.name: condition for condition in step.conditions}


def test_a_proven_commit_arrives(stage: Stage) -> None:
    old, new = stage.main(), stage.candidate()
    run, steps = stage.tell(PROMOTION, "promoted", new)
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met")
    go = steps["go"]
    assert set(raised(go)) == {"promoted"}
    assert {name: go.outputs[name] for name in ("state", "main", "moves")} == {
        "state": "promoted",
        "main": new,
        "moves": 0,
    }
    assert stage.main() == new != old
    assert (stage.root / "app.py").read_text() == "x = 2\n"
    assert asyncio.run(stage.world.store.has_fact("moved", new, "story"))


def test_a_dirty_main_is_a_condition_with_the_paths(stage: Stage) -> None:
    """L6."""
    new = stage.candidate()
    stage.world.write("app.py", "mine\n")
    run, steps = stage.tell(PROMOTION, "promoted", new, handoff=REFUSED)
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "main_dirty")
    evidence = raised(steps["go"])["main_dirty"].evidence
    assert evidence["paths"] == ["app.py"]
    assert "commit it" in evidence["message"]
    assert evidence["main"] == stage.main() != new


def test_a_branch_that_another_git_holds_is_busy(stage: Stage) -> None:
    new = stage.candidate()
    lock = stage.root / ".git/refs/heads/main.lock"
    lock.touch()
    run, steps = stage.tell(PROMOTION, "promoted", new, handoff=REFUSED)
    assert (run.reason, steps["go"].outputs["state"]) == ("main_busy", "ref_locked")
    lock.unlink()


def test_a_candidate_that_is_not_on_top_is_refused(stage: Stage) -> None:
    new = stage.candidate()
    stage.world.commit({"other": "o\n"})
    run, steps = stage.tell(PROMOTION, "promoted", new, handoff=REFUSED)
    assert (run.reason, steps["go"].outputs["state"]) == ("promote_refused", "not_fast_forward")


def test_three_moves_of_main_are_contention(stage: Stage) -> None:
    """L2: moves are not iterations, but three of them are a handoff. The count lives in the action's own output."""
    old, new = stage.main(), stage.candidate()
    moved = stage.world.commit({"other": "o\n"})
    run, steps = stage.tell(PROMOTION, "promoted", new, handoff="contended", kept="go.moves", old=old)
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "contended")
    assert run.iteration == 3
    go = steps["go"]
    assert (go.outputs["moves"], go.outputs["main"], set(raised(go))) == (3, moved, {"main_moved", "contended"})
    assert raised(go)["contended"].evidence == {"moves": 3, "main": moved}
    assert stage.main() == moved


@pytest.mark.parametrize(("moves", "counted"), [("", 1), ("0", 1), ("1", 2), ("7", 8)])
def test_the_count_may_be_given(stage: Stage, moves: str, counted: int) -> None:
    old, new = stage.main(), stage.candidate()
    stage.world.commit({"other": "o\n"})
    action = PROMOTION.replace("proof: verdict", f'proof: verdict, moves: "{moves}"')
    _, steps = stage.tell(action, "promoted", new, handoff="main_moved", old=old)
    assert steps["go"].outputs["moves"] == counted
    assert ("contended" in raised(steps["go"])) == (counted >= 3)


def test_a_count_that_is_none_is_an_error(stage: Stage) -> None:
    action = PROMOTION.replace("proof: verdict", "proof: verdict, moves: many")
    _, steps = stage.tell(action, "promoted", stage.candidate(), old=stage.main())
    assert steps["go"].error_kind == "bad_params"


@pytest.mark.parametrize("point", ["promote.after_checkout", "promote.after_commit", "door.after_perform"])
def test_killed_on_the_way_the_next_life_says_promoted(tmp_path: Path, point: str) -> None:
    stage = Stage(tmp_path, store="sqlite")
    old, new = stage.main(), stage.candidate()
    text = LOOP.replace("STOP", "promoted").replace("HANDOFF", "action_error").replace("ACTION", PROMOTION)
    stage.world.loop(text.replace("KEPT", ""))

    async def first_life() -> Run:
        return await stage.world.run("story", inputs={"old": old, "new": new})

    async def second_life() -> tuple[Run, dict[str, Step]]:
        await stage.world.restart()
        await stage.world.pass_time(3600.0 / 2)
        (run,) = await stage.world.store.list_runs(RunFilter())
        return run, {step.id: step for step in await stage.world.store.steps(run.run_id)}

    with crashing(point), pytest.raises(Crashed):
        asyncio.run(first_life())
    run, steps = asyncio.run(second_life())
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met"), run
    assert set(raised(steps["go"])) == {"promoted"}
    assert (steps["go"].outputs["state"], steps["go"].outputs["main"]) == ("promoted", new)
    assert stage.main() == new
    assert stage.git("status", "--porcelain", "--untracked-files=no") == ""


def test_an_outcome_that_nobody_knows_is_never_called_promoted(stage: Stage) -> None:
    lost = EffectFailed("no answer", ambiguous=True)
    stage.world.outside(RecordedEffect("git.promote", class_=EffectClass.blind, trouble=[lost]))
    run, steps = stage.tell(PROMOTION, "promoted", stage.candidate())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "effect_unknown")
    assert set(raised(steps["go"])) == {"promote_refused", "effect_unknown"}
    assert steps["go"].outputs["state"] == "unknown"


def test_a_dry_run_moves_nothing_and_claims_nothing(stage: Stage) -> None:
    new, old = stage.candidate(), stage.main()
    text = LOOP.replace("STOP", "promoted").replace("HANDOFF", "action_error").replace("ACTION", PROMOTION)
    stage.world.loop(text.replace("KEPT", ""))

    async def story() -> tuple[Run, list[Step]]:
        run = await stage.world.run("story", inputs={"old": old, "new": new}, dry_run=True)
        (effect,) = await stage.world.store.effects(run.run_id)
        assert effect.state is EffectState.dry_run
        return run, [step for step in await stage.world.store.steps(run.run_id) if step.id == "go"]

    run, (go,) = asyncio.run(story())
    assert run.status is RunStatus.completed_dry_run
    assert (go.outputs["state"], go.outputs["main"], go.conditions) == ("dry_run", old, ())
    assert stage.main() == old


class TestPropose:
    ACTION = '{id: go, uses: candidate.propose, with: {candidate: "{new}", base: "{old}", patch: digest}}'

    def test_a_branch_and_the_way_to_take_it(self, tmp_path: Path) -> None:
        """L18: at `propose` nobody's branch moves."""
        stage = Stage(tmp_path, config="version: 1\nautonomy: propose\n")
        old, new = stage.main(), stage.candidate()
        run, steps = stage.tell(self.ACTION, "look.pass", new, handoff="repair_ready")
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready")
        branch = steps["go"].outputs["branch"]
        assert branch == f"becket/story/{new[:12]}"
        evidence = raised(steps["go"])["repair_ready"].evidence
        assert (evidence["candidate"], evidence["base"], evidence["patch"]) == (new, old, "digest")
        assert (stage.main(), stage.git("rev-parse", branch)) == (old, new)
        for command in steps["go"].outputs["commands"]:
            stage.git(*command.split()[1:])
        assert stage.main() == new

    def test_observing_is_not_proposing(self, tmp_path: Path) -> None:
        stage = Stage(tmp_path, config="version: 1\nautonomy: observe\n")
        new = stage.candidate()
        run, _ = stage.tell(self.ACTION, "look.pass", new, handoff="proposed")
        assert run.reason == "effect_refused"
        assert stage.git("branch", "--list", "becket/*") == ""


class TestPush:
    ACTION = '{id: go, uses: git.push, with: {remote: origin, branch: main, sha: "{new}"}}'

    def hub(self, stage: Stage) -> Path:
        hub = stage.world.root.parent / "hub.git"
        stage.git("clone", "--quiet", "--bare", ".", str(hub))
        stage.git("remote", "add", "origin", str(hub))
        return hub

    def test_it_arrives(self, stage: Stage) -> None:
        hub = self.hub(stage)
        new = stage.world.commit({"more": "m\n"})
        run, steps = stage.tell(self.ACTION, "pushed", new)
        assert (run.status, steps["go"].outputs["remote"]) == (RunStatus.completed, new)
        assert stage.git("--git-dir", str(hub), "rev-parse", "main") == new

    def test_a_remote_that_moved(self, stage: Stage) -> None:
        hub = self.hub(stage)
        theirs = stage.candidate("x = 3\n")
        stage.git("push", "--quiet", "origin", f"{theirs}:refs/heads/main")
        new = stage.world.commit({"more": "m\n"})
        run, steps = stage.tell(self.ACTION, "pushed", new, handoff="push_moved")
        assert (run.reason, steps["go"].outputs["remote"]) == ("push_moved", theirs)
        assert stage.git("--git-dir", str(hub), "rev-parse", "main") == theirs

    def test_a_remote_that_is_gone(self, stage: Stage) -> None:
        self.hub(stage).rename(stage.root.parent / "moved.git")

        async def no_wait(seconds: float) -> None:
            stage.world.clock.advance(seconds)

        stage.world.app.door._sleep = no_wait
        run, steps = stage.tell(self.ACTION, "pushed", stage.main(), handoff="push_refused")
        assert run.reason == "push_refused"
        assert "cannot be reached" in raised(steps["go"])["push_refused"].evidence["message"]
