"""Requests to a front as a hostile client could send them: byte for byte, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from becket.parts.front.server import Front

Headers = Sequence[tuple[str, str]]
FORM = ("content-type", "application/x-www-form-urlencoded")


@dataclass
class Wire:
    """One request and its answer. A stream is read as it comes; `leave` hangs up."""

    status: int = 0
    headers: list[tuple[str, str]] = field(default_factory=list)
    parts: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    async def next(self, within: float = 20.0) -> bytes | None:
        """None at its end."""
        return await asyncio.wait_for(self.parts.get(), within)

    async def event(self) -> bytes | None:
        """The next that is no sign of life."""
        while (part := await self.next()) is not None:
            if part.startswith(b"event:"):
                return part
        return None

    async def leave(self) -> None:
        self.gone.set()
        if self.task is not None:
            await asyncio.wait_for(self.task, 20.0)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")

    @property
    def text(self) -> str:
        return self.body.decode()


def begin(
    front: Front, method: str, target: str, headers: Headers = (), body: Iterable[bytes] = (b"",), peer: str = "::1"
) -> Wire:
    """Begin a request. `target` is percent-encoded, as uvicorn gets it."""
    wire, chunks = Wire(), list(body)
    path, _, query = target.partition("?")
    told = {name for name, _ in headers}
    base = front.address.url if "authorization" in told else front.address.page
    host = () if "host" in told else (("host", base.removeprefix("http://")),)
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "scheme": "http",
        "method": method, "path": unquote(path), "raw_path": path.encode(), "query_string": query.encode(),
        "root_path": "", "server": ("127.0.0.1", front.address.port), "client": (peer, 40000),
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in (*host, *headers)],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        if chunks:
            part = chunks.pop(0)
            return {"type": "http.request", "body": part, "more_body": bool(chunks)}
        await wire.gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            wire.status = message["status"]
            wire.headers = [(name.decode(), value.decode("latin-1")) for name, value in message["headers"]]
            wire.began.set()
        elif message["type"] == "http.response.body":
            if message.get("body"):
                wire.parts.put_nowait(message["body"])
            if not message.get("more_body"):
                wire.parts.put_nowait(None)

    async def run() -> None:
        try:
            await front.asgi(scope, receive, send)
        except Exception:
            assert wire.status >= 400, f"{method} {target}"  # the server tells of it and raises it again, for the log
        finally:
            wire.began.set()
            wire.parts.put_nowait(None)

    wire.task = asyncio.create_task(run())
    return wire


async def ask(
    front: Front, method: str, target: str, headers: Headers = (), body: Iterable[bytes] = (b"",), peer: str = "::1"
) -> Answer:
    """The whole answer; of a stream its beginning."""
    wire = begin(front, method, target, headers, body, peer)
    await asyncio.wait_for(wire.began.wait(), 60.0)
    found = []
    if wire.header("content-type").startswith("text/event-stream"):
        found.append(await wire.next() or b"")
    else:
        while (part := await wire.next(60.0)) is not None:
            found.append(part)
    await wire.leave()
    return Answer(wire.status, wire.headers, b"".join(found))
