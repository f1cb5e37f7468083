"""notify.command: a person's own program is told, such as notify-send or mail.

What is told is handed over as variables and on standard input: text never becomes shell code (L24).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import Autonomy, EffectClass

NAME = "notify.command"
TITLE, TEXT = "BECKET_TITLE", "BECKET_TEXT"
_KEPT = 2000
_LONGEST = 20_000


class CommandNotice:
    """The payload is `{text}`, with a `title` or without. The command is the owner's own."""

    def __init__(self, command: str, folder: Path, redact: Callable[[str], str], timeout: float = 20.0) -> None:
        self.name = NAME
        self.class_ = EffectClass.repeatable
        self.needs = Autonomy.observe
        self.timeout = timeout
        self._command = command
        self._folder = folder
        self._redact = redact

    def check(self, call: EffectCall) -> str | None:
        told = call.payload
        if (
            "text" not in told
            or set(told) - {"title", "text"}
            or not all(isinstance(one, str) for one in told.values())
        ):
            return "the payload must be {text}, or {title, text}, both texts"
        return None

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        told = {
            name: str(call.payload.get(name, "Becket")).replace("\0", "\ufffd")[:_LONGEST] for name in ("title", "text")
        }
        code, said = await self._run(told["title"], told["text"])
        if code != 0:
            how = f"did not end within {self.timeout:g} s" if code is None else f"ended with exit code {code}"
            raise EffectFailed(f"`{self._command}` {how}{': ' if said else ''}{said}", retryable=True)
        return {"exit_code": 0, "output": said}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.cannot_tell

    async def _run(self, title: str, text: str) -> tuple[int | None, str]:
        """Its exit code, None if it did not end in time, and what it said. A session of its own can be ended whole."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            child = await asyncio.create_subprocess_exec(
                "sh", "-c", self._command, cwd=self._folder, env=env | {TITLE: title, TEXT: text},
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise EffectFailed(f"`{self._command}` cannot be started: {error.strerror}", retryable=True) from error
        try:
            async with asyncio.timeout(self.timeout):
                said, _ = await child.communicate(f"{text}\n".encode(errors="replace"))
        except TimeoutError:
            return None, ""
        finally:
            with contextlib.suppress(ProcessLookupError):  # whatever it left behind
                os.killpg(child.pid, signal.SIGKILL)
            await child.wait()
        return child.returncode, self._redact(said.decode(errors="replace").strip()[-_KEPT:])
