"""What the lines of `codex exec --json` mean."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallState, Usage
from becket.kernel.contract.process import ChildEnd, ChildResult
from becket.parts.agents.adapters import lenient_json
from becket.parts.agents.adapters.codex_ledger import tokens_of
from becket.parts.agents.adapters.dialect import NOTHING, Heard, below, minus
from becket.parts.agents.adapters.lines import Vital
from becket.parts.agents.adapters.trouble import recognise

_TOOLS = {
    "command_execution": "shell",
    "mcp_tool_call": "mcp",
    "web_search": "web_search",
    "collab_tool_call": "agent",
}
_STATES = {"completed": CallState.done, "failed": CallState.failed, "declined": CallState.refused}
_WITHOUT_MEANING = frozenset({"turn.started", "item.updated"})
_OFFLINE = "waiting for network"
_PATIENCE, _PATIENCE_QUOTA = 60.0, 90.0
"""Seconds of trying again without anything done. A 429 it tries again only where the server told when (it does not pass
that on): a limit by the minute is over within this, and for one by the hour the run waits better than a process.
"""


class CodexDialect:
    """A turn of ours is one answer of the model. Codex does not tell them apart, so they are counted by their items:
    the first item after a tool has ended belongs to a new answer. A tool that shows no item is not counted.
    """

    vital: Vital = re.compile(rb'"(?:thread\.started|turn\.completed|turn\.failed|error)"')

    def __init__(
        self, tree: Path, before: Usage = NOTHING, *, model: str = "", clock: Callable[[], float] = time.time
    ) -> None:
        self.heard = Heard(model=model, total=before)
        self._tree = tree
        self._before = before
        self._clock = clock
        self._steps = 0
        self._next_is_new = True
        self._running: set[str] = set()

    def take(self, line: str) -> list[AgentEvent]:
        event = lenient_json.parsed(line)
        kind = lenient_json.text(event, "type")
        if kind in ("item.started", "item.completed"):
            return self._item(lenient_json.mapping(event, "item"), over=kind == "item.completed")
        if kind == "thread.started":
            self.heard.session = lenient_json.text(event, "thread_id") or None
            return []
        if kind == "turn.completed":
            return self._completed(lenient_json.mapping(event, "usage"))
        if kind == "turn.failed":
            return self._failed(lenient_json.text(event, "error", "message"))
        if kind == "error":
            return self._noted(lenient_json.text(event, "message"))
        if line.strip() and kind not in _WITHOUT_MEANING:
            self.heard.unknown += 1
        return []

    def close(self, result: ChildResult, tail: str) -> None:
        if self.heard.ended or result.ok:
            return
        if not self.heard.session and "no rollout found" in tail:
            self.heard.session_gone = True
        if result.end is ChildEnd.exited:
            self.heard.last_error = self.heard.last_error or tail.rpartition("\n")[2]

    def _item(self, item: lenient_json.Object, *, over: bool) -> list[AgentEvent]:
        self.heard.patience, self.heard.last_error = 0.0, ""
        kind, call = lenient_json.text(item, "type"), lenient_json.text(item, "id")
        if kind == "error":
            return [AgentEvent(kind=AgentEventKind.error, text=lenient_json.text(item, "message"))] if over else []
        self._count(call, over=over, tool=kind in _TOOLS or kind == "file_change")
        if kind in ("agent_message", "reasoning"):
            return self._words(kind, lenient_json.text(item, "text")) if over else []
        state = _state(item) if over else CallState.started
        if state is CallState.refused:
            self.heard.refusals.append(lenient_json.text(item, "command") or kind)
        if kind == "file_change":
            paths = tuple(
                below(self._tree, lenient_json.text(change, "path")) for change in lenient_json.objects(item, "changes")
            )
            return [AgentEvent(kind=AgentEventKind.edit, tool="apply_patch", call=call, state=state, paths=paths)]
        if kind in _TOOLS:
            said = _said_of(item)
            return [AgentEvent(kind=AgentEventKind.tool_call, text=said, tool=_TOOLS[kind], call=call, state=state)]
        if kind != "todo_list":
            self.heard.unknown += 1
        return []

    def _words(self, kind: str, text: str) -> list[AgentEvent]:
        if kind == "reasoning":
            return [AgentEvent(kind=AgentEventKind.thinking, text=text)]
        self.heard.said = text
        return [AgentEvent(kind=AgentEventKind.message, text=text)]

    def _count(self, call: str, *, over: bool, tool: bool) -> None:
        if self._next_is_new and not self._running:
            self._next_is_new = False
            self._steps += 1
            self.heard.usage = self.heard.usage.model_copy(update={"turns": self._steps})
        if tool and not over:
            self._running.add(call)
        if tool and over:
            self._running.discard(call)
            self._next_is_new = True

    def _completed(self, told: lenient_json.Object) -> list[AgentEvent]:
        """Its figures are those of the whole thread, from its first turn on."""
        self.heard.total = tokens_of(told)
        turns = max(self._steps, self.heard.usage.turns)  # its thread record may know of steps that were not printed
        self.heard.usage = minus(self.heard.total, self._before).model_copy(update={"turns": turns})
        self.heard.ended = True
        return [AgentEvent(kind=AgentEventKind.usage, usage=self.heard.usage)]

    def _failed(self, message: str) -> list[AgentEvent]:
        message = message or self.heard.last_error or "the turn failed, and codex did not say why"
        trouble = recognise(message, self._clock())
        self.heard.ended, self.heard.error = True, message
        if trouble is not None:
            self.heard.hint, self.heard.until = trouble.outcome, trouble.until
        return [AgentEvent(kind=AgentEventKind.error, text=message)]

    def _noted(self, message: str) -> list[AgentEvent]:
        """Not the end: it says so while it tries again. What ends a turn is `turn.failed`."""
        self.heard.last_error = message
        trouble = recognise(message, self._clock())
        if trouble is not None and trouble.outcome is AgentOutcome.quota_wait:
            self.heard.patience = _PATIENCE_QUOTA
        elif trouble is not None or _OFFLINE in message:
            self.heard.patience = _PATIENCE
        return [AgentEvent(kind=AgentEventKind.error, text=message)]


def _state(item: lenient_json.Object) -> CallState:
    exit_code = item.get("exit_code")
    if isinstance(exit_code, int) and exit_code != 0 and lenient_json.text(item, "status") != "declined":
        return CallState.failed
    return _STATES.get(lenient_json.text(item, "status"), CallState.done)


def _said_of(item: lenient_json.Object) -> str:
    if command := lenient_json.text(item, "command") or lenient_json.text(item, "query"):
        return command
    return " ".join(filter(None, (lenient_json.text(item, "server"), lenient_json.text(item, "tool"))))
