"""Too much gone at once (L1: 2,900 files became one)."""

from __future__ import annotations

from collections.abc import Iterator

from becket.kernel.contract.guard import Change, ChangedFile, ChangeStatus, GuardRule, Refusal
from becket.parts.guard.reading import words
from becket.parts.guard.reading.paths import refused

_FEW = 5  # fewer than these are dead code being removed, unless they are half of the tree
_WORTH_EMPTYING = 400  # bytes; below it an emptied file is a stub that lost its purpose
_GUTTED_FROM = 2_000
_GUTTED_TO = 0.05


def judge_deletion(change: Change, max_share: float) -> Iterator[Refusal]:
    gone = [file for file in change.files if file.status is ChangeStatus.deleted or _gutted(file)]
    total = max(change.total_files, len(gone), 1)
    share = len(gone) / total
    if share > max_share and (len(gone) >= _FEW or (len(gone) >= 2 and share >= 0.5)):
        first = min(gone, key=lambda file: file.old_path)
        yield refused(GuardRule.mass_deletion, first.old_path, words.much_deleted(len(gone), total, share, max_share))
    for file in change.files:
        if _emptied(file):
            yield refused(GuardRule.mass_deletion, file.path, words.FILE_EMPTIED)


def _gutted(file: ChangedFile) -> bool:
    """Kept by name, gone by content."""
    return file.in_base and file.old_size >= _GUTTED_FROM and file.new_size < file.old_size * _GUTTED_TO


def _emptied(file: ChangedFile) -> bool:
    if file.status is not ChangeStatus.modified or file.old_size < _WORTH_EMPTYING or file.new_size > 16:
        return False
    return not file.new().strip()
