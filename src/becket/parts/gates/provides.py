"""What the part puts behind its ports, and what it does now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from becket.app.compose import App
from becket.kernel.contract.gate import Verdicts
from becket.kernel.contract.receipt import Repetition
from becket.kernel.contract.run import ENDED, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.parts.gates.ports.setup import Setups
from becket.parts.gates.repetition import Repeater
from becket.parts.gates.setups import CachedSetups
from becket.parts.gates.verdicts import FileVerdicts


def ports(app: App) -> Mapping[type, Callable[[], object]]:
    return {
        Verdicts: lambda: FileVerdicts(app.state.folder / "verdicts", app.artifacts.check),
        Setups: lambda: CachedSetups(app.state.folder / "setups", app.git, app.processes),
        Repetition: lambda: Repeater(app),
    }


async def sweep_setups(app: App) -> None:
    """Set-ups that nobody uses."""

    async def open_runs() -> set[str]:
        still_open = await app.store.list_runs(RunFilter(statuses=tuple(set(RunStatus) - ENDED), limit=None))
        return {run.run_id for run in still_open}

    if (app.state.folder / "setups").is_dir():
        await app.port(Setups).sweep(open_runs)
