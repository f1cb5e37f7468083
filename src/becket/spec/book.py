"""The loops of a repository: files in `.becket/loops`, and those that come with packages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from becket.contract.action import Registry
from becket.contract.errors import Finding, InvalidDocument, NotFound
from becket.contract.loop import Loop
from becket.contract.spec import LoopSpec
from becket.spec.lint import lint_text
from becket.spec.load import load_spec


class LoopBook:
    """Reads a file again when it changed. A broken file hides only itself, and says why when asked for."""

    def __init__(self, folder: Path, built_in: Mapping[str, str], registry: Registry) -> None:
        self._folder = folder
        self._built_in = built_in
        self._registry = registry
        self._read: dict[Path, tuple[tuple[int, int], Loop | list[Finding]]] = {}

    def get(self, loop_id: str) -> Loop:
        broken: list[Finding] = []
        for path in self._files():
            found = self._load(path)
            if isinstance(found, Loop):
                if found.spec.loop_id == loop_id:
                    self._prove(found)
                    return found
            elif path.stem == loop_id:
                broken = found
        if broken:
            raise InvalidDocument(broken)
        if loop_id in self._built_in:
            return _loop(self._built_in[loop_id], "built in")
        known = ", ".join(sorted(loop.spec.loop_id for loop in self.all())) or "none yet"
        raise NotFound(f"there is no loop {loop_id!r}; known: {known} (see `becket loops list`)")

    def all(self) -> tuple[Loop, ...]:
        found = {name: _loop(text, "built in") for name, text in self._built_in.items()}
        for path in self._files():
            loop = self._load(path)
            if isinstance(loop, Loop):
                found[loop.spec.loop_id] = loop
        return tuple(found.values())

    def findings(self) -> dict[str, list[Finding]]:
        """Every file with what lint says about it; an empty list is a clean bill."""
        loops = self.all()
        told: dict[str, list[Finding]] = {}
        for path in self._files():
            text = path.read_text(encoding="utf-8", errors="replace")
            others = tuple(loop.spec for loop in loops if loop.source != str(path))
            told[str(path)] = lint_text(text, str(path), self._registry, others)[1]
        for name, text in self._built_in.items():
            others = tuple(loop.spec for loop in loops if loop.spec.loop_id != name)
            told[f"{name} (built in)"] = lint_text(text, name, self._registry, others)[1]
        return told

    def parse(self, text: str) -> LoopSpec:
        return _parsed(text)

    def _prove(self, loop: Loop) -> None:
        others = tuple(other.spec for other in self.all() if other.spec.loop_id != loop.spec.loop_id)
        if findings := lint_text(loop.text, loop.source, self._registry, others)[1]:
            raise InvalidDocument(findings)

    def _files(self) -> list[Path]:
        return sorted([*self._folder.glob("*.yaml"), *self._folder.glob("*.yml")])

    def _load(self, path: Path) -> Loop | list[Finding]:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = self._read.get(path)
        if known is None or known[0] != stamp:
            known = (stamp, _try(path))
            self._read[path] = known
        return known[1]


def _try(path: Path) -> Loop | list[Finding]:
    try:
        return _loop(path.read_text(encoding="utf-8", errors="replace"), str(path))
    except InvalidDocument as error:
        return list(error.findings)


def _loop(text: str, source: str) -> Loop:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Loop(spec=load_spec(text, source), text=text, digest=digest, source=source)


@lru_cache(maxsize=256)
def _parsed(text: str) -> LoopSpec:
    return load_spec(text, "stored spec")
