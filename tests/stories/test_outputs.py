"""What a step hands to later ones is what it made, whole and to the byte, or the step fails and says why."""

from __future__ import annotations

import asyncio
import base64
import random
from pathlib import Path

import pytest
from test_runs import act, loop, tell

from becket.kernel.contract.run import Run, RunStatus, StepState
from becket.kernel.engine.excerpts import VALUE_LIMIT
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
    assert run.status is not RunStatus.completed
    step = steps["list"]
    assert (step.state, step.error_kind, step.outputs) == (StepState.failed, "bad_output", {})
    assert step.error.startswith(f"the output `all` ({named}) has 1200004 bytes, and an output has at most 1000000:")
    assert "in: scratch" in step.error


@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_an_output_that_is_no_regular_file_is_told_as_that(world: World, make: str) -> None:
    run = f"test -e x || {make} x"
    _, steps = tell(world, loop(act(f'{{id: odd, run: "{run}", in: scratch, outputs: {{x: "file:x"}}}}')))
    assert (steps["odd"].error_kind, steps["odd"].error) == ("bad_output", "x is not a regular file")


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
    assert run.status is RunStatus.completed, run.detail
    assert steps["list"].outputs == {"all": "x" * VALUE_LIMIT}


def test_a_long_value_can_go_by_a_file_of_the_scratch_folder(world: World) -> None:
    """What the failure advises."""
    phases = act(f'{{id: list, run: "{{ {LINES}; }} > l.txt", in: scratch}}') + BAD_IS_RED.replace(
        'printf %s "{list.all}" | grep -q BAD', "grep -q BAD l.txt"
    )
    run, steps = tell(world, loop(phases))
    assert run.status is not RunStatus.completed
    assert (steps["list"].state, steps["look"].error_kind) == (StepState.done, "fail")


@pytest.mark.parametrize(
    ("command", "source", "told"),
    [
        ("printf 'ab\\377c'", "stdout", "the output `all` (standard output) is not text (byte 2 is not UTF-8): "),
        ("printf 'a\\0b'", "stdout", "the output `all` (standard output) is not text (byte 1 is zero): "),
        (
            "printf '\\377' > x.bin",
            "file:x.bin",
            "the output `all` (the file x.bin) is not text (byte 0 is not UTF-8): ",
        ),
        ("printf %s '[\"a\\\\u0000\"]'", "json:0", "the output `all` is not text: "),
        ("printf %s '[\"a\\\\ud800\"]'", "json:0", "the output `all` is not text: "),
    ],
)
def test_an_output_that_is_not_text_is_never_handed_on_changed(
    world: World, command: str, source: str, told: str
) -> None:
    quoted = command.replace("'", "''").replace("\\\\", "\\")
    _, steps = tell(world, loop(act(f"{{id: list, run: '{quoted}', in: scratch, outputs: {{all: '{source}'}}}}")))
    assert (steps["list"].state, steps["list"].error_kind) == (StepState.failed, "bad_output")
    assert steps["list"].error.startswith(told)


TOKEN = "ghp_" + "0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize("effect", ["", ", effects: {name: shop.ship}"])
def test_a_step_whose_output_lost_a_secret_says_so(world: World, effect: str) -> None:
    """What a later step gets is not what was made: nobody has to find that out by looking at it."""
    phases = act(f"{{id: say, run: 'echo {TOKEN}', in: scratch, outputs: {{text: stdout}}{effect}}}") + (
        "      - {id: other, run: 'echo fine', in: scratch, outputs: {text: stdout}}\n"
    )
    run, steps = tell(world, loop(phases))
    said = "a secret was taken out of `text`: later steps get `[redacted:...]` there"
    assert (steps["say"].outputs, steps["say"].note) == ({"text": "[redacted:github]"}, said)
    assert steps["other"].note == ""
    assert said in everything_told(world, run)


def key_block(bytes_: int = 1190) -> tuple[str, list[str]]:
    """A block that looks like a private key, and the lines that nobody may see."""
    body = base64.encodebytes(random.Random(9).randbytes(bytes_)).decode().replace("\n", "")
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    word = "PRIVATE KEY-----"
    return "\n".join([f"-----BEGIN RSA {word}", *lines, f"-----END RSA {word}", ""]), lines


def everything_told(world: World, run: Run) -> str:
    async def told() -> str:
        store = world.store
        parts = [
            run,
            *await store.events(run.run_id),
            *await store.steps(run.run_id),
            *await store.receipts(run.run_id),
            *await store.handoffs(run_id=run.run_id),
            *await store.conditions(run.run_id),
            *await store.effects(run.run_id),
        ]
        return "\n".join(part.model_dump_json() for part in parts)

    kept = [world.app.artifacts.read(digest).decode(errors="replace") for digest in world.app.artifacts.digests()]
    return "\n".join([asyncio.run(told()), *kept])


@pytest.mark.parametrize(
    "failing",
    [
        "{id: say, run: 'cat k.pem; exit 3'}",
        "{id: say, run: 'head -c 1200 k.pem; exit 3'}",
        "{id: say, run: 'cat k.pem >&2; exit 3', effects: {name: shop.ship, class: blind}}",
    ],
)
def test_a_key_that_begins_before_the_excerpt_is_redacted_in_it(world: World, failing: str) -> None:
    """L25: what is said of a failure is cut from a text without secrets, not looked through after the cut."""
    block, lines = key_block()
    world.commit({"k.pem": block})
    phases = act(failing) + (
        "      - {id: fine, run: 'true'}\n"
        "  verify:\n    objective: look\n    verifiers: [{id: look, run: 'cat k.pem; exit 1'}]\n"
    )
    run, _ = tell(world, loop(phases))
    told = everything_told(world, run)
    assert "exit code 3: [redacted:private-key]" in told
    assert not [line for line in lines if line[:20] in told or line[-20:] in told]


def test_a_key_at_the_seam_of_a_log_that_is_cut_is_redacted_on_both_sides(world: World) -> None:
    block, lines = key_block()
    world.commit({"big.txt": block * 1100})
    many = "for i in $(seq 1 5); do cat big.txt; done; exit 1"
    phases = act("{id: fine, run: 'true'}") + (
        f"  verify:\n    objective: look\n    verifiers: [{{id: look, run: '{many}'}}]\n"
    )
    run, _ = tell(world, loop(phases))
    told = everything_told(world, run)
    assert "bytes that stood here are not kept" in told
    assert not [line for line in lines if line[:20] in told]
