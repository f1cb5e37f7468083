"""The n-th file operation below the state folder fails, for every n of a heal, once or for a while.

A failure prints the command that plays its case alone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
from faulty_files import Disk, Errno, insert
from file_cases import case, told

from becket.cli.front import run
from becket.testing.world import make_repository

WIDE = os.environ.get("BECKET_MATRIX") == "wide"
SEED = int(os.environ.get("BECKET_SEED", "1"))
FOR_A_WHILE = 20.0
QUICK, SLOW = 1, 1
"""So many operations per error, each once and for a while."""

HONEST = ("completed stop_conditions_met", "ready_for_handoff environment_broken")
"""The machine failed: nobody else is to blame."""

FOUND = [
    ({17: Errno.EIO}, FOR_A_WHILE),  # ended as no_progress, and the process by an error about its bell
    ({137: Errno.EIO}, FOR_A_WHILE),  # ended as fix_exhausted: "the agent could not repair it"
    ({127: Errno.EACCES}, FOR_A_WHILE),  # the same
]
"""States that broke once."""


@cache
def operations() -> int:
    return len(case({}).operations)


def held(plans: Iterable[tuple[dict[int, Errno], float]]) -> None:
    wrong = []
    for faults, lasts in plans:
        played = case(faults, lasts)
        problems = [*played.problems, *(() if played.end in HONEST else (f"it ended {played.end}",))]
        if problems:
            wrong += [f"{told(faults, lasts)}  # {'; '.join(played.struck[:3])}", *problems]
    assert not wrong, "\n".join(wrong)


def chosen(way: Errno, lasts: float, count: int, *, but: int = 0) -> list[tuple[dict[int, Errno], float]]:
    numbers = list(range(1, operations() + 1))
    random.Random(f"{SEED} {way} {lasts}").shuffle(numbers)
    return [({number: way}, lasts) for number in (numbers if WIDE else numbers[but : but + count])]


@pytest.mark.parametrize("way", Errno)
def test_one_file_operation_fails(way: Errno) -> None:
    """The run goes on, ends honestly or is taken up by the next process; nothing of it is in the way afterwards."""
    held(chosen(way, FOR_A_WHILE, QUICK) if not WIDE else [])


@pytest.mark.slow
@pytest.mark.timeout(20_000)
@pytest.mark.parametrize("lasts", [0.0, FOR_A_WHILE])
@pytest.mark.parametrize("way", Errno)
def test_any_file_operation_fails(way: Errno, lasts: float) -> None:
    held(chosen(way, lasts, SLOW, but=QUICK if lasts else 0))


@pytest.mark.slow
@pytest.mark.parametrize(("faults", "lasts"), FOUND)
def test_states_that_were_found_broken(faults: dict[int, Errno], lasts: float) -> None:
    held([(faults, lasts)])


def test_a_disk_that_is_full_is_no_fault_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command line names the file, what the system says of it, and what to do; not "internal error"."""
    make_repository(tmp_path)
    (tmp_path / "becket.yaml").write_text("version: 1\n")
    monkeypatch.chdir(tmp_path)
    outbox = tmp_path / ".git" / "becket" / "outbox"
    insert(Disk(outbox, {1: Errno.ENOSPC}, time.time))
    try:
        code = run(["loops", "list"])
    finally:
        insert(None)
    said = capsys.readouterr().err
    assert (code, "internal error" in said) == (1, False), said
    assert f"{outbox}: No space left on device; make room on that disk, then run the command again" in said
