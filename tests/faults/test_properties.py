"""A check that cannot fail is none: each property is broken once by hand, and found out by its own sentence."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from app_world import AppWorld
from fault_world import TTL, FaultWorld, write_loops
from faulty_store import Plan
from properties import Scene, broken, broken_at
from virtual_time import VirtualLoop, play

from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.process.environment import MARK
from becket.kernel.store import tables
from becket.testing.world import run_git


async def healed(folder: Path, loop: VirtualLoop) -> FaultWorld:
    """One heal that nothing disturbed."""
    house = FaultWorld(folder, loop, Plan({}, TTL), loops=write_loops(folder))
    await house.begin()
    house.break_it(1)
    assert await house.settle() == []
    return house


async def change(house: FaultWorld, *statements: Any) -> None:
    def work(tx: Any) -> None:
        for statement in statements:
            tx.conn.execute(statement)

    await house.truth._db.write(work)  # type: ignore[attr-defined]


def _run(**values: Any) -> Any:
    return sa.update(tables.runs).values(ended_at=None, **values)


JOURNAL: dict[str, tuple[Callable[[float], list[Any]], str]] = {
    "a lease that ran out": (
        lambda now: [_run(status="running", lease_until=now - 3 * TTL, worker="wrk_1", group_name=None)],
        "nobody has taken it over",
    ),
    "a lease that somebody renews and nobody's work": (
        lambda now: [_run(status="running", lease_until=now + 9, worker="wrk_1", updated_at=now - 3 * TTL)],
        "no task of its worker moves it",
    ),
    "queued for good": (lambda now: [_run(status="queued", updated_at=now - 3 * TTL)], "nobody starts it"),
    "waiting for nothing": (lambda now: [_run(status="waiting")], "no row would ever wake it"),
    "an event that was changed": (
        lambda now: [sa.update(tables.events).where(tables.events.c.seq == 3).values(data="{}")],
        "does not verify: events",
    ),
    "a promotion without its proof": (
        lambda now: [sa.update(tables.steps).where(tables.steps.c.id == "proof").values(conditions="[]")],
        "without a proof of just that",
    ),
    "a promotion without its effect": (lambda now: [sa.delete(tables.effects)], "no effect of the journal tells of it"),
    "an effect that nobody tries again": (
        lambda now: [sa.update(tables.effects).values(state="retrying", next_at=now - 3 * TTL)],
        "was due",
    ),
    "an effect that nobody knows of": (
        lambda now: [sa.update(tables.effects).values(state="unknown", defer=False)],
        "nobody was told",
    ),
    "a lease without its run": (
        lambda now: [sa.insert(tables.leases).values(name="g", run_id="run_x", worker="wrk_1", until=now)],
        "the lease on g is run run_x's, which is not there",
    ),
}


@pytest.mark.parametrize("name", JOURNAL)
def test_a_broken_journal_is_found_out(name: str, tmp_path: Path) -> None:
    statements, sentence = JOURNAL[name]

    async def story(loop: VirtualLoop) -> list[str]:
        house = await healed(tmp_path, loop)
        await change(house, *statements(loop.clock()))
        return await broken(await house.scene())

    assert sentence in "\n".join(play(story))


async def _moved_twice(house: FaultWorld) -> None:
    house.moves.append(house.moves[0])


async def _left_folder(house: FaultWorld) -> None:
    (house.folder / "runs" / "run_of_yesterday").mkdir(parents=True)


async def _posted_twice(house: FaultWorld) -> None:
    await change(house, sa.update(tables.effects).values(name="ship.it", **{"class": "blind"}))
    house.processes.shipped.update({effect.origin.run_id: 2 for effect in await house.truth.effects()})


@pytest.mark.parametrize(
    ("deed", "sentence"),
    [
        (_moved_twice, "2 times"),
        (_left_folder, "is left of a run that has ended"),
        (_posted_twice, "reached the outside 2 times"),
    ],
)
def test_a_broken_outside_is_found_out(
    deed: Callable[[FaultWorld], Awaitable[None]], sentence: str, tmp_path: Path
) -> None:
    async def story(loop: VirtualLoop) -> list[str]:
        house = await healed(tmp_path, loop)
        await deed(house)
        return await broken(await house.scene())

    assert sentence in "\n".join(play(story))


def test_what_a_run_left_goes_while_the_daemon_lives(tmp_path: Path) -> None:
    """Something kept the folder when the run ended; a daemon that lives for weeks must not keep it as long."""

    async def story(loop: VirtualLoop) -> tuple[list[str], int]:
        house = FaultWorld(tmp_path, loop, Plan({}, TTL), loops=write_loops(tmp_path))
        await house.begin()
        house.break_it(1)
        left: list[Path] = []

        async def somebody_keeps_it() -> bool:
            for run in await house.truth.list_runs(RunFilter(statuses=(RunStatus.completed,), limit=1)):
                if not left:
                    left.append(tmp_path / "runs" / run.run_id)
                    left[0].mkdir(parents=True)
            return bool(left)

        house.people.append(somebody_keeps_it)
        return await house.settle(), house.lives

    assert play(story) == ([], 1)


def test_a_loop_that_was_disabled_is_found_out(tmp_path: Path) -> None:
    async def story(loop: VirtualLoop) -> list[str]:
        house = await healed(tmp_path, loop)
        run = (await house.truth.list_runs(RunFilter(limit=1)))[0]

        async def hands_over() -> Run:
            return run.model_copy(update={"status": "ready_for_handoff", "reason": "no_progress"})

        scene = await house.scene()
        return await broken(
            Scene(scene.store, scene.artifacts, lease=TTL, at_work=frozenset(), moves=scene.moves, heal=hands_over)
        )

    assert "a later heal of a sound repository ended ready_for_handoff" in "\n".join(play(story))


def test_a_broken_repository_is_found_out_from_outside(tmp_path: Path) -> None:
    """Refs, work tree, locks, folders, children: nothing of it needs the process that did it."""
    root = tmp_path / "repo"

    async def story(loop: VirtualLoop) -> None:
        house = AppWorld(tmp_path, loop)
        run = await house.heal(1)
        assert run.reason == "stop_conditions_met", (run.reason, run.detail)

    play(story)
    state = root / ".git" / "becket"
    assert asyncio.run(broken_at(root)) == []
    blob = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], input=b"soon gone", cwd=root, check=True, capture_output=True
    ).stdout.decode()[:40]
    run_git(root, ["update-ref", "refs/becket/candidate/x", blob])
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (root / "README.md").write_text("half of another commit\n")
    (root / ".git" / "index.lock").touch()
    (state / "runs" / "run_gone").mkdir(parents=True)
    stray = subprocess.Popen([sys.executable, "-c", "input()"], cwd=state, stdin=-1, env={**os.environ, MARK: "1.2.x"})
    try:
        found = "\n".join(asyncio.run(broken_at(root)))
    finally:
        stray.communicate(b"\n")
    for sentence in (
        "refs/becket/candidate/x names something that is not whole", "git fsck finds", "README.md",
        "index.lock is left", "run_gone is left", "a child (1.2.x) that the journal does not know",
    ):  # fmt: skip
        assert sentence in found
