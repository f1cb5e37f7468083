"""Fifty ways of real services to misbehave, and kill -9 of the watchdog at every named point of a release."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Any

import pytest
from service_stage import RULES, ServiceStage, real_watchdog

from becket.parts.services.line import WatchdogCallFailed, WatchdogUnreachable
from becket.parts.services.ports import ReleaseState, RequestEnding, ServiceOperation, ServiceState

Shape = dict[str, Any]

KEPT: dict[str, Shape] = {
    "plain": {},
    "slow to begin": {"slow": 0.5},
    "slower to begin": {"slow": 1.5},
    "forks away": {"forks_away": True},
    "forks away, slowly": {"forks_away": True, "slow": 0.3},
    "its child serves": {"child_serves": True},
    "ignores TERM": {"ignores_term": True},
    "forks away and ignores TERM": {"forks_away": True, "ignores_term": True},
    "talks much": {"noise": 200_000},
    "answers 204": {"status": "204 No Content"},
}

NOT_KEPT: dict[str, Shape] = {
    "dies at once": {"dies_at": 0},
    "dies at once, with exit code 0": {"dies_at": 0, "code": 0},
    "dies at 50 ms": {"dies_at": 0.05},
    "dies at 100 ms": {"dies_at": 0.1},
    "dies at 150 ms": {"dies_at": 0.15},
    "dies at 200 ms": {"dies_at": 0.2},
    "dies at 250 ms": {"dies_at": 0.25},
    "dies at the first request": {"dies_after": 1},
    "dies at the second request": {"dies_after": 2},
    "dies at the third request": {"dies_after": 3},
    "dies at the fourth request": {"dies_after": 4},
    "dies at the fifth request": {"dies_after": 5},
    "begins slowly and dies": {"slow": 0.5, "dies_at": 0.6},
    "forks away and dies": {"forks_away": True, "dies_at": 0.1},
    "forks away and dies of a request": {"forks_away": True, "dies_after": 3},
    "the child that serves dies": {"child_serves": True, "dies_at": 0.1},
    "the child that serves dies of a request": {"child_serves": True, "dies_after": 3},
    "hangs": {"hangs": True},
    "never listens": {"never_listens": True},
    "lives and is deaf from the first": {"deaf_at": 0},
    "goes deaf in its soak": {"deaf_at": 0.2},
    "falls ill at once": {"ill_at": 0},
    "falls ill in its soak": {"ill_at": 0.2},
    "answers 500": {"status": "500 Error"},
    "answers 404": {"status": "404 Not Found"},
    "answers 302": {"status": "302 Found"},
    "answers nonsense": {"status": "banana"},
    "another process answers": {"stray": "instead"},
    "shares its port": {"stray": "share"},
    "forks away and shares its port": {"stray": "share", "forks_away": True},
    "comes too late": {"slow": 60},
    "misses its variable": {"env": "NOT_THERE"},
}

LATER: dict[str, Shape] = {
    "dies after 20 requests": {"dies_after": 20},
    "dies after 30 requests": {"dies_after": 30},
    "dies after 25 requests": {"dies_after": 25},
    "forks away, dies after 20": {"forks_away": True, "dies_after": 20},
    "its child dies after 20": {"child_serves": True, "dies_after": 20},
    "ignores TERM, dies after 20": {"ignores_term": True, "dies_after": 20},
}


def test_there_are_fifty_shapes_of_real_processes() -> None:
    taken_ports = 2  # below: the port is taken before, or while it is down
    assert len(KEPT) + len(NOT_KEPT) + len(LATER) + taken_ports >= 50


@pytest.mark.slow
@pytest.mark.parametrize("name", KEPT)
def test_an_honest_service_is_kept(tmp_path: Path, name: str) -> None:
    with ServiceStage(tmp_path) as stage:
        old, new = stage.commit(), stage.commit(**KEPT[name], last=1)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(old)
                assert (await stage.release(new)).ending is RequestEnding.kept
                assert stage.serving() == new
                assert not stage.alive(old)
                assert (await stage.ask(ServiceOperation.stop)).ending is RequestEnding.done
                assert stage.host.listeners(stage.port) == ()

        asyncio.run(story())


@pytest.mark.slow
@pytest.mark.parametrize("name", NOT_KEPT)
def test_what_is_not_healthy_over_its_soak_is_not_kept_and_the_old_one_serves_again(tmp_path: Path, name: str) -> None:
    """L28, L29, L34. Where a stranger keeps the port, the old one cannot serve either: that is told."""
    shape = NOT_KEPT[name]
    with ServiceStage(tmp_path) as stage:
        old, new = stage.commit(), stage.commit(**shape)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(old)
                assert (await stage.release(new)).ending is RequestEnding.rolled_back
                assert not stage.alive(new)
                if "stray" in shape:
                    assert stage.serving() is None
                    assert "not healthy either: port" in stage.incidents()[0]
                else:
                    assert stage.serving() == old
                    assert "serves again" in stage.incidents()[0]

        asyncio.run(story())
        assert stage.of(new).state is ReleaseState.rolled_back
        assert stage.of(new).never_auto


@pytest.mark.slow
@pytest.mark.parametrize("name", LATER)
def test_later_deaths_meet_the_limit_which_holds(tmp_path: Path, name: str) -> None:
    """L28: it is healthy over every soak and dies right after. No start is beyond the limit."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit(**LATER[name])

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                await stage.until(lambda: stage.service.state is ServiceState.given_up)
                assert len(stage.service.life.starts) == RULES.starts
            async with stage.supervised():  # another watchdog forgives nothing
                await stage.until(lambda: stage.service.state is ServiceState.given_up)
                assert len(stage.service.life.starts) == RULES.starts
                assert not stage.alive(sha)

        asyncio.run(story())


@pytest.mark.slow
def test_a_port_taken_while_the_service_is_down_is_waited_for(tmp_path: Path) -> None:
    """The stranger is left alone; when it is gone, the service starts by itself."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                await stage.release(sha)
            release = stage.of(sha)
            await stage.host.end(release.marker, release.process, 0.0)
            server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", stage.port)
            async with stage.supervised():
                await stage.until(lambda: stage.service.state is ServiceState.blocked)
                assert "cannot be started" in stage.incidents()[0]
                server.close()
                await server.wait_closed()
                await stage.until(lambda: stage.service.state is ServiceState.up)

        asyncio.run(story())


BOTH = ("release.after_intent", "release.old_ended", "release.soaking")
WHEN_KEPT = (*BOTH, "release.after_keep")
WHEN_BACK = (*BOTH, "release.after_failure", "service.before_start", "service.after_start")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("point", "good"), [*((point, True) for point in WHEN_KEPT), *((point, False) for point in WHEN_BACK)]
)
def test_a_watchdog_killed_at_any_point_of_a_release_ends_with_the_old_or_the_new_one(
    tmp_path: Path, point: str, good: bool
) -> None:
    """After the next start exactly one release serves; a bad one never; the request has its one outcome."""
    with ServiceStage(tmp_path) as stage:
        old, new = stage.commit(), stage.commit(**({"last": 1} if good else {"dies_after": 3}))

        async def story() -> None:
            async with stage.supervised():
                await stage.release(old)
            with real_watchdog(stage, crash_at=point) as watchdog:
                key = "the one"
                with contextlib.suppress(WatchdogUnreachable, WatchdogCallFailed):
                    await stage.order(ServiceOperation.release, new, key)
                await stage.until(lambda: watchdog.poll() is not None)
            with real_watchdog(stage):
                await stage.order(ServiceOperation.release, new, key)
                outcome = await stage.outcome(key)
                assert outcome.ending is (RequestEnding.kept if good else RequestEnding.rolled_back), outcome
                await stage.until(lambda: stage.serving() == (new if good else old))
                await stage.until(lambda: stage.service.state is ServiceState.up)

        asyncio.run(story())
        kept = [release for release in stage.book.releases("main") if release.state is ReleaseState.kept]
        assert [release.sha for release in kept] == [new if good else old]
