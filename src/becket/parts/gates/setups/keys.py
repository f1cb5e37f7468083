"""What decides which set-up a commit needs: its key files, the command, and the tools of this machine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.process import Holds
from becket.kernel.contract.variables import keyed
from becket.parts.gates.machine import seen_beside
from becket.parts.gates.section import SetupConfig
from becket.parts.gates.setups import words

_FORMAT = 1  # of what an entry holds: with another number, none of the old ones is found
_NO_FILES = {"120000": "a symbolic link", "160000": "a submodule"}
_ALWAYS = ("python3", "node")  # run by other programs: pip, npm, and a virtual environment's own links
_GLOB = re.compile(r"(?P<deep>(?:^|(?<=/))\*\*/)|(?P<below>/\*\*$)|(?P<star>\*+)|(?P<one>\?)|(?P<other>.)", re.DOTALL)
_MEANS = {"deep": r"(?:[^/]+/)*", "below": r"/.+", "star": r"[^/]*", "one": r"[^/]"}


class NoSetupKey(Exception):
    """The commit has no such key; the text says why and what to do."""


def key_files(setup: SetupConfig, listing: Mapping[str, str], sha: str) -> dict[str, str]:
    """The commit's key files, with mode and object. Every name of the key must be there."""
    chosen: dict[str, str] = {}
    for pattern in setup.key:
        found = _matching(pattern.removeprefix("./"), listing)
        if not found:
            raise NoSetupKey(words.NO_KEY_FILE.format(pattern=pattern, sha=sha[:12]))
        chosen |= found
    for path, entry in chosen.items():
        shown = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
        if what := _NO_FILES.get(entry[:6]) or ("a name that is not UTF-8" if shown != path else ""):
            raise NoSetupKey(words.KEY_IS_NO_FILE.format(path=shown, what=what, sha=sha[:12]))
    return dict(sorted(chosen.items()))


def is_key(setup: SetupConfig, path: str) -> bool:
    """May this path be one of the key's files, in whatever commit? What was none before counts once it is added."""
    return any(
        re.fullmatch(_translated(pattern.removeprefix("./").strip("/")), path, re.DOTALL) for pattern in setup.key
    )


def key_of(setup: SetupConfig, files: Mapping[str, str], holds: Holds) -> str:
    """Two commits of one key need the same set-up."""
    return digest_of(
        {
            "format": _FORMAT,
            "run": setup.run,
            "network": setup.network.value,
            "variables": keyed(setup.variables(os.environ)),
            "toolchains": seen_beside(holds),
            "files": sorted(files.items()),
            "machine": _machine(),
            "tools": [_tool(name) for name in sorted({*_ALWAYS, *re.findall(r"[\w.+-]+", setup.run)})],
        }
    )


def _matching(pattern: str, listing: Mapping[str, str]) -> dict[str, str]:
    """From the root of the tree, as `test_side` is read: a plain name is one file, or all that is in a folder."""
    if pattern in listing:
        return {pattern: listing[pattern]}
    regex = re.compile(_translated(pattern.strip("/")), re.DOTALL)
    return {path: entry for path, entry in listing.items() if regex.fullmatch(path)}


def _translated(pattern: str) -> str:
    parts = (_MEANS.get(token.lastgroup or "") or re.escape(token[0]) for token in _GLOB.finditer(pattern))
    return "".join(parts) + r"(?:/.*)?"


def _machine() -> list[str]:
    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    return [sys.platform, platform.machine(), system.get("ID", ""), system.get("VERSION_ID", "")]


def _tool(name: str) -> Json:
    """A program of the PATH as it is now: an upgrade writes a new file. Costs a look, where `--version` is a spawn."""
    found = shutil.which(name)
    if found is None:
        return None
    real = Path(found).resolve()
    seen = real.stat()
    return [name, found, str(real), seen.st_size, seen.st_mtime_ns]
