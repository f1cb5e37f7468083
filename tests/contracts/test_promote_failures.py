"""Promote when something fails under it: a git of ours is killed, a filter breaks, a lock is taken away."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from git_repos import git
from promote_world import CHANGE, World, consistent, filtered, permit_for, prepared, request_for

from becket.kernel.contract import crash
from becket.kernel.contract.promote import NotPromoted, Promoted, WhyNot
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.promote import promoter_of
from becket.parts.promote.adapters.recover import NotPutBack


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    yield World(tmp_path)
    crash.install(None)


def at(point: str, act: Callable[[World], object], world: World) -> None:
    def hook(name: str) -> None:
        if name == point:
            crash.install(None)
            act(world)

    crash.install(hook)


def kill_transaction(world: World) -> None:
    intent = world.log.read()
    assert intent is not None
    os.kill(intent.transaction.pid, signal.SIGKILL)


@pytest.mark.parametrize(
    "point", ["after_index_lock", "after_prepare", "before_checkout", "after_checkout", "after_index"]
)
def test_the_prepared_transaction_is_killed_under_us(world: World, point: str) -> None:
    new = prepared(world)
    before = world.seen()
    at(f"promote.{point}", kill_transaction, world)
    answer = world.refused(WhyNot.failed, world.promote(new), before)
    assert "try again" in answer.message or "failed" in answer.message
    consistent(world)
    assert isinstance(world.promote(new), Promoted)
    consistent(world)


def test_nowhere_checked_out_a_killed_transaction_leaves_no_lock(world: World) -> None:
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    before = world.seen()
    at("promote.after_prepare", kill_transaction, world)
    world.refused(WhyNot.failed, world.promote(new), before)
    assert isinstance(world.promote(new), Promoted)


def test_an_edit_while_the_transaction_is_killed_survives(world: World) -> None:
    new = prepared(world)

    def act(world: World) -> None:
        world.change({"app.py": "typed at the wrong moment\n"})
        kill_transaction(world)

    at("promote.after_index", act, world)
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.paths) == (WhyNot.main_dirty, ("app.py",))
    assert (world.home / "app.py").read_text() == "typed at the wrong moment\n"
    assert world.status() == {" M app.py", " M keep.txt", "A  added/mine"}
    world.no_traces()


def test_our_lock_is_removed_under_us_and_somebody_stages(world: World) -> None:
    new = prepared(world)

    def act(world: World) -> None:
        (world.common / "index.lock").unlink()
        world.change({"keep.txt": "staged\n"})
        git(world.home, "add", "keep.txt")

    at("promote.after_checkout", act, world)
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert answer.reason is WhyNot.failed
    assert world.status() == {"M  keep.txt", "A  added/mine"}
    assert (world.home / "app.py").read_text() == "x = 1\n"
    world.no_traces()


def test_an_ignored_file_that_appears_at_the_last_moment_is_not_overwritten(world: World) -> None:
    new = prepared(world)
    at("promote.before_checkout", lambda world: world.change({"new.env": "SECRET=1\n"}), world)
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.paths) == (WhyNot.main_dirty, ("new.env",))
    assert (world.home / "new.env").read_text() == "SECRET=1\n"
    (world.home / "new.env").unlink()
    consistent(world)


def test_git_is_killed_half_way_through_the_files(world: World) -> None:
    new = filtered(world, "kill -9 $PPID; cat")
    before = world.seen()
    answer = world.refused(WhyNot.failed, world.promote(new), before)
    assert "as it was" in answer.message
    git(world.home, "config", "filter.late.smudge", "cat")
    world.landed(world.promote(new), new, world.home)


def test_a_filter_that_fails_half_way(world: World) -> None:
    new = filtered(world, "exit 1")
    world.refused(WhyNot.failed, world.promote(new), world.seen())


def test_a_missing_file_content_is_noticed_half_way(world: World) -> None:
    """A damaged or partial object store: git writes what it can before it fails."""
    new = world.candidate(CHANGE)
    blob = git(world.home, "rev-parse", f"{new}:data/two.txt")
    (world.common / f"objects/{blob[:2]}/{blob[2:]}").unlink()
    answer = world.refused(WhyNot.failed, world.promote(new), world.seen())
    assert "data/two.txt" in answer.message


def test_what_cannot_be_put_back_stays_locked_until_it_can(world: World) -> None:
    """The old file's content is missing too: better a lock that says so than half a commit."""
    new = filtered(world, "exit 1")
    blob = git(world.home, "rev-parse", "main:data/one.txt")
    stored = world.common / f"objects/{blob[:2]}/{blob[2:]}"
    at("promote.before_checkout", lambda _: stored.rename(world.folder / "hidden"), world)
    before = world.seen()
    with pytest.raises(NotPutBack, match="next start"):
        world.promote(new)
    assert world.log.read() is not None
    assert [path.name for path in world.locks()] == ["index.lock"]
    (world.folder / "hidden").rename(stored)
    world.refused(WhyNot.failed, world.recover(), before)


def test_cancelled_while_git_writes(world: World) -> None:
    new = prepared(world)
    request = request_for(world.old, new)

    async def story() -> None:
        task = asyncio.create_task(promoter_of(discover(world.home)).promote(request, permit_for(request), world.log))
        crash.install(lambda name: task.cancel() and None if name == "promote.before_checkout" else None)
        with pytest.raises(asyncio.CancelledError):
            await task

    try:
        asyncio.run(story())
    finally:
        crash.install(None)
    assert world.main() == new
    consistent(world)
