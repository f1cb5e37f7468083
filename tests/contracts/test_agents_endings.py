"""Contract of the agents' drivers: whatever ends a call, it is told rightly and nothing of it lives on (L19, L20)."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_stage import CLAUDE, CODEX, GEMINI, IN_LANDLOCK, AgentStage, Outcome, descendants, kinds, model, shell, stage
from process_stage import sleeping, unique_sleep

from becket.kernel.contract.agent import AgentOutcome, Limits
from becket.testing.model import Delay, Hang, Loop, Say, Shell, Tokens

__all__ = ["model", "stage"]

ALL = kinds(CODEX, CLAUDE, GEMINI)
EVERYWHERE = kinds(CODEX, CLAUDE, GEMINI, *IN_LANDLOCK)
GONE_WITHIN = 2.0


async def at_work(stage: AgentStage, nap: str, seconds: float = 40.0) -> None:
    """Until the agent's command and what it sent away are there."""
    for _ in range(int(seconds / 0.01)):
        if (stage.tree / "busy").exists() and sleeping(nap):
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"the agent did not run its command within {seconds} s")


async def asked(stage: AgentStage, requests: int = 1) -> None:
    assert await asyncio.to_thread(stage.model.wait_for, requests, 40.0), "the model was not asked"


async def cancelled(call: asyncio.Task[Outcome]) -> float:
    """How long it took, in seconds."""
    began = time.monotonic()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    return time.monotonic() - began


def gone_in_time(once: Callable[[], float]) -> None:
    """A machine that stood still for a moment is no fault of ours; three times in a row it is."""
    took = []
    while len(took) < 3 and (not took or took[-1] >= GONE_WITHIN):
        took.append(once())
    assert took[-1] < GONE_WITHIN, took


def busy(nap: str) -> Shell:
    """A command that stays, beside one in a session of its own, which is out of reach of any process group."""
    return Shell(f"setsid sleep {nap} >/dev/null 2>&1 </dev/null & touch busy; exec tail -f /dev/null")


@pytest.mark.parametrize("kind", ALL)
def test_an_endless_loop_ends_at_the_limit_of_turns(stage: AgentStage) -> None:
    slowly = Loop(Delay(0.2), Shell("echo again >> value.txt"))
    done = stage.call(slowly, limits=Limits(seconds=60, turns=3))
    assert done.judged.outcome is AgentOutcome.limit_reached, done.report
    assert "turns" in done.judged.reason
    assert 3 <= done.report.usage.turns <= 5
    assert done.judged.changed_paths == ("value.txt",)  # what it did is there to be saved (L7)
    assert len(stage.model.requests) <= 6


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, fakes=()))
def test_an_endless_loop_without_a_sign_ends_at_the_limit_of_turns(stage: AgentStage) -> None:
    """Codex says nothing of a command that it refuses by itself; its own record of the thread tells of the answers."""
    slowly = Loop(Delay(0.2), Shell("rm -f /nowhere/at/all"))
    done = stage.call(slowly, limits=Limits(seconds=30, turns=3))
    assert done.judged.outcome is AgentOutcome.limit_reached, done.report
    assert "turns" in done.judged.reason


@pytest.mark.parametrize("kind", ALL)
def test_an_endless_loop_ends_at_the_limit_of_tokens(stage: AgentStage) -> None:
    step = Shell("echo again >> value.txt", usage=Tokens(input=1_000, output=100))
    done = stage.call(Loop(step), limits=Limits(seconds=60, tokens=2_500))
    assert done.judged.outcome is AgentOutcome.limit_reached, done.report
    assert "tokens" in done.judged.reason
    assert done.report.usage.tokens > 2_500


@pytest.mark.parametrize("kind", ALL)
def test_an_endless_loop_ends_at_the_limit_of_money(stage: AgentStage) -> None:
    step = Shell("echo again >> value.txt", usage=Tokens(input=10_000, output=1_000))
    done = stage.call(Loop(step), limits=Limits(seconds=60, usd=0.1))
    assert done.judged.outcome is AgentOutcome.limit_reached, done.report
    assert done.report.usage.usd > 0.1


@pytest.mark.parametrize("kind", ALL)
def test_a_model_that_hangs_ends_at_the_limit_of_time(stage: AgentStage) -> None:
    seconds = 12.0 if stage.kind.program == "gemini" and stage.kind.real else 5.0 if stage.kind.real else 3.0
    for slower in (1, 3, 9):  # as much time as it needs until it asks its model
        done = stage.call(Hang(), limits=Limits(seconds=slower * seconds))
        assert done.judged.outcome is AgentOutcome.limit_reached, done.report
        assert "time" in done.judged.reason
        if stage.model.requests:
            return
    raise AssertionError("the model was not asked")


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_program_that_is_killed_has_crashed_and_leaves_nothing(stage: AgentStage) -> None:
    signalled(stage, signal.SIGKILL)


@pytest.mark.parametrize("kind", ALL)
def test_a_program_that_is_told_to_go_has_crashed_and_leaves_nothing(stage: AgentStage) -> None:
    """Whatever its exit code says: the real gemini's is 0."""
    signalled(stage, signal.SIGTERM)


def signalled(stage: AgentStage, number: signal.Signals) -> None:
    nap = unique_sleep()
    stage.model.script(busy(nap))

    async def story() -> None:
        call = asyncio.create_task(stage.work())
        await at_work(stage, nap)
        # The elder gemini swallows SIGTERM; without the elder, the younger is the one that might be left.
        os.kill(stage.program_pid(youngest=number is signal.SIGTERM), number)
        done = await asyncio.wait_for(call, 30)
        assert done.judged.outcome is AgentOutcome.crashed, done.report
        assert done.judged.reason
        assert not done.report.ended

    asyncio.run(story())
    assert sleeping(nap) == []


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_cancelled_call_is_gone_within_two_seconds_with_all_it_started(stage: AgentStage) -> None:
    """L19."""

    async def story(nap: str) -> float:
        stage.model.script(busy(nap))
        call = asyncio.create_task(stage.work())
        await at_work(stage, nap)
        (child,) = stage.watcher.alive
        below = descendants(child.pid)
        seconds = await cancelled(call)
        assert stage.watcher.alive == []
        assert [pid for pid in below if Path("/proc", str(pid)).exists()] == []
        return seconds

    def once() -> float:
        nap = unique_sleep()
        (stage.tree / "busy").unlink(missing_ok=True)
        seconds = asyncio.run(story(nap))
        assert sleeping(nap) == []
        return seconds

    gone_in_time(once)
    used = stage.agent().used(stage.files)
    assert used is None or used.turns <= 1


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_a_call_that_waits_for_its_model_is_cancelled_as_fast(stage: AgentStage) -> None:
    async def story() -> float:
        stage.model.script(Hang())
        before = len(stage.model.requests)
        call = asyncio.create_task(stage.work())
        await asked(stage, before + 1)
        return await cancelled(call)

    gone_in_time(lambda: asyncio.run(story()))


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_what_an_agent_leaves_in_the_background_ends_with_its_call(stage: AgentStage) -> None:
    """L19, L26: and the call does not wait for it."""
    nap = unique_sleep()
    began = time.monotonic()
    done = stage.call(*shell(f"setsid sleep {nap} >/dev/null 2>&1 </dev/null & echo begun > value.txt"))
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert sleeping(nap) == []
    assert time.monotonic() - began < 40


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_what_a_killed_call_used_is_known_from_its_files(stage: AgentStage) -> None:
    """L23: a crash of ours must not make a call free."""
    stage.model.script(Shell("echo one > value.txt", usage=Tokens(input=1_000, output=100)), Hang())

    async def story() -> None:
        call = asyncio.create_task(stage.work())
        await asked(stage, 2)
        for _ in range(500):  # codex writes down what it used a moment later
            used = stage.agent().used(stage.files)
            if used is not None and used.input_tokens:
                break
            await asyncio.sleep(0.01)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(story())
    used = stage.agent().used(stage.files)
    assert used is not None
    assert used.input_tokens >= 1_000
    assert used.seconds > 0


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, GEMINI))
def test_the_next_call_works_after_one_that_was_killed(stage: AgentStage) -> None:
    """In the same HOME, with whatever lies in it."""
    stage.model.script(Shell("echo one > value.txt"), Hang())

    async def story() -> None:
        call = asyncio.create_task(stage.work())
        await asked(stage, 2)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        stage.model.script(Shell("echo two > value.txt"), Say("Done."))
        done = await stage.work()
        assert done.judged.outcome is AgentOutcome.changed, done.report
        assert (stage.tree / "value.txt").read_text() == "two\n"

    asyncio.run(story())
