"""Scripts that npm runs before and after the tests: those that need the network make no gate."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_HOOKS = ("pretest", "posttest")
_INNER = re.compile(r"(?:npm|pnpm|yarn)(?: run)? ([\w:.-]+)")
_FETCHES = re.compile(
    r"\b(?:npm|pnpm|yarn)(?:@\S+)? (?:audit|outdated|dlx|publish|view|ci|install)\b|\bbunx\b"
    r"|(?:^|[\s;&|])(?:aud|snyk|curl|wget|codecov|coveralls|audit-ci|better-npm-audit|retire)(?=$|[\s;&|])"
)
_NPX = re.compile(r"\bnpx\b((?:\s+--?[\w-]+(?:=\S+)?)*)\s+['\"]?((?:@[\w.-]+/)?[\w.-]+)(@[^\s'\"]+)?")
_LINTS = re.compile(
    r"(?:(?:npm|pnpm|yarn)(?: run)? )?[\w:-]*(?:lint|standard|prettier|format|style|xo)[\w:-]*(?:\s[^;&|]*)?"
)

_BY_ANOTHER = frozenset({"tsc", "ng", "nx", "vue-tsc", "babel", "svelte-check", "playwright", "depcruise"})
"""Programs of modules that have another name."""


def online_hooks(data: Mapping[str, Any]) -> dict[str, str]:
    """`pretest` and `posttest` where they fetch something, with their text."""
    scripts = _scripts(data)
    return {name: scripts[name] for name in _HOOKS if _is_online(data, scripts.get(name, ""), {name})}


def inner_script(data: Mapping[str, Any]) -> str:
    """The one script that `test` runs and nothing else; empty if there is none."""
    found = _INNER.fullmatch(_scripts(data).get("test", ""))
    return found[1] if found and found[1] in _scripts(data) else ""


def only_lints(script: str) -> bool:
    """Does it judge how the code looks, and make nothing that the tests could need?"""
    return all(_LINTS.fullmatch(part.strip()) for part in re.split(r"&&|;", script))


def _is_online(data: Mapping[str, Any], script: str, seen: set[str]) -> bool:
    if _FETCHES.search(script) or any(_fetched(data, found) for found in _NPX.finditer(script)):
        return True
    called = [found[1] for part in re.split(r"&&|;", script) if (found := _INNER.fullmatch(part.strip()))]
    known = [name for name in called if name in _scripts(data) and name not in seen]
    return any(_is_online(data, _scripts(data)[name], seen | {name}) for name in known)


def _fetched(data: Mapping[str, Any], found: re.Match[str]) -> bool:
    """npx takes what is installed; another version, or what no list of modules names, it fetches."""
    if "--no" in found[1]:
        return False
    kinds = (data.get(kind) for kind in ("dependencies", "devDependencies", "optionalDependencies"))
    listed = {name for kind in kinds if isinstance(kind, dict) for name in kind}
    return found[3] is not None or (found[2] not in listed and found[2] not in _BY_ANOTHER)


def _scripts(data: Mapping[str, Any]) -> dict[str, str]:
    found = data.get("scripts")
    items = found.items() if isinstance(found, dict) else ()
    return {name: text.strip() for name, text in items if isinstance(text, str)}
