"""What the command line does with it."""

from __future__ import annotations

from becket.app.compose import App
from becket.cli.paper import emit, say
from becket.cli.shape import AsJson, in_app
from becket_tide.outside import Gauge


def tide(as_json: AsJson = False) -> None:
    """Say how high the tide is."""

    async def height(app: App) -> int:
        return app.port(Gauge).height()

    found = in_app(height)
    emit({"height": found}) if as_json else say(f"the water stands at {found}")
