"""What may not stand in any file: conflict markers, secrets, invisible text, binaries, too much of anything."""

from __future__ import annotations

import re
from collections.abc import Iterator

from becket.kernel.contract.guard import (
    READ_LIMIT,
    SUBMODULE,
    SYMLINK,
    Change,
    ChangedFile,
    ChangeStatus,
    GuardRule,
    Refusal,
)
from becket.kernel.contract.lines import added_lines, as_text, is_binary
from becket.kernel.engine.secret_lines import secret_in_name, secrets_in, without_secrets
from becket.parts.guard.reading import words
from becket.parts.guard.reading.paths import refused

_LFS = b"version https://git-lfs.github.com/spec/"
_COMPILED = re.compile(
    r"(?:^|/)__pycache__/|\.(?:py[cod]|class|o|so(?:\.\d+)*|dylib|dll|exe|elc|beam|wasm|jar|whl|egg)$"
)
_MEDIA: dict[str, tuple[bytes, ...]] = {
    "png": (b"\x89PNG\r\n",),
    "jpg": (b"\xff\xd8\xff",),
    "jpeg": (b"\xff\xd8\xff",),
    "gif": (b"GIF8",),
    "ico": (b"\0\0\1\0", b"\0\0\2\0"),
    "webp": (b"RIFF",),
    "bmp": (b"BM",),
    "pdf": (b"%PDF-",),
    "woff": (b"wOFF",),
    "woff2": (b"wOF2",),
    "ttf": (b"\0\1\0\0", b"true"),
    "otf": (b"OTTO",),
    "mo": (b"\xde\x12\x04\x95", b"\x95\x04\x12\xde"),
}
_RUNNABLE = (
    b"\x7fELF",
    b"MZ",
    b"PK",
    b"\x1f\x8b",
    b"\xca\xfe\xba\xbe",
    b"\xcf\xfa\xed\xfe",
    b"#!",
    b"!<arch>",
    b"\0asm",
)
_OPENS = re.compile(r"^<{7}(?: [^<]|$)")
_CLOSES = re.compile(r"^>{7}(?: [^>]|$)")
_QUOTING = re.compile(r"\.(?:md|markdown|txt|eml|mbox|rst|adoc|patch|diff)$", re.IGNORECASE)
_TRANSLATED = re.compile(
    r"\.(?:po|pot|ftl|arb|xlf|xliff|strings|resx)$|(?:^|/)(?:locales?|i18n|lang|translations?|values-\w+)/.*\.(?:json|ya?ml|properties|xml|toml)$"
)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_MARKED = re.compile(rb"^(?:<{7}|>{7})", re.MULTILINE)


MOST_FILES_WORTH = 4
"""A change may grow the tree by so many times the largest file allowed: many files are as large as one."""


def judge_content(change: Change, max_file: int) -> Iterator[Refusal]:
    grown = sum(max(file.new_size - file.old_size, 0) for file in change.files if not file.same)
    if grown > MOST_FILES_WORTH * max_file:
        largest = max(change.files, key=lambda file: file.new_size - file.old_size)
        yield refused(GuardRule.large_file, largest.path, words.grows_much(grown, MOST_FILES_WORTH * max_file))
    for file in change.files:
        if not file.in_candidate:
            continue
        yield from _named_by_a_secret(file)
        if file.new_mode == SYMLINK:
            yield from _secrets(file.path, b"" if file.old_mode != SYMLINK else file.old(), file.new())
        if SUBMODULE in (file.old_mode, file.new_mode) or file.new_mode == SYMLINK:
            continue
        if file.new_size > max_file and (file.new_size > file.old_size or not file.in_base):
            yield refused(GuardRule.large_file, file.path, words.too_large(file.new_size, max_file))
        elif _COMPILED.search(file.path) and (
            file.status is not ChangeStatus.renamed or not _COMPILED.search(file.old_path)
        ):
            yield refused(GuardRule.compiled_file, file.path, words.COMPILED)
        elif file.unread:
            yield refused(GuardRule.large_file, file.path, words.TOO_MUCH)
        elif not file.same and file.new_size <= READ_LIMIT:
            yield from _judge_file(file)


def _judge_file(file: ChangedFile) -> Iterator[Refusal]:
    old, new = file.old(), file.new()
    if old.startswith(_LFS) or new.startswith(_LFS):
        yield refused(GuardRule.lfs_pointer, file.path, words.LFS_CHANGED, 1)
    elif is_binary(new):
        if not _expected_binary(file.path, old, new):
            yield refused(GuardRule.binary_added, file.path, words.BINARY)
    else:
        yield from _markers(file.path, old, new)
        yield from _secrets(file.path, old, new)
        yield from _hidden(file.path, old, new)


def _expected_binary(path: str, old: bytes, new: bytes) -> bool:
    """Pictures and fonts that are what their names say, and data that was binary before: nothing runs them."""
    starts = _MEDIA.get(path.rpartition(".")[2].lower(), ())
    if starts:
        return new.startswith(starts)
    return is_binary(old) and not new.startswith(_RUNNABLE)


def _markers(path: str, old: bytes, new: bytes) -> Iterator[Refusal]:
    if not _MARKED.search(new):
        return
    found = list(added_lines(old, new))
    opening = next((number for number, line in found if _OPENS.match(line)), None)
    closing = next((number for number, line in found if _CLOSES.match(line)), None)
    divided = b"=======" in new
    if _QUOTING.search(path):
        if opening is not None and closing is not None and divided:
            yield refused(GuardRule.conflict_markers, path, words.CONFLICT, opening)
    elif opening is not None or closing is not None:
        yield refused(GuardRule.conflict_markers, path, words.CONFLICT, opening or closing or 0)


def _named_by_a_secret(file: ChangedFile) -> Iterator[Refusal]:
    if (not file.in_base or file.path != file.old_path) and (kind := secret_in_name(file.path)):
        yield refused(GuardRule.secret_added, without_secrets(file.path), words.named_by_secret(kind))


def _secrets(path: str, old: bytes, new: bytes) -> Iterator[Refusal]:
    for number, kind in secrets_in(as_text(old) or b"", as_text(new) or b""):
        yield refused(GuardRule.secret_added, path, words.secret(kind), number)


def _hidden(path: str, old: bytes, new: bytes) -> Iterator[Refusal]:
    if (b"\xe2\x80" not in new and b"\xe2\x81" not in new) or _TRANSLATED.search(path):
        return
    for number, line in added_lines(old, new):
        if _BIDI.search(line):
            yield refused(GuardRule.hidden_text, path, words.HIDDEN, number)
            return
