"""What the lines of Claude Code's stream-json mean."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallState, PriceSource, Usage
from becket.kernel.contract.process import ChildEnd, ChildResult
from becket.parts.agents.adapters import lenient_json
from becket.parts.agents.adapters.dialect import NOTHING, Heard, below, minus, plus
from becket.parts.agents.adapters.lines import Vital
from becket.parts.agents.adapters.trouble import recognise

_EDITS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit"})
_LIMITS = {"error_max_turns": "turns", "error_max_budget_usd": "money"}
_LETTERS_PER_TOKEN = 4
_PATIENCE = 60.0
"""Seconds of trying again without an answer."""


class ClaudeDialect:
    """A turn is one answer of the model, which comes in one event per block.

    Until the result comes, the tokens of an answer's output are guessed by its length: only their number at its
    beginning is told. The result's figures then replace the guess.
    """

    vital: Vital = re.compile(rb'"(?:system|result|rate_limit_event)"')

    def __init__(self, tree: Path, before: Usage = NOTHING, *, clock: Callable[[], float] = time.time) -> None:
        self.heard = Heard(total=before)
        self._tree = tree
        self._before = before
        self._clock = clock
        self._answers: dict[str, str] = {}  # the answer that is coming in, of it and of each agent that it started
        self._tools: dict[str, AgentEvent] = {}
        self._refused: set[str] = set()
        self._resets_at: float | None = None

    def take(self, line: str) -> list[AgentEvent]:
        event = lenient_json.parsed(line)
        kind = lenient_json.text(event, "type")
        if event is not None and kind == "system":
            return self._system(event)
        if event is not None and kind == "assistant":
            return self._assistant(event)
        if kind == "user":
            self._answers.pop(lenient_json.text(event, "parent_tool_use_id"), None)
            blocks = lenient_json.objects(event, "message", "content")
            return [made for block in blocks for made in self._tool_result(block)]
        if event is not None and kind == "result":
            return self._result(event)
        if kind == "rate_limit_event":
            info = lenient_json.mapping(event, "rate_limit_info")
            if lenient_json.text(info, "status") == "rejected":
                self._resets_at = lenient_json.number(info, "resetsAt") or None
            return []
        if line.strip():
            self.heard.unknown += 1
        return []

    def close(self, result: ChildResult, tail: str) -> None:
        if not self.heard.ended and result.end is ChildEnd.exited and result.exit_code:
            self.heard.last_error = self.heard.last_error or tail.rpartition("\n")[2]

    def _system(self, event: lenient_json.Object) -> list[AgentEvent]:
        subtype = lenient_json.text(event, "subtype")
        if subtype == "init":
            self.heard.session = lenient_json.text(event, "session_id") or None
            self.heard.model = lenient_json.text(event, "model")
            self.heard.version = lenient_json.text(event, "claude_code_version")
            return []
        if subtype == "api_retry":
            tries = f"try {lenient_json.count(event, 'attempt')} of {lenient_json.count(event, 'max_retries')}"
            status = lenient_json.count(event, "error_status") or "no answer"
            self.heard.last_error = f"the model's server: {status} {lenient_json.text(event, 'error')}".rstrip()
            self.heard.patience = _PATIENCE
            return [AgentEvent(kind=AgentEventKind.error, text=f"{self.heard.last_error}; {tries}")]
        if subtype == "permission_denied":
            self._refused.add(lenient_json.text(event, "tool_use_id"))
            return []
        self.heard.unknown += 1
        return []

    def _assistant(self, event: lenient_json.Object) -> list[AgentEvent]:
        message = lenient_json.mapping(event, "message")
        blocks = lenient_json.objects(message, "content")
        if event.get("is_api_error_message") is True:
            self.heard.last_error = " ".join(lenient_json.text(block, "text") for block in blocks)
            return [AgentEvent(kind=AgentEventKind.error, text=self.heard.last_error)]
        self.heard.patience, self.heard.last_error = 0.0, ""
        whose, answer = lenient_json.text(event, "parent_tool_use_id"), lenient_json.text(message, "id")
        if self._answers.get(whose) != answer:
            self._answers[whose] = answer
            self.heard.usage = plus(self.heard.usage, _at_start(message))
        letters = sum(len(lenient_json.compact(block)) for block in blocks)
        self.heard.usage = plus(self.heard.usage, Usage(output_tokens=letters // _LETTERS_PER_TOKEN))
        return [made for block in blocks for made in self._block(block)]

    def _block(self, block: lenient_json.Object) -> list[AgentEvent]:
        kind = lenient_json.text(block, "type")
        if kind == "text":
            self.heard.said = lenient_json.text(block, "text")
            return [AgentEvent(kind=AgentEventKind.message, text=self.heard.said)]
        if kind == "thinking":
            return [AgentEvent(kind=AgentEventKind.thinking, text=lenient_json.text(block, "thinking"))]
        if kind != "tool_use":
            self.heard.unknown += 1
            return []
        tool, given = lenient_json.text(block, "name"), lenient_json.mapping(block, "input")
        path = lenient_json.text(given, "file_path") or lenient_json.text(given, "notebook_path")
        made = AgentEvent(
            kind=AgentEventKind.edit if tool in _EDITS else AgentEventKind.tool_call,
            text="" if tool in _EDITS else lenient_json.text(given, "command") or lenient_json.compact(given),
            tool=tool,
            call=lenient_json.text(block, "id"),
            state=CallState.started,
            paths=(below(self._tree, path),) if tool in _EDITS and path else (),
        )
        self._tools[made.call] = made
        return [made]

    def _tool_result(self, block: lenient_json.Object) -> list[AgentEvent]:
        begun = self._tools.pop(lenient_json.text(block, "tool_use_id"), None)
        if begun is None:
            return []
        state = CallState.failed if block.get("is_error") is True else CallState.done
        if begun.call in self._refused:
            state = CallState.refused
        return [begun.model_copy(update={"state": state})]

    def _result(self, event: lenient_json.Object) -> list[AgentEvent]:
        heard = self.heard
        heard.ended = True
        heard.session = lenient_json.text(event, "session_id") or heard.session
        heard.refusals = [_denial(denied) for denied in lenient_json.objects(event, "permission_denials")]
        heard.total, heard.usage = self._totals(event)
        made = [AgentEvent(kind=AgentEventKind.usage, usage=heard.usage)]
        subtype = lenient_json.text(event, "subtype")
        # `subtype: success` stands beside `is_error: true` when the model's server failed (L20).
        if event.get("is_error") is False and subtype == "success":
            heard.said = lenient_json.text(event, "result") or heard.said
            return made
        errors = event.get("errors")
        listed = [lenient_json.text({"it": error}, "it") for error in errors] if isinstance(errors, list) else []
        heard.error = "; ".join(filter(None, listed)) or lenient_json.text(event, "result") or subtype or "it failed"
        heard.session_gone = "No conversation found" in heard.error
        self._explain(event, subtype)
        return [*made, AgentEvent(kind=AgentEventKind.error, text=heard.error)]

    def _explain(self, event: lenient_json.Object, subtype: str) -> None:
        heard = self.heard
        if subtype in _LIMITS:
            heard.hint, heard.error = (
                AgentOutcome.limit_reached,
                f"it passed its limit of {_LIMITS[subtype]}: {heard.error}",
            )
        elif lenient_json.text(event, "stop_reason") == "refusal":
            heard.hint = AgentOutcome.refused
        else:
            status, code = (
                lenient_json.count(event, "api_error_status") or None,
                lenient_json.text(event, "api_error_type"),
            )
            trouble = recognise(heard.error, self._clock(), status=status, code=code, resets_at=self._resets_at)
            if trouble is not None:
                heard.hint, heard.until = trouble.outcome, trouble.until

    def _totals(self, event: lenient_json.Object) -> tuple[Usage, Usage]:
        """Of the session, and of this child. `usage` is all zeros after a stop by budget: the models' sums are not."""
        total = _of_models(lenient_json.mapping(event, "modelUsage"))
        total = total.model_copy(
            update={"usd": lenient_json.number(event, "total_cost_usd"), "priced": PriceSource.vendor}
        )
        own = _of_models(lenient_json.mapping(event, "model_usage_since_last_result"))
        if not own.tokens:
            own = minus(total, self._before)
        return total, own.model_copy(update={"turns": self.heard.usage.turns, "priced": PriceSource.vendor})


def _at_start(message: lenient_json.Object) -> Usage:
    told = lenient_json.mapping(message, "usage")
    cached, written = (
        lenient_json.count(told, "cache_read_input_tokens"),
        lenient_json.count(told, "cache_creation_input_tokens"),
    )
    return Usage(
        turns=1,
        input_tokens=lenient_json.count(told, "input_tokens") + cached + written,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


def _of_models(models: lenient_json.Object) -> Usage:
    usage = Usage()
    for told in (lenient_json.mapping(models, name) for name in models):
        cached, written = (
            lenient_json.count(told, "cacheReadInputTokens"),
            lenient_json.count(told, "cacheCreationInputTokens"),
        )
        of_one = Usage(
            input_tokens=lenient_json.count(told, "inputTokens") + cached + written,
            cached_tokens=cached,
            cache_write_tokens=written,
            output_tokens=lenient_json.count(told, "outputTokens"),
            usd=lenient_json.number(told, "costUSD"),
        )
        usage = plus(usage, of_one)
    return usage


def _denial(denied: lenient_json.Object) -> str:
    given = lenient_json.mapping(denied, "tool_input")
    what = lenient_json.text(given, "command") or lenient_json.text(given, "file_path") or lenient_json.compact(given)
    return f"{lenient_json.text(denied, 'tool_name')} {what}"[:200]
