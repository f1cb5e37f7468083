"""Contract of the agents' drivers: whatever a program prints, its clock, its end and our own go on."""

from __future__ import annotations

import asyncio
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import chatty_program
import pytest
from agent_stage import LANDLOCK_WORKS, AgentStage, Kind, Outcome, model, stage

from becket.kernel.contract.agent import AgentOutcome, Limits
from becket.kernel.contract.process import SandboxKind

__all__ = ["model", "stage"]

SANDBOX = SandboxKind.landlock if LANDLOCK_WORKS else SandboxKind.none
DRIVERS = [pytest.param(Kind(name, sandbox=SANDBOX), id=name) for name in ("command", "codex", "claude", "acp")]
FLOODS = pytest.mark.parametrize("flood", ["text", "events"])
ON_DISK = 64_000_000 + 20_000_000
"""Bytes of all files of a call: what it printed, twice, and what was told of it."""
TRIES = 3
"""Machines are noisy: what takes a time is right if it once does."""
AT_IT = 10_000_000
"""Bytes after which a program is in the midst of its flood."""


def chatty(stage: AgentStage, flood: str, megabytes: int | None) -> dict[str, Any]:
    """The configuration of an agent that prints so much; of one that never ends without `megabytes`."""
    name, text = stage.kind.program, Path(chatty_program.__file__).read_text()
    program = stage.folder / "chatty" / "chatty"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!{sys.executable} -IS\n{text}")
    program.chmod(0o755)
    started = {
        "command": {"run": shlex.join((sys.executable, "-IS", "-c", text)), "network": "none"},
        "acp": {"run": str(program), "network": "none"},
    }.get(name, {"program": str(program)})
    told = {"CHATTY_AS": name, "CHATTY_WITH": flood, "CHATTY_MEGABYTES": "" if megabytes is None else str(megabytes)}
    return {"set": told, **started}


def on_disk(stage: AgentStage) -> int:
    return sum(path.stat().st_size for path in stage.files.folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", DRIVERS)
@FLOODS
def test_one_that_prints_without_end_is_over_at_its_limit_of_time_and_our_own_work_goes_on_meanwhile(
    stage: AgentStage, flood: str
) -> None:
    async def longest_pause() -> tuple[Outcome, float]:
        call = asyncio.create_task(stage.work(limits=Limits(seconds=3), **chatty(stage, flood, None)))
        longest, last = 0.0, time.monotonic()
        while not call.done():
            await asyncio.sleep(0.01)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return await call, longest

    def in_time(tries: int) -> bool:
        began = time.monotonic()
        done, longest = asyncio.run(longest_pause())
        assert done.judged.outcome is AgentOutcome.limit_reached, done.report
        assert on_disk(stage) < ON_DISK * tries
        return time.monotonic() - began < 3 + 5 and longest < 2.5

    assert any(in_time(tries) for tries in range(1, TRIES + 1))


@pytest.mark.parametrize("kind", DRIVERS)
@FLOODS
def test_one_that_prints_without_end_can_be_cancelled(stage: AgentStage, flood: str) -> None:
    async def seconds_to_cancel() -> float:
        before = on_disk(stage)
        call = asyncio.create_task(stage.work(**chatty(stage, flood, None)))
        while on_disk(stage) < before + AT_IT:
            assert not call.done()
            await asyncio.sleep(0.02)
        asked = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        stage.agent(**chatty(stage, flood, None)).used(stage.files)  # as whoever books a broken call does
        return time.monotonic() - asked

    assert any(asyncio.run(seconds_to_cancel()) < 5 for _ in range(TRIES))


@pytest.mark.parametrize("kind", DRIVERS)
@pytest.mark.parametrize("megabytes", [1, 50])
@FLOODS
def test_the_end_of_one_that_prints_much_is_found(stage: AgentStage, flood: str, megabytes: int) -> None:
    began = time.monotonic()
    done = stage.call(limits=Limits(seconds=60), **chatty(stage, flood, megabytes))
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert done.report.said.strip().endswith("the last word")
    assert time.monotonic() - began < 15
    if stage.kind.program != "command":
        assert (done.report.usage.input_tokens, done.report.usage.output_tokens) == (70, 7)
    if stage.kind.program in ("codex", "claude"):
        assert done.report.session
