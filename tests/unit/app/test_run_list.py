"""`runs list` reads the journal without the store: it must say what the store says, or leave it to that."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from becket.app.record.run_list import beginnings, handed_off, read_list, settled_ones
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.intake import StartRequest
from becket.testing.world import World

LOOP = """\
version: 1
loop_id: NAME
goal: A word was said.
trigger: [{manual: {}}]
subject: "word/{word}"
inputs: {word: {type: string}}
max_iterations: 1
deadline: 10m
stop_conditions: [said.pass]
phases:
  verify:
    objective: Say it.
    verifiers: [{id: said, run: "true", in: scratch}]
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path, store="sqlite")
    for name in ("one", "two"):
        world.loop(LOOP.replace("NAME", name))

    async def begin() -> None:
        for loop in ("one", "two"):
            for word in ("é", "x" * 300):
                await world.app.intake.start(StartRequest(loop_id=loop, inputs={"word": word}))

    asyncio.run(begin())
    return world


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (RunFilter(), 4),
        (RunFilter(limit=3), 3),
        (RunFilter(loop_id="two"), 2),
        (RunFilter(loop_id="two", subject="word/é"), 1),
        (RunFilter(subject="word/" + "x" * 300), 2),
        (RunFilter(statuses=(RunStatus.queued, RunStatus.failed)), 4),
        (RunFilter(statuses=(RunStatus.failed,)), 0),
    ],
)
def test_it_lists_what_the_store_lists(world: World, where: RunFilter, count: int) -> None:
    found = read_list(world.state, where)
    assert found is not None
    assert len(found[0]) == count
    assert found[0] == asyncio.run(world.store.list_runs(where))


def test_what_only_the_store_can_judge_is_left_to_it(world: World, tmp_path: Path) -> None:
    asyncio.run(world.store.close())
    with sqlite3.connect(world.state.database) as journal:
        journal.execute("ALTER TABLE runs RENAME COLUMN held TO stopped")
    assert read_list(world.state, RunFilter()) is None, "of another version"
    world.state.config.write_text("version: 1\ndatabase: postgresql://x\n")
    assert read_list(world.state, RunFilter()) is None, "elsewhere"
    world.state.config.unlink()
    world.state.database.write_bytes(b"no journal" * 1000)
    assert read_list(world.state, RunFilter()) is None, "not well"


def test_an_id_is_shortened_to_a_beginning_that_is_enough(world: World) -> None:
    found = read_list(world.state, RunFilter())
    assert found is not None
    ids = [run.run_id for run in found[0]]
    short = beginnings(world.state, ids)
    assert set(short) == set(ids)
    for run_id, beginning in short.items():
        assert len(beginning) >= 12
        assert asyncio.run(world.store.get_run(beginning)).run_id == run_id
    assert beginnings(world.state, ["run_zzzzzzzzzzzzzzzz"]) == {"run_zzzzzzzzzzzzzzzz": "run_zzzzzzzz"}


def test_only_what_nobody_has_to_settle_any_more_is_settled(world: World) -> None:
    assert handed_off(world.state, ["run_1", "run_2"]) == {}
    handoffs = (
        ("run_1", "done", "settled: retried as run_3"), ("run_2", "done", "by hand"), ("run_2", "open", ""),
        ("run_3", "expired", ""),
    )  # fmt: skip
    assert settled_ones(handoffs) == {"run_1": "retried as run_3", "run_3": "expired"}
