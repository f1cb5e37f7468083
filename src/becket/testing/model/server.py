"""The HTTP side: routes, answers whole or streamed, cuts and hangs."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol
from urllib.parse import urlsplit

from becket.testing.loopback import LoopbackServer, whole
from becket.testing.model.exchange import Frame, WireName
from becket.testing.model.wires import Wire
from becket.testing.model.wires.chat import Chat
from becket.testing.model.wires.gemini import Gemini
from becket.testing.model.wires.messages import Messages
from becket.testing.model.wires.responses import Responses

_LONGEST_BODY = 50_000_000
WIRES: Mapping[WireName, Wire] = {wire.name: wire for wire in (Responses(), Chat(), Messages(), Gemini())}


class Line(Protocol):
    """One connection as the player sees it: send this, then go on, cut or hang."""

    def send_json(
        self, status: int, body: Mapping[str, Any] | str, headers: Mapping[str, str], cut: bool = False
    ) -> None: ...

    def send_stream(self, frames: Iterable[Frame], end: bool = True) -> None:
        """Without `end`, what was sent stays unfinished."""
        ...

    def cut(self) -> None: ...

    def hang(self) -> None:
        """Returns when the client has gone or the server stops."""
        ...


class Player(Protocol):
    """Who decides what is said."""

    stopping: threading.Event

    def ask(self, wire: Wire, path: str, headers: Mapping[str, str], body: bytes, line: Line) -> None: ...

    def count(self, wire: Wire, path: str, headers: Mapping[str, str], body: bytes, line: Line) -> None: ...

    def models(self, wire: Wire, path: str, headers: Mapping[str, str], line: Line) -> None: ...


class Server(LoopbackServer):
    def __init__(self, port: int, player: Player, context: ssl.SSLContext | None) -> None:
        self.player = player
        self.context = context
        self.open: set[socket.socket] = set()
        super().__init__(port, _Handler)

    def server_close(self) -> None:
        """Clients that keep a connection for later are told that there is no later."""
        for connection in tuple(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)
        super().server_close()


def route(method: str, path: str, headers: Mapping[str, str]) -> tuple[str, Wire] | None:
    """What is asked (`ask`, `count`, `models`) and on which wire. A base URL with or without `/v1` will do."""
    place = urlsplit(path).path.rstrip("/")
    if method == "GET":
        if not place.endswith("/models"):
            return None
        gemini = "/v1beta" in place
        claude = "anthropic-version" in headers or "x-api-key" in headers
        name = WireName.gemini if gemini else WireName.messages if claude else WireName.responses
        return "models", WIRES[name]
    ends: Mapping[str, tuple[str, WireName]] = {
        "/responses": ("ask", WireName.responses),
        "/chat/completions": ("ask", WireName.chat),
        "/messages": ("ask", WireName.messages),
        "/messages/count_tokens": ("count", WireName.messages),
        ":generateContent": ("ask", WireName.gemini),
        ":streamGenerateContent": ("ask", WireName.gemini),
        ":countTokens": ("count", WireName.gemini),
    }
    found = next((what for end, what in ends.items() if place.endswith(end)), None)
    return None if found is None else (found[0], WIRES[found[1]])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        """The handshake is made here, in the connection's own thread, so that a slow client holds nobody up."""
        self.request.settimeout(30)
        if self.server.context is not None:
            self.request = self.server.context.wrap_socket(self.request, server_side=True)
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()
        if self.server.context is not None:
            self.request.close()

    def do_HEAD(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._dispatch(b"")

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length") or 0), _LONGEST_BODY)
        self._dispatch(self._chunked() if self.headers.get("Transfer-Encoding") else whole(self.rfile, length))

    def _chunked(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            body += whole(self.rfile, size)
            self.rfile.readline(100)
        self.rfile.readline(100)
        return body

    def _dispatch(self, body: bytes) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        found = route(self.command, self.path, headers)
        if found is None:
            self.send_json(404, {"error": {"message": f"no such address: {self.command} {self.path}"}}, {})
            return
        what, wire = found
        player = self.server.player
        if what == "models":
            player.models(wire, self.path, headers, self)
        elif what == "count":
            player.count(wire, self.path, headers, body, self)
        else:
            player.ask(wire, self.path, headers, body, self)

    def send_json(
        self, status: int, body: Mapping[str, Any] | str, headers: Mapping[str, str], cut: bool = False
    ) -> None:
        data = (body if isinstance(body, str) else json.dumps(dict(body))).encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "application/json",
            **headers,
            "Content-Length": str(len(data)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.cut()

    def send_stream(self, frames: Iterable[Frame], end: bool = True) -> None:
        self.close_connection = True
        self.send_response(200)
        for name, value in {
            "Content-Type": "text/event-stream",
            "Transfer-Encoding": "chunked",
            "Connection": "close",
        }.items():
            self.send_header(name, value)
        self.end_headers()
        for frame in frames:
            data = frame.data if isinstance(frame.data, str) else json.dumps(dict(frame.data))
            text = (f"event: {frame.event}\n" if frame.event else "") + f"data: {data}\n\n"
            self._chunk(text.encode())
        if end:
            self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def cut(self) -> None:
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def hang(self) -> None:
        self.close_connection = True
        while not self.server.player.stopping.is_set():
            if select.select([self.connection], [], [], 0.05)[0] and self._gone():
                return

    def _gone(self) -> bool:
        """A client that waits sends nothing; readable means that it closed."""
        if isinstance(self.connection, ssl.SSLSocket):
            return not self.connection.recv(1)
        return not self.connection.recv(1, socket.MSG_PEEK)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet: the recorded requests are the log."""
