"""The tools of the fake claude, and what its permission modes let them do."""

from __future__ import annotations

import re
from pathlib import Path

from becket_lab.clis.runtime import Commands, Json

_SAFE = {"echo", "ls", "cat", "pwd", "true", "false", "head", "tail", "wc", "grep", "which", "sleep"}
_FILE_TOOLS = ("Edit", "Write")


def _tool(name: str, *required: str) -> Json:
    properties = {one: {"type": "string"} for one in required}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": name, "input_schema": schema}


TOOLS: dict[str, Json] = {
    "Bash": _tool("Bash", "command"),
    "Edit": _tool("Edit", "file_path", "old_string", "new_string"),
    "Read": _tool("Read", "file_path"),
    "Skill": _tool("Skill", "skill"),
    "Write": _tool("Write", "file_path", "content"),
}


class Denied(Exception):
    """Permission was not given: told to the model, and the run goes on."""

    def __init__(self, text: str, announced: bool = False) -> None:
        super().__init__(text)
        self.announced = announced


class Tools:
    def __init__(self, mode: str, names: list[str], lists: dict[str, list[str]], cwd: str, commands: Commands) -> None:
        self._mode = mode
        self._names = names
        self._allowed = lists.get("allowed", [])
        self._disallowed = lists.get("disallowed", [])
        self._roots = [Path(one).resolve() for one in (cwd, *lists.get("dirs", []))]
        self._cwd = cwd
        self._commands = commands

    def use(self, name: str, arguments: Json) -> tuple[bool, str]:
        """Whether it went wrong, and what the model is told. Raises Denied."""
        if name not in self._names or name in self._disallowed:
            return True, f"<tool_use_error>Error: No such tool available: {name}</tool_use_error>"
        for needed in TOOLS[name]["input_schema"]["required"]:
            if needed not in arguments:
                text = f"{name} failed due to the following issue:\nThe required parameter `{needed}` is missing"
                return True, f"<tool_use_error>InputValidationError: {text}</tool_use_error>"
        self._permit(name, arguments)
        return self._do(name, arguments)

    def _permit(self, name: str, arguments: Json) -> None:
        if self._mode == "bypassPermissions" or name in {"Read", "Skill"}:
            return
        if name == "Bash" and all(self._is_safe(part) for part in _parts(arguments)):
            return
        if name in self._allowed and self._inside(arguments.get("file_path", ".")):
            return
        if self._mode == "acceptEdits" and name in _FILE_TOOLS and self._inside(arguments["file_path"]):
            return
        if self._mode == "dontAsk":
            text = f"Permission to use {name} has been denied because Claude Code is running in don't ask mode."
            raise Denied(text, announced=True)
        if name == "Bash":
            raise Denied("This command requires approval", announced=True)
        path = arguments["file_path"]
        raise Denied(f"Claude requested permissions to write to {path}, but you haven't granted it yet.")

    def _is_safe(self, part: str) -> bool:
        rules = [rule[5:-1] for rule in self._allowed if rule.startswith("Bash(")]
        return part.split(maxsplit=1)[0] in _SAFE or any(_matches(rule, part) for rule in rules)

    def _inside(self, path: str) -> bool:
        real = (Path(self._cwd) / path).resolve()
        return any(real.is_relative_to(root) for root in self._roots)

    def _do(self, name: str, arguments: Json) -> tuple[bool, str]:
        if name == "Bash":
            code, output = self._commands.run(arguments["command"], self._cwd)
            output = output.rstrip("\n")
            return (
                (True, f"Exit code {code}\n{output}") if code else (False, output or "(Bash completed with no output)")
            )
        if name == "Skill":
            return False, f"Launching skill: {arguments['skill']}"
        try:
            return self._file(name, Path(self._cwd) / arguments["file_path"], arguments)
        except OSError as error:
            return True, f"<tool_use_error>{error.strerror}: {error.filename}</tool_use_error>"

    def _file(self, name: str, path: Path, arguments: Json) -> tuple[bool, str]:
        if name != "Write" and not path.is_file():
            return True, f"File does not exist. Note: your current working directory is {self._cwd}."
        if name == "Read":
            numbered = [f"{at}\t{line}" for at, line in enumerate(path.read_text().split("\n"), 1)]
            return False, "\n".join(numbered)
        if name == "Write":
            existed = path.exists()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(arguments["content"])
            return False, f"The file {path} has been updated" if existed else f"File created successfully at: {path}"
        text, old = path.read_text(), arguments["old_string"]
        if old not in text:
            return True, f"<tool_use_error>String to replace not found in file.\nString: {old}</tool_use_error>"
        path.write_text(text.replace(old, arguments["new_string"], 1))
        return False, f"The file {path} has been updated successfully."


def _parts(arguments: Json) -> list[str]:
    """The commands of a command line, as far as separators tell."""
    return [part for part in re.split(r"&&|\|\||[;|\n]", arguments["command"]) if part.strip()]


def _matches(rule: str, part: str) -> bool:
    command = part.strip()
    if rule.endswith(":*"):
        return command == rule[:-2] or command.startswith(f"{rule[:-2]} ")
    return rule in {command, "*"}
