"""Alerts for triggers that cannot start their loop: raised once, closed when the cause is gone."""

from __future__ import annotations

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import BecketError, StartRefused
from becket.kernel.contract.store import AlertState, OperationsStore

REFUSED = ("chain:", "pace:", "flood:")
"""Keys of alerts about starts that were not let in; they end by nothing more of the kind."""

FIRST_RETRY = 10.0
LAST_RETRY = 300.0


def retry_after(failures: int) -> float:
    """Seconds to wait after the nth failure in a row."""
    return float(min(LAST_RETRY, FIRST_RETRY * 2 ** min(max(failures, 1) - 1, 10)))


def in_words(error: Exception) -> str:
    """An error of ours is advice already; any other is a bug and is shown with its kind."""
    return str(error) if isinstance(error, BecketError) else f"{type(error).__name__}: {error}"


class TriggerAlerts:
    """Alerts of the triggers. One that nobody was told of stays open even when its cause is gone (L42)."""

    def __init__(self, store: OperationsStore) -> None:
        self._store = store
        self._raised: set[str] | None = None

    async def report(self, key: str, text: str, data: dict[str, Json]) -> None:
        await self._store.raise_alert(key, text, data)
        (await self._known()).add(key)

    async def not_started(self, loop_id: str, source: str, error: Exception, data: dict[str, Json]) -> None:
        """A loop that should start cannot. Whoever calls this keeps the start for later."""
        text = (
            f"{loop_id} was not started by its {source} trigger: {in_words(error)}\n"
            f"It will be tried again; `becket loops lint` shows what is wrong with the loop."
        )
        await self.report(f"start:{loop_id}:{source}", text, {"loop": loop_id, "trigger": source, **data})

    async def refused(self, loop_id: str, source: str, refused: StartRefused, cause: str | None) -> None:
        """A start that was not let in: too deep a chain, or too often. Each one counts in its alert."""
        kind = "chain" if refused.too_deep else "pace"
        await self.report(f"{kind}:{loop_id}", str(refused), {"loop": loop_id, "trigger": source, "cause": cause})

    async def started(self, loop_id: str, source: str) -> None:
        await self.over(f"start:{loop_id}:{source}")

    async def let_in(self, loop_id: str) -> None:
        """Nothing waits any more because it came too often."""
        await self.over(f"pace:{loop_id}")

    async def over(self, key: str) -> None:
        """The cause is gone: close the alert if it was told. Costs nothing where none was raised."""
        known = await self._known()
        if key in known and any(alert.key == key for alert in await self._store.alerts((AlertState.told,))):
            await self._store.close_alert(key)
            known.discard(key)

    async def lapse(self, prefixes: tuple[str, ...], quiet: float) -> None:
        """Close alerts that were told and had nothing to add for so long."""
        before = await self._store.now() - quiet
        for alert in await self._store.alerts((AlertState.told,)):
            if alert.key.startswith(prefixes) and alert.last_at < before:
                await self._store.close_alert(alert.key)

    async def _known(self) -> set[str]:
        if self._raised is None:
            self._raised = {alert.key for alert in await self._store.alerts((AlertState.open, AlertState.told))}
        return self._raised
