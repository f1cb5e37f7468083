"""Services with real processes: released, kept or rolled back, restarted within limits, and adopted."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from service_stage import RULES, ServiceStage, real_watchdog

from becket.app.record.status import take
from becket.parts.services.line import WatchdogRefused
from becket.parts.services.ports import ReleaseState, RequestEnding, ServiceOperation, ServiceState


def test_a_healthy_release_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """L8, L34: the exact commit serves, the old processes are gone."""
    with ServiceStage(tmp_path) as stage:
        first, second = stage.commit(), stage.commit(slow=0.1)

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(first)).ending is RequestEnding.kept
                assert stage.serving() == first
                outcome = await stage.release(second)
                assert (outcome.ending, outcome.sha) == (RequestEnding.kept, second)
                assert (await stage.release(second)).reason == "it is in service already"

        asyncio.run(story())
        assert stage.serving() == second
        assert not stage.alive(first)
        assert stage.states() == [ReleaseState.stopped, ReleaseState.kept]
        assert stage.service.state is ServiceState.up
        assert stage.incidents() == []


def test_a_release_that_dies_at_once_gives_way_to_the_old_one(tmp_path: Path) -> None:
    """The commit is marked: no loop may release it again."""
    with ServiceStage(tmp_path) as stage:
        good, bad = stage.commit(), stage.commit(dies_at=0)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(good)
                assert (await stage.release(bad)).ending is RequestEnding.rolled_back
                assert stage.serving() == good
                again = await stage.release(bad)
                assert again.ending is RequestEnding.failed
                assert "before" in again.reason

        asyncio.run(story())
        assert stage.of(bad).never_auto
        assert "serves again" in stage.incidents()[0]


def test_a_release_that_dies_inside_the_soak_is_never_kept(tmp_path: Path) -> None:
    """L28: it answered well, and died before the soak was over."""
    with ServiceStage(tmp_path) as stage:
        good, bad = stage.commit(), stage.commit(dies_after=3)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(good)
                assert (await stage.release(bad)).ending is RequestEnding.rolled_back

        asyncio.run(story())
        assert stage.serving() == good
        assert ReleaseState.kept not in {release.state for release in stage.book.releases("main") if release.sha == bad}


@pytest.mark.parametrize("how", ["instead", "share"])
def test_answers_of_another_process_on_the_port_do_not_count(tmp_path: Path, how: str) -> None:
    """L29: every listener must carry the release's marker, whether the stranger is alone there or shares the port."""
    with ServiceStage(tmp_path) as stage:
        stage.commit()
        bad = stage.commit(stray=how)

        async def story() -> None:
            async with stage.supervised():
                outcome = await stage.release(bad)
                assert outcome.ending is RequestEnding.failed
                assert f"port {stage.port} is also held by pid {stage.strays()[0]}" in outcome.reason

        asyncio.run(story())
        assert not stage.alive(bad)
        assert stage.of(bad).state is ReleaseState.rolled_back


def test_a_port_taken_by_a_stranger_is_told_and_the_stranger_is_left_alone(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage, socket.socket() as stranger:
        sha = stage.commit()
        stranger.bind(("127.0.0.1", stage.port))
        stranger.listen()

        async def story() -> None:
            async with stage.supervised():
                outcome = await stage.release(sha)
                assert outcome.ending is RequestEnding.failed
                assert f"pid {os.getpid()}" in outcome.reason

        asyncio.run(story())
        assert not stage.alive(sha)
        assert not stage.of(sha).never_auto, "the commit is not to blame"


def test_what_fails_its_smoke_never_touches_the_old_release(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage:
        good, bad = stage.commit(), stage.commit(dies_at=0, in_smoke=True, code=3)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(good)
                before = stage.of(good).process
                outcome = await stage.release(bad)
                assert (outcome.ending, "exit code 3" in outcome.reason) == (RequestEnding.failed, True)
                assert stage.of(good).process == before

        asyncio.run(story())
        assert stage.serving() == good
        assert stage.of(bad).process is None


@pytest.mark.slow
def test_a_kept_release_that_dies_is_restarted_until_the_limit_which_holds(tmp_path: Path) -> None:
    """L28: at most so many starts in the window, though it is healthy in between; then a person is told."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit(dies_after=20)

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                await stage.until(lambda: stage.service.state is ServiceState.given_up)
                assert len(stage.service.life.starts) == RULES.starts
                assert "again and again" in stage.incidents()[0]

        asyncio.run(story())
        assert not stage.alive(sha)


def test_a_service_outlives_its_watchdog_and_is_adopted_by_the_next(tmp_path: Path) -> None:
    """Killed by -9: the process goes on, the next watchdog knows it by its marker and starts nothing twice."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit()

        async def story() -> None:
            with real_watchdog(stage) as first:
                assert (await stage.release(sha)).ending is RequestEnding.kept
                leader = stage.of(sha).process
                first.send_signal(signal.SIGKILL)
                first.wait()
                assert stage.serving() == sha
            stage.book.put(stage.service.model_copy(update={"state": ServiceState.down}))
            with real_watchdog(stage):
                await stage.until(lambda: stage.service.state is ServiceState.up)
                assert stage.of(sha).process == leader
                assert len(stage.service.life.starts) == 1

        asyncio.run(story())


def test_what_died_with_the_watchdog_is_started_from_the_last_kept_release(tmp_path: Path) -> None:
    """Of the releases on record only one was kept: no other is started, although it is newer."""
    with ServiceStage(tmp_path) as stage:
        good, bad = stage.commit(), stage.commit(dies_at=0)

        async def story() -> None:
            async with stage.supervised():
                await stage.release(good)
                await stage.release(bad)
            release = stage.of(good)
            await stage.host.end(release.marker, release.process, 0.0)
            async with stage.supervised():
                await stage.until(lambda: stage.service.state is ServiceState.up and stage.serving() == good)

        asyncio.run(story())


def test_the_same_key_is_one_release_and_other_contents_are_refused(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                for _ in range(3):
                    await stage.order(ServiceOperation.release, sha, key="one")
                await stage.outcome("one")
                await stage.order(ServiceOperation.release, sha, key="one")
                with pytest.raises(WatchdogRefused, match="something else"):
                    await stage.order(ServiceOperation.release, "0" * 40, key="one")

        asyncio.run(story())
        assert stage.states() == [ReleaseState.kept]
        assert len(stage.service.life.starts) == 1


@pytest.mark.slow
def test_what_migrates_is_never_rolled_back_by_itself(tmp_path: Path) -> None:
    """Neither release is safe on data that was half migrated: a person decides, and no loop goes on meanwhile."""
    with ServiceStage(tmp_path) as stage:
        good = stage.commit()
        bad = stage.commit(dies_at=0.1, config=("migrates: true",))
        later = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                await stage.release(good)
                assert (await stage.release(bad)).ending is RequestEnding.handed_over
                assert (await stage.release(later)).ending is RequestEnding.failed
                assert stage.serving() is None
                assert (await stage.ask(ServiceOperation.start)).ending is RequestEnding.done
                assert stage.serving() == good

        asyncio.run(story())
        assert "migrates" in stage.incidents()[0]


def test_a_first_start_says_that_nothing_is_proven(tmp_path: Path) -> None:
    """L8: without any release the head of the branch is built, and marked as what it is."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                outcome = await stage.ask(ServiceOperation.start)
                assert (outcome.ending, outcome.sha, outcome.unproven) == (RequestEnding.kept, sha, True)
                assert "NOT proven" in outcome.reason
                stage.commit(dies_at=0)
                assert (await stage.ask(ServiceOperation.restart)).sha == sha, "a restart never takes a newer commit"

        asyncio.run(story())
        assert stage.of(sha).unproven


def test_stopped_means_stopped_and_no_loop_starts_it_again(tmp_path: Path) -> None:
    """L30: TERM is ignored, so it is killed; its port is free."""
    with ServiceStage(tmp_path) as stage:
        sha, next_one = stage.commit(ignores_term=True, forks_away=True), stage.commit()

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                assert (await stage.ask(ServiceOperation.stop)).ending is RequestEnding.done
                assert stage.host.listeners(stage.port) == ()
                assert not stage.alive(sha)
                assert "stopped by a person" in (await stage.release(next_one)).reason

        asyncio.run(story())
        assert stage.service.state is ServiceState.down


def test_shared_files_are_linked_and_the_service_sees_its_env_file(tmp_path: Path) -> None:
    """The trial gets copies; the release itself writes to the person's data. A missing file is told by name."""
    more = "    shared: [data, .env]\n    env_file: .env\n"
    with ServiceStage(tmp_path, more=more) as stage:
        (stage.root / ".gitignore").write_text("data\n.env\n")
        sha = stage.commit(env="SECRET", in_smoke=True)

        async def story() -> None:
            async with stage.supervised():
                missing = await stage.ask(ServiceOperation.release, sha)
                assert "data" in missing.reason
                assert "make" in missing.reason
                (stage.root / "data").mkdir()
                (stage.root / ".env").write_text("SECRET='there'\nPORT=1\n")
                assert (await stage.release(sha)).ending is RequestEnding.kept

        asyncio.run(story())
        assert (stage.of(sha).tree / "data").resolve() == stage.root / "data"


def test_a_checkout_over_an_earlier_one_never_touches_what_it_was_linked_to(tmp_path: Path) -> None:
    """L5, L6: the same commit is checked out again where its links lie; the person's data is not swept."""
    with ServiceStage(tmp_path, more="    shared: [data]\n") as stage:
        (stage.root / "data").mkdir()
        (stage.root / "data" / "tracked").write_text("tracked")
        sha = stage.commit(dies_at=0.1)
        (stage.root / "data" / "mine").write_text("mine")

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.failed
                assert (stage.of(sha).tree / "data").is_symlink()
                assert (await stage.ask(ServiceOperation.start)).ending is RequestEnding.failed

        asyncio.run(story())
        assert {path.name for path in (stage.root / "data").iterdir()} == {"tracked", "mine"}
        assert len(stage.states()) == 2


def test_a_long_log_is_rotated_under_the_hands_of_the_service(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit(noise=30_000)
        log = stage.state.logs / "service.main.log"

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                await stage.until(lambda: log.stat().st_size == 0)
                await stage.ask(ServiceOperation.restart)

        asyncio.run(story())
        assert (log.parent / "service.main.log.1").stat().st_size == 30_001


def test_a_stranger_that_joins_the_port_of_a_kept_service_is_told_and_ours_goes_on(tmp_path: Path) -> None:
    """L29: ending ours would leave the port to the stranger alone. When it is gone, health is proven again."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit(shares=True)

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                leader = stage.of(sha).process
                with socket.socket() as stranger:
                    stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                    stranger.bind(("127.0.0.1", stage.port))
                    stranger.listen()
                    await stage.until(lambda: stage.service.state is ServiceState.blocked)
                    assert f"pid {os.getpid()}" in stage.incidents()[0]
                    assert stage.alive(sha)
                await stage.until(lambda: stage.service.state is ServiceState.up)
                assert stage.of(sha).process == leader
                assert [incident.over for _, incident in stage.book.untold()] == [False, True]

        asyncio.run(story())


@pytest.mark.slow
def test_a_stop_command_is_asked_first(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit(config=("stop: echo $PORT > asked",))

        async def story() -> None:
            async with stage.supervised():
                assert (await stage.release(sha)).ending is RequestEnding.kept
                assert (await stage.ask(ServiceOperation.stop)).ending is RequestEnding.done

        asyncio.run(story())
        assert (stage.of(sha).tree / "asked").read_text() == f"{stage.port}\n"
        assert not stage.alive(sha)


@pytest.mark.slow
def test_a_rolled_back_release_becomes_an_alarm(tmp_path: Path) -> None:
    """L42: written down by the supervisor, told by the watchdog, shown by `becket status`."""
    with ServiceStage(tmp_path) as stage:
        good, bad = stage.commit(), stage.commit(dies_at=0)
        alarms = stage.state.outbox / "alarms.jsonl"

        async def story() -> None:
            with real_watchdog(stage):
                await stage.release(good)
                await stage.release(bad)
                await stage.until(lambda: alarms.exists() and "serves again" in alarms.read_text())
                await stage.until(lambda: stage.book.untold() == [])

        asyncio.run(story())
        (alert,) = take(stage.state).alerts
        assert (alert.source, alert.key) == ("watchdog", f"service:main:release:{bad}")


def test_production_is_restarted_while_the_journal_is_blocked(tmp_path: Path) -> None:
    """L33: recovery waits neither for the engine nor for its store."""
    with ServiceStage(tmp_path) as stage:
        sha = stage.commit()

        async def story() -> None:
            with real_watchdog(stage):
                await stage.release(sha)
                await stage.until(stage.state.database.exists)
                with closing(sqlite3.connect(stage.state.database, isolation_level=None)) as journal:
                    journal.execute("PRAGMA busy_timeout = 20000")
                    journal.execute("BEGIN EXCLUSIVE")
                    process = stage.of(sha).process
                    assert process is not None
                    os.kill(process.pid, signal.SIGKILL)
                    await stage.until(lambda: stage.of(sha).process != process and stage.serving() == sha)

        asyncio.run(story())


@pytest.mark.slow
def test_a_service_in_its_backoff_holds_up_no_other(tmp_path: Path) -> None:
    """L32: one timer per service. A service without a port is healthy while it lives."""
    more = "  other:\n    start: exec sleep 0.3\n    health: {samples: 1, soak: 100ms}\n"
    with ServiceStage(tmp_path, more=more, rules=RULES.model_copy(update={"longest_pause": 60.0})) as stage:
        sha = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                await stage.release(sha)
                assert (
                    await stage.outcome(await stage.order(ServiceOperation.release, sha, service="other"))
                ).ending is RequestEnding.kept
                await stage.until(lambda: stage.book.service("other").state is ServiceState.given_up)
                process = stage.of(sha).process
                assert process is not None
                os.kill(process.pid, signal.SIGKILL)
                await stage.until(lambda: stage.of(sha).process != process and stage.service.state is ServiceState.up)

        asyncio.run(story())


@pytest.mark.slow
def test_old_releases_are_removed_but_for_the_last_ones(tmp_path: Path) -> None:
    with ServiceStage(tmp_path) as stage:
        commits = [stage.commit(number=number) for number in range(5)]

        async def story() -> None:
            async with stage.supervised():
                for sha in commits:
                    assert (await stage.release(sha)).ending is RequestEnding.kept
                await stage.until(lambda: len(list((stage.state.releases / "main").iterdir())) == 3)

        asyncio.run(story())
        assert {path.name for path in (stage.state.releases / "main").iterdir()} == set(commits[-3:])
