"""What of this machine every contained program sees beside the system: part of the key of greens and of set-ups."""

from __future__ import annotations

import os
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.process import Holds
from becket.kernel.contract.toolchains import find


def seen_beside(holds: Holds) -> dict[str, Json]:
    found = find(os.environ)
    return {
        "chosen": found.chosen,
        "variables": dict(found.variables),
        "readable": [_place(path) for path in holds.readable],
    }


def _place(path: Path) -> Json:
    """What is below it is not read, it may be large: another link, or another folder, is another place."""
    try:
        real = path.resolve()
        seen = real.stat()
    except (OSError, RuntimeError):
        return [str(path), None]
    return [str(path), str(real), seen.st_ino, seen.st_mtime_ns]
