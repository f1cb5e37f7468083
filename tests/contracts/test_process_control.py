"""Contract of the process port: who holds a child's rein speaks with it while it runs, and ends it at once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_stage import KINDS, Ground, sleeping, unique_sleep

from becket.kernel.contract.process import ChildControl, ChildEnd, ChildRef, ChildResult, ChildSpec
from becket.kernel.process import ContainedProcesses, KeeperProgram


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(ContainedProcesses(request.param, grace=0.3), tmp_path)


@pytest.fixture
def nap() -> Iterator[str]:
    duration = unique_sleep()
    yield duration
    left = sleeping(duration)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


async def until_said(ground: Ground, text: str) -> None:
    async with asyncio.timeout(60):
        while not ground.output.exists() or text not in ground.said:
            await asyncio.sleep(0.005)


def test_conversation(ground: Ground) -> None:
    """What is said arrives while the child runs; `close` is the end of its input."""

    async def talk() -> ChildResult:
        control = ChildControl()
        task = asyncio.create_task(ground.processes.run(ground.spec("cat", stdin=b"first\n"), control=control))
        await until_said(ground, "first")
        for word in ("second", "third"):
            control.say(f"{word}\n".encode())
            await until_said(ground, word)
        assert not task.done()
        control.close()
        return await task

    result = asyncio.run(talk())
    assert result.ok, result
    assert ground.said == "first\nsecond\nthird\n"


def test_all_said_before_the_start(ground: Ground) -> None:
    """A rein may be used up before the child runs."""

    async def talk() -> ChildResult:
        control = ChildControl()
        control.say(b"b")
        control.close()
        return await ground.processes.run(ground.spec("cat", stdin=b"a"), control=control)

    assert asyncio.run(talk()).ok
    assert ground.said == "ab"


def test_huge_speech_arrives_whole(ground: Ground) -> None:
    """Far more than a pipe holds arrives in order. The event loop goes on: the reader waits for a file of its."""
    data = os.urandom(20_000_000)
    script = (
        "import hashlib, os, sys, time\n"
        "read = hashlib.sha256(sys.stdin.buffer.read(1_000_000)); print('reading', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
        "read.update(sys.stdin.buffer.read()); print(read.hexdigest())"
    )

    async def talk() -> ChildResult:
        control = ChildControl()
        control.say(data)
        control.close()
        task = asyncio.create_task(ground.processes.run(ground.python_spec(script, stdin=b"first"), control=control))
        await until_said(ground, "reading")
        (ground.tree / "go").touch()
        return await task

    assert asyncio.run(talk()).ok
    assert ground.said.split()[1] == hashlib.sha256(b"first" + data).hexdigest()


@pytest.mark.parametrize("script", ["sleep 0.3", "exec <&-; sleep 0.3"])
def test_child_that_never_reads(ground: Ground, script: str) -> None:
    """Its speech waits, nobody else does, and its end is its own."""

    async def talk() -> ChildResult:
        control = ChildControl()
        control.say(b"x" * 10_000_000)
        return await ground.processes.run(ground.spec("sh", "-c", f"{script}; exit 3"), control=control)

    result = asyncio.run(talk())
    assert (result.end, result.exit_code) == (ChildEnd.exited, 3)


def test_end_kills_everything_and_reports(ground: Ground, nap: str) -> None:
    """No grace is given, to deaf children and sessions of their own neither; the report is whole (L19)."""
    ground.processes = ContainedProcesses(ground.processes.kind, grace=100.0)

    async def ended() -> tuple[ChildResult, float]:
        control = ChildControl()
        script = f"trap '' TERM; echo here; setsid sleep {nap} & sleep {nap}; :"
        task = asyncio.create_task(ground.processes.run(ground.spec("sh", "-c", script), control=control))
        while len(sleeping(nap)) < 2:
            await asyncio.sleep(0.01)
        began = time.monotonic()
        control.end()
        return await task, time.monotonic() - began

    result, seconds = asyncio.run(ended())
    assert (result.end, result.exit_code, result.left_running) == (ChildEnd.killed, -9, 2)
    assert result.output_bytes == len("here\n")
    assert seconds < 50
    assert sleeping(nap) == []


class SlowJournal:
    """A watcher in whose hand the child waits; its rein is pulled meanwhile."""

    def __init__(self, control: ChildControl) -> None:
        self.control = control
        self.ended_once = 0

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        self.control.end()
        await asyncio.sleep(0.05)

    async def ended(self, child: ChildRef) -> None:
        self.ended_once += 1


def test_end_before_the_program_runs(ground: Ground, nap: str) -> None:
    """An end that comes before the start ends it all the same."""

    async def ended() -> tuple[ChildResult, SlowJournal]:
        control = ChildControl()
        journal = SlowJournal(control)
        return await ground.processes.run(ground.spec("sleep", nap), journal, control), journal

    result, journal = asyncio.run(ended())
    assert result.end is ChildEnd.killed
    assert journal.ended_once == 1


def test_end_after_the_end(ground: Ground) -> None:
    """A rein that is pulled too late harms nobody."""

    async def late() -> ChildResult:
        control = ChildControl()
        result = await ground.processes.run(ground.spec("true"), control=control)
        control.say(b"too late")
        control.end()
        await asyncio.sleep(0.01)
        return result

    assert asyncio.run(late()).ok


def test_without_a_rein_input_is_no_pipe(ground: Ground) -> None:
    """A child that nobody speaks with reads a file, as it always did."""
    script = "import os, stat; print(stat.S_ISFIFO(os.fstat(0).st_mode))"
    assert ground.python(script, stdin=b"x").ok
    assert ground.said.strip() == "False"


@pytest.mark.parametrize("how", ["exit", "end", "cancel", "absent"])
def test_rein_leaves_nothing_open(ground: Ground, how: str) -> None:
    """Neither descriptor nor task of a conversation outlives it, however it ends."""

    async def once(how: str) -> None:
        control = ChildControl()
        control.say(b"x" * 1_000_000)
        program = {"exit": ("true",), "absent": ("no-such-program-here",)}.get(how, ("sleep", "30"))
        spec: ChildSpec = ground.spec(*program)
        task = asyncio.create_task(ground.processes.run(spec, control=control))
        await asyncio.sleep(0.05)
        if how == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            control.end()
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    asyncio.run(once(how))
    before = descriptors()
    asyncio.run(once(how))
    assert descriptors() <= before


def test_rein_of_a_child_that_cannot_be_made(ground: Ground) -> None:
    """Where no process can be made at all, nothing of the conversation stays open either."""
    absent = KeeperProgram(Path("/no/such/python"), KeeperProgram.default().package)
    processes = ContainedProcesses(ground.processes.kind, keeper=absent)

    async def talk(**files: Path) -> ChildResult:
        control = ChildControl()
        control.say(b"x")
        return await processes.run(ground.spec("true", **files), control=control)

    (ground.base / "file").write_text("")
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert asyncio.run(talk()).end is ChildEnd.not_started
    assert asyncio.run(talk(stdout=ground.base / "file" / "out")).end is ChildEnd.not_started
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
