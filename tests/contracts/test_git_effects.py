"""`git.update_ref`: exact hashes, compare-and-swap, the door's permit, and nobody's work tree."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git, new_repository, planted_script

from becket.kernel.contract.effect import EffectAdapter, EffectCall, LookUpResult, Permit, door_mint
from becket.kernel.contract.errors import EffectFailed, EffectRefused, GitFailed
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.git.effects import UpdateRefEffect
from becket.kernel.git.move import BranchInUse, RefBusy, RefLost, update_ref_call
from becket.kernel.git.repository import discover


class World:
    """A repository with `first <- second` on main and a branch `side` at first."""

    def __init__(self, folder: Path) -> None:
        self.home = new_repository(folder)
        self.first = git(self.home, "rev-parse", "HEAD")
        git(self.home, "branch", "side")
        self.second = commit(self.home, {"app.py": "x = 2\n"})
        self.git = discover(self.home)
        self.effect = UpdateRefEffect(self.git)

    def move(self, ref: str, new: str, old: str | None) -> None:
        asyncio.run(self.git.update_ref(ref, new, old, permit_for(ref, new, old)))

    def value(self, ref: str) -> str:
        return git(self.home, "rev-parse", "--verify", "--quiet", ref, ok=(0, 1))


def permit_for(ref: str, new: str, old: str | None) -> Permit:
    return door_mint()("key", update_ref_call(ref, new, old))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "home")


SIDE = "refs/heads/side"


def test_a_ref_moves_from_the_expected_hash_to_the_exact_one(world: World) -> None:
    """L3: hashes, not names."""
    world.move(SIDE, world.second, world.first)
    assert world.value(SIDE) == world.second
    assert "becket" in git(world.home, "reflog", "show", SIDE)


def test_a_lost_race_changes_nothing(world: World) -> None:
    """L3: whoever moved it first wins."""
    third = commit(world.home, {"app.py": "x = 3\n"})
    git(world.home, "update-ref", SIDE, third)
    with pytest.raises(RefLost, match="nothing was changed"):
        world.move(SIDE, world.second, world.first)
    assert world.value(SIDE) == third


def test_a_new_ref_must_not_exist_and_an_old_one_must(world: World) -> None:
    world.move("refs/becket/rescue/run_1", world.second, None)
    assert world.value("refs/becket/rescue/run_1") == world.second
    with pytest.raises(RefLost):
        world.move("refs/becket/rescue/run_1", world.first, None)
    with pytest.raises(RefLost):
        world.move("refs/heads/nowhere", world.second, world.first)
    assert world.value("refs/heads/nowhere") == ""


def test_packed_refs_move_too(world: World) -> None:
    git(world.home, "pack-refs", "--all")
    with pytest.raises(RefLost):
        world.move(SIDE, world.first, world.second)
    world.move(SIDE, world.second, world.first)
    assert world.value(SIDE) == world.second


@pytest.mark.parametrize("where", ["main tree", "linked tree", "rebase", "bisect", "unborn"])
def test_a_branch_somebody_works_on_is_refused(world: World, tmp_path: Path, where: str) -> None:
    linked = tmp_path / "linked"
    ref, new, old = SIDE, world.second, world.first
    if where == "main tree":
        git(world.home, "switch", "--quiet", "side")
    elif where == "unborn":
        git(world.home, "symbolic-ref", "HEAD", "refs/heads/fresh")
        ref, old = "refs/heads/fresh", ""
    else:
        git(world.home, "worktree", "add", "--quiet", str(linked), "side")
    if where == "rebase":
        commit(linked, {"app.py": "conflict\n"})
        old = git(linked, "rev-parse", "HEAD")
        git(linked, "rebase", "main", ok=(1,))
        assert git(linked, "rev-parse", "--abbrev-ref", "HEAD") == "HEAD"
    elif where == "bisect":
        git(linked, "bisect", "start")
        git(linked, "checkout", "--quiet", "--detach")
    with pytest.raises(BranchInUse, match="switch that work tree"):
        world.move(ref, new, old or None)
    assert world.value(ref) == old


def test_a_worktree_that_is_gone_holds_nothing(world: World, tmp_path: Path) -> None:
    """L9: a registration left behind does not block."""
    git(world.home, "worktree", "add", "--quiet", str(tmp_path / "linked"), "side")
    (tmp_path / "linked").rename(tmp_path / "moved")
    world.move(SIDE, world.second, world.first)
    assert world.value(SIDE) == world.second


@pytest.mark.parametrize("kind", ["none", "imitation", "another move", "another effect"])
def test_nothing_moves_without_the_doors_permit(world: World, kind: str) -> None:
    class Imitation:
        def covers(self, call: EffectCall) -> bool:
            return True

    other = EffectCall(name="http.post", target=SIDE, payload={"new": world.second, "old": world.first})
    permits: dict[str, Any] = {
        "none": None,
        "imitation": Imitation(),
        "another move": permit_for(SIDE, world.first, world.second),
        "another effect": door_mint()("key", other),
    }
    with pytest.raises(EffectRefused, match="door"):
        asyncio.run(world.git.update_ref(SIDE, world.second, world.first, permits[kind]))
    assert world.value(SIDE) == world.first


def test_no_hook_runs(world: World, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    hooks = world.home / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "reference-transaction").symlink_to(planted_script(tmp_path, marker))
    world.move(SIDE, world.second, world.first)
    assert not marker.exists()


def test_what_git_refuses_is_told_in_its_words(world: World) -> None:
    for new, words in {
        "f" * 40: "nonexistent object",
        git(world.home, "rev-parse", "HEAD^{tree}"): "non-commit",
    }.items():
        with pytest.raises(GitFailed, match=words):
            world.move(SIDE, new, world.first)
    with pytest.raises(GitFailed, match="full ref name"):
        world.move("HEAD", world.second, world.first)
    assert world.value(SIDE) == world.first


def test_the_effect_declares_itself(world: World) -> None:
    adapter: EffectAdapter = world.effect
    assert (adapter.name, adapter.class_, adapter.needs) == ("git.update_ref", EffectClass.queryable, Autonomy.merge)
    assert adapter.timeout > 60


@pytest.mark.parametrize(
    ("target", "payload", "words"),
    [
        (SIDE, {"new": "a" * 40, "old": "b" * 40}, None),
        (SIDE, {"new": "a" * 64, "old": None}, None),
        (SIDE, {"new": "a" * 40}, "exactly"),
        (SIDE, {"new": "a" * 40, "old": None, "force": True}, "exactly"),
        (SIDE, {"new": "main", "old": None}, "never names"),
        (SIDE, {"new": "a" * 40, "old": ""}, "never names"),
        (SIDE, {"new": "a" * 41, "old": None}, "never names"),
        (SIDE, {"new": 7, "old": None}, "never names"),
        (SIDE, {"new": "a" * 40, "old": "a" * 40}, "nothing to do"),
        ("main", {"new": "a" * 40, "old": None}, "full ref name"),
        ("refs/heads/a..b", {"new": "a" * 40, "old": None}, ".."),
    ],
)
def test_a_call_is_checked_before_anything_is_written(
    world: World, target: str, payload: dict[str, Any], words: str | None
) -> None:
    problem = world.effect.check(EffectCall(name="git.update_ref", target=target, payload=payload))
    if words is None:
        assert problem is None
    else:
        assert problem is not None
        assert words in problem


def test_perform_and_look_up_agree(world: World) -> None:
    call = update_ref_call(SIDE, world.second, world.first)

    async def story() -> None:
        assert await world.effect.look_up(call, "key") is LookUpResult.no
        result = await world.effect.perform(call, door_mint()("key", call))
        assert result == {"ref": SIDE, "old": world.first, "new": world.second}
        assert await world.effect.look_up(call, "key") is LookUpResult.yes

    asyncio.run(story())
    git(world.home, "update-ref", SIDE, commit(world.home, {"app.py": "x = 3\n"}))
    assert asyncio.run(world.effect.look_up(call, "key")) is LookUpResult.cannot_tell


def test_look_up_of_a_new_ref_and_of_a_broken_one(world: World) -> None:
    call = update_ref_call("refs/heads/fresh", world.second, None)
    assert asyncio.run(world.effect.look_up(call, "key")) is LookUpResult.no
    (world.home / ".git/refs/heads/fresh").write_text("")
    assert asyncio.run(world.effect.look_up(call, "key")) is LookUpResult.cannot_tell


def test_a_lock_held_by_another_git_may_be_tried_again_and_stays(world: World) -> None:
    lock = world.home / ".git/refs/heads/side.lock"
    lock.touch()
    call = update_ref_call(SIDE, world.second, world.first)
    with pytest.raises(EffectFailed) as failed:
        asyncio.run(world.effect.perform(call, door_mint()("key", call)))
    assert (failed.value.retryable, failed.value.ambiguous) == (True, False)
    assert isinstance(failed.value.__cause__, RefBusy)
    assert lock.exists(), "a foreign lock is never removed"


def test_a_lost_race_is_final(world: World) -> None:
    call = update_ref_call(SIDE, world.first, world.second)
    with pytest.raises(EffectFailed) as failed:
        asyncio.run(world.effect.perform(call, door_mint()("key", call)))
    assert not failed.value.retryable
