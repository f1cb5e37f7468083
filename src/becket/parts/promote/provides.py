"""What the part puts behind its ports and behind the door."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from becket.app.compose import App
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.proposal import Proposals
from becket.parts.promote.accepted import JournalProposals
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.promote import promoter_of
from becket.parts.promote.effect import PromoteEffect
from becket.parts.promote.remote_effect import PushEffect


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    return {Proposals: lambda: JournalProposals(app.store)}


def effects(app: App) -> tuple[EffectAdapter, ...]:
    return PromoteEffect(app.git, intents(app)), PushEffect(app.git)


def intents(app: App) -> IntentFile:
    """What a killed promotion left is in here; `recover` puts it in order at every start."""
    return IntentFile(app.state.make().folder / "promotion", app.lost_journal)


async def recover(app: App) -> None:
    await promoter_of(app.git).recover(intents(app))
