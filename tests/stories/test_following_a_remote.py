"""Becket beside a remote: other people's main arrives here as `git pull --ff-only` would bring it, or not at all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from promote_stage import OPEN

from becket.kernel.contract.store import AlertState
from becket.parts.promote.remote_desk import ALERT, LOOK_EVERY, RemoteWatch, watch_remote
from becket.testing.world import World, commit_all, run_git

REMOTE = f"{OPEN}remote: {{name: origin, fetch: 10s}}\n"


class Hub:
    """A shared repository, Becket's world beside it, and a colleague."""

    def __init__(self, folder: Path, config: str = REMOTE) -> None:
        self.world = World(folder)
        self.world.commit({"becket.yaml": config, "app.py": "x = 1\n"})
        self.path = folder / "hub.git"
        run_git(folder, ["clone", "--quiet", "--bare", str(self.world.root), str(self.path)])
        run_git(self.world.root, ["remote", "add", "origin", str(self.path)])
        run_git(folder, ["clone", "--quiet", str(self.path), "other"])
        self.other = folder / "other"
        self.watch = RemoteWatch(self.world.app)

    def theirs(self, text: str) -> str:
        (self.other / "app.py").write_text(text)
        sha = commit_all(self.other, "theirs")
        run_git(self.other, ["push", "--quiet", "origin", "main"])
        return sha

    def look(self, times: int = 1) -> float:
        async def looks() -> float:
            pause = 0.0
            for _ in range(times):
                pause = await self.watch.look()
                self.world.clock.advance(pause)
            return pause

        return asyncio.run(looks())

    def main(self) -> str:
        return run_git(self.world.root, ["rev-parse", "refs/heads/main"])

    def alert(self) -> str:
        alerts = asyncio.run(self.world.store.alerts((AlertState.open,)))
        return "".join(alert.text for alert in alerts if alert.key == ALERT)


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def test_what_a_colleague_pushed_arrives_with_its_files(hub: Hub) -> None:
    before = hub.main()
    assert hub.look() == 10.0
    assert hub.main() == before
    theirs = hub.theirs("x = 2\n")
    assert hub.look() == 10.0
    assert hub.main() == theirs
    assert (hub.world.root / "app.py").read_text() == "x = 2\n"
    (effect,) = asyncio.run(hub.world.store.effects())
    assert (effect.call.name, effect.call.payload["proof"]) == ("git.promote", f"remote:{theirs}")
    again = hub.theirs("x = 3\n")
    hub.look()
    assert hub.main() == again
    assert hub.alert() == ""


def test_the_daemon_follows_until_it_is_told_to_stop(hub: Hub) -> None:
    theirs = hub.theirs("x = 2\n")

    async def story() -> None:
        task = asyncio.create_task(watch_remote(hub.world.app))
        async with asyncio.timeout(120):
            while hub.main() != theirs:
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())


def test_the_persons_work_is_never_touched_and_once_it_is_out_of_the_way_main_follows(hub: Hub) -> None:
    """L6: and a person is told, once it has lasted."""
    theirs, before = hub.theirs("x = 2\n"), hub.main()
    hub.world.write("app.py", "mine\n")
    hub.look()
    assert hub.alert() == ""
    hub.look(3)
    assert "cannot follow" in hub.alert()
    assert "app.py (modified)" in hub.alert()
    assert hub.main() == before
    assert (hub.world.root / "app.py").read_text() == "mine\n"
    run_git(hub.world.root, ["checkout", "--quiet", "app.py"])
    hub.look()
    assert (hub.main(), hub.alert()) == (theirs, "")


def test_commits_that_are_only_here_are_no_reason_to_do_anything(hub: Hub) -> None:
    mine = hub.world.commit({"mine": "m\n"})
    hub.look(4)
    assert (hub.main(), hub.alert()) == (mine, "")
    assert asyncio.run(hub.world.store.effects()) == ()


def test_two_histories_are_a_persons_to_join(hub: Hub) -> None:
    mine = hub.world.commit({"mine": "m\n"})
    hub.theirs("x = 2\n")
    hub.look(3)
    assert "have both moved on" in hub.alert()
    assert hub.main() == mine
    run_git(hub.world.root, ["merge", "--quiet", "--no-edit", "origin/main"])
    hub.look()
    assert hub.alert() == ""


def test_a_remote_that_is_gone_is_asked_more_and_more_rarely(hub: Hub) -> None:
    hub.path.rename(hub.path.with_name("moved.git"))
    pauses = [hub.look() for _ in range(8)]
    assert pauses == [10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    assert "cannot be reached" in hub.alert()
    hub.path.with_name("moved.git").rename(hub.path)
    assert hub.look() == 10.0
    assert hub.alert() == ""


def test_a_remote_that_is_not_configured_is_told_at_once(hub: Hub) -> None:
    run_git(hub.world.root, ["remote", "remove", "origin"])
    hub.look()
    assert "no remote named 'origin'" in hub.alert()


def test_below_merge_pulling_stays_the_persons(tmp_path: Path) -> None:
    """L18: what is fetched is there to be looked at; main stays."""
    hub = Hub(tmp_path, "version: 1\nautonomy: propose\nremote: {name: origin}\n")
    theirs, before = hub.theirs("x = 2\n"), hub.main()
    hub.look()
    assert hub.main() == before
    assert run_git(hub.world.root, ["rev-parse", "origin/main"]) == theirs
    assert asyncio.run(hub.world.store.effects()) == ()


def test_a_becket_yaml_that_does_not_load_is_no_leave_to_move_main(hub: Hub) -> None:
    before = hub.main()
    hub.look()
    hub.theirs("x = 2\n")
    hub.world.write("becket.yaml", "autonomy: [\n")
    hub.look()
    assert hub.main() == before


def test_without_a_remote_nothing_is_asked(tmp_path: Path) -> None:
    hub = Hub(tmp_path, "version: 1\n")
    assert hub.look() == LOOK_EVERY
    assert run_git(hub.world.root, ["for-each-ref", "refs/remotes"]) == ""
