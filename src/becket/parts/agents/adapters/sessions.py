"""What the vendor had counted of each session before: some count a session from its beginning, we count calls."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.agent import CallFiles, Usage
from becket.parts.agents.adapters.call_environment import CallEnvironment

_KEPT = 100


class Sessions:
    """Kept beside the run's HOME, not in it: the agent must not be able to write what it has used."""

    def __init__(self, environment: CallEnvironment) -> None:
        self._path = environment.memory
        self._totals = _read(self._path) if self._path is not None else {}

    def total(self, session: str | None) -> Usage:
        return self._totals.get(session or "", Usage())

    def note(self, session: str | None, total: Usage) -> None:
        if not session or self._totals.get(session, Usage()) == total:
            return
        self._totals.pop(session, None)
        self._totals[session] = total
        if self._path is not None:
            _write(self._path, dict(list(self._totals.items())[-_KEPT:]))


def remember_before(files: CallFiles, session: str | None, total: Usage) -> None:
    """For whoever reads the call's files after a crash."""
    if session:
        _write(_before(files), {session: total})


def remembered_before(files: CallFiles) -> Usage:
    return next(iter(_read(_before(files)).values()), Usage())


def _before(files: CallFiles) -> Path:
    return files.folder / "before.json"


def _read(path: Path) -> dict[str, Usage]:
    try:
        return {name: Usage.model_validate(value) for name, value in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, AttributeError, ValidationError):
        return {}


def _write(path: Path, totals: dict[str, Usage]) -> None:
    """On a full disk the older totals stay: the next call of the session is then booked too high, never too low."""
    draft = path.with_name(f".{path.name}.draft")
    with contextlib.suppress(OSError):
        draft.write_text(json.dumps({name: total.model_dump(mode="json") for name, total in totals.items()}))
        draft.replace(path)
