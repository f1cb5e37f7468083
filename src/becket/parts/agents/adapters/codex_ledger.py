"""Codex's own record of a thread: what it prints has tokens only when a turn ends, and of a killed one never."""

from __future__ import annotations

import re
from pathlib import Path

from becket.kernel.contract.agent import Usage
from becket.parts.agents.adapters import lenient_json
from becket.parts.agents.adapters.dialect import larger
from becket.parts.agents.adapters.lines import few_lines, read_plain

_TOLD = re.compile(rb'"(?:token_count|turn_context)"')


class CodexLedger:
    """Reads `~/.codex/sessions/YYYY/MM/DD/rollout-*-THREAD.jsonl` while codex writes it.

    The folder is the agent's to write: no link is followed, and what it says can only add to what codex tells itself.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / ".codex" / "sessions"
        self._path: Path | None = None
        self._offset = 0
        self._answers = 0
        self._total = Usage()
        self.model = ""  # what it prints never names it

    def total(self, thread: str) -> Usage:
        """Of the whole thread so far; its turns are the answers of the model."""
        path = self._path = self._path or self._found(thread)
        if path is not None:
            self._read(path)
        return self._total.model_copy(update={"turns": self._answers})

    def _found(self, thread: str) -> Path | None:
        if not thread.replace("-", "").isalnum():
            return None
        found = [path for path in self._folder.glob(f"*/*/*/rollout-*-{thread}.jsonl") if path.is_file()]
        inside = [path for path in found if path.resolve().is_relative_to(self._folder.resolve())]
        return inside[0] if inside else None

    def _read(self, path: Path) -> None:
        whole, newline, _ = read_plain(path, self._offset).rpartition(b"\n")
        self._offset += len(whole) + len(newline)
        for line in few_lines(whole, _TOLD):
            if _TOLD.search(line):
                self._take(lenient_json.parsed(line.decode("utf-8", "replace")))

    def _take(self, entry: lenient_json.Object | None) -> None:
        payload = lenient_json.mapping(entry, "payload")
        if lenient_json.text(entry, "type") == "turn_context":
            self.model = lenient_json.text(payload, "model") or self.model
        told = lenient_json.mapping(payload, "info", "total_token_usage")
        if lenient_json.text(payload, "type") != "token_count" or not told:
            return
        total = larger(self._total, tokens_of(told))
        if total != self._total:
            self._answers += 1
        self._total = total


def tokens_of(told: lenient_json.Object) -> Usage:
    """As codex counts, on standard output and in its record alike."""
    return Usage(
        input_tokens=lenient_json.count(told, "input_tokens"),
        cached_tokens=lenient_json.count(told, "cached_input_tokens"),
        cache_write_tokens=lenient_json.count(told, "cache_write_input_tokens"),
        output_tokens=lenient_json.count(told, "output_tokens"),
    )
