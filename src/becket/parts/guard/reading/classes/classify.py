"""The class of a change: plain, ordinary or powerful, by what it newly can do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from becket.kernel.contract.guard import (
    NOT_SOURCE,
    Change,
    ChangeClass,
    ChangedFile,
    ChangeStatus,
    ClassFinding,
    Classification,
)
from becket.kernel.contract.lines import is_binary
from becket.parts.guard.reading.classes import words
from becket.parts.guard.reading.classes.facts import NO_FILE, FactKind, SourceFile
from becket.parts.guard.reading.classes.judge import MOST, FileChange
from becket.parts.guard.reading.classes.own import OwnModules, module_name
from becket.parts.guard.reading.classes.readers import Read, Readers, as_written, readers_for
from becket.parts.guard.reading.classes.table import Table
from becket.parts.guard.reading.languages import language_for
from becket.parts.guard.reading.languages.shape import UnreadableSource
from becket.parts.guard.reading.side import TestSide, would_run

_LARGEST = 400_000
_MOST_FILES = 40
_REGULAR = {"100644", "100755", "", "000000"}
_DOCUMENT = re.compile(
    r"(?i)^(?:[^./][^/]*/)*(?:README|CHANGELOG|CHANGES|HISTORY|NEWS|AUTHORS)(?:\.(?:md|rst|adoc|txt|markdown))?$"
    r"|^docs?/(?:[^./][^/]*/)*[^./][^/]*\.(?:md|rst|adoc|rdoc|markdown)$"
)
_FOR_AGENTS = re.compile(r"(?i)(?:^|/)(?:AGENTS|CLAUDE|GEMINI|SKILL|COPILOT[\w-]*)\.md$|(?:^|/)prompts?/")
_ODD = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\x85\u2028\u2029\ufeff]|\r(?!\n)")
_SETTING = re.compile(
    r"(?:^|/)(?:setup|noxfile|conftest|sitecustomize|usercustomize|build|tasks|wscript|SConstruct)\.(?:py|rs)$"
    r"|\.(?:config|conf|setup|workspace)\.[cm]?[jt]sx?$|(?:^|/)(?:gulpfile|Gruntfile|webpack|rollup|vite|jest|vitest|karma)[\w.-]*\.[cm]?[jt]s$"
    r"|(?:^|/)(?:node_modules|vendor|third_party|\.[^/]+)/|(?:^|/)\.[^/]+$"
)
_GENERATED = re.compile(rb"(?i)@generated|\bdo not edit\b|auto-?generated")


def classify(
    change: Change, side: TestSide, pure: Mapping[str, Sequence[str]] = {}, proven: Mapping[str, bytes] = {}
) -> Classification:
    """Read what the change adds. `pure`: by language, further modules that only compute. `proven`: by path, the files
    of the last proven commit; what comes back from there to the letter is nothing new.
    """
    return Classification.of(_Reader(change, side, pure, proven).findings())


class _Reader:
    def __init__(
        self, change: Change, side: TestSide, pure: Mapping[str, Sequence[str]], proven: Mapping[str, bytes]
    ) -> None:
        self._change, self._side, self._pure, self._proven = change, side, pure, proven
        self._sizes: Counter[str] = Counter()
        self._own = OwnModules(change.base_paths | {file.path for file in change.files if file.in_candidate})
        self._read: list[FileChange] = []

    def findings(self) -> Iterator[ClassFinding]:
        added = [file for file in self._change.files if file.status is ChangeStatus.added]
        if len(added) > _MOST_FILES:
            yield _finding(ChangeClass.powerful, "size", added[0], words.many_files(len(added), _MOST_FILES))
            return
        found = [finding for file in self._change.files for finding in self._file(file)]
        found += self._unreached()
        yield from found or self._too_much()

    def _file(self, file: ChangedFile) -> Iterator[ClassFinding]:
        path = file.path if file.in_candidate else file.old_path
        if not _regular(file):
            yield _finding(ChangeClass.powerful, "mode", file, words.MODE)
        elif self._side.holds(path) or self._side.holds(file.old_path):
            yield from self._of_tests(file)
        elif _DOCUMENT.search(path) and not _FOR_AGENTS.search(path):
            if not file.in_base:
                yield _finding(ChangeClass.ordinary, "document", file, words.NEW_DOCUMENT)
        else:
            yield from self._source(file, path)

    def _of_tests(self, file: ChangedFile) -> Iterator[ClassFinding]:
        """Changes of tests have rules of their own; what else lies with them is no test."""
        if not file.in_base and not self._is_test(file):
            yield _finding(ChangeClass.powerful, NOT_SOURCE, file, words.TESTS_HELPER)

    def _is_test(self, file: ChangedFile) -> bool:
        language = language_for(file.path)
        if language is None or file.new_size > _LARGEST or not would_run(file.path):
            return False
        try:
            return bool(language.read(file.new()).cases)
        except (UnreadableSource, RecursionError):
            return False

    def _source(self, file: ChangedFile, path: str) -> Iterator[ClassFinding]:
        found = () if _SETTING.search(path) else readers_for(path)
        if not found:
            said = words.no_table(path.rpartition(".")[2]) if _looks_like_source(path) else words.NOT_SOURCE
            yield _finding(ChangeClass.powerful, NOT_SOURCE, file, said)
        elif not file.in_candidate:
            yield _finding(ChangeClass.ordinary, "removal", file, words.DELETED)
        elif not (file.same and file.path == file.old_path) and not self._is_proven(file):
            yield from self._changed_source(file, found)

    def _is_proven(self, file: ChangedFile) -> bool:
        """The last proven commit has this very file: nothing in it is new, whatever it can do."""
        renamed = file.in_base and file.path != file.old_path
        return not renamed and file.path in self._proven and self._proven[file.path] == file.new()

    def _changed_source(self, file: ChangedFile, readers: Readers) -> Iterator[ClassFinding]:
        if problem := _unreadable(file):
            yield _finding(ChangeClass.powerful, "unreadable", file, problem)
            return
        old, new = file.old() if file.in_base else b"", file.new()
        try:
            table, before, after = _both(readers, old if file.in_base else None, new)
            made = FileChange(
                path=file.path,
                old=before,
                new=after,
                table=table,
                text=new.decode("utf-8", "replace"),
                before=old.decode("utf-8", "replace"),
                pure=tuple(self._pure.get(table.name.lower(), ())),
                is_own=self._own.of(table.name),
                is_new=not file.in_base or file.path != file.old_path,
                sizes=self._sizes,
                proven=_alone(readers, table, self._proven.get(file.path)),
            )
            found = list(made.findings())
        except (UnreadableSource, RecursionError) as error:
            yield _finding(ChangeClass.powerful, "unreadable", file, f"{words.UNPARSABLE} ({error})")
            return
        self._read.append(made)
        if made.old.was_broken:
            yield _finding(ChangeClass.ordinary, "unreadable", file, words.WAS_UNPARSABLE)
        if made.is_new and self._proven.get(file.path) != new:
            yield _finding(ChangeClass.ordinary, "new-file", file, words.NEW_FILE)
        yield from found

    def _unreached(self) -> Iterator[ClassFinding]:
        """A new file must be imported by code that was there, and may not hide another module."""
        come = [each for each in self._read if each.is_new]
        asked = {
            value for each in self._read if come and not each.is_new for value in each.new.values(FactKind.imports)
        }
        for each in come:
            name, folder = module_name(each.path), each.path.rpartition("/")[0]
            if self._own.hides(each.path, name):
                yield _at(ChangeClass.powerful, "modules", each.path, words.LANDS_IN_THE_WAY)
            elif not self._own.in_package(each.path, folder) and not any(_names(value, name) for value in asked):
                yield _at(ChangeClass.powerful, "not-reached", each.path, words.NOT_REACHED)

    def _too_much(self) -> Iterator[ClassFinding]:
        for size, most in MOST.items():
            if self._sizes[size] > most and self._read:
                yield _at(ChangeClass.ordinary, "size", self._read[0].path, words.SIZES[size])


def _both(readers: Readers, old: bytes | None, new: bytes) -> tuple[Table, SourceFile, SourceFile]:
    """A file that could not be parsed is compared by its words: the repair may use none that it did not have."""
    for table, read in readers:
        with suppress(UnreadableSource, RecursionError):
            return table, *read(old, new)
    for table, read in readers[:-1]:
        with suppress(UnreadableSource, RecursionError):
            return table, *_repaired(read, old, new)
    table, read = readers[-1]
    return table, *_repaired(read, old, new)


def _alone(readers: Readers, table: Table, content: bytes | None) -> SourceFile:
    if content is not None and len(content) <= _LARGEST:
        for of, read in readers:
            with suppress(UnreadableSource, RecursionError):
                if of is table:
                    return read(None, content)[1]
    return NO_FILE


def _repaired(read: Read, old: bytes | None, new: bytes) -> tuple[SourceFile, SourceFile]:
    _, after = read(None, new)
    return as_written(old or b"", after), after


def _names(imported: str, module: str) -> bool:
    return re.split(r"[.:/\\]+", imported.removesuffix(".js").removesuffix(".ts")).count(module) > 0


def _regular(file: ChangedFile) -> bool:
    same = not (file.in_base and file.in_candidate) or file.old_mode == file.new_mode
    return same and {file.old_mode, file.new_mode} <= _REGULAR


def _unreadable(file: ChangedFile) -> str | None:
    if file.unread or max(file.new_size, file.old_size) > _LARGEST:
        return words.TOO_LARGE
    new = file.new()
    try:
        new.decode("utf-8")
    except UnicodeDecodeError:
        return words.NOT_UTF8
    if is_binary(new) or len(_ODD.findall(new.decode())) > len(_ODD.findall(file.old().decode("utf-8", "replace"))):
        return words.NOT_UTF8
    return words.GENERATED if _GENERATED.search(new[:2000]) and not _GENERATED.search(file.old()[:2000]) else None


def _looks_like_source(path: str) -> bool:
    return bool(re.search(r"\.(?:swift|kt|scala|ex|exs|hs|ml|lua|pl|r|jl|dart|zig|sh|vue|svelte)$", path))


def _finding(kind: ChangeClass, power: str, file: ChangedFile, message: str) -> ClassFinding:
    return _at(kind, power, file.path if file.in_candidate else file.old_path, message)


def _at(kind: ChangeClass, power: str, path: str, message: str) -> ClassFinding:
    return ClassFinding(kind=kind, power=power, path=path, line=0, message=message)
