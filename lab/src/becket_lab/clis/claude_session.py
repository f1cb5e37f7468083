"""What the fake claude keeps of a session below HOME."""

from __future__ import annotations

import json
import re

from becket_lab.clis.runtime import Json, home

PRICES = {"claude-sonnet": (3.0, 0.3, 15.0), "claude-haiku": (1.0, 0.1, 5.0), "": (4.0, 0.2, 20.0)}


class Session:
    """What was said so far and what it cost in all; the usage is of one run only."""

    def __init__(self, ident: str, cwd: str, keep: bool) -> None:
        self.id = ident
        self._keep = keep
        projects = home() / ".claude" / "projects"
        self._file = next(projects.glob(f"*/{ident}.jsonl"), None)
        self.known = self._file is not None
        self.messages: list[Json] = []
        self.models: dict[str, Json] = {}
        if self._file is None:
            self._file = projects / re.sub(r"[^A-Za-z0-9]", "-", cwd) / f"{ident}.jsonl"
            return
        for line in self._file.read_text().splitlines():
            entry = json.loads(line)
            self.messages += [entry["message"]] if "message" in entry else []
            self.models = entry.get("models", self.models)
        self._answer_open_calls()

    @property
    def cost(self) -> float:
        return sum(float(model["costUSD"]) for model in self.models.values())

    def add(self, message: Json) -> None:
        self.messages.append(message)
        self._write({"message": message})

    def spend(self, model: str, usage: Json) -> None:
        used = self.models.setdefault(
            model, {"inputTokens": 0, "outputTokens": 0, "cacheReadInputTokens": 0, "costUSD": 0.0}
        )
        fresh, cached, out = usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]
        rates = next(rate for name, rate in PRICES.items() if model.startswith(name))
        used["inputTokens"] += fresh
        used["cacheReadInputTokens"] += cached
        used["outputTokens"] += out
        used["costUSD"] += (fresh * rates[0] + cached * rates[1] + out * rates[2]) / 1e6
        self._write({"models": self.models})

    def _write(self, entry: Json) -> None:
        if self._keep and self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a") as file:
                file.write(json.dumps(entry) + "\n")

    def _answer_open_calls(self) -> None:
        """A run that was killed left calls without a result, which the service would refuse."""
        last: Json = self.messages[-1] if self.messages else {"role": "user", "content": []}
        calls = [block for block in last["content"] if last["role"] == "assistant" and block["type"] == "tool_use"]
        if calls:
            gone = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": "[Request interrupted]", "is_error": True}
                for call in calls
            ]
            self.messages.append({"role": "user", "content": gone})
