"""Keeps the local branch up with the remote's: what `git pull --ff-only` does, by the promote recipe.

What arrives is other people's main, not a repair of ours. It is not proven here before it lands; the commit trigger
sees it land and has it proven.
"""

from __future__ import annotations

import asyncio
import logging

from becket.app.compose import App
from becket.app.settings import read_config
from becket.kernel.contract.effect import Origin
from becket.kernel.contract.errors import EffectFailed, EffectRefused, GitFailed, UsageError
from becket.kernel.contract.promote import PromoteRequest, promote_call
from becket.kernel.contract.remote import RemoteFailed, RemoteTrouble
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import AlertState
from becket.parts.promote.section import REMOTE, RemoteConfig

log = logging.getLogger("becket.remote")

ALERT = "remote"
LOOK_EVERY = 30.0  # while no remote is configured
LONGEST = 300.0  # between two vain looks
_PATIENCE = 3  # vain looks before a person is told
_NEEDS_A_PERSON = (RemoteTrouble.unknown, RemoteTrouble.login)


async def watch_remote(app: App) -> None:
    """Fetch by the clock, and follow where that is a fast-forward. Runs until it is cancelled."""
    watch = RemoteWatch(app)
    while True:
        await asyncio.sleep(await watch.look())


class RemoteWatch:
    """What is remembered between two looks; after a restart it is found out anew."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._told: str | None = None
        self._vain = 0

    async def look(self) -> float:
        """Look once; says how many seconds to wait until the next time. Never raises for what a remote does."""
        config = self._app.config
        remote = config.section(REMOTE)
        if remote is None:
            await self._tell("")
            return LOOK_EVERY
        try:
            trouble = await self._followed(remote, config.branch)
        except RemoteFailed as failed:
            trouble = str(failed)
            self._vain = max(self._vain, _PATIENCE if failed.trouble in _NEEDS_A_PERSON else 0)
        except (GitFailed, EffectFailed, EffectRefused) as failed:
            trouble = str(failed)
        self._vain = self._vain + 1 if trouble else 0
        await self._tell(trouble if self._vain >= _PATIENCE else "")
        return min(remote.fetch * 2.0 ** max(self._vain - 1, 0), max(LONGEST, remote.fetch))

    async def _followed(self, remote: RemoteConfig, branch: str) -> str:
        """Empty where the local branch has everything that the remote's has; else why it has not."""
        git = self._app.git
        there = (await git.remote().fetch(remote.name, branch)).sha
        here = await git.value(f"refs/heads/{branch}")
        if there is None or here is None or here == there or await git.contains(here, there):
            return ""
        if not await git.contains(there, here):
            return (
                f"{branch} and {remote.name}/{branch} have both moved on ({here[:12]} and {there[:12]}); "
                f"merge or rebase them by hand"
            )
        return await self._follow(remote, branch, here, there)

    async def _follow(self, remote: RemoteConfig, branch: str, here: str, there: str) -> str:
        autonomy = _autonomy(self._app)
        if not autonomy.allows(Autonomy.merge):
            log.info("%s/%s is at %s; with autonomy %s it is yours to pull", remote.name, branch, there, autonomy)
            return ""
        request = PromoteRequest(branch=branch, old=here, new=there, proof=f"remote:{there}", key=ALERT)
        # Every look is an effect of its own: the answer to the last one must not be taken for this one's.
        label = f"{there} {await self._app.store.now():.3f}"
        call = promote_call(request).model_copy(update={"label": label})
        report = await self._app.door.perform(call, Origin(run_id=f"remote:{remote.name}"), None, autonomy, False)
        if report.result.get("promoted") or report.result.get("observed"):
            log.info("%s follows %s to %s", branch, remote.name, there)
            self._app.kick()
            return ""
        why = report.result.get("message") or report.reason
        return f"{branch} is behind {remote.name}/{branch} and cannot follow: {why}"

    async def _tell(self, trouble: str) -> None:
        """One alert, raised when there is something new to say and withdrawn when there is nothing."""
        trouble = self._app.redactor.text(trouble)
        if trouble == self._told:
            return
        if trouble:
            log.warning("%s", trouble)
            await self._app.store.raise_alert(ALERT, trouble, {})
        elif any(alert.key == ALERT for alert in await self._app.store.alerts((AlertState.open, AlertState.told))):
            await self._app.store.close_alert(ALERT)
        self._told = trouble


def _autonomy(app: App) -> Autonomy:
    """As becket.yaml stands now; what a person wanted to change in a file that does not load is not known."""
    try:
        return read_config(app.state).autonomy
    except UsageError:
        return Autonomy.observe
