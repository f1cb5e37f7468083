"""The loops of a repository: files in `.becket/loops`, and those that come with packages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from becket.contract.action import Registry
from becket.contract.errors import Finding, InvalidDocument, NotFound, UsageError
from becket.contract.loop import Loop
from becket.contract.spec import LoopSpec
from becket.spec.lint import lint_text
from becket.spec.load import load_spec

BUILT_IN = "built in"

Found = Loop | tuple[Finding, ...]


class LoopBook:
    """Reads a file again when it changed. A broken file hides only itself, and says why when asked for."""

    def __init__(self, folder: Path, built_in: Mapping[str, str], registry: Registry) -> None:
        self._folder = folder
        self._built_in = {name: _loop(text.encode(), BUILT_IN) for name, text in built_in.items()}
        self._registry = registry
        self._read: dict[Path, tuple[tuple[int, int], Found]] = {}
        self._proofs: dict[tuple[str, ...], tuple[Finding, ...]] = {}

    def get(self, loop_id: str) -> Loop:
        """The loop, proven by lint just now or since nothing changed."""
        files = {path: self._load(path) for path in self._files()}
        found = next((item for item in files.values() if isinstance(item, Loop) and item.spec.loop_id == loop_id), None)
        found = found or self._built_in.get(loop_id)
        if found is None:
            raise self._missing(loop_id, files)
        if findings := self._proof(found):
            raise InvalidDocument(list(findings))
        return found

    def all(self) -> tuple[Loop, ...]:
        found = dict(self._built_in)
        for path in self._files():
            loop = self._load(path)
            if isinstance(loop, Loop):
                found[loop.spec.loop_id] = loop
        return tuple(found.values())

    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Every file and every built-in loop, with what lint says about it; nothing is a clean bill."""
        told: dict[str, tuple[Finding, ...]] = {}
        for path in self._files():
            found = self._load(path)
            told[str(path)] = self._proof(found) if isinstance(found, Loop) else found
        return told | {f"{name} ({BUILT_IN})": self._proof(loop) for name, loop in self._built_in.items()}

    def parse(self, text: str) -> LoopSpec:
        return _parsed(text)

    def _missing(self, loop_id: str, files: Mapping[Path, Found]) -> UsageError:
        for path, found in files.items():
            if not isinstance(found, Loop) and path.stem == loop_id:
                return InvalidDocument(list(found))
        known = ", ".join(sorted(loop.spec.loop_id for loop in self.all())) or "none yet"
        return NotFound(f"there is no loop {loop_id!r}; known: {known} (see `becket loops list`)")

    def _proof(self, loop: Loop) -> tuple[Finding, ...]:
        others = [other for other in self.all() if other.spec.loop_id != loop.spec.loop_id]
        key = (loop.digest, loop.source, *sorted(other.digest for other in others))
        if key not in self._proofs:
            specs = tuple(other.spec for other in others)
            self._proofs[key] = tuple(lint_text(loop.text, loop.source, self._registry, specs)[1])
        return self._proofs[key]

    def _files(self) -> list[Path]:
        return sorted([*self._folder.glob("*.yaml"), *self._folder.glob("*.yml")])

    def _load(self, path: Path) -> Found:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, _try(path))
            self._read[path] = known
        return known[1]


def _try(path: Path) -> Found:
    try:
        return _loop(path.read_bytes(), str(path))
    except InvalidDocument as error:
        return error.findings


def _loop(content: bytes, source: str) -> Loop:
    spec = load_spec(content, source)
    return Loop(spec=spec, text=content.decode(), digest=hashlib.sha256(content).hexdigest(), source=source)


@lru_cache(maxsize=256)
def _parsed(text: str) -> LoopSpec:
    return load_spec(text, "stored spec")
