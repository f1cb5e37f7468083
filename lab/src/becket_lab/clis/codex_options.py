"""The command line and the settings of the fake codex."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from becket_lab.clis.codex_errors import Failed
from becket_lab.clis.runtime import Json, home

VALUED = {
    "-s": "sandbox", "--sandbox": "sandbox", "-m": "model", "--model": "model", "-C": "cd", "--cd": "cd",
    "-o": "last", "--output-last-message": "last", "--output-schema": "schema", "--color": "color",
    "-p": "profile", "--profile": "profile", "--add-dir": "add-dir", "-i": "image", "--image": "image",
}  # fmt: skip
LISTED = {"-c": "config", "--config": "config", "--disable": "disable", "--enable": "enable"}
PLAIN = {
    "--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules",
    "--dangerously-bypass-approvals-and-sandbox", "--strict-config",
}  # fmt: skip
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")


class Usage(Exception):
    """The command line is wrong."""


class Options:
    def __init__(self, arguments: list[str]) -> None:
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {"config": [], "disable": [], "enable": []}
        self.flags: set[str] = set()
        self.words: list[str] = []
        left = list(arguments)
        while left:
            self._take(left.pop(0), left)
        if self.values.get("sandbox", "read-only") not in SANDBOXES:
            raise Usage(f"error: invalid value '{self.values['sandbox']}' for '--sandbox <SANDBOX_MODE>'")

    def _take(self, word: str, left: list[str]) -> None:
        if word == "--":
            self.words += left
            left.clear()
        elif word in VALUED or word in LISTED:
            if not left:
                raise Usage(f"error: a value is required for '{word}' but none was supplied")
            value = left.pop(0)
            if word in LISTED:
                self.lists[LISTED[word]].append(value)
            else:
                self.values[VALUED[word]] = value
        elif word in PLAIN:
            self.flags.add(word)
        elif word.startswith("-") and word != "-":
            raise Usage(f"error: unexpected argument '{word}' found\n\nUsage: codex exec [OPTIONS] [PROMPT]")
        else:
            self.words.append(word)

    def settings(self) -> Json:
        """The user's config.toml under the `-c` values."""
        file = codex_home() / "config.toml"
        merged: Json = {}
        if file.is_file() and "--ignore-user-config" not in self.flags:
            merged = tomllib.loads(file.read_text())
        for pair in self.lists["config"]:
            path, _, text = pair.partition("=")
            try:
                value: Any = tomllib.loads(f"v = {text}")["v"]
            except tomllib.TOMLDecodeError:
                value = text
            place = merged
            *parents, last = path.split(".")
            for name in parents:
                place = place.setdefault(name, {})
            place[last] = value
        return merged


def codex_home() -> Path:
    return Path(os.environ.get("CODEX_HOME") or home() / ".codex")


class Provider:
    def __init__(self, settings: Json) -> None:
        name = settings.get("model_provider", "openai")
        default = {"name": "openai", "base_url": os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")}
        table = settings.get("model_providers", {}).get(name, default if name == "openai" else None)
        if table is None:
            raise Usage(f"Error: Model provider `{name}` not found")
        self.url = str(table["base_url"]).rstrip("/") + "/responses"
        self.env_key = table.get("env_key")
        self.request_retries = int(table.get("request_max_retries", 4))
        self.stream_retries = int(table.get("stream_max_retries", 5))

    def key(self) -> str:
        if self.env_key:
            if not os.environ.get(self.env_key):
                raise Failed(f"Missing environment variable: `{self.env_key}`.")
            return os.environ[self.env_key]
        file = codex_home() / "auth.json"
        stored = json.loads(file.read_text()).get("OPENAI_API_KEY") if file.is_file() else None
        return os.environ.get("CODEX_API_KEY") or stored or "none"
