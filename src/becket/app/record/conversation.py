"""What the agents of a run said and did, as a conversation that people can read. Bounded; its words are claims."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from becket.app.compose import App
from becket.app.record.agent_watch import event_of, kept_events
from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallFiles, CallState
from becket.kernel.contract.calls import CALLS, AgentCall, folder_of
from becket.kernel.contract.errors import NotFound

MOST_CALLS = 6
MOST_TURNS = 120
MOST_READ = 512 * 1024
LONGEST = 6_000
_SAID = frozenset({AgentEventKind.message, AgentEventKind.thinking, AgentEventKind.error})
_DONE = frozenset({AgentEventKind.tool_call, AgentEventKind.edit})


@dataclass(frozen=True, slots=True)
class Turn:
    """`kind`: person, message, thinking, tool_call, edit, error. `at` is seconds since the call began."""

    kind: str
    at: float
    text: str = ""
    tool: str = ""
    call: str = ""
    state: str = ""
    paths: tuple[str, ...] = ()
    by: str = ""
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """Of one call. `digest` is the artifact with all of it; empty while it is at work."""

    call: AgentCall
    turns: tuple[Turn, ...]
    left_out: int = 0  # turns before these; at least
    digest: str = ""


async def kept_conversations(app: App, run_id: str, redact: Callable[[str], str]) -> tuple[Conversation, ...]:
    """Those of the last calls that ended."""
    found = []
    for call, ref in (await kept_events(app, run_id))[-MOST_CALLS:]:
        try:
            path = app.artifacts.path(ref.digest)
        except NotFound:
            continue
        turns, left_out = turns_of(path, redact)
        found.append(Conversation(call, turns, left_out, ref.digest))
    return tuple(found)


def open_conversations(
    run_folder: Path, calls: Iterable[AgentCall], redact: Callable[[str], str]
) -> tuple[Conversation, ...]:
    """Those of the calls that are at work, as their files have them now."""
    found = []
    for call in [one for one in calls if one.end is None][-MOST_CALLS:]:
        path = CallFiles(run_folder / CALLS / folder_of(call.run_id, call.call_id)).events
        try:
            turns, left_out = turns_of(path, redact)
        except OSError:  # it has not said anything yet, or is over
            turns, left_out = (), 0
        found.append(Conversation(call, turns, left_out))
    return tuple(found)


def turns_of(path: Path, redact: Callable[[str], str]) -> tuple[tuple[Turn, ...], int]:
    """The last ones, and how many before them are left out."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(size - MOST_READ, 0))
        lines = file.read(MOST_READ).split(b"\n")
    events = [event for line in lines if (event := event_of(line)) is not None]
    turns = joined(events)
    left_out = len(turns) - MOST_TURNS
    shown = tuple(_shown(turn, redact) for turn in turns[-MOST_TURNS:])
    return shown, max(left_out, 1 if size > MOST_READ else 0)


def joined(events: Iterable[AgentEvent]) -> list[Turn]:
    """The events of one tool call are one turn, and what is said twice in a row is said once."""
    turns: list[Turn] = []
    places: dict[str, int] = {}
    for event in events:
        if event.kind in _DONE and event.call in places:
            place = places[event.call]
            turns[place] = _together(turns[place], event)
            continue
        turn = _turn(event)
        if turn is None or (turns and turns[-1].text == turn.text and turns[-1].kind == turn.kind == "error"):
            continue
        if event.kind in _DONE and event.call:
            places[event.call] = len(turns)
        turns.append(turn)
    return turns


def _turn(event: AgentEvent) -> Turn | None:
    if event.by:
        return Turn("person", event.at, event.text, by=event.by)
    if event.kind in _SAID:
        return Turn(event.kind.value, event.at, event.text) if event.text.strip() else None
    if event.kind in _DONE:
        state = event.state.value if event.state is not None else ""
        return Turn(event.kind.value, event.at, event.text, event.tool, event.call, state, event.paths)
    return None


def _together(turn: Turn, event: AgentEvent) -> Turn:
    state = event.state.value if event.state is not None else turn.state
    more = event.text if event.text and event.text not in turn.text else ""
    text = "\n".join(part for part in (turn.text, more) if part)
    return replace(turn, state=state, text=text, paths=turn.paths or event.paths, tool=turn.tool or event.tool)


def _shown(turn: Turn, redact: Callable[[str], str]) -> Turn:
    text = redact(turn.text)
    shown = text[:LONGEST]
    state = "" if turn.state == CallState.done.value else turn.state
    return replace(turn, text=shown, cut=len(text) > len(shown), state=state)
