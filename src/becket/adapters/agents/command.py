"""Any program as an agent: the brief comes on standard input, the work is what it leaves in its checkout."""

from __future__ import annotations

import tempfile
from pathlib import Path

from becket.contract.agent import AgentOutcome, AgentReport, Around, Limits, Usage
from becket.contract.config import AgentConfig
from becket.contract.process import ChildEnd, ChildResult, ChildSpec, Processes

SAID_LIMIT = 4_000


class CommandAgent:
    """`driver: command`. Contained like every program that is not ours; its words are shown and never believed."""

    def __init__(self, config: AgentConfig, processes: Processes, hidden: tuple[Path, ...]) -> None:
        assert config.run is not None
        self._run = config.run
        self._config = config
        self._processes = processes
        self._hidden = hidden

    async def run(
        self, brief: str, workspace: Path, limits: Limits, session: str | None = None, *, around: Around | None = None
    ) -> AgentReport:
        around = around or Around()
        if around.log is not None:
            return await self._work(brief, workspace, limits, around, around.log)
        with tempfile.TemporaryDirectory(prefix="becket-agent-") as folder:
            return await self._work(brief, workspace, limits, around, Path(folder) / "agent.log")

    async def _work(self, brief: str, workspace: Path, limits: Limits, around: Around, log: Path) -> AgentReport:
        log.parent.mkdir(parents=True, exist_ok=True)
        stdout = log.with_suffix(".out")
        result = await self._processes.run(
            ChildSpec(
                argv=("sh", "-euc", self._run),
                tree=workspace,
                network=self._config.network,
                timeout=min(limits.seconds, self._config.limits.time),
                output=log,
                stdout=stdout,
                readable=around.readable,
                hidden=self._hidden,
                stdin=brief.encode(),
            ),
            around.watcher,
        )
        return _report(result, _tail(stdout), log)


def _report(result: ChildResult, said: str, log: Path) -> AgentReport:
    error, hint = "", None
    if result.end is ChildEnd.timeout:
        error, hint = f"it did not end within its time ({result.seconds:.0f} s)", AgentOutcome.limit_reached
    elif result.end is not ChildEnd.exited:
        error, hint = result.message or f"it was {result.end}", AgentOutcome.crashed
    elif result.exit_code:
        error, hint = f"it ended with exit code {result.exit_code}", AgentOutcome.crashed
    return AgentReport(
        ended=not error, error=error, outcome_hint=hint, said=said, usage=Usage(seconds=result.seconds), transcript=log
    )


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SAID_LIMIT))
        return file.read(SAID_LIMIT).decode(errors="replace")
