"""What a step hands to later ones is what it made, whole and to the byte, or the step fails and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_runs import act, loop, tell

from becket.contract.run import Status, StepState
from becket.engine.excerpts import VALUE_LIMIT
from becket.testing.world import World

LINES = "head -c 1200000 /dev/zero | tr '\\\\0' x; echo BAD"
BAD_IS_RED = """
  verify:
    objective: look
    verifiers: [{id: look, run: 'if printf %s "{list.all}" | grep -q BAD; then exit 1; fi', in: scratch}]
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("command", "source", "named"),
    [(f"{{ {LINES}; }}", "stdout", "standard output"), (f"{{ {LINES}; }} > l.txt", "file:l.txt", "the file l.txt")],
)
def test_an_output_that_is_too_large_is_never_used_in_part(world: World, command: str, source: str, named: str) -> None:
    """L11: a verifier that greps the first megabyte of it would find nothing wrong."""
    phases = act(f'{{id: list, run: "{command}", in: scratch, outputs: {{all: "{source}"}}}}') + BAD_IS_RED
    run, steps = tell(world, loop(phases))
    assert run.status is not Status.completed
    step = steps["list"]
    assert (step.state, step.error_kind, step.outputs) == (StepState.failed, "bad_output", {})
    assert step.error.startswith(f"the output `all` ({named}) has 1200004 bytes, and an output has at most 1000000:")
    assert "in: scratch" in step.error


def test_json_that_is_too_large_is_told_by_its_size(world: World) -> None:
    run = "printf '[\\\"'; head -c 1200000 /dev/zero | tr '\\\\0' x; printf '\\\"]'"
    _, steps = tell(world, loop(act(f'{{id: list, run: "{run}", in: scratch, parse: json, outputs: {{n: "json:0"}}}}')))
    assert steps["list"].error_kind == "bad_output"
    assert steps["list"].error.startswith("its standard output, to be read as JSON, has 1200004 bytes")


def test_an_output_of_just_the_limit_is_whole_and_what_nobody_wants_may_be_longer(world: World) -> None:
    just = f"head -c {VALUE_LIMIT} /dev/zero | tr '\\\\0' x"
    phases = act(f'{{id: list, run: "{just}", in: scratch, outputs: {{all: stdout}}}}') + (
        f'      - {{id: talk, run: "{LINES}", in: scratch}}\n'
    )
    run, steps = tell(world, loop(phases))
    assert run.status is Status.completed, run.detail
    assert steps["list"].outputs == {"all": "x" * VALUE_LIMIT}


def test_a_long_value_can_go_by_a_file_of_the_scratch_folder(world: World) -> None:
    """What the failure advises."""
    phases = act(f'{{id: list, run: "{{ {LINES}; }} > l.txt", in: scratch}}') + BAD_IS_RED.replace(
        'printf %s "{list.all}" | grep -q BAD', "grep -q BAD l.txt"
    )
    run, steps = tell(world, loop(phases))
    assert run.status is not Status.completed
    assert (steps["list"].state, steps["look"].error_kind) == (StepState.done, "fail")
