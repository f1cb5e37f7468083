"""A disk that is really full for a while, from each gate of a heal on: everything that is written is on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from app_world import AppWorld
from small_disk import disk, fill, make_room
from virtual_time import VirtualLoop, play

FULL_FOR = 20.0


def filling(folder: Path, loop: VirtualLoop, number: int, told: list[int]) -> Callable[[], None]:
    def begins() -> None:
        told.append(len(told) + 1)
        if told[-1] == number:
            fill(folder)
            loop.call_later(FULL_FOR, make_room, folder)

    return begins


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, 6))
def test_a_disk_is_full_while_a_gate_runs(number: int, tmp_path: Path) -> None:
    """L7, L13, L44: what cannot be written is written later, or the run ends as the machine's fault; nothing sticks."""

    async def story(loop: VirtualLoop, folder: Path) -> tuple[str, list[str]]:
        house, told = AppWorld(folder, loop), list[int]()
        house.gate_begins = filling(folder, loop, number, told)
        run = await house.heal(1)
        assert number in told, "there was no such gate"
        return f"{run.status} {run.reason}", await house.broken(heal=lambda: house.heal(3))

    with disk(tmp_path / "disk") as folder:
        end, problems = play(lambda loop: story(loop, folder))
    assert not problems, "\n".join(problems)
    assert end in ("completed stop_conditions_met", "ready_for_handoff environment_broken")
