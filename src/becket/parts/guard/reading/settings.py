"""Files that decide what the gates and git itself do. All else that is no product source is a matter of classes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.kernel.contract.guard import Change, ChangedFile, ChangeStatus, GuardRule, Refusal
from becket.parts.gates.section import SetupConfig
from becket.parts.gates.setups.keys import is_key
from becket.parts.guard.reading import words
from becket.parts.guard.reading.gates import GatePrograms
from becket.parts.guard.reading.languages.pyshape import parse
from becket.parts.guard.reading.languages.shape import UnreadableSource
from becket.parts.guard.reading.paths import refused
from becket.parts.guard.reading.side import SideReason, TestSide
from becket.parts.guard.reading.task_runners import obeys_otherwise

_WHOLE: tuple[tuple[GuardRule, re.Pattern[str], str], ...] = (
    (GuardRule.gate_definition, re.compile(r"^becket\.ya?ml$|^\.becket/"), words.GATE_CHANGED),
    (GuardRule.gitattributes, re.compile(r"(?:^|/)\.gitattributes$"), words.ATTRIBUTES_CHANGED),
    (GuardRule.submodule_changed, re.compile(r"(?:^|/)\.gitmodules$"), words.SUBMODULE),
    (GuardRule.lfs_pointer, re.compile(r"(?:^|/)\.lfsconfig$"), words.LFS_CHANGED),
)
_CONFTEST = re.compile(r"(?:^|/)conftest\.py$")


def judge_settings(change: Change, side: TestSide, programs: GatePrograms) -> Iterator[Refusal]:
    for file in change.files:
        found = _whole(file)
        if found is not None:
            yield found
        elif _CONFTEST.search(file.path) or _CONFTEST.search(file.old_path):
            yield from _conftest(file)
        elif _rewrites_gate(file, side, programs):
            yield refused(GuardRule.gate_definition, file.path, words.GATE_PROGRAM_CHANGED, asks=True)


def judge_setup(change: Change, setup: SetupConfig | None) -> Iterator[Refusal]:
    """The set-up is built from these files, with the variables and the network of base: a person comes first."""
    for file in change.files:
        names = {file.path, file.old_path}
        if setup is not None and any(is_key(setup, name) for name in names):
            yield refused(GuardRule.setup_files, file.path, words.SETUP_CHANGED, asks=True)


def _rewrites_gate(file: ChangedFile, side: TestSide, programs: GatePrograms) -> bool:
    for path in {file.path, file.old_path}:
        if programs.runs(path) and file.in_base and side.reason(path) in (None, SideReason.gate):
            return True
        moved = file.status is not ChangeStatus.modified
        for runner in programs.runners_of(path):
            if moved or obeys_otherwise(runner, path, file.old(), file.new()):
                return True
    return False


def _whole(file: ChangedFile) -> Refusal | None:
    for path in dict.fromkeys((file.path, file.old_path)):
        for rule, pattern, message in _WHOLE:
            if pattern.search(path):
                return refused(rule, path, message)
    return None


def _conftest(file: ChangedFile) -> Iterator[Refusal]:
    """Comments and formatting may change; what it does may not."""
    if file.status is not ChangeStatus.modified or not _same_code(file):
        yield refused(GuardRule.test_support_changed, file.path, words.CONFTEST_CHANGED, asks=True)


def _same_code(file: ChangedFile) -> bool:
    try:
        return file.same or parse(file.old()) == parse(file.new())
    except (UnreadableSource, RecursionError):
        return False
