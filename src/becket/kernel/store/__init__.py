"""The journal on SQLite, in memory or on Postgres, and the artifacts beside it. Importing this costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from becket.kernel.store.artifacts import FileArtifacts
    from becket.kernel.store.opening import open_memory, open_postgres, open_sqlite

__all__ = ["FileArtifacts", "open_memory", "open_postgres", "open_sqlite"]

_HOMES = {
    "FileArtifacts": "becket.kernel.store.artifacts",
    "open_memory": "becket.kernel.store.opening",
    "open_postgres": "becket.kernel.store.opening",
    "open_sqlite": "becket.kernel.store.opening",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
