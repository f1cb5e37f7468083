"""The way to an agent and back: JSON-RPC lines, sent by a child control, read from the keeper's file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from becket.kernel.contract.process import ChildControl
from becket.parts.agents.adapters.lenient_json import Object, parsed
from becket.parts.agents.adapters.lines import LineReader, Vital

VITAL: Vital = re.compile(rb'"id"|"usage_update"')
"""Questions and answers; what is only told may be missed."""


class AcpTransport:
    """A message transport of the library's connection. Only well-formed messages pass: it would break on others."""

    def __init__(self, control: ChildControl, raw: Path, ended: asyncio.Event) -> None:
        self._control = control
        self._lines = LineReader(raw, ended, VITAL)
        self._coming = self._lines.batches()
        self._come: Iterator[str] = iter(())
        self.strange = 0  # lines that were no messages

    @property
    def passed_over(self) -> int:
        return self._lines.passed_over

    async def send(self, message: dict[str, Any]) -> None:
        self._control.say(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    async def receive(self) -> dict[str, Any] | None:
        while True:
            for line in self._come:
                if not line.strip():
                    continue
                message = message_of(line)
                if message is not None:
                    return message
                self.strange += 1
            batch = await anext(self._coming, None)
            if batch is None:
                return None
            self._come = iter(batch)

    async def close(self) -> None:
        """The file is over when the process is."""


def message_of(line: str) -> dict[str, Any] | None:
    """The JSON-RPC message of one line; None if it is something else."""
    message = parsed(line)
    return dict(message) if message is not None and _well_formed(message) else None


def _well_formed(message: Object) -> bool:
    if not isinstance(message.get("id"), int | str | None):
        return False
    if "method" in message:
        return isinstance(message["method"], str)
    return "id" in message and isinstance(message.get("error"), dict | None)
