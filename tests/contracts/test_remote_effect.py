"""`git.push` and `git.propose` at the door: checked, answered, looked up after a crash."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git
from remote_world import World

from becket.kernel.contract.action import EffectReport
from becket.kernel.contract.effect import EffectAdapter, EffectCall, LookUpResult, Origin, door_mint
from becket.kernel.contract.errors import EffectFailed, EffectRefused
from becket.kernel.contract.remote import PushRequest, push_call
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.engine.door import Door
from becket.kernel.engine.redact import Redactor
from becket.kernel.git.effects import ProposeEffect
from becket.kernel.git.move import propose_call
from becket.kernel.store import open_memory
from becket.parts.promote.remote_effect import PushEffect
from becket.testing.clock import ManualClock
from becket.testing.crashes import Crashed, crashing

ORIGIN = Origin(run_id="run_1", iteration=1, phase="decide", action_id="push")
BRANCH = "refs/heads/becket/heal/one"


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def call_for(new: str) -> EffectCall:
    return push_call(PushRequest(remote="origin", branch="main", new=new))


class Outlet:
    """One journal, and as many lives of a door as are asked for."""

    def __init__(self, adapter: EffectAdapter) -> None:
        self._clock = ManualClock()
        self._store = open_memory(self._clock)
        self._adapter = adapter

    async def _sleep(self, seconds: float) -> None:
        self._clock.advance(seconds)

    def ask(self, call: EffectCall, autonomy: Autonomy = Autonomy.merge) -> EffectReport:
        door = Door(self._store, {self._adapter.name: self._adapter}, Redactor({}), {}, self._sleep)
        return asyncio.run(door.perform(call, ORIGIN, None, autonomy, False))


class TestPush:
    def test_it_declares_itself(self, world: World) -> None:
        adapter: EffectAdapter = PushEffect(world.git)
        assert (adapter.name, adapter.class_, adapter.needs) == ("git.push", EffectClass.queryable, Autonomy.merge)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({}, None),
            ({"new": "main"}, "pattern"),
            ({"expected": "main"}, "pattern"),
            ({"remote": "https://hub.invalid/x"}, "pattern"),
            ({"remote": "-x"}, "pattern"),
            ({"branch": "a..b"}, ".."),
            ({"branch": "side"}, "target must be origin/side"),
            ({"force": True}, "Extra inputs"),
        ],
    )
    def test_a_call_is_checked(self, world: World, change: dict[str, Any], words: str | None) -> None:
        good = call_for("a" * 40)
        problem = PushEffect(world.git).check(good.model_copy(update={"payload": {**good.payload, **change}}))
        assert problem is None if words is None else words in (problem or "")

    def test_it_arrives(self, world: World) -> None:
        new = world.mine()
        report = Outlet(PushEffect(world.git)).ask(call_for(new))
        assert report.result == {"pushed": True, "remote": new, "old": world.base}
        assert world.there() == new

    def test_a_remote_that_moved_or_refuses_has_answered(self, world: World) -> None:
        theirs = world.theirs()
        result = Outlet(PushEffect(world.git)).ask(call_for(world.mine())).result
        assert (result["pushed"], result["reason"], result["remote"]) == (False, "moved", theirs)
        world.hook("pre-receive", "exit 1")
        git(world.home, "rebase", "--quiet", "origin/main")
        result = Outlet(PushEffect(world.git)).ask(call_for(git(world.home, "rev-parse", "HEAD"))).result
        assert (result["pushed"], result["reason"]) == (False, "refused")

    def test_a_remote_out_of_reach_is_tried_a_few_times_and_then_failed(self, world: World) -> None:
        world.at(str(world.folder / "gone.git"))
        with pytest.raises(EffectFailed, match=r"given up after 4 attempts.*cannot be reached"):
            Outlet(PushEffect(world.git)).ask(call_for(world.mine()))

    def test_a_remote_that_is_not_configured_is_failed_at_once(self, world: World) -> None:
        git(world.home, "remote", "remove", "origin")
        with pytest.raises(EffectFailed, match="no remote named 'origin'"):
            Outlet(PushEffect(world.git)).ask(call_for(world.mine()))

    @pytest.mark.parametrize("point", ["door.before_perform", "door.after_perform"])
    def test_after_a_crash_the_remote_is_asked_and_the_push_is_made_once(self, world: World, point: str) -> None:
        world.hook("post-receive", f"echo pushed >> '{world.folder}/count'")
        new = world.mine()
        outlet = Outlet(PushEffect(world.git))
        with crashing(point), pytest.raises(Crashed):
            outlet.ask(call_for(new))
        report = outlet.ask(call_for(new))
        assert report.happened
        assert report.result.get("pushed") or report.result == {"observed": True}
        assert world.there() == new
        assert (world.folder / "count").read_text() == "pushed\n"

    def test_look_up(self, world: World) -> None:
        new = world.mine()
        effect = PushEffect(world.git)
        assert asyncio.run(effect.look_up(call_for(new), "key")) is LookUpResult.no
        git(world.home, "push", "--quiet", "origin", "main")
        assert asyncio.run(effect.look_up(call_for(new), "key")) is LookUpResult.yes
        world.theirs()
        assert asyncio.run(effect.look_up(call_for(new), "key")) is LookUpResult.yes

    def test_a_push_without_an_answer_is_looked_up(self, world: World) -> None:
        """The hook is slow, the branch moves all the same: nothing is pushed twice."""
        world.hook("post-receive", "sleep 5")
        new = world.mine()
        report = Outlet(PushEffect(world.git, world.remote(1.0))).ask(call_for(new))
        assert report.result == {"observed": True}
        assert world.there() == new

    def test_nobody_to_ask_is_unknown(self, world: World) -> None:
        new = world.mine()
        outlet = Outlet(PushEffect(world.git))
        with crashing("door.after_perform"), pytest.raises(Crashed):
            outlet.ask(call_for(new))
        world.at(str(world.folder / "gone.git"))
        assert outlet.ask(call_for(new)).state == "unknown"


class TestPropose:
    def test_it_needs_less_than_moving_a_ref(self, world: World) -> None:
        adapter: EffectAdapter = ProposeEffect(world.git)
        assert (adapter.name, adapter.class_, adapter.needs) == ("git.propose", EffectClass.queryable, Autonomy.propose)
        report = Outlet(adapter).ask(propose_call(BRANCH, world.base), Autonomy.propose)
        assert report.result == {"ref": BRANCH, "new": world.base}
        assert git(world.home, "rev-parse", BRANCH) == world.base
        with pytest.raises(EffectRefused, match="needs autonomy propose"):
            Outlet(adapter).ask(propose_call(BRANCH + "2", world.base), Autonomy.observe)

    @pytest.mark.parametrize(
        ("ref", "payload", "words"),
        [
            (BRANCH, {"new": "a" * 40}, None),
            ("refs/heads/main", {"new": "a" * 40}, "not below refs/heads/becket/"),
            ("refs/heads/becket/../main", {"new": "a" * 40}, ".."),
            (BRANCH, {"new": "main"}, "never a name"),
            (BRANCH, {"new": "a" * 40, "old": "b" * 40}, "exactly"),
        ],
    )
    def test_a_call_is_checked(self, world: World, ref: str, payload: dict[str, Any], words: str | None) -> None:
        problem = ProposeEffect(world.git).check(EffectCall(name="git.propose", target=ref, payload=payload))
        assert problem is None if words is None else words in (problem or "")

    def test_once_more_is_fine_and_another_commit_is_not(self, world: World) -> None:
        effect = ProposeEffect(world.git)
        assert asyncio.run(effect.look_up(propose_call(BRANCH, world.base), "key")) is LookUpResult.no
        for _ in range(2):
            Outlet(effect).ask(propose_call(BRANCH, world.base))
        assert asyncio.run(effect.look_up(propose_call(BRANCH, world.base), "key")) is LookUpResult.yes
        git(world.home, "worktree", "add", "--quiet", str(world.folder / "looking"), BRANCH.removeprefix("refs/heads/"))
        Outlet(effect).ask(propose_call(BRANCH, world.base))
        new = commit(world.home, {"app.py": "x = 2\n"})
        with pytest.raises(EffectFailed):
            Outlet(effect).ask(propose_call(BRANCH, new))
        assert git(world.home, "rev-parse", BRANCH) == world.base

    def test_nothing_is_made_without_a_permit_or_elsewhere(self, world: World) -> None:
        other = door_mint()("key", propose_call(BRANCH, "a" * 40))
        with pytest.raises(EffectRefused):
            asyncio.run(ProposeEffect(world.git).perform(propose_call(BRANCH, world.base), other))
        call = propose_call("refs/heads/side", world.base)
        with pytest.raises(EffectFailed, match="not below"):
            asyncio.run(ProposeEffect(world.git).perform(call, door_mint()("key", call)))
        assert git(world.home, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
