"""All that specs can name: actions, verifiers and effects of every part."""

from __future__ import annotations

from collections.abc import Iterable

from becket.app.parts import installed, load_all
from becket.kernel.contract.action import ActionDef, EffectInfo, Registry, VerifierDef
from becket.kernel.contract.effect import EffectAdapter


def load_registry(adapters: Iterable[EffectAdapter]) -> Registry:
    actions = [item for part in installed() for item in load_all(part, part.actions, ActionDef)]
    verifiers = [item for part in installed() for item in load_all(part, part.verifiers, VerifierDef)]
    effects = [EffectInfo(adapter.name, adapter.class_, adapter.needs) for adapter in adapters]
    return Registry(
        actions={item.name: item for item in actions},
        verifiers={item.name: item for item in verifiers},
        effects={item.name: item for item in effects},
    )
