"""Commits, events and ended runs become runs: nothing lost, nothing doubled, nothing endless (L2, L42)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from trigger_stage import OPEN, Book, Killed, ManualTime, Repo, Stage, at, killed_at, play

from becket.adapters.store import open_sqlite
from becket.contract.effect import EffectCall, EffectState, Origin
from becket.contract.errors import GitFailed, StoreUnavailable
from becket.contract.git import RefMoved
from becket.contract.run import Move, Started
from becket.contract.spec import Edge, EffectClass
from becket.contract.store import RunFilter
from becket.engine.debounce import LONGEST_RETRY, MOST_WINDOWS, Debounce, Key
from becket.engine.intake import Ask, Intake
from becket.engine.triggers import HELD, KEEP_HELD, SWEEP_EVERY, Triggers
from becket.testing.clock import ManualClock

A, B, C, D = ("a" * 40, "b" * 40, "c" * 40, "d" * 40)
KEY: Key = ("loop", "main")


class Acts:
    """Writes down what the debounce acts on, and fails when told to."""

    def __init__(self) -> None:
        self.time = ManualTime()
        self.done: list[tuple[float, str]] = []
        self.failing: list[BaseException] = []
        self.debounce = Debounce(self.act, self.time, self.time.sleep)

    async def act(self, key: Key, value: str) -> None:
        if self.failing:
            raise self.failing.pop(0)
        self.done.append((round(self.time() - 100, 3), value))

    async def push(self, value: str, edge: Edge = Edge.leading, length: float = 1.0) -> None:
        await self.debounce.push(KEY, value, length, edge)


def test_leading_acts_at_once_and_on_the_newest_at_the_end_of_the_window() -> None:
    async def story() -> None:
        acts = Acts()
        await acts.push("1")
        assert acts.done == [(0, "1")]
        await acts.time.pass_(0.2)
        await acts.push("2")
        await acts.time.pass_(0.2)
        await acts.push("3")
        await acts.time.pass_(5)
        assert acts.done == [(0, "1"), (1, "3")]
        assert not acts.debounce.busy(KEY)
        await acts.push("4")
        assert acts.done[-1] == (5.4, "4")
        await acts.debounce.close()

    asyncio.run(story())


def test_leading_acts_once_per_window_while_it_never_rests() -> None:
    """L2: a branch that moves all the time is handled all the time, but not for every move."""

    async def story() -> None:
        acts = Acts()
        for number in range(50):
            await acts.push(str(number))
            await acts.time.pass_(0.1)
        await acts.time.pass_(10)
        assert [when for when, _ in acts.done] == [0, 1, 2, 3, 4, 5]
        assert acts.done[-1] == (5, "49")

    asyncio.run(story())


def test_trailing_waits_until_it_is_quiet() -> None:
    async def story() -> None:
        acts = Acts()
        for value in "123":
            await acts.push(value, Edge.trailing)
            await acts.time.pass_(0.8)
        assert acts.done == []
        await acts.time.pass_(5)
        assert acts.done == [(2.6, "3")]
        assert not acts.debounce.busy(KEY)

    asyncio.run(story())


def test_trailing_does_not_starve_while_it_never_rests() -> None:
    """L2: main moved every 105 seconds and the loop starved for weeks."""

    async def story() -> None:
        acts = Acts()
        for number in range(300):
            await acts.push(str(number), Edge.trailing, length=300)
            await acts.time.pass_(105)
        longest = MOST_WINDOWS * 300 + 105
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(acts.done)]
        assert len(acts.done) >= 300 * 105 // longest
        assert max(gaps) <= longest
        await acts.time.pass_(1000)
        assert acts.done[-1][1] == "299"

    asyncio.run(story())


@pytest.mark.parametrize("edge", list(Edge))
def test_a_window_of_nothing_acts_on_each(edge: Edge) -> None:
    async def story() -> None:
        acts = Acts()
        for value in "12":
            await acts.push(value, edge, length=0)
            await acts.time.pass_(0.01)
        assert [value for _, value in acts.done] == ["1", "2"]

    asyncio.run(story())


@pytest.mark.parametrize("edge", list(Edge))
def test_a_move_during_the_act_is_not_lost(edge: Edge) -> None:
    async def story() -> None:
        acts = Acts()
        gate = asyncio.Event()
        done: list[str] = []

        async def slow(key: Key, value: str) -> None:
            await gate.wait()
            done.append(value)

        debounce = Debounce(slow, acts.time, acts.time.sleep)
        first = asyncio.create_task(debounce.push(KEY, "1", 1, edge))
        await acts.time.pass_(2)
        await debounce.push(KEY, "2", 1, edge)
        gate.set()
        await acts.time.pass_(5)
        await first
        assert done == ["1", "2"]

    asyncio.run(story())


def test_an_act_that_fails_is_repeated_with_the_newest_and_ever_more_rarely() -> None:
    async def story() -> None:
        acts = Acts()
        acts.failing = [StoreUnavailable("away")] * 12
        with pytest.raises(StoreUnavailable):
            await acts.push("1")
        await acts.time.pass_(5)
        await acts.push("2")
        await acts.time.pass_(12 * LONGEST_RETRY)
        assert [value for _, value in acts.done] == ["2"]
        assert acts.failing == []
        assert acts.done[0][0] > 4 * LONGEST_RETRY

    asyncio.run(story())


def test_a_cancelled_act_is_repeated() -> None:
    async def story() -> None:
        acts = Acts()
        acts.failing = [asyncio.CancelledError()]
        with pytest.raises(asyncio.CancelledError):
            await acts.push("1")
        await acts.time.pass_(2)
        assert [value for _, value in acts.done] == ["1"]

    asyncio.run(story())


def test_keys_have_timers_of_their_own_and_close_stops_them_all() -> None:
    async def story() -> None:
        acts = Acts()
        await acts.push("1", Edge.trailing)
        await acts.debounce.push(("other", "main"), "2", 5, Edge.trailing)
        await acts.time.pass_(1)
        assert [value for _, value in acts.done] == ["1"]
        acts.debounce.drop(("other", "main"))
        await acts.time.pass_(10)
        assert [value for _, value in acts.done] == ["1"]
        await acts.push("3", Edge.trailing)
        await acts.debounce.close()
        await acts.time.pass_(10)
        assert [value for _, value in acts.done] == ["1"]

    asyncio.run(story())


class Scene:
    """Triggers on a stage, with timers that stand still."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.time = ManualTime()
        self.heard: list[Started] = []
        self.triggers = self.another()

    def another(self) -> Triggers:
        """The triggers of another process, or of the same one after a restart."""
        return Triggers(
            self.stage.store,
            self.stage.loops,
            self.stage.intake,
            self.stage.repo,  # type: ignore[arg-type]
            "main",
            on_started=self.heard.append,
            clock=self.time,
            sleep=self.time.sleep,
        )

    async def move(self, new: str | None, old: str | None = None, branch: str = "main") -> None:
        if new is None:
            self.stage.repo.heads.pop(branch, None)
        else:
            self.stage.repo.heads[branch] = new
        await self.triggers.branch_moved(RefMoved(branch=branch, old=old, new=new))
        await self.time.pass_(0)  # a timer without a window has its turn

    async def shas(self, loop_id: str = "heal") -> list[str]:
        return await self.stage.fields(loop_id, "sha")


def heal(stage: Stage, loop_id: str = "heal", **more: Any) -> None:
    stage.loops.put(loop_id, {"commit": more}, subject="{branch}@{sha}")


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
        started = await stage.intake.start(Ask(loop_id="prover"))
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
        started = await stage.intake.start(Ask(loop_id="heal", subject=f"main@{B}"))
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
    started = await stage.intake.start(Ask(loop_id="mover", subject=sha, chain=chain))
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


def on_event(stage: Stage, loop_id: str, match: dict[str, str] | None = None, **more: Any) -> None:
    trigger = {"name": "ci.failed", "match": match or {}} | {
        k: more.pop(k) for k in ("unless", "max_chain") if k in more
    }
    stage.loops.put(loop_id, {"event": trigger}, **more)


DATA = {"branch": "main", "job": {"name": "unit", "attempt": 2, "last": True}, "tags": ["x"]}


@pytest.mark.parametrize(
    ("match", "fires"),
    [
        ({}, True),
        ({"branch": "main"}, True),
        ({"branch": "dev"}, False),
        ({"branch": "main", "job.name": "unit"}, True),
        ({"job.attempt": "2", "job.last": "true"}, True),
        ({"job.attempt": "3"}, False),
        ({"nothing": ""}, False),
        ({"tags": '["x"]'}, True),
    ],
)
def test_an_event_starts_the_loops_whose_match_it_has(match: dict[str, str], fires: bool) -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "ci", match)
        stage.loops.put("deaf", {"event": {"name": "ci.passed"}})
        started = await scene.triggers.post("ci.failed", DATA, "e1")
        assert [item.created for item in started] == ([True] if fires else [])
        assert [run.loop_id for run in await stage.runs()] == (["ci"] if fires else [])

    play(story)


def test_an_events_data_fills_fields_and_inputs() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "ci", subject="{name}/{id}/{data.job.name}", inputs={"branch": {"type": "string"}})
        await scene.triggers.post("ci.failed", DATA, "e1")
        (run,) = await stage.runs()
        assert run.subject.name == "ci.failed/e1/unit"
        assert run.subject.fields["data.job.attempt"] == 2
        assert run.inputs == {"branch": "main"}
        assert len(scene.heard) == 1

    play(story)


def test_the_same_event_counts_once() -> None:
    """L35: what is delivered twice starts one run per loop."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "ci")
        on_event(stage, "also")
        first = await scene.triggers.post("ci.failed", DATA, "e1")
        second = await scene.triggers.post("ci.failed", DATA, "e1")
        third = await scene.triggers.post("ci.failed", DATA, "e2")
        assert [[item.created for item in started] for started in (first, second, third)] == [
            [True, True],
            [False, False],
            [True, True],
        ]

    play(story)


def test_an_event_has_unless_and_max_chain() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        await stage.join()
        on_event(stage, "once", unless="completed", subject="{data.branch}")
        on_event(stage, "short", max_chain=1)
        (done, _) = await scene.triggers.post("ci.failed", DATA, "e1", chain=1)
        assert done.run is not None
        await stage.end(done.run)
        assert await scene.triggers.post("ci.failed", DATA, "e2", chain=2) == ()
        assert (await stage.alerts())["chain:short"].data["chain"] == 2

    play(story)


def test_an_event_is_kept_for_a_loop_that_cannot_start_now() -> None:
    """L42: events are not lost because one reaction failed; the others react at once."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "needy", inputs={"who": {"type": "string"}})
        on_event(stage, "ci")
        started = await scene.triggers.post("ci.failed", DATA, "e1")
        assert [item.run.loop_id for item in started if item.run] == ["ci"]
        assert "start:needy:event" in await stage.alerts(OPEN)
        assert await stage.store.next_due() is None, "the engine must not spin"

        stage.clock.advance(30)
        assert await scene.triggers.tick() == ()
        await stage.store.alert_told("start:needy:event", delivered=True)
        on_event(stage, "needy", inputs={"who": {"type": "string", "default": "me"}})
        assert await scene.triggers.tick() == (), "not before its time"
        stage.clock.advance(30)
        (late,) = await scene.another().tick()
        assert late.run is not None
        assert late.run.subject.fields["data.branch"] == "main"
        assert "start:needy:event" not in await stage.alerts()
        assert await stage.store.cursors(HELD) == ()
        stage.clock.advance(3600)
        assert await scene.triggers.tick() == ()
        again = await scene.triggers.post("ci.failed", DATA, "e1")
        assert [item.created for item in again] == [False, False]

    play(story)


def test_a_held_start_survives_a_clock_that_goes_back_and_is_given_up_with_a_word() -> None:
    """L44: nothing is kept for ever, and nothing disappears silently."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "needy", inputs={"who": {"type": "string"}})
        await scene.triggers.post("ci.failed", DATA, "e1")
        stage.clock.advance(-10 * 86400)
        await scene.triggers.tick()
        assert (await stage.alerts())["start:needy:event"].count == 2, "tried although its time is far ahead"
        stage.clock.advance(KEEP_HELD + 60)
        await scene.triggers.tick()
        assert await stage.store.cursors(HELD) == ()
        given_up = (await stage.alerts(OPEN))["given_up:needy"]
        assert given_up.data["of"] == "event:needy:e1"
        assert given_up.data["fields"]["data.branch"] == "main"

    play(story)


async def ended(stage: Stage, loop_id: str = "build", move: Move = Move.complete, **ask: Any) -> str:
    started = await stage.intake.start(Ask(loop_id=loop_id, **ask))
    assert started.run is not None
    return (await stage.end(started.run, move)).run_id


def after(stage: Stage, loop_id: str, loop: str = "build", **more: Any) -> None:
    trigger = {"loop": loop} | {key: more.pop(key) for key in ("outcome", "max_chain") if key in more}
    stage.loops.put(loop_id, {"after": trigger}, **more)


def test_an_ended_run_is_followed_once_by_outcome() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        await stage.join()
        stage.loops.put("build", inputs={"target": {"type": "string", "default": "all"}})
        after(stage, "deploy", inputs={"target": {"type": "string"}}, subject="{loop}/{run}/{outcome}")
        after(stage, "report", outcome=["failed", "cancelled"])
        good = await ended(stage, chain=4)
        (deployed,) = await scene.triggers.follow()
        assert deployed.run is not None
        assert deployed.run.subject.name == f"build/{good}/completed"
        assert (deployed.run.chain, deployed.run.inputs, deployed.run.parent) == (5, {"target": "all"}, None)
        await ended(stage, move=Move.fail)
        (reported,) = await scene.triggers.follow()
        assert reported.run is not None
        assert reported.run.loop_id == "report"
        assert await scene.triggers.follow() == ()
        assert await stage.store.unfollowed() == ()

    play(story)


def test_a_dry_run_is_followed_by_nothing() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        await stage.join()
        stage.loops.put("build")
        after(stage, "report", outcome=["completed", "failed"])
        await ended(stage, dry_run=True, move=Move.complete_dry_run)
        await ended(stage, dry_run=True, move=Move.fail)
        assert await scene.triggers.follow() == ()
        assert await stage.store.unfollowed() == ()

    play(story)


def test_a_chain_of_followers_ends_with_an_alert() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        await stage.join()
        after(stage, "snake", loop="snake", max_chain=3)
        await ended(stage, "snake")
        while started := await scene.triggers.follow():
            for item in started:
                assert item.run is not None
                await stage.end(item.run)
        assert [run.chain for run in await stage.runs("snake")] == [0, 1, 2, 3]
        assert (await stage.alerts())["chain:snake"].data["chain"] == 4
        assert await stage.store.unfollowed() == ()

    play(story)


def test_a_follower_that_cannot_start_is_kept_and_holds_up_no_other() -> None:
    """L42, and a hundred runs that cannot be followed must not hide the next one."""

    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        await stage.join()
        stage.loops.put("build")
        after(stage, "needy", inputs={"who": {"type": "string"}})
        after(stage, "fine")
        for _ in range(105):
            await ended(stage)
        assert len(await scene.triggers.follow()) == 100
        assert len(await scene.triggers.follow()) == 5
        assert await stage.store.unfollowed() == ()
        after(stage, "needy", inputs={"who": {"type": "string", "default": "me"}})
        stage.clock.advance(60)
        assert len(await scene.triggers.tick()) == 105

    play(story)


@pytest.mark.parametrize(
    ("point", "broken"),
    [
        ("follow.before_mark", False),
        ("follow.before_mark", True),
        ("follow.after_mark", False),
        ("follow.after_mark", True),
        ("store.start_run.before_commit", False),
        ("store.start_run.after_commit", False),
        ("store.fire.before_commit", True),  # a start that failed is being held
        ("store.fire.after_commit", True),
    ],
)
def test_a_crash_neither_loses_nor_doubles_a_follower(tmp_path: Path, point: str, broken: bool) -> None:
    async def story() -> None:
        stage = Stage()
        await stage.store.close()
        stage.store = store = open_sqlite(tmp_path / "journal.db", stage.clock)
        stage.intake = Intake(store, stage.loops, stage.repo, "main", lambda: None)  # type: ignore[arg-type]
        await stage.join()
        stage.loops.put("build")
        after(stage, "deploy", inputs={"who": {"type": "string"}} if broken else {})
        await ended(stage)
        with killed_at(point), pytest.raises(Killed):
            await Scene(stage).triggers.follow()
        await store.close()

        stage.store = store = open_sqlite(tmp_path / "journal.db", stage.clock)
        stage.intake = Intake(store, stage.loops, stage.repo, "main", lambda: None)  # type: ignore[arg-type]
        after(stage, "deploy")
        stage.clock.advance(60)
        for _ in range(2):
            scene = Scene(stage)
            await scene.triggers.follow()
            await scene.triggers.tick()
        assert len(await stage.runs("deploy")) == 1
        assert await store.unfollowed() == ()
        assert await store.cursors(HELD) == ()
        await store.close()

    asyncio.run(story())
