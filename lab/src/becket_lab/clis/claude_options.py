"""The command line of the fake claude."""

from __future__ import annotations

import os
import re

from becket_lab.clis.claude_tools import TOOLS

VALUED = {
    "--output-format", "--input-format", "--permission-mode", "--max-turns", "--max-budget-usd", "--model",
    "--resume", "-r", "--session-id", "--append-system-prompt", "--system-prompt", "--setting-sources", "--settings",
    "--fallback-model", "--effort",
}  # fmt: skip
VARIADIC = {
    "--allowedTools": "allowed", "--allowed-tools": "allowed", "--tools": "tools", "--add-dir": "dirs",
    "--disallowedTools": "disallowed", "--disallowed-tools": "disallowed", "--mcp-config": "mcp",
}  # fmt: skip
PLAIN = {
    "-p", "--print", "--verbose", "--strict-mcp-config", "--bare", "--dangerously-skip-permissions",
    "--include-partial-messages", "--no-session-persistence",
}  # fmt: skip
MODES = ("acceptEdits", "bypassPermissions", "default", "dontAsk", "plan", "auto", "manual")


class Usage(Exception):
    """The command line is wrong."""


class Options:
    def __init__(self, arguments: list[str]) -> None:
        self.values: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self.flags: set[str] = set()
        self.words: list[str] = []
        left = list(arguments)
        while left:
            self._take(left.pop(0), left)

    def _take(self, word: str, left: list[str]) -> None:
        name, joined, value = word.partition("=")
        if name in VALUED:
            if not joined and not left:
                raise Usage(f"error: option '{name}' argument missing")
            self.values[name.replace("-r", "--resume") if name == "-r" else name] = value if joined else left.pop(0)
        elif word in VARIADIC:
            taken = self.lists.setdefault(VARIADIC[word], [])
            while left and not left[0].startswith("-"):
                taken += [one for one in re.split(r"[, ]+(?![^(]*\))", left.pop(0)) if one]
        elif word in PLAIN:
            self.flags.add(word)
        elif word.startswith("-"):
            raise Usage(f"error: unknown option '{word}'")
        else:
            self.words.append(word)

    def check(self) -> None:
        mode = self.values.get("--permission-mode", "default")
        if mode not in MODES:
            raise Usage(f"error: option '--permission-mode <mode>' argument '{mode}' is invalid.")
        skip = "--dangerously-skip-permissions" in self.flags
        if (skip or mode == "bypassPermissions") and os.geteuid() == 0 and not os.environ.get("IS_SANDBOX"):
            raise Usage("--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons")
        if self.values.get("--output-format") == "stream-json" and "--verbose" not in self.flags:
            raise Usage("Error: When using --print, --output-format=stream-json requires --verbose")

    @property
    def mode(self) -> str:
        skip = "--dangerously-skip-permissions" in self.flags
        return "bypassPermissions" if skip else self.values.get("--permission-mode", "default")

    @property
    def tools(self) -> list[str]:
        if "--bare" in self.flags:
            return ["Bash", "Edit", "Read"]
        return [name for name in TOOLS if name in self.lists.get("tools", TOOLS)]

    @property
    def sees_skills(self) -> bool:
        """Only with the user's settings and the Skill tool."""
        sources = self.values.get("--setting-sources", "user")
        return "user" in sources.split(",") and "Skill" in self.tools and "--bare" not in self.flags
