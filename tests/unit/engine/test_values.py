"""Values for commands: short ones by the environment, long ones by file, and both mean the same in the shell."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from becket.kernel.contract.run import RunStatus
from becket.kernel.engine.values import LONGEST, MOST, hand_over
from becket.testing.world import World

LOOP = """
version: 1
loop_id: long
goal: A long text goes from step to step.
trigger:
  - manual: {}
subject: long
max_iterations: 1
deadline: 10m
stop_conditions: [counted, seen.pass]
phases:
  act:
    objective: Make it and count it.
    actions:
      - id: make
        run: head -c 400000 /dev/zero | tr '\\0' 'x'; printf '$(touch evil); `touch evil`'
        in: scratch
        outputs: {text: stdout}
      - id: count
        run: test "$(printf %s "{make.text}{make.text}" | wc -c)" -gt 800000
        in: scratch
        raises: {"0": counted}
  verify:
    objective: Nothing in it was run.
    verifiers:
      - {id: seen, run: 'test -n "{make.text}" && ! test -e evil', in: scratch}
"""


def said(env: dict[str, str], folder: Path, command: str) -> bytes:
    handed = hand_over(env, folder)
    argv = ["sh", "-euc", handed.before + command]
    return subprocess.run(argv, env={"PATH": "/usr/bin:/bin", **handed.env}, capture_output=True, check=True).stdout


def test_a_short_value_stays_in_the_environment(tmp_path: Path) -> None:
    handed = hand_over({"A": "x" * 1000, "B": ""}, tmp_path / "values")
    assert (handed.env, handed.before, handed.readable) == ({"A": "x" * 1000, "B": ""}, "", ())
    assert not (tmp_path / "values").exists()


def test_a_long_value_is_the_same_to_the_byte(tmp_path: Path) -> None:
    """Line breaks at its end, quotes, invalid UTF-8 and what looks like code."""
    value = "$(touch evil) `x` \"'\\ \udcff é\n" + "y" * 2 * LONGEST + "\n\n"
    assert said({"A": value}, tmp_path / "it's", 'printf %s "$A"') == value.encode("utf-8", "surrogateescape")


def test_many_values_that_are_too_long_together_go_by_file_longest_first(tmp_path: Path) -> None:
    env = {f"V{number}": str(number) * (LONGEST - 100 - number) for number in range(9)} | {"SHORT": "s"}
    handed = hand_over(env, tmp_path / "values")
    assert sum(map(len, handed.env.values())) <= MOST
    assert "SHORT" in handed.env
    assert "V8" in handed.env
    assert "V0" not in handed.env
    assert said(env, tmp_path / "values", 'printf %s "$V0$V8$SHORT"') == (env["V0"] + env["V8"] + "s").encode()


def test_a_loop_hands_outputs_of_any_length_to_commands(tmp_path: Path) -> None:
    """L24: and text never becomes shell code."""
    world = World(tmp_path)
    world.commit({"becket.yaml": "version: 1\nsandbox: {use: none, without: [files, processes, network]}\n"})
    world.loop(LOOP)
    run = asyncio.run(world.run("long"))
    assert run.status is RunStatus.completed, (run.reason, run.detail)
