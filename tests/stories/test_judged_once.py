"""A run judges a commit once, whatever its loop lists; what the machine was to blame for is tried again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.testing.world import World

CONFIG = """
version: 1
gates: {fast: [{name: unit, run: COMMAND}]}
sandbox: {use: none, without: [files, processes, network]}
"""
LOOP = """
version: 1
loop_id: twice
goal: The gate is green.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 1h
stop_conditions: [base.fast_green]
phases:
  discover:
    objective: Look.
    actions:
      - {id: base, uses: git.read_base}
      - {id: judged, uses: gate.run}
  verify:
    objective: The gate has said something.
    verifiers: [{id: said, run: "true"}]
"""


@pytest.mark.parametrize(
    ("command", "kinds", "again"), [("exit 1", ["code"], False), ("no-such-linter .", ["environment"], True)]
)
def test_only_what_the_code_decided_stands(tmp_path: Path, command: str, kinds: list[str], again: bool) -> None:
    world = World(tmp_path)
    world.commit({"becket.yaml": CONFIG.replace("COMMAND", command)}, "a gate")
    world.loop(LOOP)

    async def story() -> None:
        run = await world.run("twice")
        first, second = [step for step in await world.store.steps(run.run_id) if step.id == "judged"]
        assert (first.outputs["color"], first.outputs["kinds"]) == ("red", kinds), first.error
        assert (second.outputs["color"], second.outputs["kinds"]) == ("red", kinds), second.error
        assert (second.note == "") is again
        assert bool(second.receipts) is again

    asyncio.run(story())
