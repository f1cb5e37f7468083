"""The last line that a run's programs printed: of gates and commands, of set-ups, and of agents."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.app.record.agent_watch import event_of
from becket.kernel.contract.agent import AgentEventKind
from becket.kernel.contract.calls import CALLS

LOOK_EVERY = 0.5
END = 8192
_AGENTS = "events.jsonl"
_SAYS = (
    AgentEventKind.message,
    AgentEventKind.tool_call,
    AgentEventKind.edit,
    AgentEventKind.error,
    AgentEventKind.thinking,
)


@dataclass(frozen=True, slots=True)
class PrintedLine:
    """A line, without secrets, and when its file was last written."""

    at: float
    text: str


async def watch_output(app: App, run_id: str, hear: Callable[[PrintedLine | None], None]) -> None:
    """Tell the last line now and then, also where there is none, until cancelled."""
    while True:
        found = await asyncio.to_thread(last_output, app.places.of_run(run_id), app.state.folder / "setups")
        hear(PrintedLine(found.at, app.redactor.text(found.text)) if found is not None else None)
        await asyncio.sleep(LOOK_EVERY)


def last_output(run: Path, setups: Path) -> PrintedLine | None:
    """Of the file that was written last. A set-up serves many runs: whoever reads this asks when it was written."""
    newest = max(_written(run, setups), default=None)
    if newest is None:
        return None
    at, path = newest
    lines = _last_lines(path)
    texts = map(_said, lines) if path.name == _AGENTS else (line.decode("utf-8", "replace").strip() for line in lines)
    return PrintedLine(at, next(filter(None, texts), ""))


def _written(run: Path, setups: Path) -> Iterator[tuple[float, Path]]:
    for folder, pattern in ((run / "logs", "*.log"), (run / CALLS, f"*/{_AGENTS}"), (setups, "*/setup.log")):
        for path in folder.glob(pattern):
            try:
                found = path.stat()
            except OSError:  # a step that ends takes its files along
                continue
            if found.st_size:
                yield found.st_mtime, path


def _last_lines(path: Path) -> list[bytes]:
    """The last one first."""
    try:
        with path.open("rb") as file:
            file.seek(max(os.fstat(file.fileno()).st_size - END, 0))
            return file.read(END).splitlines()[::-1]
    except OSError:
        return []


def _said(line: bytes) -> str:
    event = event_of(line)
    if event is None or event.kind not in _SAYS:
        return ""
    return " ".join(part for part in (event.tool, *event.paths, event.text) if part)
