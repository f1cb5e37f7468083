"""Does becket.yaml load? The answer is cached until the file changes, so that quick verbs stay quick."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from becket.app.state import StateFolder, holder

CONFIG_ALERT = "config"
"""The key of the alert that an engine raises of a becket.yaml that does not load, until it loads again."""


def is_mended(state: StateFolder, trouble: str) -> bool:
    """Has nobody taken that alert back, although the file loads? No daemon is up that would."""
    return not trouble and holder(state.daemon_lock) is None


def config_trouble(state: StateFolder) -> str:
    """Why it does not; empty where it does, there is none, or a daemon is up, which tells of it by an alert."""
    stamp = _stamp(state)
    if stamp is None or holder(state.daemon_lock) is not None or _known_good(state) == stamp:
        return ""
    from becket.app.sections import load_config
    from becket.kernel.contract.errors import UsageError

    try:
        load_config(state.config.read_bytes(), str(state.config), os.environ)
    except UsageError as error:
        return f"becket.yaml does not load, so nothing new starts: {error}\nMend it; `becket doctor` tells more."
    except OSError as error:
        return f"becket.yaml cannot be read: {error.strerror}"
    with contextlib.suppress(OSError):
        if state.folder.is_dir():
            _place(state).write_text(stamp)
    return ""


def _known_good(state: StateFolder) -> str:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _place(state).read_text()
    return ""


def _place(state: StateFolder) -> Path:
    return state.folder / "config.good"


def _stamp(state: StateFolder) -> str | None:
    try:
        found = state.config.stat()
    except OSError:
        return None
    return f"{found.st_mtime_ns} {found.st_size} {found.st_ino}"
