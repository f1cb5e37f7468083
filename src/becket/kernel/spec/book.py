"""The loops of a repository: files in `.becket/loops`, and those that come with packages."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from becket.kernel.contract.action import Registry
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding, InvalidDocument, NotFound, UsageError
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.spec.document import read
from becket.kernel.spec.lint import lint_text
from becket.kernel.spec.load import load_spec

BUILT_IN = "built in"
DUPLICATE = "duplicate-loop"
BUILT_IN_LOOP = "built-in-loop"
SUFFIXES = (".yaml", ".yml")

Found = LoadedLoop | tuple[Finding, ...]


class LoopBook:
    """Reads a file again when it changed. A broken file hides only itself, and says why when asked for."""

    def __init__(
        self,
        folder: Path,
        built_in: Mapping[str, str],
        registry: Registry,
        config: Callable[[], Config] | None = None,
    ) -> None:
        """`config` is becket.yaml as it stands now: a loop that needs a section it lacks is left out."""
        self._folder = folder
        self._config = config
        self._built_in = {name: _built_in_loop(text) for name, text in built_in.items()}
        self._registry = registry
        self._read: dict[Path, tuple[tuple[int, int], Found]] = {}
        self._proofs: dict[tuple[str, ...], tuple[Finding, ...]] = {}

    def get(self, loop_id: str) -> LoadedLoop:
        """The loop, proven by lint just now or since nothing changed."""
        files = self._files()
        found = next(
            (item for item in files.values() if isinstance(item, LoadedLoop) and item.spec.loop_id == loop_id), None
        )
        found = found or self._built_in.get(loop_id)
        if found is None:
            raise self._missing(loop_id, files)
        if lacking := self._lacking(found.spec):
            sections = " and ".join(f"`{section}:`" for section in lacking)
            raise UsageError(
                f"{loop_id} needs {sections} in becket.yaml; `becket init` writes what it finds, `becket doctor` "
                "shows what to add where it finds nothing"
            )
        if findings := self._proof(found):
            raise InvalidDocument(list(findings))
        return found

    def all(self) -> tuple[LoadedLoop, ...]:
        own = {loop.spec.loop_id: loop for loop in self._files().values() if isinstance(loop, LoadedLoop)}
        return tuple(loop for loop in (self._built_in | own).values() if not self._lacking(loop.spec))

    def _lacking(self, spec: LoopSpec) -> tuple[str, ...]:
        config = self._config() if self._config else None
        return tuple(section for section in spec.needs if config is not None and not getattr(config, section, None))

    def broken(self) -> dict[str, tuple[Finding, ...]]:
        return {
            str(path): found
            for path, found in self._files().items()
            # The loop of a duplicate is known: the first file speaks for it, or the one that comes with Becket.
            if not isinstance(found, LoadedLoop) and found[0].rule not in (DUPLICATE, BUILT_IN_LOOP)
        }

    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """Every file and every built-in loop, with what lint says about it; nothing is a clean bill."""
        told: dict[str, tuple[Finding, ...]] = {}
        for path, found in self._files().items():
            told[str(path)] = self._proof(found) if isinstance(found, LoadedLoop) else found
        return told | {f"{name} ({BUILT_IN})": self._proof(loop) for name, loop in self._built_in.items()}

    def parse(self, text: str) -> LoopSpec:
        return _parsed(text)

    def _missing(self, loop_id: str, files: Mapping[Path, Found]) -> UsageError:
        for path, found in files.items():
            if not isinstance(found, LoadedLoop) and path.stem == loop_id:
                return InvalidDocument(list(found))
        known = ", ".join(sorted(loop.spec.loop_id for loop in self.all())) or "none yet"
        return NotFound(f"there is no loop {loop_id!r}; known: {known} (see `becket loops list`)")

    def _proof(self, loop: LoadedLoop) -> tuple[Finding, ...]:
        others = [other for other in self.all() if other.spec.loop_id != loop.spec.loop_id]
        # A loop that sleeps names what is not there yet.
        config = self._config() if self._config and not self._lacking(loop.spec) else None
        named = [f"{section}:{name}" for section, names in _sections(config) for name in names]
        key = (loop.digest, loop.source, *sorted(other.digest for other in others), *named)
        if key not in self._proofs:
            self._proofs[key] = tuple(lint_text(loop.text, loop.source, self._registry, others, config)[1])
        return self._proofs[key]

    def _files(self) -> dict[Path, Found]:
        """Every file of the folder by name, as it stands now. Of two that say the same loop the first one counts."""
        try:
            paths = sorted(self._folder.iterdir())
        except FileNotFoundError:
            return {}
        except OSError as error:
            return {self._folder: (_unreadable(self._folder, error.strerror or error),)}
        files: dict[Path, Found] = {}
        first: dict[str, Path] = {}
        for path in paths:
            # Dot files are an editor's own: `.#heal.yaml` is a lock of Emacs, a link to nowhere.
            found = None if path.name.startswith(".") or path.suffix not in SUFFIXES else self._load(path)
            if isinstance(found, LoadedLoop) and found.spec.replaces_built_in is not (
                found.spec.loop_id in self._built_in
            ):
                found = (_misplaced(found),)
            if isinstance(found, LoadedLoop) and first.setdefault(found.spec.loop_id, path) != path:
                found = (_duplicate(found, first[found.spec.loop_id]),)
            if found is not None:
                files[path] = found
        return files

    def _load(self, path: Path) -> Found | None:
        """None for a file that went away since the folder was read."""
        try:
            now = path.stat()
            if not stat.S_ISREG(now.st_mode):  # a folder; or a pipe, which would keep the reader waiting
                return (_unreadable(path, "it is not a file"),)
            stamp = (now.st_mtime_ns, now.st_size)
            known = self._read.get(path)
            if known is None or known[0] != stamp:
                known = (stamp, _parse(path))
                self._read[path] = known
            return known[1]
        except OSError as error:  # not remembered: a permission can change without a trace in the file's times
            gone = isinstance(error, FileNotFoundError) and not path.is_symlink()
            return None if gone else (_unreadable(path, error.strerror or error),)


def _parse(path: Path) -> Found:
    try:
        return _loop(path.read_bytes(), str(path))
    except InvalidDocument as error:
        return error.findings


def _unreadable(path: Path, why: object) -> Finding:
    fix = "make it a file that can be read, or move it away"
    return Finding(str(path), 1, 1, "unreadable", f"{path.name} cannot be read: {why}", fix)


def _duplicate(loop: LoadedLoop, first: Path) -> Finding:
    name = loop.spec.loop_id
    line, column = read(loop.text, loop.source).place(("loop_id",)).value
    message = f"the loop `{name}` is already in {first.name}, and this file is not used"
    return Finding(loop.source, line, column, DUPLICATE, message, "change `loop_id`, or remove one of the two files")


def _misplaced(loop: LoadedLoop) -> Finding:
    """Nobody replaces a loop of Becket's by the choice of a name alone."""
    name, document = loop.spec.loop_id, read(loop.text, loop.source)
    if loop.spec.replaces_built_in:
        spot, message = document.place(("replaces_built_in",)).key, f"no loop `{name}` comes with Becket"
        fix = "correct `loop_id`, or remove `replaces_built_in`"
    else:
        spot, message = document.place(("loop_id",)).value, f"`{name}` comes with Becket, and this file is not used"
        fix = "choose another `loop_id`, or add `replaces_built_in: true`"
    return document.finding(spot, BUILT_IN_LOOP, message, fix)


def _loop(content: bytes, source: str) -> LoadedLoop:
    spec = load_spec(content, source)
    return LoadedLoop(spec=spec, text=content.decode(), digest=hashlib.sha256(content).hexdigest(), source=source)


def _sections(config: Config | None) -> Iterator[tuple[str, Iterable[str]]]:
    """Those that hold entries by name, so that a step can name one."""
    for section in type(config).model_fields if config is not None else ():
        if isinstance(entries := getattr(config, section), Mapping):
            yield section, entries


@lru_cache(maxsize=64)
def _built_in_loop(text: str) -> LoadedLoop:
    return _loop(text.encode(), BUILT_IN)


@lru_cache(maxsize=256)
def _parsed(text: str) -> LoopSpec:
    return load_spec(text, "stored spec")
