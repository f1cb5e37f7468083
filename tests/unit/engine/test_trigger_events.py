"""Events and ended runs become runs: nothing lost, nothing doubled, nothing endless (L2, L42)."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from trigger_stage import OPEN, Killed, Scene, Stage, killed_at, play

from becket.kernel.contract.caller import Via
from becket.kernel.contract.run import Move
from becket.kernel.contract.store import Cursor
from becket.kernel.engine.held_starts import HELD, KEEP_HELD
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.store import open_sqlite
from becket.testing.people import person


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


def test_a_start_that_an_earlier_becket_holds_is_made_and_let_go() -> None:
    async def story(stage: Stage) -> None:
        scene = Scene(stage)
        on_event(stage, "needy", inputs={"who": {"type": "string"}})
        await scene.triggers.post("ci.failed", DATA, "e1", by=person("ada", via=Via.chat))
        (held,) = await stage.store.cursors(HELD)
        then = json.loads(held.value)
        assert then["start"]["ask"]["by"]["name"] == "ada"
        then["start"]["ask"]["by"] = "becket"
        assert await stage.store.fire(held, Cursor(name=held.name, value=json.dumps(then)), ()) == ()
        on_event(stage, "needy", inputs={"who": {"type": "string", "default": "me"}})
        stage.clock.advance(60)
        (late,) = await scene.triggers.tick()
        assert late.run is not None
        assert late.run.by == "becket"
        assert await stage.store.cursors(HELD) == ()

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
    started = await stage.intake.start(StartRequest(loop_id=loop_id, **ask))
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
