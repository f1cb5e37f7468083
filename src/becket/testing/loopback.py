"""What the HTTP servers for tests have in common: on the loopback only, and at once."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from socketserver import TCPServer


class LoopbackServer(ThreadingHTTPServer):
    """One thread for each connection; closing waits for the requests under way."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, port: int, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", port), handler)

    def server_bind(self) -> None:
        """Without asking for the machine's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone away is part of many tests, not an error."""


def whole(stream: BufferedIOBase, length: int) -> bytes:
    """A body. Who was killed while sending it has asked for nothing: the handler ends here."""
    body = stream.read(length)
    if len(body) < length:
        raise ConnectionResetError("the client has gone in the middle of its request")
    return body
