"""A test that moved is the same test only if it finds the same things at its new place: imports, helpers, set-up."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from becket.parts.guard.reading.languages.shape import Outline, PartKind, Shape, SourceTest, names_in

_SCOPE = re.compile(r" > |::|\.")
_VISIBLE = frozenset({PartKind.helper, PartKind.fixture, PartKind.constant})


@dataclass(frozen=True, slots=True)
class CasePlace:
    """Where a test stands: a file of one side of the change."""

    path: str
    outline: Outline
    case: SourceTest


def same_surroundings(old: CasePlace, new: CasePlace) -> bool:
    before, after = _visible(old), _visible(new)
    asked = {part.text for part in old.case.shape.walk() if part.kind == "arg"}  # pytest gives these by name
    for name in names_in(old.case.shape) | asked:
        was, now = before.get(name), after.get(name)
        if was is None and now is not None:
            return False
        if was is not None and now is None and name in _fixtures(old):
            return False
        if was is not None and now is not None and was != now:
            return False
    known = _setups(old)
    return all(setup in known for setup in _setups(new))


def absolute_origin(path: str, origin: str) -> str:
    """Where an import leads, seen from the root of the tree; a move of the importing file does not change it."""
    if not origin.startswith("."):
        return origin
    module, colon, name = origin.partition(":")
    folder = posixpath.dirname(path)
    if path.endswith(".py"):
        rest = module.lstrip(".")
        above = [part for part in folder.split("/") if part]
        kept = above[: max(len(above) - (len(module) - len(rest) - 1), 0)]
        return "/".join([*kept, *filter(None, rest.split("."))]) + colon + name
    return posixpath.normpath(posixpath.join(folder, module)) + colon + name


def _chain(scope: str) -> set[str]:
    """A scope and all that it lies in."""
    ends = [found.start() for found in _SCOPE.finditer(scope)]
    return {"", scope, *(scope[:end] for end in ends)}


def _visible(place: CasePlace) -> dict[str, Shape | str]:
    scopes = _chain(place.case.scope)
    found: dict[str, Shape | str] = {}
    for entry in place.outline.imports:
        scope, _, name = entry.name.rpartition("::")
        if scope in scopes:
            found[name] = absolute_origin(place.path, entry.origin)
    for part in place.outline.parts:
        if part.scope in scopes and part.kind in _VISIBLE:
            found |= dict.fromkeys(part.name.split(","), part.shape)
    return found


def _fixtures(place: CasePlace) -> set[str]:
    return {part.name for part in place.outline.parts if part.kind is PartKind.fixture}


def _setups(place: CasePlace) -> list[Shape]:
    scopes = _chain(place.case.scope)
    return [part.shape for part in place.outline.parts if part.kind is PartKind.setup and part.scope in scopes]
