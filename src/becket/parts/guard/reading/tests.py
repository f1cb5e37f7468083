"""Tests deleted, skipped, weakened, emptied or changed: judged over the whole change, so that a moved test is found."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from becket.kernel.contract.guard import READ_LIMIT, Change, ChangedFile, ChangeStatus, GuardRule, Refusal
from becket.parts.guard.reading import plain, words
from becket.parts.guard.reading.growth import has_only_grown, tables_in
from becket.parts.guard.reading.languages import language_for, language_of
from becket.parts.guard.reading.languages.shape import Language, Outline, SourceTest, UnreadableSource
from becket.parts.guard.reading.moves import CasePlace, same_surroundings
from becket.parts.guard.reading.side import SideReason, TestSide, would_run
from becket.parts.guard.reading.support import compare_support, judge_new_file, judge_new_tests
from becket.parts.guard.reading.weakening import Difference, describe

_LARGEST_PARSED = 1_500_000
_SHOWN_PER_FILE = 20
# What the tests need to be installed: versions may move. The manifests have a rule of their own.
_DEPENDENCIES = re.compile(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|[\w.-]+\.lock|package(?:-lock)?\.json|pnpm-lock\.yaml|go\.(?:sum|mod|work)"
    r"|pyproject\.toml|Cargo\.toml|pom\.xml|[\w.-]+\.gradle(?:\.kts)?)$"
)


@dataclass(slots=True)
class _File:
    """One changed file that holds tests, with what of it could be read."""

    file: ChangedFile
    language: Language
    was_side: bool  # of the tests by more than its name, by its old path
    is_side: bool
    old: Outline = field(default_factory=Outline)
    new: Outline = field(default_factory=Outline)
    lost: list[SourceTest] = field(default_factory=list)
    tables: frozenset[str] | None = None

    def iterated(self) -> frozenset[str]:
        """Names of tables that the file's tests go through, as base had them."""
        if self.tables is None:
            self.tables = tables_in(self.old.shapes(), self.language)
        return self.tables


@dataclass(frozen=True, slots=True)
class _Arrived:
    """A test that the candidate has and base had not, at this place."""

    place: CasePlace
    declared: bool


def judge_tests(change: Change, side: TestSide, settled: frozenset[str]) -> Iterator[Refusal]:
    """`settled`: paths that another rule has already refused as a whole."""
    files: list[_File] = []
    for file in change.files:
        if file.path in settled or file.old_path in settled or _DEPENDENCIES.search(file.path):
            continue
        try:
            found = _opened(file, side)
        except (UnreadableSource, RecursionError):
            yield from _as_text(file, side)
            continue
        if found is not None:
            files.append(found)
        elif _on_side(file, side) and language_for(file.old_path) is None:
            yield from _unparsed(file)
        elif file.status is ChangeStatus.typechange and _on_side(file, side):
            yield refusal(file, Difference(GuardRule.test_changed, 0, words.TYPE_CHANGED))
    yield from _judge(files, side)


def _on_side(file: ChangedFile, side: TestSide) -> bool:
    return side.holds(file.path) or side.holds(file.old_path)


def _surely(side: TestSide, path: str) -> bool:
    return side.reason(path) not in (None, SideReason.named)


def _opened(file: ChangedFile, side: TestSide) -> _File | None:
    """None for what holds no tests that we could read."""
    language = language_for(file.old_path)
    if language is None or file.status is ChangeStatus.typechange:
        return None
    if not _on_side(file, side):
        return _opened_source(file, language)
    if max(file.old_size, file.new_size) > _LARGEST_PARSED:
        raise UnreadableSource("too large to be parsed")
    opened = _File(file, language, _surely(side, file.old_path), _surely(side, file.path))
    opened.old = language.read(file.old()) if file.in_base else Outline()
    if file.in_candidate and language_of(file.path) == language_of(file.old_path):
        opened.new = opened.old if file.same else language.read(file.new())
    if opened.new.broken and not opened.old.broken:
        raise UnreadableSource("it no longer parses")
    if side.only_by_name(file.old_path) and file.in_base and not opened.old.cases:
        return None
    return opened


def _opened_source(file: ChangedFile, language: Language) -> _File | None:
    if language.embedded is None or file.same or file.old_size > _LARGEST_PARSED:
        return None
    old = file.old()
    if not language.may_have_changed(old, file.new()):
        return None
    opened = _File(file, language, was_side=False, is_side=False)
    opened.old = language.embedded(old)
    if opened.old.cases or opened.old.parts:
        opened.new = language.embedded(file.new()) if file.in_candidate else Outline()
    return opened


def _judge(files: list[_File], side: TestSide) -> Iterator[Refusal]:
    for item in files:
        yield from _or_as_text(item, side, _same_names)
    arrived = _arrivals(files) if any(item.lost for item in files) else {}
    for item in files:
        yield from _or_as_text(item, side, lambda item: (*_gone(item, arrived), *_around(item)))


def _arrivals(files: Sequence[_File]) -> dict[int, list[_Arrived]]:
    """Tests that only the candidate has, by what they do."""
    found: dict[int, list[_Arrived]] = defaultdict(list)
    for item in files:
        known = {case.name for case in item.old.cases}
        for case in item.new.cases:
            if case.name in known or not case.runs:
                continue
            with contextlib.suppress(UnreadableSource, RecursionError):
                found[case.shape.digest].append(_Arrived(CasePlace(item.file.path, item.new, case), item.is_side))
    return found


def _or_as_text(item: _File, side: TestSide, judge: Callable[[_File], Iterable[Refusal]]) -> Iterator[Refusal]:
    """What is too deep to be compared shows only while it is."""
    try:
        yield from list(judge(item))
    except (UnreadableSource, RecursionError):
        yield from _as_text(item.file, side)


def _same_names(item: _File) -> Iterator[Refusal]:
    """Compare tests that kept their names; remember which went."""
    moved_away = not _runs_at(item, item.file.path, declared=item.is_side)
    after = {case.name: case for case in item.new.cases}
    before = {case.name: case for case in item.old.cases}
    for name, case in before.items():
        now = after.get(name)
        if now is None:
            item.lost.append(case)
        elif moved_away or (case.runs and not now.runs):
            yield _refused(item, Difference(GuardRule.test_deleted, now.line, words.test_not_run(name, item.file.path)))
        elif case.shape != now.shape:
            yield from _changed(item, case, now)


def _changed(item: _File, case: SourceTest, now: SourceTest) -> Iterator[Refusal]:
    if not has_only_grown(case.shape, now.shape, item.language, item.iterated()):
        found = describe(case.shape, now.shape, item.language, now.line)
        yield _refused(item, Difference(found.rule, found.line, words.of_test(case.name, found.message)))


def _runs_at(item: _File, path: str, *, declared: bool) -> bool:
    """Would a test of this file still be run at another path, as far as paths tell?"""
    if path == item.file.old_path:
        return True
    return (would_run(path) or not would_run(item.file.old_path)) and (declared or not item.was_side)


def _gone(item: _File, arrived: dict[int, list[_Arrived]]) -> Iterator[Refusal]:
    """A test that went is found again if the same test came elsewhere, where it runs."""
    missing = [case for case in item.lost if not _found_again(item, case, arrived)]
    if not missing:
        return
    if not item.file.in_candidate:
        yield _refused(item, Difference(GuardRule.test_deleted, 0, words.tests_gone(len(missing))))
        return
    for case in missing[:_SHOWN_PER_FILE]:
        yield _refused(item, Difference(GuardRule.test_deleted, case.line, words.test_gone(case.name)))
    if len(missing) > _SHOWN_PER_FILE:
        rest = words.more_tests_gone(len(missing) - _SHOWN_PER_FILE)
        yield _refused(item, Difference(GuardRule.test_deleted, 0, rest))


def _found_again(item: _File, case: SourceTest, arrived: dict[int, list[_Arrived]]) -> bool:
    old = CasePlace(item.file.old_path, item.old, case)
    candidates = arrived.get(case.shape.digest, [])
    for candidate in candidates:
        runs = _runs_at(item, candidate.place.path, declared=candidate.declared)
        if runs and same_surroundings(old, candidate.place):
            candidates.remove(candidate)
            return True
    return False


def _around(item: _File) -> Iterator[Refusal]:
    """Everything in the file but its tests."""
    if not item.file.in_base:
        found = judge_new_file(item.new, item.language, item.file.new())
        yield from (_refused(item, difference) for difference in found)
        yield from _new_special_file(item)
    elif item.file.in_candidate:
        paths = (item.file.old_path, item.file.path)
        yield from (_refused(item, found) for found in compare_support(item.old, item.new, item.language, paths))
        known = {case.name for case in item.old.cases}
        come = [case.shape for case in item.new.cases if case.name not in known]
        yield from (_refused(item, found) for found in judge_new_tests(come, item.language, item.file.new()))
        if item.file.status is ChangeStatus.renamed and not item.old.cases and _left_folder(item.file):
            yield _refused(item, Difference(GuardRule.test_support_changed, 0, words.SUPPORT_MOVED))
    elif not item.old.cases and item.was_side:
        yield _refused(item, Difference(GuardRule.test_support_changed, 0, words.SUPPORT_DELETED))


def _new_special_file(item: _File) -> Iterator[Refusal]:
    path = item.file.path
    if path.rpartition("/")[2] == "__init__.py" and (item.new.parts or item.new.imports):
        yield _refused(item, Difference(GuardRule.test_support_changed, 1, words.INIT_ADDED))
    elif "__mocks__" in path.split("/"):
        yield _refused(item, Difference(GuardRule.test_support_changed, 0, words.MOCKS_ADDED))


def _left_folder(file: ChangedFile) -> bool:
    return file.path.rpartition("/")[0] != file.old_path.rpartition("/")[0]


def _refused(item: _File, found: Difference) -> Refusal:
    return refusal(item.file, found)


def refusal(file: ChangedFile, found: Difference) -> Refusal:
    path = file.path if file.in_candidate else file.old_path
    return Refusal(
        rule=found.rule, path=path, line=found.line, message=found.message, fix=words.FIXES[found.rule], asks=True
    )


def _as_text(file: ChangedFile, side: TestSide) -> Iterator[Refusal]:
    """A file that should hold tests and cannot be parsed."""
    if file.status is ChangeStatus.deleted:
        yield refusal(file, Difference(GuardRule.test_deleted, 0, words.SUPPORT_DELETED))
    elif not _on_side(file, side):
        if not plain.examples_kept(file.old(), file.new()):
            yield refusal(file, Difference(GuardRule.test_changed, 0, words.UNREADABLE))
    elif file.status is not ChangeStatus.added and not (file.same or _only_longer(file)):
        yield refusal(file, Difference(GuardRule.test_changed, 0, words.UNREADABLE))


def _only_longer(file: ChangedFile) -> bool:
    return max(file.old_size, file.new_size) <= READ_LIMIT and plain.only_longer(file.old(), file.new())


def _unparsed(file: ChangedFile) -> Iterator[Refusal]:
    """Data, documents and tests of languages without a parser here."""
    if file.status is ChangeStatus.typechange:
        yield refusal(file, Difference(GuardRule.test_changed, 0, words.TYPE_CHANGED))
    elif file.status is ChangeStatus.deleted:
        rule = GuardRule.test_deleted if plain.is_code(file.old_path) else GuardRule.test_support_changed
        if not plain.is_document(file.old_path, b"", b""):
            yield refusal(file, Difference(rule, 0, words.SUPPORT_DELETED))
    elif file.status is ChangeStatus.added:
        if "__mocks__" in file.path.split("/"):
            yield refusal(file, Difference(GuardRule.test_support_changed, 0, words.MOCKS_ADDED))
    else:
        yield from _unparsed_change(file)


def _unparsed_change(file: ChangedFile) -> Iterator[Refusal]:
    if file.path != file.old_path and plain.is_code(file.old_path):
        yield refusal(file, Difference(GuardRule.test_changed, 0, words.UNPARSED_CHANGED))
        return
    if file.path != file.old_path and (
        _left_folder(file) or plain.suffix_of(file.path) != plain.suffix_of(file.old_path)
    ):
        yield refusal(file, Difference(GuardRule.test_support_changed, 0, words.SUPPORT_MOVED))
        return
    if file.same:
        return
    old, new = file.old(), file.new()
    if plain.is_document(file.path, old, new):
        return
    if plain.is_code(file.path):
        if not _only_longer(file):
            yield refusal(file, Difference(GuardRule.test_changed, 0, words.UNPARSED_CHANGED))
    elif max(file.old_size, file.new_size) > READ_LIMIT or not plain.same_meaning(file.path, old, new):
        yield refusal(file, Difference(GuardRule.test_support_changed, 0, words.DATA_CHANGED))
