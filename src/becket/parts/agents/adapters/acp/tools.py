"""An agent's tool calls, put together from the pieces in which they are told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallState
from becket.parts.agents.adapters.dialect import below
from becket.parts.agents.adapters.lenient_json import Object, compact, mapping, objects, text

_CHANGES_FILES = frozenset({"edit", "delete", "move"})
_STATES = {"completed": CallState.done, "failed": CallState.failed}
_PATH_KEYS = ("file_path", "filePath", "path", "abs_path", "absolute_path", "notebook_path", "dir_path", "cwd")
_MOST_CALLS = 10_000
_DECLINED = ("Path not in workspace", "Blocked: command substitution detected")
"""How gemini begins what it says of a call that it declines by itself. The second it calls `completed`."""


@dataclass(frozen=True, slots=True)
class AcpToolCall:
    """What is known of one call. `touches` is every path it names, `edits` those that it changes."""

    key: str
    kind: str = ""
    title: str = ""
    tool: str = ""
    command: str = ""
    given: str = ""
    touches: tuple[str, ...] = ()
    edits: tuple[str, ...] = ()
    came_of_it: str = ""

    def with_more(self, told: Object) -> AcpToolCall:
        """A later piece says only what is new."""
        kind = text(told, "kind") or self.kind
        diffs = [text(part, "path") for part in objects(told, "content") if part.get("type") == "diff"]
        places = [text(place, "path") for place in objects(told, "locations")]
        given = mapping(told, "rawInput")
        named = [text(given, key) for key in _PATH_KEYS]
        return AcpToolCall(
            key=self.key,
            kind=kind,
            title=text(told, "title") or self.title,
            tool=text(told, "_meta", "claudeCode", "toolName") or self.tool,
            command=_command(given) or self.command,
            given=compact(dict(given)) if given else self.given,
            touches=_each(*self.touches, *diffs, *places, *named),
            edits=_each(*self.edits, *diffs, *(places if kind in _CHANGES_FILES else ())),
            came_of_it=_came_of_it(told) or self.came_of_it,
        )


class ToolCalls:
    """All calls of one conversation."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._calls: dict[str, AcpToolCall] = {}
        self._over: set[str] = set()
        self._begun: set[str] = set()

    @property
    def running(self) -> bool:
        return bool(self._begun - self._over)

    def known(self, key: str) -> bool:
        return key in self._calls

    def piece(self, told: Object) -> tuple[AcpToolCall, AgentEvent | None]:
        """Take in one piece; the event is what is new in it for a person."""
        call = self._learn(told)
        state = _STATES.get(text(told, "status"))
        if state is not None and call.came_of_it.startswith(_DECLINED):
            state = CallState.refused
        if call.key in self._over:
            return call, None
        if state is not None:
            self._begun.add(call.key)
            self._over.add(call.key)
            return call, self._event(call, state)
        if call.key in self._begun:
            return call, None
        self._begun.add(call.key)
        return call, self._event(call, CallState.started)

    def refused(self, call: AcpToolCall) -> AgentEvent:
        """We did not let it; whatever the agent says of it later is no news."""
        self._begun.add(call.key)
        self._over.add(call.key)
        return self._event(call, CallState.refused)

    def _learn(self, told: Object) -> AcpToolCall:
        key = text(told, "toolCallId")
        if len(self._calls) >= _MOST_CALLS and key not in self._calls:
            for memory in (self._calls, self._begun, self._over):
                memory.clear()
        call = self._calls.get(key, AcpToolCall(key)).with_more(told)
        self._calls[key] = call
        return call

    def _event(self, call: AcpToolCall, state: CallState) -> AgentEvent:
        is_edit = bool(call.edits) and state is not CallState.started
        return AgentEvent(
            kind=AgentEventKind.edit if is_edit else AgentEventKind.tool_call,
            text=call.command or call.title or call.given or call.came_of_it,
            tool=call.tool or call.kind or "tool",
            call=call.key,
            state=state,
            paths=tuple(below(self._workspace, path) for path in call.edits) if is_edit else (),
        )


def _came_of_it(told: Object) -> str:
    """What is said of a call that is over."""
    if text(told, "status") not in _STATES:
        return ""
    return next((said for part in objects(told, "content") if (said := text(part, "content", "text"))), "")


def _command(given: Object) -> str:
    command = given.get("command")
    if isinstance(command, list):
        return " ".join(word for word in command if isinstance(word, str))
    return text(given, "command")


def _each(*paths: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(path for path in paths if path))
