"""Where content is kept by its digest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class Artifacts(Protocol):
    """Content-addressed files. Content is on disk, synced, before its digest is returned."""

    def put(self, content: bytes | Path) -> tuple[str, int]:
        """(sha256, size). Storing the same content twice is one file."""
        ...

    def path(self, digest: str) -> Path:
        """Raises NotFound."""
        ...

    def read(self, digest: str, limit: int | None = None) -> bytes: ...

    def check(self, digest: str) -> bool:
        """Does the content still have this digest?"""
        ...

    def remove(self, digests: Sequence[str]) -> None: ...

    def digests(self) -> frozenset[str]: ...

    def older_than(self, digest: str, at: float) -> bool: ...
