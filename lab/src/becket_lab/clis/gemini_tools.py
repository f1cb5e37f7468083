"""The tools of the fake gemini."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from becket_lab.clis.runtime import Commands, Json

EDITS = frozenset({"replace", "write_file"})
_SAFE = {"echo", "ls", "cat", "pwd", "head", "tail", "wc", "grep"}


def _declared(name: str, *required: str) -> Json:
    properties = {one: {"type": "string"} for one in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": name, "parametersJsonSchema": schema}


TOOLS = [
    _declared("read_file", "file_path"),
    _declared("replace", "file_path", "instruction", "old_string", "new_string"),
    _declared("write_file", "file_path", "content"),
    _declared("run_shell_command", "command"),
]


@dataclass(frozen=True)
class Deed:
    """A tool call that could be done: how it is shown to the client, and `do`, which does it."""

    tool: str
    kind: str
    title: str
    content: list[Json]
    locations: list[Json]
    harmless: bool
    do: Callable[[], tuple[bool, str]]


class Tools:
    def __init__(self, cwd: str, commands: Commands) -> None:
        self._cwd = cwd
        self._commands = commands

    def deed(self, name: str, arguments: Json) -> Deed | None:
        """None for a tool that does not exist or lacks an argument."""
        tool = next((one for one in TOOLS if one["name"] == name), None)
        needed = (
            [] if tool is None else [one for one in tool["parametersJsonSchema"]["required"] if one != "instruction"]
        )
        if tool is None or any(one not in arguments for one in needed):
            return None
        if name == "run_shell_command":
            return self._shell(arguments["command"])
        path = Path(self._cwd) / arguments["file_path"]
        if name == "read_file":
            return Deed(name, "read", path.name, [], [{"path": str(path)}], True, lambda: _read(path))
        return self._change(name, path, arguments)

    def _shell(self, command: str) -> Deed:
        where = {"type": "text", "text": f"[current working directory {self._cwd}]"}
        parts = [part.split() for part in re.split(r"&&|\|\||[;|\n]", command)]
        harmless = all(part and part[0] in _SAFE for part in parts) and ">" not in command

        def do() -> tuple[bool, str]:
            code, output = self._commands.run(command, self._cwd)
            return False, f"Output: {output or '(empty)'}\nExit Code: {code}"

        content = [{"type": "content", "content": where}]
        return Deed("run_shell_command", "execute", command, content, [], harmless, do)

    def _change(self, name: str, path: Path, arguments: Json) -> Deed:
        old = path.read_text() if path.is_file() else ""
        near = str(path.relative_to(self._cwd)) if path.is_relative_to(self._cwd) else str(path)
        if name == "write_file":
            new, title = arguments["content"], f"Writing to {near}"
        else:
            new = old.replace(arguments["old_string"], arguments["new_string"], 1)
            title = f"{near}: {arguments['old_string']} => {arguments['new_string']}"
        kind = "modify" if path.is_file() else "add"
        diff = {"type": "diff", "path": str(path), "oldText": old, "newText": new, "_meta": {"kind": kind}}

        def do() -> tuple[bool, str]:
            if not path.resolve().is_relative_to(Path(self._cwd).resolve()):
                return True, f"Path not in workspace: {path}"
            if name == "replace" and arguments["old_string"] not in old:
                return True, f"Could not find an exact match for 'old_string' in '{path}'."
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(new)
            return False, f"Successfully modified file: {path}"

        return Deed(name, "edit", title, [diff], [{"path": str(path)}], False, do)


def _read(path: Path) -> tuple[bool, str]:
    try:
        return False, path.read_text()
    except OSError as error:
        return True, f"File not found: {error.filename}"
