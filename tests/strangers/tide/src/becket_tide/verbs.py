"""What the command line does with it."""

from __future__ import annotations

from becket.app.compose import App
from becket.cli.output import emit, say
from becket.cli.shape import AsJson, in_app
from becket.kernel.contract.tables import TableStore
from becket_tide.marks import heights
from becket_tide.outside import Gauge


def tide(as_json: AsJson = False) -> None:
    """Say how high the tide is."""

    async def seen(app: App) -> tuple[int, list[int]]:
        return app.port(Gauge).height(), await app.port(TableStore).read(heights)

    now, before = in_app(seen)
    emit({"height": now, "before": before}) if as_json else say(f"the water stands at {now}")
