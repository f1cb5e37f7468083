"""Content-addressed files: named by their sha256, on disk before anybody hears of them, never written again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.errors import NotFound

before_rename = CrashPoint("artifacts.before_rename", "the content is synced under a temporary name")
after_rename = CrashPoint("artifacts.after_rename", "the content has its name, the folder is not synced yet")

_DIGEST = re.compile(r"[0-9a-f]{64}")
_INCOMING = "incoming"
_CHUNK = 1 << 20
_SURELY_TORN = 86_400.0


class FileArtifacts:
    """`ab/cdef...` below one folder."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._incoming = self._folder / _INCOMING
        self._incoming.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._forget_torn()

    def _forget_torn(self) -> None:
        """Copies that a killed process left half made. Younger ones may be another process's own."""
        for torn in os.scandir(self._incoming):
            with contextlib.suppress(FileNotFoundError):
                if torn.stat().st_mtime < time.time() - _SURELY_TORN:
                    Path(torn).unlink()

    def put(self, content: bytes | Path) -> tuple[str, int]:
        # What is hashed is our own copy: the file may still grow or change while it is read.
        small = content if isinstance(content, bytes) else _small(content)
        if small is not None and self._young_again(digest := hashlib.sha256(small).hexdigest()):
            return digest, len(small)
        handle, name = tempfile.mkstemp(dir=self._incoming)
        copy = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                digest, size = _fill(file, content if small is None else small)
                file.flush()
                os.fchmod(file.fileno(), 0o400)
                os.fsync(file.fileno())
            self._adopt(copy, digest)
        finally:
            copy.unlink(missing_ok=True)
        return digest, size

    def _young_again(self, digest: str) -> bool:
        """True if it is here already. Newly wanted: whoever removes old content must see that it is young again."""
        try:
            os.utime(self._place(digest))
        except FileNotFoundError:
            return False
        return True

    def _adopt(self, copy: Path, digest: str) -> None:
        place = self._place(digest)
        if self._young_again(digest):
            return
        if not place.parent.exists():
            place.parent.mkdir(exist_ok=True, mode=0o700)
            _sync_folder(self._folder)
        before_rename()
        copy.replace(place)
        after_rename()
        _sync_folder(place.parent)

    def path(self, digest: str) -> Path:
        place = self._place(digest)
        if not place.is_file():
            raise NotFound(f"the artifact {digest} is not kept here; old ones are removed after `retention.artifacts`")
        return place

    def read(self, digest: str, limit: int | None = None) -> bytes:
        with self.path(digest).open("rb") as file:
            return file.read(-1 if limit is None else limit)

    def check(self, digest: str) -> bool:
        try:
            with self.path(digest).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == digest
        except (NotFound, OSError):
            return False

    def remove(self, digests: Sequence[str]) -> None:
        for digest in digests:
            self._place(digest).unlink(missing_ok=True)

    def digests(self) -> frozenset[str]:
        return frozenset(digest for digest in self._names() if _DIGEST.fullmatch(digest))

    def _names(self) -> Iterator[str]:
        for folder in os.scandir(self._folder):
            if folder.name != _INCOMING and folder.is_dir():
                yield from (folder.name + file.name for file in os.scandir(folder))

    def older_than(self, digest: str, at: float) -> bool:
        """Content that is gone is not older: there is nothing left to remove."""
        with contextlib.suppress(FileNotFoundError):
            return self._place(digest).stat().st_mtime < at
        return False

    def _place(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise NotFound(f"{digest!r} is not the digest of an artifact; it has 64 characters of 0-9 and a-f")
        return self._folder / digest[:2] / digest[2:]


def _small(path: Path) -> bytes | None:
    """The content of a file that memory surely has room for."""
    with path.open("rb") as file:
        content = file.read(_CHUNK)
    return content if len(content) < _CHUNK else None


def _fill(file: BinaryIO, content: bytes | Path) -> tuple[str, int]:
    hashing = hashlib.sha256()
    size = 0
    for part in _parts(content):
        hashing.update(part)
        file.write(part)
        size += len(part)
    return hashing.hexdigest(), size


def _parts(content: bytes | Path) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as source:
        while part := source.read(_CHUNK):
            yield part


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
