"""Codex's own record of a thread, in its place below HOME and in its form."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from becket_lab.clis.codex_options import codex_home
from becket_lab.clis.runtime import Json

_NOTHING = {
    "input_tokens": 0,
    "cached_input_tokens": 0,
    "cache_write_input_tokens": 0,
    "output_tokens": 0,
    "reasoning_output_tokens": 0,
}


class Thread:
    """What was said so far, and what it used in all: codex counts over the whole thread."""

    def __init__(self, ident: str, keep: bool) -> None:
        self.id = ident
        self._keep = keep
        self.items: list[Json] = []
        self.used: dict[str, int] = dict(_NOTHING)
        self._file = next((codex_home() / "sessions").glob(f"*/*/*/rollout-*-{ident}.jsonl"), None)
        if self._file is not None:
            for line in self._file.read_text().splitlines():
                self._recall(json.loads(line))
            self._abort_open_calls()

    @property
    def known(self) -> bool:
        return self._file is not None

    def begin(self, model: str) -> None:
        self._write("turn_context", {"model": model})

    def add(self, item: Json) -> None:
        self.items.append(item)
        self._write("response_item", item)

    def spend(self, usage: Json) -> None:
        last = {
            "input_tokens": usage["input_tokens"],
            "cached_input_tokens": usage["input_tokens_details"]["cached_tokens"],
            "output_tokens": usage["output_tokens"],
            "reasoning_output_tokens": usage["output_tokens_details"]["reasoning_tokens"],
        }
        self.used = {name: before + last.get(name, 0) for name, before in self.used.items()}
        total = self.used["input_tokens"] + self.used["output_tokens"]
        info = {"total_token_usage": {**self.used, "total_tokens": total}, "last_token_usage": last}
        self._write("event_msg", {"type": "token_count", "info": info})

    def _recall(self, entry: Json) -> None:
        payload = entry["payload"]
        if entry["type"] == "response_item":
            self.items.append(payload)
        elif payload.get("type") == "token_count":
            told = payload["info"]["total_token_usage"]
            self.used = {name: told[name] for name in self.used}

    def _write(self, kind: str, payload: Json) -> None:
        if not self._keep:
            return
        now = datetime.now(UTC)
        if self._file is None:
            folder = codex_home() / "sessions" / now.strftime("%Y/%m/%d")
            folder.mkdir(parents=True, exist_ok=True)
            self._file = folder / f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{self.id}.jsonl"
            self._write("session_meta", {"id": self.id, "originator": "codex_exec"})
        stamp = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        with self._file.open("a") as file:
            file.write(json.dumps({"timestamp": stamp, "type": kind, "payload": payload}) + "\n")

    def _abort_open_calls(self) -> None:
        """A turn that was killed left calls without a result, which the service would refuse."""
        answered = {item["call_id"] for item in self.items if item["type"].endswith("call_output")}
        for item in list(self.items):
            if item["type"] in {"function_call", "custom_tool_call"} and item["call_id"] not in answered:
                kind = f"{item['type']}_output"
                self.items.append({"type": kind, "call_id": item["call_id"], "output": "aborted"})
