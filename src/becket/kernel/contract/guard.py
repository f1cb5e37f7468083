"""What the guard reads and says: a change between two commits, its refusals and its class."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from becket.kernel.contract.base import Record, digest_of


class GuardRule(StrEnum):
    """Why a change may not be proven. The names are stable: people search for them."""

    protected_path = "protected-path"
    path_oddity = "path-oddity"
    symlink_escape = "symlink-escape"
    submodule_changed = "submodule-changed"
    gitattributes = "gitattributes"
    lfs_pointer = "lfs-pointer"
    gate_definition = "gate-definition"
    setup_files = "setup-files"
    compiled_file = "compiled-file"
    mass_deletion = "mass-deletion"
    binary_added = "binary-added"
    large_file = "large-file"
    conflict_markers = "conflict-markers"
    secret_added = "secret-added"  # noqa: S105  # the rule's name
    hidden_text = "hidden-text"
    test_deleted = "test-deleted"
    test_skipped = "test-skipped"
    test_weakened = "test-weakened"
    test_emptied = "test-emptied"
    test_changed = "test-changed"
    test_support_changed = "test-support-changed"
    early_exit = "early-exit"


class ChangeClass(StrEnum):
    """What a change newly can do; it decides how much it must prove before it is promoted by itself."""

    plain = "plain"  # nothing but logic, of what the file already used
    ordinary = "ordinary"  # new functions, constants, imports of pure modules: needs a hold-out proof
    powerful = "powerful"  # can look around or reach out, or cannot be read: needs a person

    @property
    def rank(self) -> int:
        return list(ChangeClass).index(self)


NOT_SOURCE = "not-source"
"""The power of whatever is no product source: data, settings, builds, helpers of tests."""


class ClassFinding(Record):
    """One line that raises a change's class, in plain words."""

    kind: ChangeClass
    power: str  # a short name: environment, files, hooks, new-function, constant
    path: str
    line: int  # of the candidate's file; of base's where something was taken away; 0 for the file as a whole
    message: str  # "adds the power to read the environment"
    shown: str = ""  # the line itself, shortened

    def __str__(self) -> str:
        return f"{self.message}: {self.path}:{self.line}" if self.line else f"{self.message}: {self.path}"


class Classification(Record):
    """The class of a whole change, and the lines that made it so; none for a plain one."""

    kind: ChangeClass
    findings: tuple[ClassFinding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[ClassFinding]) -> Classification:
        """The highest first: what is shown of many must be what counts."""
        found = tuple(sorted(findings, key=lambda one: -one.kind.rank))
        return cls(kind=found[0].kind if found else ChangeClass.plain, findings=found)


class Refusal(Record):
    """One reason against a change. `asks`: a person may approve it, as a part of exactly this change."""

    rule: GuardRule
    path: str
    line: int  # of the candidate's file, or of base's where the candidate has none; 0 for the file as a whole
    message: str
    fix: str
    asks: bool = False

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.rule}: {self.message} ({self.fix})"


class ChangeStatus(StrEnum):
    added = "added"
    modified = "modified"
    deleted = "deleted"
    renamed = "renamed"
    typechange = "typechange"


READ_LIMIT = 8_000_000
"""A content beyond this many bytes is not read; its callable gives nothing."""

SYMLINK = "120000"
SUBMODULE = "160000"
EXECUTABLE = "100755"


def _nothing() -> bytes:
    return b""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """One path of a change. Sizes are 0 and contents empty on the side where there is no file."""

    path: str
    old_path: str  # differs from `path` only in a rename
    status: ChangeStatus
    old_mode: str
    new_mode: str
    old_size: int = 0
    new_size: int = 0
    old: Callable[[], bytes] = _nothing
    new: Callable[[], bytes] = _nothing
    same: bool = False  # the content is the same on both sides, known without reading it
    unread: bool = False  # the whole change is too much to be read, and this is a part that was not
    old_id: str = ""  # the contents' own hashes, by which the change is known again
    new_id: str = ""

    @property
    def in_base(self) -> bool:
        return self.status is not ChangeStatus.added

    @property
    def in_candidate(self) -> bool:
        return self.status is not ChangeStatus.deleted


@dataclass(frozen=True, slots=True)
class Change:
    """From base to candidate. `base_paths` are all paths of base, where known: collisions are seen against them."""

    files: tuple[ChangedFile, ...]
    total_files: int
    base_paths: frozenset[str] = field(default=frozenset())

    @property
    def digest(self) -> str:
        """Of every path before and after, whole: the same for the same change on top of another base, and no other."""
        return digest_of([[*_names(file), file.old_id, file.new_id] for file in self.files])


def _names(file: ChangedFile) -> tuple[str, ...]:
    return file.status.value, file.old_path, file.path, file.old_mode, file.new_mode
