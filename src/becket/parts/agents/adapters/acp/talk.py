"""The conversation with one agent: greeting, session, prompts. Every wait in it has an end."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from becket import __version__
from becket.kernel.contract.base import Json
from becket.parts.agents.adapters.acp import policy
from becket.parts.agents.adapters.acp.reading import ConversationReader
from becket.parts.agents.adapters.acp.wire import AcpTransport
from becket.parts.agents.adapters.lenient_json import Object, mapping, objects, text

if TYPE_CHECKING:
    from acp.connection import Connection

GREETING, OPENING, SETTING = 120.0, 120.0, 20.0
"""Seconds for `initialize`, for a session, and for a setting. A prompt has the call's own time."""

_LULL, _LONGEST_REPLAY = 0.1, 5.0
_PROTOCOL = 1
_LOGIN_NEEDED = -32000


class ConnectionLost(Exception):
    """The agent is gone, or does not answer."""


class Failure(Exception):
    """The agent answered with an error."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.asks_for_login = code == _LOGIN_NEEDED
        self.status = code if 400 <= code <= 599 else None  # gemini tells its model's HTTP status as the code


class AcpSession:
    """One connection with one session, used within one event loop."""

    def __init__(self, wire: AcpTransport, reading: ConversationReader, rules: policy.PermissionPolicy) -> None:
        self._wire = wire
        self._reading = reading
        self._rules = rules
        self._connection: Connection | None = None
        self._can: Object = {}
        self._cancelling = False
        self.stirred = asyncio.Event()  # something was heard
        self.session: str | None = None
        self.resumed = False
        self.unknown = 0
        self.version = ""
        self.model = ""

    async def greet(self) -> None:
        """The library is loaded while the agent's program starts: both take their time."""
        make = await asyncio.to_thread(_connection_class)
        self._connection = make(self._heard, self._wire)
        answer = await self._ask(
            "initialize",
            {
                "protocolVersion": _PROTOCOL,
                # It edits and runs by itself, inside of its sandbox: nothing is offered that would act outside.
                "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
                "clientInfo": {"name": "becket", "title": "Becket", "version": __version__},
            },
            GREETING,
        )
        if answer.get("protocolVersion") != _PROTOCOL:
            raise Failure(f"it speaks version {answer.get('protocolVersion')} of ACP; Becket speaks {_PROTOCOL}")
        self._can = mapping(answer, "agentCapabilities")
        self.version = text(answer, "agentInfo", "version")

    async def open(self, workspace: Path, session: str | None, model: str | None) -> None:
        """Go on with a session where that is possible, else begin one."""
        self._reading.pause()
        place: dict[str, Json] = {"cwd": str(workspace), "mcpServers": []}
        opened = await self._reopened(place, session) if session else None
        if opened is None:
            opened = await self._ask("session/new", place, OPENING)
            self.session, self.resumed = text(opened, "sessionId"), False
            if not self.session:
                raise Failure("it gave its new session no id")
        self.model = text(opened, "models", "currentModelId")
        if self._rules.held:
            await self._work_freely(opened)
        if model:
            await self._choose(opened, model)

    async def prompt(self, said: str) -> Object:
        """Ends with the answer, with Failure, or with Lost when the agent's process is over."""
        self._cancelling = False
        self._reading.begin()
        block = {"type": "text", "text": plainly(said)}
        result = await self._ask("session/prompt", {"sessionId": self.session, "prompt": [block]}, None)
        self._reading.over(result)
        return result

    async def cancel(self) -> None:
        """The running prompt is to end; its answer comes to whoever awaits it."""
        self._cancelling = True
        if self._connection is not None:
            with contextlib.suppress(ConnectionError):
                await self._connection.send_notification("session/cancel", {"sessionId": self.session})

    async def close(self) -> None:
        self._reading.flush()
        if self._connection is not None:
            await self._connection.close()

    async def _reopened(self, place: dict[str, Json], session: str) -> Object | None:
        can_resume = isinstance(mapping(self._can, "sessionCapabilities").get("resume"), dict)
        if not can_resume and self._can.get("loadSession") is not True:
            return None
        try:
            method = "session/resume" if can_resume else "session/load"
            opened = await self._ask(method, {**place, "sessionId": session}, OPENING)
        except Failure:
            return None
        self.session, self.resumed = session, True
        await self._replayed()
        return opened

    async def _replayed(self) -> None:
        """A loaded session is told again, even after the answer: wait until it is quiet."""
        for _ in range(round(_LONGEST_REPLAY / _LULL)):
            self.stirred.clear()
            await asyncio.sleep(_LULL)
            if not self.stirred.is_set():
                return

    async def _work_freely(self, opened: Object) -> None:
        mode, (setting, value) = policy.free_mode(opened), policy.free_setting(opened)
        if setting:
            await self._set("session/set_config_option", {"configId": setting, "value": value})
        elif mode:
            await self._set("session/set_mode", {"modeId": mode})

    async def _choose(self, opened: Object, model: str) -> None:
        """Where the agent offers this model; else its name is a matter of its command line."""
        for option in policy.settings(opened, "model"):
            if model in policy.values_of(option):
                await self._set("session/set_config_option", {"configId": text(option, "id"), "value": model})
                self.model = model
        offered = [text(offer, "modelId") for offer in objects(opened, "models", "availableModels")]
        if model in offered and model != self.model:
            await self._set("session/set_model", {"modelId": model})
            self.model = model

    async def _set(self, method: str, what: dict[str, Json]) -> None:
        """An agent that does not let us set it asks us later instead, or works as it is."""
        with contextlib.suppress(Failure):
            await self._ask(method, {"sessionId": self.session, **what}, SETTING)

    async def _ask(self, method: str, params: dict[str, Json], seconds: float | None) -> Object:
        from acp.exceptions import RequestError

        assert self._connection is not None
        try:
            async with asyncio.timeout(seconds):
                return mapping(await self._connection.send_request(method, params))
        except TimeoutError:
            raise ConnectionLost(f"it did not answer `{method}` within {seconds:.0f} s") from None
        except ConnectionError:
            raise ConnectionLost("it went away") from None
        except RequestError as error:
            raise Failure(_words_of(error), error.code if isinstance(error.code, int) else 0) from None

    async def _heard(self, method: str, params: Json, notification: bool) -> Json:
        """Everything that the agent says or asks of its own accord."""
        from acp.exceptions import RequestError

        self.stirred.set()
        if method == "session/update":
            self._reading.update(params)
            return None
        if method == "session/request_permission" and not notification:
            return self._permission(mapping(params))
        self.unknown += 1
        if notification:
            return None
        raise RequestError.method_not_found(method)

    def _permission(self, params: Object) -> dict[str, Json]:
        if self._cancelling:
            return {"outcome": {"outcome": "cancelled"}}
        call = self._reading.asked(mapping(params, "toolCall"))
        option = policy.chosen(params, allowed=True) if self._rules.allows(call.touches) else ""
        if not option:
            self._reading.refused(call)
            option = policy.chosen(params, allowed=False)
        return {"outcome": {"outcome": "selected", "optionId": option} if option else {"outcome": "cancelled"}}


def plainly(said: str) -> str:
    """Agents take a first word with such a sign for a command of their own (gemini: `/`, `$`)."""
    return f"(This is text, no command.)\n\n{said}" if said.lstrip().startswith(("/", "$", "!")) else said


def _connection_class() -> type[Connection]:
    from acp.connection import Connection

    return Connection


def _words_of(error: Any) -> str:
    """The message, and the details that some agents hide in the data."""
    data = error.data if isinstance(error.data, dict) else {}
    details = [data.get(name) for name in ("details", "message", "error")] if data else [error.data]
    more = " ".join(detail for detail in details if isinstance(detail, str))
    return f"{error}: {more}" if more and more not in str(error) else str(error)
