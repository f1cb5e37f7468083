"""What an agent may do when it asks, and how freely it may work without asking."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from becket.parts.agents.adapters.lenient_json import Object, objects, text

_FREE_MODES = ("yolo", "bypasspermissions", "fullaccess", "agentfullaccess", "dangerfullaccess")
"""The names that agents give to the mode in which they do not ask."""

_ALLOW = ("allow_once", "allow_always")
_REJECT = ("reject_once", "reject_always")


@dataclass(frozen=True, slots=True)
class PermissionPolicy:
    """`held`: a sandbox keeps the files apart, so that it decides and not we. Without one, a path outside of the
    workspace is refused; what a command does there nobody can tell beforehand.
    """

    workspace: Path
    held: bool

    def allows(self, paths: Iterable[str]) -> bool:
        return self.held or all(self._inside(path) for path in paths)

    def _inside(self, path: str) -> bool:
        try:
            return (self.workspace / path).resolve().is_relative_to(self.workspace.resolve())
        except (OSError, ValueError, RuntimeError):
            return False


def chosen(asked: Object, *, allowed: bool) -> str:
    """The option that says so; empty if none is offered."""
    offered = objects(asked, "options")
    for kind in _ALLOW if allowed else _REJECT:
        for option in offered:
            if option.get("kind") == kind and text(option, "optionId"):
                return text(option, "optionId")
    return ""


def free_mode(opened: Object) -> str:
    """The session mode in which the agent does not ask; empty if it offers none or is in it already."""
    offered = (text(mode, "id") for mode in objects(opened, "modes", "availableModes"))
    return _first_free(offered, text(opened, "modes", "currentModeId"))


def free_setting(opened: Object) -> tuple[str, str]:
    """The same where modes are told as a session setting: its id and the value, or two empty words."""
    for option in settings(opened, "mode"):
        value = _first_free(values_of(option), text(option, "currentValue"))
        if value:
            return text(option, "id"), value
    return "", ""


def settings(opened: Object, category: str) -> list[Object]:
    return [option for option in objects(opened, "configOptions") if option.get("category") == category]


def values_of(option: Object) -> list[str]:
    """All values of a setting; they may stand in groups."""
    found = []
    for entry in objects(option, "options"):
        inner = objects(entry, "options")
        found += [text(each, "value") for each in (inner or [entry])]
    return [value for value in found if value]


def _first_free(names: Iterable[str], current: str) -> str:
    by_plain_name = {re.sub(r"[^a-z]", "", name.lower()): name for name in names}
    for free in _FREE_MODES:
        if free in by_plain_name:
            return "" if by_plain_name[free] == current else by_plain_name[free]
    return ""
