"""Commits become runs: nothing lost, nothing doubled, nothing endless (L2, L42)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from trigger_stage import OPEN, A, B, Book, C, D, Killed, ManualTime, Repo, Scene, Stage, at, heal, killed_at, play

from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.triggers import SWEEP_EVERY, Triggers
from becket.kernel.store import open_sqlite
from becket.testing.clock import ManualClock


def test_a_first_sight_is_remembered_and_a_move_starts_a_run() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        await scene.move(A)
        assert await stage.runs() == []
        await scene.move(B, A)
        (run,) = await stage.runs()
        assert run.trigger == "commit"
        assert run.subject.name == f"main@{B}"
        assert (run.subject.fields["branch"], run.subject.fields["sha"], run.subject.fields["old"]) == ("main", B, A)
        assert [started.created for started in scene.heard] == [True]
        await scene.move(B)
        await scene.triggers.close()
        assert await scene.shas() == [B]

    play(story)


def test_a_loop_that_asks_for_it_judges_the_commit_that_is_there_at_first_sight() -> None:
    """Whoever starts Becket wants to know whether main is green, not only the next commit."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, at_first_sight=True)
        await scene.move(A)
        await scene.move(A)
        await scene.triggers.close()
        scene.triggers = scene.another()
        await scene.move(A)
        await scene.triggers.close()
        assert await scene.shas() == [A]

    play(story)


def test_commits_that_landed_while_down_start_one_run_for_the_newest() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        await scene.move(A)
        await scene.triggers.close()
        scene.triggers = scene.another()
        await scene.move(D)
        assert await scene.shas() == [D]
        assert await stage.fields("heal", "old") == [A]
        await scene.triggers.close()

    play(story)


def test_a_real_move_counts_even_for_a_loop_that_never_saw_the_branch() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        await scene.move(B, A)
        assert await scene.shas() == [B]
        assert await stage.fields("heal", "old") == [A]
        await scene.triggers.close()

    play(story)


def test_moves_within_the_window_start_one_run_for_the_newest() -> None:
    """L2: debounce, take the newest; the last move is never lost."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, debounce="300ms")
        await scene.move(A)
        await scene.move(B, A)
        await scene.move(C, B)
        await scene.move(D, C)
        assert await scene.shas() == [B]
        await scene.time.pass_(0.3)
        assert await scene.shas() == [B, D]
        assert await stage.fields("heal", "old") == [A, B]
        await scene.time.pass_(1)
        assert await scene.shas() == [B, D]

    play(story)


def test_the_trailing_edge_waits_until_the_branch_is_quiet() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, debounce="1s", edge="trailing")
        await scene.move(A)
        for new, old in ((B, A), (C, B), (D, C)):
            await scene.move(new, old)
            await scene.time.pass_(0.9)
        assert await scene.shas() == []
        await scene.time.pass_(0.2)
        assert await scene.shas() == [D]

    play(story)


def test_a_move_there_and_back_within_the_window_starts_nothing_more() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, debounce="1s", edge="trailing")
        await scene.move(A)
        await scene.move(B, A)
        await scene.move(A, B)
        await scene.time.pass_(5)
        assert await scene.shas() == []

    play(story)


def test_a_deleted_branch_starts_nothing_not_even_what_was_collected() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, debounce="1s", edge="trailing")
        await scene.move(A)
        await scene.move(B, A)
        await scene.move(None, B)
        await scene.time.pass_(5)
        assert await scene.shas() == []
        await scene.move(B)
        await scene.time.pass_(5)
        assert await scene.shas() == [B], "it came back with a commit that nobody looked at"

    play(story)


def test_each_loop_hears_of_its_own_branches_once() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        heal(stage, "dev", branch="dev")
        stage.loops.put("twice", {"commit": {}}, {"commit": {"branch": "main", "edge": "trailing"}})
        assert scene.triggers.branches() == ("main", "dev")
        for branch in ("main", "dev", "other"):
            await scene.move(A, branch=branch)
            await scene.move(B, A, branch=branch)
        await scene.time.pass_(5)
        assert sorted((run.loop_id, run.subject.fields["branch"]) for run in await stage.runs()) == [
            ("dev", "dev"),
            ("heal", "main"),
            ("twice", "main"),
        ]

    play(story)


def test_unless_a_fact_is_recorded_about_the_subject() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, unless="proven", debounce="0s")
        await scene.move(A)
        await stage.join()
        stage.loops.put("prover")
        started = await stage.intake.start(StartRequest(loop_id="prover"))
        assert started.run is not None
        await stage.end(started.run, facts=(("proven", f"main@{B}"),))
        await scene.move(B, A)
        assert await scene.shas() == []
        await scene.move(C, B)
        assert await scene.shas() == [C]
        assert await stage.fields("heal", "old") == [B], "the skipped commit was handled"
        await scene.triggers.close()

    play(story)


def test_unless_completed_asks_about_the_loop_itself() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, unless="completed", debounce="0s")
        await stage.join()
        started = await stage.intake.start(StartRequest(loop_id="heal", subject=f"main@{B}"))
        assert started.run is not None
        await stage.end(started.run)
        await scene.move(A)
        await scene.move(B, A)
        assert len(await stage.runs("heal")) == 1
        await scene.triggers.close()

    play(story)


async def moved_by_a_run(stage: Stage, sha: str, chain: int, recorded: bool) -> None:
    """A run moved a branch to this commit; its step is or is not in the journal yet."""
    stage.loops.put("mover")
    started = await stage.intake.start(StartRequest(loop_id="mover", subject=sha, chain=chain))
    assert started.run is not None
    if recorded:
        await stage.end(started.run, facts=(("moved", sha),))
        return
    claim = await stage.store.claim(started.run.run_id, started.run.segment, "w", 60)
    assert claim is not None
    call = EffectCall(name="git.update_ref", target="refs/heads/main", payload={"new": sha})
    origin = Origin(run_id=started.run.run_id)
    await stage.store.intend(
        origin.key(call), origin, claim.run.epoch, call, call.digest, EffectClass.queryable, EffectState.intended, 0
    )


@pytest.mark.parametrize("recorded", [True, False])
def test_a_loop_that_feeds_itself_stops_at_max_chain(recorded: bool) -> None:
    """The commit is seen before the step that made it is recorded: the intent tells whose it is."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, max_chain=2, debounce="0s")
        await stage.join()
        await scene.move(A)
        await moved_by_a_run(stage, B, chain=1, recorded=recorded)
        await moved_by_a_run(stage, C, chain=2, recorded=recorded)
        await scene.move(B, A)
        (run,) = await stage.runs("heal")
        assert run.chain == 2
        await scene.move(C, B)
        assert await scene.shas() == [B]
        assert (await stage.alerts())["chain:heal"].data["chain"] == 3
        await scene.move(D, C)
        assert [run.chain for run in await stage.runs("heal")] == [2, 0], "a person's commit begins a new chain"
        await scene.triggers.close()

    play(story)


def test_a_loop_that_cannot_start_keeps_its_cursor_and_holds_up_no_other() -> None:
    """L42: it is tried again by the sweep until it works."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        stage.loops.put("needy", {"commit": {}}, inputs={"who": {"type": "string"}})
        heal(stage)
        await scene.move(A)
        await scene.move(B, A)
        assert await scene.shas() == [B]
        assert await stage.runs("needy") == []
        assert "--with who=" in (await stage.alerts(OPEN))["start:needy:commit"].text
        await scene.time.pass_(SWEEP_EVERY)
        stage.loops.put("needy", {"commit": {}}, inputs={"who": {"type": "string", "default": "me"}})
        await scene.triggers.tick()
        assert await scene.shas("needy") == [B]
        assert await stage.fields("needy", "old") == [A]
        await scene.triggers.close()

    play(story)


def test_the_sweep_finds_moves_that_nobody_told_of_now_and_then() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage, debounce="0s")
        stage.repo.heads["main"] = A
        await scene.triggers.tick()
        stage.repo.heads["main"] = B
        await scene.triggers.tick()
        assert await scene.shas() == [], "a sweep costs a process; not at every tick"
        await scene.time.pass_(SWEEP_EVERY)
        await scene.triggers.tick()
        assert await scene.shas() == [B]
        await scene.triggers.close()

    play(story)


def test_the_first_commit_of_an_empty_repository_is_a_move() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        await scene.triggers.sweep()
        await scene.move(A)
        assert await scene.shas() == [A]
        await scene.triggers.close()

    play(story)


def test_a_branch_that_cannot_be_read_is_said() -> None:
    class Unreadable(Repo):
        async def resolve(self, revision: str) -> str | None:
            if revision == "refs/heads/main":
                raise GitFailed("git rev-parse: bad object")
            return await super().resolve(revision)

    async def story(stage: Stage) -> None:
        stage.repo = Unreadable()
        stage.repo.heads["dev"] = A
        scene = Scene(stage)
        heal(stage)
        heal(stage, "dev", branch="dev", debounce="0s")
        await scene.triggers.sweep()
        stage.repo.heads["dev"] = B
        await scene.triggers.sweep()
        assert "bad object" in (await stage.alerts())["branch:main"].text
        assert await scene.shas("dev") == [B]
        await scene.triggers.close()

    play(story)


def test_two_processes_start_one_run_for_a_commit() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        heal(stage)
        await scene.move(A)
        other = scene.another()
        moved = RefMoved(branch="main", old=A, new=B)
        await asyncio.gather(scene.triggers.branch_moved(moved), other.branch_moved(moved))
        assert await scene.shas() == [B]
        await scene.triggers.close()
        await other.close()

    play(story)


@pytest.mark.parametrize("point", ["store.fire.before_commit", "store.fire.after_commit"])
def test_a_crash_neither_loses_nor_doubles_a_commit(tmp_path: Path, point: str) -> None:
    async def story() -> None:
        clock, loops, repo = ManualClock(at("2026-06-01 12:00")), Book(), Repo()
        loops.put("heal", {"commit": {}})
        store = open_sqlite(tmp_path / "journal.db", clock)

        def open_triggers() -> Triggers:
            intake = Intake(store, loops, repo, "main", lambda: None)  # type: ignore[arg-type]
            return Triggers(store, loops, intake, repo, "main", sleep=ManualTime().sleep)  # type: ignore[arg-type]

        triggers = open_triggers()
        await triggers.branch_moved(RefMoved(branch="main", old=None, new=A))
        with killed_at(point), pytest.raises(Killed):
            await triggers.branch_moved(RefMoved(branch="main", old=A, new=B))
        await triggers.close()
        await store.close()

        store = open_sqlite(tmp_path / "journal.db", clock)
        for _ in range(2):
            triggers = open_triggers()
            await triggers.branch_moved(RefMoved(branch="main", old=None, new=B))
            await triggers.close()
        (run,) = await store.list_runs(RunFilter(loop_id="heal"))
        assert run.subject.fields["sha"] == B
        await store.close()

    asyncio.run(story())
