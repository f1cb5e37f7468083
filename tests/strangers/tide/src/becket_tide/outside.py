"""A port, an effect, a resident and a chore."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from becket.app.compose import App
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectAdapter, EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket_tide.section import TideConfig


class Gauge(Protocol):
    def height(self) -> int: ...


class ConfiguredGauge:
    def __init__(self, app: App) -> None:
        self._app = app

    def height(self) -> int:
        return self._app.config.section(TideConfig).height


class MarkEffect:
    """Writes the height into a file of the state folder."""

    def __init__(self, folder: Path) -> None:
        self.name = "tide.mark"
        self.class_ = EffectClass.repeatable
        self.needs = Autonomy.observe
        self.timeout = 5.0
        self._folder = folder

    def check(self, call: EffectCall) -> str | None:
        return None if isinstance(call.payload.get("height"), int) else "the payload has no height"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        (self._folder / call.target).write_text(f"{call.payload['height']}")
        return {"marked": call.target}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell


def effects(app: App) -> tuple[EffectAdapter, ...]:
    return (MarkEffect(app.state.outbox),)


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    return {Gauge: lambda: ConfiguredGauge(app)}


async def keep_watch(app: App) -> None:
    (app.state.outbox / "watched").touch()
    await asyncio.Event().wait()


async def write_down(app: App) -> None:
    (app.state.outbox / "written").touch()
