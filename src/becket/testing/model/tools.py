"""From a portable step to a call of a tool that the client really offers."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from becket.testing.model.exchange import ModelRequest, Offered, ToolCall
from becket.testing.model.steps import Call, Edit, Shell, Write

_SHELLS = ("exec_command", "shell_command", "shell", "Bash", "bash", "run_shell_command", "execute_command", "terminal")
_WRITERS = ("Write", "write", "write_file", "create_file")
_EDITORS = ("Edit", "edit", "replace", "str_replace")
_PATCH = "apply_patch"

_NAMES: Mapping[str, tuple[str, ...]] = {
    "command": ("cmd", "command"),
    "path": ("file_path", "filePath", "path", "filename"),
    "text": ("content", "contents", "text"),
    "old": ("old_string", "oldString", "old_str", "old"),
    "new": ("new_string", "newString", "new_str", "new"),
}
_HARMLESS: Mapping[str, object] = {"string": "scripted", "boolean": False, "integer": 1, "number": 1, "array": []}
_FOLDER = re.compile(
    r"<cwd>(?P<codex>[^<\n]+)</cwd>"
    r"|[Ww]orking directory: *(?P<claude>/[^\n<]*)"
    r"|working in the director(?:y|ies): *(?P<gemini>/[^\n<]*)"
    r"|Workspace Directories:\**\s+- *(?P<listed>/[^\n<]*)"
)


class NoTool(Exception):
    """The client offers nothing that this step could be done with."""


def call_for(step: Shell | Write | Edit | Call, ask: ModelRequest, call: str) -> ToolCall:
    """Files by the client's own tool for them, else as a patch, else by the shell."""
    if isinstance(step, Call):
        return _raw(step, ask, call)
    if isinstance(step, Shell):
        return _shell(step.command, ask, call)
    change = _file_change(step, ask, call)
    if change is not None:
        return change
    if _find(ask, (_PATCH,)):
        return _patched(step, ask, call)
    return _shell(_by_shell(step), ask, call)


def folder_of(ask: ModelRequest) -> PurePosixPath | None:
    """The client's working folder, which every known client tells its model."""
    for prompt in reversed(ask.prompts):
        for found in _FOLDER.finditer(prompt):
            return PurePosixPath(next(one for one in found.groups() if one).strip())
    return None


def _find(ask: ModelRequest, names: tuple[str, ...]) -> Offered | None:
    offered = {tool.name: tool for tool in ask.tools}
    return next((offered[name] for name in names if name in offered), None)


def _raw(step: Call, ask: ModelRequest, call: str) -> ToolCall:
    tool = _find(ask, (step.tool,))
    if tool is not None and tool.freeform:
        return ToolCall(call, step.tool, {}, text=str(step.arguments.get("input", "")))
    return ToolCall(call, step.tool, step.arguments)


def _shell(command: str, ask: ModelRequest, call: str) -> ToolCall:
    tool = _find(ask, _SHELLS)
    if tool is None:
        raise NoTool(f"no tool for a command line; the client offers {_names(ask)}")
    name = _property(tool, "command")
    array = isinstance(tool.properties.get(name), Mapping) and tool.properties[name].get("type") == "array"
    return ToolCall(call, tool.name, _filled(tool, {name: ["bash", "-lc", command] if array else command}))


def _file_change(step: Write | Edit, ask: ModelRequest, call: str) -> ToolCall | None:
    tool = _find(ask, _WRITERS if isinstance(step, Write) else _EDITORS)
    if tool is None:
        return None
    path = _absolute(step.path, ask)
    wanted = {"path": path, "text": step.text} if isinstance(step, Write) else {"path": path, "old": step.old}
    if isinstance(step, Edit):
        wanted["new"] = step.new
    return ToolCall(call, tool.name, _filled(tool, {_property(tool, name): value for name, value in wanted.items()}))


def _absolute(path: str, ask: ModelRequest) -> str:
    folder = folder_of(ask)
    return path if folder is None else str(folder / path)


def _property(tool: Offered, meaning: str) -> str:
    found = next((name for name in _NAMES[meaning] if name in tool.properties), None)
    if found is None:
        raise NoTool(f"the tool {tool.name} has no argument for the {meaning}; it has {', '.join(tool.properties)}")
    return found


def _filled(tool: Offered, arguments: dict[str, Any]) -> dict[str, Any]:
    """With a harmless value for whatever else the tool demands."""
    for name in tool.required:
        schema = tool.properties.get(name)
        kind = str(schema.get("type", "string")).lower() if isinstance(schema, Mapping) else "string"
        arguments.setdefault(name, _HARMLESS.get(kind, "scripted"))
    return arguments


def _patched(step: Write | Edit, ask: ModelRequest, call: str) -> ToolCall:
    head = f"*** Begin Patch\n*** {'Add' if isinstance(step, Write) else 'Update'} File: {step.path}\n"
    if isinstance(step, Write):
        body = "".join(f"+{line}\n" for line in step.text.splitlines())
    else:
        lines = [f"-{line}" for line in step.old.splitlines()] + [f"+{line}" for line in step.new.splitlines()]
        body = "@@\n" + "".join(f"{line}\n" for line in lines)
    patch = f"{head}{body}*** End Patch\n"
    tool = _find(ask, (_PATCH,))
    if tool is not None and tool.freeform:
        return ToolCall(call, _PATCH, {}, text=patch)
    return ToolCall(call, _PATCH, {"input": patch})


_REPLACE = """\
import json, pathlib
path, old, new = json.loads({data})
file = pathlib.Path(path)
text = file.read_text()
assert text.count(old) == 1, f"{{path}}: the text occurs {{text.count(old)}} times"
file.write_text(text.replace(old, new))
"""


def _by_shell(step: Write | Edit) -> str:
    if isinstance(step, Edit):
        program = _REPLACE.format(data=repr(json.dumps([step.path, step.old, step.new])))
        return f"python3 - <<'BECKET_END'\n{program}BECKET_END"
    path = shlex.quote(step.path)
    make = f'mkdir -p "$(dirname {path})" && ' if "/" in step.path else ""
    return f"{make}printf %s {shlex.quote(step.text)} > {path}"


def _names(ask: ModelRequest) -> str:
    return ", ".join(tool.name for tool in ask.tools) or "none"
