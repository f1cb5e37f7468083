"""A person's messages to a working agent: text files in the call's inbox, oldest name first."""

from __future__ import annotations

import contextlib
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.agent import CallFiles

_LONGEST = 64_000
_NAME = re.compile(r"[0-9]{1,20}-(?P<by>.*)\.txt")


@dataclass(frozen=True, slots=True)
class Message:
    text: str
    by: str  # who says it; empty if the file's name does not tell
    name: str = field(default="", compare=False)  # of its file


class Inbox:
    """Read by the driver between turns, or while one goes on. Nothing in it can raise."""

    def __init__(self, files: CallFiles) -> None:
        self._folder = files.inbox
        self._heard = files.heard

    def take(self) -> Message | None:
        """The oldest message, which is put among the heard ones; None if there is none."""
        for path in self._waiting():
            message = _read(path)
            if message is None:
                path.unlink(missing_ok=True)
                continue
            _move(path, self._heard)
            path.unlink(missing_ok=True)  # a full disk must not make it come again and again
            return message
        return None

    def give_back(self, message: Message) -> None:
        """It was taken and not delivered after all."""
        _move(self._heard / message.name, self._folder)

    def left(self) -> tuple[Message, ...]:
        """What nobody took. It stays, for whoever is called next."""
        return tuple(message for path in self._waiting() if (message := _read(path)) is not None)

    def waiting(self) -> bool:
        return bool(self._waiting())

    def _waiting(self) -> list[Path]:
        try:
            entries = sorted(self._folder.iterdir())
        except OSError:
            return []
        # A dot file is a message that is still being written; a folder or a link is none.
        return [path for path in entries if path.name[0] != "." and path.is_file() and not path.is_symlink()]


def put(folder: Path, text: str, by: str = "") -> Path:
    """Leave a message, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    safe = re.sub(r"[^\w.@-]", "_", by)[:64]
    path = folder / f"{time.time_ns():020d}-{safe}.txt"
    draft = folder / f".{path.name}"
    draft.write_text(text[:_LONGEST], encoding="utf-8")
    draft.replace(path)
    return path


def _read(path: Path) -> Message | None:
    try:
        with path.open("rb") as file:
            text = file.read(_LONGEST * 4).decode("utf-8", "replace").strip()[:_LONGEST]
    except OSError:
        return None
    named = _NAME.fullmatch(path.name)
    return Message(text, named["by"] if named else "", path.name) if text else None


def _move(path: Path, folder: Path) -> None:
    with contextlib.suppress(OSError):  # somebody took it back
        folder.mkdir(exist_ok=True)
        path.replace(folder / path.name)
