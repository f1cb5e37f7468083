"""All that specs can name: actions, verifiers and effects of every part."""

from __future__ import annotations

from collections.abc import Iterable

from becket.app.parts import installed, load_all, unique
from becket.kernel.contract.action import ActionDef, EffectInfo, Registry, VerifierDef
from becket.kernel.contract.effect import EffectAdapter


def load_registry(adapters: Iterable[EffectAdapter]) -> Registry:
    actions = [(item.name, item, part) for part in installed() for item in load_all(part, part.actions, ActionDef)]
    verifiers = [
        (item.name, item, part) for part in installed() for item in load_all(part, part.verifiers, VerifierDef)
    ]
    effects = [EffectInfo(adapter.name, adapter.class_, adapter.needs) for adapter in adapters]
    return Registry(
        actions=unique("action", actions),
        verifiers=unique("verifier", verifiers),
        effects={item.name: item for item in effects},
    )
