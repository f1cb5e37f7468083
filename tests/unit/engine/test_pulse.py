"""A process that was stopped goes on with the time it had: what it did not run is not a step's time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, contextlib, sys
from types import SimpleNamespace
from becket.kernel.engine.heartbeat import StepHeartbeat

async def work(pulse):
    context = SimpleNamespace(timer=None, ends_at=0.0, stood_still=0.0)
    try:
        async with asyncio.timeout(LIMIT) as context.timer:
            with StepHeartbeat(context, beat=0.05, stall=0.3) if pulse else contextlib.nullcontext():
                print("ready", flush=True)
                await asyncio.to_thread(sys.stdin.readline)
        print("done", context.stood_still > 2, context.ends_at > 2, flush=True)
    except TimeoutError:
        print("timeout", flush=True)
        sys.stdout.flush()
        import os; os._exit(0)

asyncio.run(work(sys.argv[1] == "pulse"))
"""


def stopped_in_the_middle(how: str, limit: float) -> str:
    """Stop it for longer than its limit while it waits for a line, and give it the line before it goes on."""
    program = PROGRAM.replace("LIMIT", str(limit))
    with subprocess.Popen(
        [sys.executable, "-c", program, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGSTOP)
        _until_stopped(child.pid)
        stopped = time.monotonic()
        child.stdin.write("go\n")
        child.stdin.flush()
        while time.monotonic() - stopped < limit + 0.5:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGCONT)
        return child.stdout.readline().strip()


def _until_stopped(pid: int) -> None:
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


@pytest.mark.parametrize(("how", "said"), [("pulse", "done True True"), ("plain", "timeout")])
def test_a_stopped_process_does_not_lose_its_step(how: str, said: str) -> None:
    assert stopped_in_the_middle(how, 3.0) == said
