"""The test side of one commit: declared, run, using a test framework, used only from there, or sitting with those.

Source that might be the product stays the product: a repair of it must not end at a person because of its name. What
product files import is therefore product, unless a glob declares it or a report names it for a test. Data is taken for
the tests' more readily: no repair that rewrites data is promoted by itself anyway.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from becket.kernel.contract.globs import matches
from becket.parts.guard.reading.failing import files_of, is_doctest
from becket.parts.guard.reading.found.commands import run_by_gates
from becket.parts.guard.reading.found.frameworks import FrameworkUse, test_modules, use_of
from becket.parts.guard.reading.found.imports import Imports
from becket.parts.guard.reading.found.names import (
    PYTHON,
    folder_for_tests,
    folders_of,
    is_data,
    is_foreign,
    is_source,
    named_for_tests,
    suffix,
)
from becket.parts.guard.reading.found.reader import Reader
from becket.parts.guard.reading.found.reads import DataFiles, not_read_by
from becket.parts.guard.reading.side import SideReason, TestSide, named_like_a_test

_MOST_NAMES = 30


@dataclass(frozen=True, slots=True)
class ExecutedTests:
    """Tests that ran on the commit: their ids, and (id, file) where the report itself gives a test's file."""

    ids: frozenset[str] = frozenset()
    homes: frozenset[tuple[str, str]] = frozenset()


NOTHING_RAN = ExecutedTests()


def find_test_side(
    paths: Collection[str],
    globs: Sequence[str],
    read: Reader,
    ran: ExecutedTests = NOTHING_RAN,
    commands: Sequence[str] = (),
) -> TestSide:
    """Pure: the same paths and contents give the same side. `commands`: those of the gates."""
    return _Search(frozenset(paths), tuple(globs), read).side(ran, commands)


class _Search:
    def __init__(self, paths: frozenset[str], globs: tuple[str, ...], read: Reader) -> None:
        self._paths, self._globs, self._read = paths, globs, read
        self._found: dict[str, SideReason] = {}
        self._folders: set[str] = set()
        self._sources = [path for path in sorted(paths) if is_source(path) and not is_foreign(path)]
        self._imports = Imports(paths)

    def side(self, ran: ExecutedTests, commands: Sequence[str]) -> TestSide:
        self._declared()
        self._ran(ran)
        maybe = {**self._frameworks(), **self._gates(commands)}
        for path in (path for path in self._sources if path not in maybe and named_for_tests(path)):
            maybe.setdefault(path, SideReason.only_from_tests)
        product = self._used_by_product({path: reason for path, reason in maybe.items() if path not in self._found})
        self._settle({path: reason for path, reason in maybe.items() if path not in product})
        self._data()
        self._sitting(product)
        return TestSide(self._globs, self._found, self._folders, self._paths)

    def _declared(self) -> None:
        for path in self._paths:
            if matches(path, self._globs):
                self._found[path] = SideReason.declared
            elif named_like_a_test(path) and suffix(path) not in PYTHON:
                self._found[path] = SideReason.named

    def _ran(self, ran: ExecutedTests) -> None:
        homes = (file for test, file in ran.homes if not is_doctest(test))
        for path in (*files_of(ran.ids, self._paths, self._read), *homes):
            if path in self._paths and not path.endswith(".rs"):  # tests within a Rust source are judged there
                self._add(path, SideReason.ran)

    def _add(self, path: str, reason: SideReason) -> None:
        if self._found.get(path, SideReason.named) is SideReason.named:
            self._found[path] = reason

    def _frameworks(self) -> dict[str, SideReason]:
        own = {folder.rpartition("/")[2] for path in self._sources if path.endswith("/__init__.py")
               for folder in (path.rpartition("/")[0],) if folder not in self._found}  # fmt: skip
        own = {name for name in own if not folder_for_tests(name)}
        found = {}
        for path in (path for path in self._sources if path not in self._found):
            content = self._content(path)
            if path.endswith(".rs"):
                found.update(dict.fromkeys(self._rust(path, content), SideReason.framework))
            elif (use := use_of(path, content, own)) is not FrameworkUse.none:
                found[path] = SideReason.framework if use is FrameworkUse.tests else SideReason.only_from_tests
        return found

    def _rust(self, path: str, content: bytes) -> Iterator[str]:
        """A module taken in only for tests, with all that lies below it."""
        for module in test_modules(path, content):
            if module in self._paths:
                yield module
                folder = module.removesuffix(".rs").removesuffix("/mod")
                yield from (other for other in self._sources if other.startswith(f"{folder}/"))

    def _gates(self, commands: Sequence[str]) -> dict[str, SideReason]:
        return dict.fromkeys(run_by_gates(commands, self._paths, self._read), SideReason.gate)

    def _content(self, path: str) -> bytes:
        return self._read(path) or b""

    def _used_by_product(self, maybe: Mapping[str, SideReason]) -> set[str]:
        """Those that product files import, and what these import in turn."""
        if not maybe:
            return set()
        product = {path for path in self._sources if path not in self._found and path not in maybe}
        return self._reached(product, maybe)

    def _reached(self, start: Iterable[str], wanted: Collection[str]) -> set[str]:
        """All of the wanted that these files import, straight or through each other."""
        names = _names_of(wanted)
        about = re.compile(b"|".join(re.escape(name) for name in names))
        waiting = [path for path in start if any(name in self._content(path) for name in names)]
        left = set(wanted)
        while waiting and left:
            path = waiting.pop()
            for other in self._imports.of(path, self._content(path), about):
                if other in left:
                    left.discard(other)
                    waiting.append(other)
        return set(wanted) - left

    def _settle(self, maybe: Mapping[str, SideReason]) -> None:
        """Tests for certain first; then, what only they import."""
        helpers = {path for path, reason in maybe.items() if reason is SideReason.only_from_tests}
        for path, reason in maybe.items():
            if path not in helpers:
                self._add(path, reason)
        for path in self._reached([path for path in self._sources if path in self._found], helpers):
            self._add(path, SideReason.only_from_tests)

    def _data(self) -> None:
        data = DataFiles(self._paths, self._found)
        tests = {path: self._content(path) for path in self._sources if path in self._found}
        product = (self._content(path) for path in self._sources if path not in self._found)
        for place in not_read_by(product, data.read_in(tests)):
            if data.is_folder(place):
                self._folders.add(place)
            for path in data.below(place):
                self._add(path, SideReason.only_from_tests)

    def _sitting(self, product: Collection[str]) -> None:
        """Folders in which every source is a test's; in one that is named for tests, what no product file uses. Of
        folders without source those in which all data is."""
        sources, data = self._counted(self._sources), self._counted(filter(is_data, self._paths))
        used = {folder for path in product for folder in folders_of(path)}
        for folder, (others, tests) in (data | sources).items():
            for_tests = folder not in used and any(folder_for_tests(part) for part in folder.split("/"))
            if tests and (not others or for_tests):
                self._folders.add(folder)
        for path in self._paths:
            if path not in self._found and self._sits(path, product):
                self._found[path] = SideReason.sits_with

    def _counted(self, paths: Iterable[str]) -> dict[str, list[int]]:
        """By folder: files that are not the tests', and files that are."""
        count: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for path in paths:
            for folder in folders_of(path):
                count[folder][path in self._found] += 1
        return dict(count)

    def _sits(self, path: str, product: Collection[str]) -> bool:
        if any(folder in self._folders for folder in folders_of(path)):
            return path not in product
        return is_data(path) and any(folder_for_tests(part) for part in path.split("/")[:-1])


def _names_of(paths: Collection[str]) -> list[bytes]:
    """One of these stands in the text of whoever imports one of the paths; in any text, where they are too many."""
    found = set()
    for path in paths:
        folder, _, file = path.rpartition("/")
        stem = file.partition(".")[0]
        by_folder = stem in {"__init__", "index", "mod"} or file.endswith(".go")
        found.add((folder.rpartition("/")[2] if by_folder else stem).encode("utf-8", "replace"))
    return [b""] if b"" in found or len(found) > _MOST_NAMES else sorted(found)
