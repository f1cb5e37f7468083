"""Takes Becket's own virtual environment off PATH, so that nothing it starts finds Becket's tools there."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping
from pathlib import Path


def leave_path(environ: MutableMapping[str, str], folder: Path, own: Path | None = None) -> None:
    """Without this, a gate that lacks pytest would find the one that Becket is tested with.

    `own` is Becket's virtual environment. One that lies in the repository around `folder` is that repository's own.
    """
    own = own or _private()
    if own is None or own.is_relative_to(_root(folder.absolute())):
        return
    bins = {own / "bin", own.resolve() / "bin"}
    entries = environ.get("PATH", "").split(os.pathsep)
    environ["PATH"] = os.pathsep.join(entry for entry in entries if not entry or Path(entry) not in bins)


def _private() -> Path | None:
    return None if sys.prefix == sys.base_prefix else Path(sys.prefix)


def _root(folder: Path) -> Path:
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
