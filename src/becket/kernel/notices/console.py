"""notify.console: one notice on a stream, as plain text whatever it holds."""

from __future__ import annotations

import asyncio
from typing import TextIO

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.kernel.contract.text import harmless

_LONGEST = 8000
_MORE = "\n    "  # a further line of a notice cannot pass for a notice of its own


class ConsoleNotice:
    """Payload: `text`. The target is only a name, such as `console`."""

    def __init__(self, stream: TextIO) -> None:
        self.name = "notify.console"
        self.class_ = EffectClass.repeatable
        self.needs = Autonomy.observe
        self.timeout = 5.0
        self._stream = stream

    def check(self, call: EffectCall) -> str | None:
        text = call.payload.get("text")
        return None if isinstance(text, str) and text.strip() else "the payload has no `text` to show"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        shown = harmless(str(call.payload["text"])).strip()
        if len(shown) > _LONGEST:
            shown = f"{shown[:_LONGEST]} ... ({len(shown) - _LONGEST} more characters)"
        # In a thread: a reader that does not read must not stop the engine.
        await asyncio.to_thread(self._write, shown.replace("\n", _MORE) + "\n")
        return {}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line)
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise EffectFailed(f"the console cannot be written to: {error}") from error
