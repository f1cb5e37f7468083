"""How far the daemon lets runs go here: found out before the first run, shown by `becket status`, and told of if it is
less than becket.yaml says.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from becket.app.compose import App
from becket.app.record.status import NOT_LOADED, AutonomyNow
from becket.kernel.contract.errors import ActionFailed, UsageError
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import AlertState

CAP_ALERT = "autonomy:capped"


class Containment:
    def __init__(self, app: App) -> None:
        self._app = app
        self._told: AutonomyNow | None = None

    async def look(self) -> None:
        """A chore. In a thread: a sandbox that answers slowly must hold up neither a heartbeat nor a run."""
        now = await asyncio.to_thread(autonomy_here, self._app)
        if now == self._told:
            return
        await asyncio.to_thread(_write, self._app.state.autonomy, now)
        await self._tell(now)
        self._told = now

    async def _tell(self, now: AutonomyNow) -> None:
        store = self._app.store
        known = {alert.key for alert in await store.alerts((AlertState.open, AlertState.told))}
        if CAP_ALERT in known:
            await store.close_alert(CAP_ALERT)  # one that was told must not keep another reason quiet
        if now.because and now != NOT_LOADED:  # of that, an alert of its own tells
            text = (
                f"becket.yaml asks for autonomy {now.configured}, but nothing goes further than {now.allowed}: "
                f"{now.because}. `becket doctor` says how to mend it; then `becket down` and `becket up --detach`."
            )
            await store.raise_alert(CAP_ALERT, text, {"configured": now.configured, "allowed": now.allowed})


def autonomy_here(app: App) -> AutonomyNow:
    """As this process has it. Tries the sandbox."""
    if app.trouble:
        return NOT_LOADED
    configured = app.config.autonomy
    with suppress(UsageError, ActionFailed):  # whoever needs it hears why it is not to be had
        app.sandboxes.get(app.config.sandbox.use)
    try:
        because = app.policy.uncontained()
    except UsageError as error:
        because = str(error)
    allowed = Autonomy.lowest(configured, Autonomy.propose) if because else configured
    return AutonomyNow(configured.value, allowed.value, because)


def _write(path: Path, now: AutonomyNow) -> None:
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps({"pid": os.getpid(), **asdict(now)}), encoding="utf-8")
    new.replace(path)
