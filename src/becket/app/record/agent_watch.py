"""What the agents of one run do: read while they do it, and from what was kept once the run's folder is gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from pydantic import ValidationError

from becket.app.compose import App
from becket.kernel.contract.agent import AgentEvent, CallFiles
from becket.kernel.contract.calls import CALLS, AgentCall, folder_of
from becket.kernel.contract.store import ArtifactRef

EVENTS = ".events.jsonl"
LOOK_EVERY = 0.05
CHUNK = 1 << 20
LONGEST_LINE = 4 << 20
"""A line without an end is no event; what grows beyond this is thrown away up to its end."""

Tell = Callable[[AgentCall, AgentEvent], None]
"""Told each event of each call, once, in order."""


class EventTail:
    """A growing file of events. Stays readable when its folder is removed in the meantime."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._rest = b""
        self._dropping = False

    def read(self) -> Iterator[AgentEvent]:
        """The events that were completed since the last call."""
        while chunk := os.read(self._file, CHUNK):
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            if self._dropping and lines:
                del lines[0]
                self._dropping = False
            yield from (event for line in lines if (event := event_of(line)) is not None)
            if len(self._rest) > LONGEST_LINE:
                self._rest, self._dropping = b"", True

    def close(self) -> None:
        os.close(self._file)


def event_of(line: bytes) -> AgentEvent | None:
    """None for what is no event: a line that a crash cut, or that another version wrote."""
    try:
        return AgentEvent.model_validate_json(line)
    except ValidationError:
        return None


class CallListener:
    """Tells what happens in the calls of one run; nothing of those in `passed`."""

    def __init__(self, app: App, run_id: str, tell: Tell, passed: Iterable[AgentCall] = ()) -> None:
        self._app, self._run_id, self._tell = app, run_id, tell
        self._passed = {folder_of(call.run_id, call.call_id) for call in passed}
        self._tails: dict[str, tuple[AgentCall, EventTail]] = {}

    async def listen(self) -> None:
        """Until cancelled; what was written until then is told."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_EVERY)
        finally:
            self._tell_new()

    async def look(self) -> None:
        """Tell what is new."""
        places = self._app.places.of_run(self._run_id) / CALLS
        if fresh := [name for name in _names(places) if name not in self._tails and name not in self._passed]:
            known = {folder_of(call.run_id, call.call_id): call for call in await self._app.store.calls(self._run_id)}
            for name in fresh:
                if name in known and (path := CallFiles(places / name).events).exists():
                    self._tails[name] = (known[name], EventTail(path))
        self._tell_new()

    def _tell_new(self) -> None:
        for call, tail in self._tails.values():
            for event in tail.read():
                self._tell(call, self._redacted(event))

    def _redacted(self, event: AgentEvent) -> AgentEvent:
        """What is kept of it is without secrets; so is what is shown (L25)."""
        return event.model_copy(update={"text": self._app.redactor.text(event.text)}) if event.text else event

    async def tell_kept(self) -> None:
        """Calls of an ended run that were never seen at work, from what was kept of them."""
        passed = self._passed | set(self._tails)
        for call, ref in await kept_events(self._app, self._run_id):
            if folder_of(call.run_id, call.call_id) not in passed:
                for event in events_of(self._app.artifacts.read(ref.digest)):
                    self._tell(call, event)

    def close(self) -> None:
        for _, tail in self._tails.values():
            tail.close()
        self._tails.clear()


def _names(places: Path) -> list[str]:
    try:
        return sorted(folder.name for folder in places.iterdir())
    except FileNotFoundError:
        return []


async def kept_events(app: App, run_id: str) -> list[tuple[AgentCall, ArtifactRef]]:
    """The calls of a run, oldest first, each with its events as they were kept.

    Several calls of one step to one agent keep theirs under one name, in their order.
    """
    refs: dict[tuple[int, str, str], list[ArtifactRef]] = {}
    for ref in await app.store.artifacts(run_id):
        if ref.name.startswith("agent-") and ref.name.endswith(EVENTS):
            agent = ref.name.removeprefix("agent-").removesuffix(EVENTS).rpartition("-")[0]
            refs.setdefault((ref.iteration, ref.action_id, agent), []).append(ref)
    found = []
    for call in reversed(await app.store.calls(run_id)):
        mine = refs.get((call.iteration, call.step_id, call.agent))
        if call.end is not None and mine:
            found.append((call, mine.pop(0)))
    return found


def events_of(content: bytes) -> Iterator[AgentEvent]:
    """The events of a file that was kept."""
    return (event for line in content.splitlines() if (event := event_of(line)) is not None)
