"""`state_refs`: what a run found of its loop's state when it began, what it left, and who may trust that."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
from pathlib import Path

import pytest

from becket.app import desk
from becket.app.keyboard import at_keyboard
from becket.app.record.verify import verify_run
from becket.kernel.contract.base import Json
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import NewRun, Run, RunStatus, Subject
from becket.kernel.contract.state import STATE, STATE_KINDS, StateSeen, fits, state_seen
from becket.kernel.engine import state
from becket.testing.world import BELL, World

LOOP = """
version: 1
loop_id: plan
goal: Write the plan.
trigger: [{manual: {}}]
subject: "plan/{start}"
state_refs: REFS
max_iterations: 3
deadline: 2h
stop_conditions: [check.pass]
wait_conditions: {busy: {wake: bell, for: 1h}}
phases:
  act:
    objective: Write it.
    actions: [{id: look, run: "test ! -e ../../busy", in: scratch, raises: {1: busy}}]
  verify:
    objective: It is there.
    verifiers: [{id: check, run: "true", in: scratch, when: not busy}]
"""


def loop(world: World, refs: str, busy: str = "true") -> None:
    world.loop(LOOP.replace("REFS", refs).replace("test ! -e ../../busy", busy))


async def seen(world: World, run: Run) -> dict[str, StateSeen]:
    return {one.ref: one for one in state_seen(await world.store.events(run.run_id))}


def test_a_run_records_what_it_found_and_what_it_left(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        loop(world, '["git:{branch}", "git:gone", file:plan.md, file:none.md, journal]', busy="exit 1")
        before = world.commit({"plan.md": "one"})
        run = await world.run("plan")
        assert run.status is RunStatus.waiting
        assert not any(one.looked for one in (await seen(world, run)).values())
        after = world.commit({"plan.md": "two"})
        loop_text = LOOP.replace("REFS", "[]").replace("loop_id: plan", "loop_id: other")
        world.loop(loop_text.replace("test ! -e ../../busy", "true"))
        await world.run("other")
        await desk.cancel(world.app, at_keyboard(world.app.config), run.run_id)
        found = await seen(world, run)
        assert (found["git:main"].began, found["git:main"].ended) == (before, after)
        digests = [hashlib.sha256(text).hexdigest() for text in (b"one", b"two")]
        assert [found["file:plan.md"].began, found["file:plan.md"].ended] == digests
        assert {ref for ref, one in found.items() if one.changed} == {"git:main", "file:plan.md", "journal"}
        assert all(
            one.looked and one.began is None for ref, one in found.items() if ref in ("git:gone", "file:none.md")
        )

    asyncio.run(story())


def test_what_a_run_does_itself_is_no_news_to_it(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        loop(world, '["git:main", file:README.md, journal]')
        await world.run("plan")
        run = await world.run("plan")
        assert run.status is RunStatus.completed
        found = (await seen(world, run)).values()
        assert len(found) == 3
        assert all(one.looked and one.began and not one.changed for one in found)

    asyncio.run(story())


def test_the_chain_holds_what_was_seen_once_and_verify_covers_it(tmp_path: Path) -> None:
    """Begin and end are one transaction each with what was seen; a change of it is found."""

    async def story() -> None:
        world = World(tmp_path, store="sqlite")
        loop(world, "[journal]")
        run = await world.run("plan")
        events = await world.store.events(run.run_id)
        assert [event.kind for event in events if STATE in event.data] == [EventKind.run_created, EventKind.run_ended]
        assert all(one.ok for one in await verify_run(world.app, run.run_id, rerun=False))
        forged = json.dumps({**events[-1].data, STATE: {"journal": "0" * 64}})
        await forge(world, run, forged)
        assert not all(one.ok for one in await verify_run(world.app, run.run_id, rerun=False))

    asyncio.run(story())


async def forge(world: World, run: Run, data: str) -> None:
    with sqlite3.connect(world.state.database) as raw:
        raw.execute("UPDATE events SET data = ? WHERE run_id = ? AND kind = 'run.ended'", (data, run.run_id))


def test_a_run_from_before_tells_of_none_and_stays_valid(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        text = LOOP.replace("REFS", "[anything, on]").replace("test ! -e ../../busy", "true")
        digest = hashlib.sha256(text.encode()).hexdigest()
        old = NewRun(
            run_id="run_old", loop_id="plan", spec_digest=digest, spec_text=text, subject=Subject(name="s"),
            deadline=60.0,
        )  # fmt: skip
        run = (await world.store.start_run(old)).run
        assert run is not None
        await world.settle()
        run = await world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed
        assert await seen(world, run) == {}
        assert all(one.ok for one in await verify_run(world.app, run.run_id, rerun=False))

    asyncio.run(story())


def test_a_run_that_fails_by_itself_tells_too(tmp_path: Path) -> None:
    async def story() -> None:
        world = World(tmp_path)
        loop(world, "[journal]", busy="exit 1")
        run = await world.run("plan")
        world.app.engine.runtime.policy.autonomy = None  # type: ignore[method-assign, assignment]
        await world.store.signal(run.run_id, BELL, {}, "again")
        await world.settle()
        assert (await world.store.get_run(run.run_id)).reason == "internal_error"
        assert (await seen(world, run))["journal"].looked

    asyncio.run(story())


@pytest.mark.parametrize(
    ("ref", "possible"),
    [
        ("git:main", True), ("git:HEAD", True), ("git:refs/tags/v1", True), ("git:a b", False), ("git:-x:y", False),
        ("git:", False), ("git", False), ("git:a..b", False), ("file:a/b.txt", True), ("file:/etc/passwd", False),
        ("file:../x", False), ("file:a/../../x", False), ("file:~/x", False), ("file:", False), ("file:a\0b", False),
        ("journal", True), ("journal:", False), ("journal:x", False), ("vault:x", False), ("", False),
    ],
)  # fmt: skip
def test_only_refs_that_can_be_there_are_looked_at(ref: str, possible: bool) -> None:
    assert fits(ref) is possible


def test_every_kind_can_be_looked_at() -> None:
    assert state._READERS.keys() == STATE_KINDS.keys()
    assert all(fits(kind.example) for kind in STATE_KINDS.values())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: None, None),
        (lambda path: path.write_bytes(b"x"), hashlib.sha256(b"x").hexdigest()),
        (lambda path: path.mkdir(), state.UNREADABLE),
        (lambda path: path.symlink_to("/etc/passwd"), state.UNREADABLE),
        (os.mkfifo, state.UNREADABLE),
    ],
    ids=["nothing", "a file", "a folder", "a link", "a pipe"],
)
def test_a_file_that_is_none_harms_nobody(tmp_path: Path, make: object, told: Json) -> None:
    async def story() -> None:
        world = World(tmp_path)
        loop(world, "[file:state]")
        make(world.root / "state")  # type: ignore[operator]
        run = await world.run("plan")
        assert run.status is RunStatus.completed
        [one] = (await seen(world, run)).values()
        assert (one.began, one.ended, one.changed) == (told, told, False)

    asyncio.run(story())


def test_of_a_long_file_the_beginning_and_the_size_count(tmp_path: Path) -> None:
    place = tmp_path / "long"
    with place.open("wb") as file:
        file.truncate(state.MOST + 5)
    first = state._digest_of_file(place)
    with place.open("ab") as file:
        file.write(b"x")
    assert first is not None
    assert state._digest_of_file(place) == first.replace(str(state.MOST + 5), str(state.MOST + 6))
