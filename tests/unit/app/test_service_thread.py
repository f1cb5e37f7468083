"""The part of the watchdog that looks after services: one that died is begun anew, one that hangs is known."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from becket.app.state import StateFolder
from becket.parts.services.services import Services, ServiceThread


class Dying(ServiceThread):
    """Ends by a fault as soon as it begins."""

    async def _serve(self) -> None:
        raise RuntimeError("a fault of ours")


class Hanging(ServiceThread):
    """Its loop stands still until it is let go."""

    async def _serve(self) -> None:
        self._ready.set()
        while not (self._state.folder / "go").exists():
            time.sleep(0.01)  # noqa: ASYNC251  # that is the fault


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateFolder]:
    state = StateFolder(root=tmp_path, common=tmp_path).make()
    yield state
    (state.folder / "go").touch()


def until(services: Services, well: bool) -> None:
    end = time.monotonic() + 60
    while (services.hangs() is None) is not well:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_thread_that_died_is_begun_anew(state: StateFolder) -> None:
    made: list[type[ServiceThread]] = []

    def make(state: StateFolder) -> ServiceThread:
        made.append(ServiceThread if made else Dying)
        return made[-1](state)

    services = Services(state, make=make)
    services.start()
    while made == [Dying]:
        services.look()
    until(services, True)
    services.look()
    assert made == [Dying, ServiceThread], "and only once"
    services.stop()


def test_a_thread_that_hangs_is_known_and_one_that_lives_is_well(state: StateFolder) -> None:
    services = Services(state, hangs_after=0.5, make=Hanging)
    services.start()
    until(services, False)
    (state.folder / "go").touch()
    services.stop()
    alive = Services(state, hangs_after=30)
    alive.start()
    assert not alive.hangs()
    alive.stop()
    assert not alive.hangs(), "one that was told to end is not missed"
