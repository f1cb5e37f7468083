"""Everything that specs can name enters by entry point, the built-in things too."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.resources import files
from typing import TypeVar

from becket.kernel.contract.action import ActionDef, EffectInfo, Registry, VerifierDef
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.spec import Autonomy, EffectClass

T = TypeVar("T")

GROUP_ACTIONS = "becket.actions"
GROUP_VERIFIERS = "becket.verifiers"
GROUP_LOOPS = "becket.loops"

EVENT_POST = EffectInfo("event.post", EffectClass.keyed, Autonomy.observe)
"""Posting an event stays inside the runtime, but it may start other loops; lint follows it."""


def load_registry(adapters: Iterable[EffectAdapter]) -> Registry:
    actions = [item for point in _points(GROUP_ACTIONS) for item in _load(point, ActionDef)]
    verifiers = [item for point in _points(GROUP_VERIFIERS) for item in _load(point, VerifierDef)]
    effects = [EffectInfo(adapter.name, adapter.class_, adapter.needs) for adapter in adapters]
    return Registry(
        actions={item.name: item for item in actions},
        verifiers={item.name: item for item in verifiers},
        effects={item.name: item for item in (*effects, EVENT_POST)},
    )


def built_in_loops() -> dict[str, str]:
    """loop_id -> text of the loops that packages bring."""
    return {point.name: (files(point.value) / "loop.yaml").read_text("utf-8") for point in _points(GROUP_LOOPS)}


@cache  # every package's metadata is read for it
def _points(group: str) -> Iterable[EntryPoint]:
    return entry_points(group=group)


def _load(point: EntryPoint, kind: type[T]) -> tuple[T, ...]:
    try:
        found = tuple(point.load())
    except Exception as error:
        raise UsageError(
            f"the plug-in {point.name} ({point.value}) does not load: {error}; remove or mend it"
        ) from error
    if stray := [item for item in found if not isinstance(item, kind)]:
        raise UsageError(f"the plug-in {point.name} ({point.value}) brings {stray[0]!r}, not {kind.__name__}")
    return found
