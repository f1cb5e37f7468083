"""`git.promote` at the door: an answer is stored once, a crash is looked up, and the branch moves at most once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git
from promote_door import ORIGIN, let_out
from promote_world import World, consistent, persons_work, prepared, request_for

from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.effect import EffectAdapter, EffectCall, LookUpResult, Permit, door_mint
from becket.kernel.contract.errors import EffectFailed, EffectRefused
from becket.kernel.contract.promote import promote_call
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.git.repository import discover
from becket.kernel.store import open_memory
from becket.parts.promote.effect import PromoteEffect
from becket.testing.clock import ManualClock
from becket.testing.crashes import Nursery

KEY = "k" * 32


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("promote_door:life", paths=[Path(__file__).parent]) as nursery:
        yield nursery


def effect_of(world: World) -> PromoteEffect:
    return PromoteEffect(discover(world.home), world.log)


def call_for(old: str, new: str) -> EffectCall:
    return promote_call(request_for(old, new))


def perform(world: World, new: str) -> dict[str, Any]:
    call = call_for(world.old, new)
    return asyncio.run(effect_of(world).perform(call, door_mint()(KEY, call)))


def look_up(world: World, new: str, key: str = KEY) -> LookUpResult:
    return asyncio.run(effect_of(world).look_up(call_for(world.old, new), key))


def ask(world: World, new: str) -> EffectReport:
    clock = ManualClock()
    return asyncio.run(let_out(world.folder, open_memory(clock), clock, world.old, new))


def test_the_effect_declares_itself(world: World) -> None:
    adapter: EffectAdapter = effect_of(world)
    assert (adapter.name, adapter.class_, adapter.needs) == ("git.promote", EffectClass.queryable, Autonomy.merge)


@pytest.mark.parametrize(
    ("target", "payload", "words"),
    [
        ("refs/heads/main", {"new": "a" * 40, "old": "b" * 40, "proof": "p"}, None),
        ("refs/tags/main", {"new": "a" * 40, "old": "b" * 40, "proof": "p"}, "not a branch"),
        ("main", {"new": "a" * 40, "old": "b" * 40, "proof": "p"}, "full ref name"),
        ("refs/heads/main", {"new": "a" * 40, "old": "b" * 40}, "exactly"),
        ("refs/heads/main", {"new": "main", "old": "b" * 40, "proof": "p"}, "pattern"),
        ("refs/heads/main", {"new": "a" * 40, "old": None, "proof": "p"}, "string"),
        ("refs/heads/main", {"new": "a" * 40, "old": "b" * 40, "proof": ""}, "at least 1"),
        ("refs/heads/main", {"new": "a" * 40, "old": "a" * 40, "proof": "p"}, "nothing to promote"),
    ],
)
def test_a_call_is_checked_before_anything_is_written(
    world: World, target: str, payload: dict[str, Any], words: str | None
) -> None:
    problem = effect_of(world).check(EffectCall(name="git.promote", target=target, payload=payload))
    assert problem is None if words is None else words in (problem or "")


def test_a_promotion_by_the_door(world: World) -> None:
    new = world.candidate()
    report = ask(world, new)
    assert report.happened
    assert report.result == {"promoted": True, "main": new, "worktree": str(world.home)}
    assert world.main() == new
    assert git(world.home, "log", "-1", "-g", "--format=%gs", "main") == f"becket: promote {report.key}"
    world.no_traces()


def test_nothing_moves_without_a_permit(world: World) -> None:
    new = world.candidate()
    call = call_for(world.old, new)
    other = door_mint()(KEY, call_for(new, world.old))
    no_permit: Any = None
    permits: list[Permit] = [no_permit, other]
    for permit in permits:
        with pytest.raises(EffectRefused):
            asyncio.run(effect_of(world).perform(call, permit))
    assert world.main() == world.old


class TestARefusalIsAnAnswer:
    """The effect is done, the branch is not moved, and the same question is not asked twice (L6)."""

    def test_dirty(self, world: World) -> None:
        new = world.candidate()
        world.change({"app.py": "mine\n"})
        report = ask(world, new)
        assert (report.state, report.result["promoted"], report.result["reason"]) == ("done", False, "main_dirty")
        assert (report.result["paths"], report.result["main"]) == (["app.py"], world.old)
        assert "commit it" in report.result["message"]

    def test_moved(self, world: World) -> None:
        new = world.candidate()
        other = commit(world.home, {"other": "o\n"})
        result = perform(world, new)
        assert (result["promoted"], result["reason"], result["main"]) == (False, "main_moved", other)

    def test_no_fast_forward(self, world: World) -> None:
        new = world.candidate()
        world.old = commit(world.home, {"other": "o\n"})
        assert perform(world, new)["reason"] == "not_fast_forward"

    def test_busy_and_locked(self, world: World) -> None:
        new = world.candidate()
        for name, reason in {"index.lock": "main_busy", "refs/heads/main.lock": "ref_locked"}.items():
            lock = world.home / ".git" / name
            lock.touch()
            assert perform(world, new)["reason"] == reason
            lock.unlink()
        assert perform(world, new)["promoted"]

    def test_unsupported(self, world: World) -> None:
        new = world.candidate()
        git(world.home, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
        call = promote_call(request_for(world.old, new, branch="alias"))
        result = asyncio.run(effect_of(world).perform(call, door_mint()(KEY, call)))
        assert result["reason"] == "unsupported"

    def test_the_answer_stands_for_its_iteration(self, world: World) -> None:
        new = world.candidate()
        world.change({"app.py": "mine\n"})
        clock = ManualClock()
        store = open_memory(clock)

        async def twice() -> list[EffectReport]:
            first = await let_out(world.folder, store, clock, world.old, new)
            git(world.home, "checkout", "--quiet", "app.py")
            return [first, await let_out(world.folder, store, clock, world.old, new)]

        first, second = asyncio.run(twice())
        assert first == second
        assert world.main() == world.old


def test_what_failed_on_the_way_may_be_tried_again_and_what_is_missing_may_not(world: World) -> None:
    new = world.candidate()
    objects = world.home / ".git/objects"
    blob = git(world.home, "rev-parse", f"{new}:app.py")
    path = objects / blob[:2] / blob[2:]
    kept = path.read_bytes()
    path.unlink()
    with pytest.raises(EffectFailed) as failed:
        perform(world, new)
    assert (failed.value.retryable, failed.value.ambiguous) == (True, False)
    path.write_bytes(kept)
    with pytest.raises(EffectFailed) as failed:
        perform(world, "f" * 40)
    assert not failed.value.retryable
    assert world.main() == world.old
    assert perform(world, new)["promoted"]


class TestLookUp:
    def test_before_and_after(self, world: World) -> None:
        new = world.candidate()
        assert look_up(world, new) is LookUpResult.no
        perform(world, new)
        assert look_up(world, new) is LookUpResult.yes

    def test_somebody_went_on_from_there(self, world: World) -> None:
        new = world.candidate()
        perform(world, new)
        commit(world.home, {"more": "m\n"})
        assert look_up(world, new) is LookUpResult.yes

    def test_somebody_took_it_back(self, world: World) -> None:
        """It has happened. Doing it again would overrule the person who undid it."""
        new = world.candidate()
        perform(world, new)
        git(world.home, "reset", "--quiet", "--hard", world.old)
        assert look_up(world, new) is LookUpResult.yes
        assert look_up(world, new, key="another") is LookUpResult.no

    def test_a_git_that_was_killed_between_reflog_and_ref_has_not_moved_it(self, world: World) -> None:
        new = world.candidate()
        with (world.home / ".git/logs/refs/heads/main").open("a") as log:
            log.write(f"{world.old} {new} Becket <becket@localhost> 1800000000 +0000\tbecket: promote {KEY}\n")
        assert look_up(world, new) is LookUpResult.no
        commit(world.home, {"other": "o\n"})
        assert look_up(world, new) is LookUpResult.no

    def test_somebody_moved_it_elsewhere_before(self, world: World) -> None:
        new = world.candidate()
        commit(world.home, {"other": "o\n"})
        assert look_up(world, new) is LookUpResult.no

    def test_without_a_reflog_ancestry_decides_as_far_as_it_can(self, world: World) -> None:
        git(world.home, "config", "core.logAllRefUpdates", "false")
        new = world.candidate()
        (world.home / ".git/logs/refs/heads/main").unlink()
        perform(world, new)
        assert look_up(world, new) is LookUpResult.yes
        (world.home / ".git/logs/refs/heads/main").touch()
        assert look_up(world, new) is LookUpResult.yes
        (world.home / ".git/logs/refs/heads/main").unlink()
        git(world.home, "reset", "--quiet", "--hard", world.old)
        commit(world.home, {"other": "o\n"})
        assert look_up(world, new) is LookUpResult.no
        git(world.home, "switch", "--quiet", "--orphan", "fresh")
        elsewhere = commit(world.home, {"fresh": "f\n"})
        git(world.home, "update-ref", "refs/heads/main", elsewhere)
        assert look_up(world, new) is LookUpResult.cannot_tell


@pytest.mark.parametrize(
    "point",
    [
        "door.before_perform",
        "promote.after_intent",
        "promote.after_prepare",
        "promote.before_checkout",
        "promote.after_checkout",
        "promote.after_index",
        "promote.after_commit",
        "promote.before_clear",
        "door.after_perform",
        "door.before_settle",
        "door.after_settle",
    ],
)
def test_killed_at_any_point_the_next_life_knows_and_ends_it(nursery: Nursery, world: World, point: str) -> None:
    """One move, whether the journal or only the branch knows of it; and nothing of ours is left."""
    new = prepared(world)
    assert nursery.live(world.folder, crash_at=point, old=world.old, new=new, now=1000.0).killed
    assert world.main() in (world.old, new)
    life = nursery.live(world.folder, old=world.old, new=new, now=2000.0)
    assert life.value["state"] == "done", life
    result = life.value["result"]
    assert result.get("promoted") or result == {"observed": True}
    assert world.main() == new
    moves = git(world.home, "reflog", "show", "--format=%gs", "main").splitlines()
    assert moves.count(f"becket: promote {ORIGIN.key(call_for(world.old, new))}") == 1
    persons_work(world)
    consistent(world)
