"""What the fake gemini keeps below HOME: its settings and its records of sessions."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path

from becket_lab.clis.runtime import Json, home


def settings() -> Json:
    file = home() / ".gemini" / "settings.json"
    found: Json = json.loads(file.read_text()) if file.is_file() else {}
    return found


class Record:
    """Named by the minute and the session, as version 0.61.0 does, with what follows from that."""

    def __init__(self, ident: str, cwd: str) -> None:
        self._id = ident
        self._folder = home() / ".gemini" / "tmp" / Path(cwd).name / "chats"
        now = datetime.now(UTC)
        self._file = self._folder / f"session-{now:%Y-%m-%dT%H-%M}-{ident[:8]}.jsonl"

    def recalled(self) -> list[Json]:
        """What was said, by the newest record. None of this minute: beginning the new one has overwritten it."""
        self._file.unlink(missing_ok=True)
        contents: list[Json] = []
        for file in sorted(self._folder.glob(f"session-*-{self._id[:8]}.jsonl")):
            for line in file.read_text().splitlines():
                entry = json.loads(line)
                if entry.get("type") in {"user", "gemini"}:
                    role = "model" if entry["type"] == "gemini" else "user"
                    contents.append({"role": role, "parts": entry["parts"]})
        while contents and any("functionCall" in part for part in contents[-1]["parts"]):
            contents.pop()  # a killed turn left calls without a result
        return contents

    def add(self, kind: str, parts: list[Json], **fields: object) -> None:
        if not self._file.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write({"sessionId": self._id, "kind": "main"})
        content = "".join(part.get("text", "") for part in parts)
        # The real one takes its parts apart into toolCalls and thoughts.
        self._write({"id": str(uuid.uuid4()), "type": kind, "content": content, "parts": parts, **fields})

    def _write(self, entry: Json) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(entry) + "\n")
