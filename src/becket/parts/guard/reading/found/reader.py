"""How the contents of one commit are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from becket.parts.guard.reading.found.names import is_foreign, is_source

Reader = Callable[[str], bytes | None]
"""The content of a path; None for what is not there, not wanted or too large."""

_MANIFESTS = ("GNUmakefile", "makefile", "Makefile", "package.json")


def nothing(path: str) -> None:
    """For who has paths alone."""
    return


def wanted(paths: Iterable[str]) -> frozenset[str]:
    """The paths whose contents tell where the tests are."""
    return frozenset(path for path in paths if path in _MANIFESTS or (is_source(path) and not is_foreign(path)))
