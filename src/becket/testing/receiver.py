"""A real HTTP receiver on the loopback: it counts what arrives, drops doubles by key, and can be slow, busy or rude.

    with Receiver(secret="...") as receiver:
        receiver.script(Answer(status=503, retry_after=1), Answer(cut="after"))
        ...  # post to receiver.url, from here or from another process
        assert receiver.effects == 1

GET `/seen/<key>` answers 200 if the effect with that key happened, else 404: a look-up for queryable effects.
"""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import TracebackType
from typing import Literal, Self

from becket.testing.loopback import LoopbackServer, whole

_LONGEST_BODY = 10_000_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the receiver does with one request.

    `delay` seconds pass before it acts; with `hold` it acts when `release` is called. `cut` drops the connection
    without an answer, before or after it acted.
    Without `acts`, it acts on every request that it does not answer with an error.
    """

    status: int = 200
    body: bytes = b"{}"
    delay: float = 0.0
    hold: bool = False
    cut: Literal["", "before", "after"] = ""
    retry_after: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    acts: bool | None = None

    @property
    def takes_effect(self) -> bool:
        return self.cut != "before" and (self.status < 300 if self.acts is None else self.acts)


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request as it arrived. `signed` is None where the receiver has no secret to check it by."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    key: str | None
    signed: bool | None
    double: bool  # an effect with this key had happened before


class Receiver:
    """Started by `with` or `start`. Scripted answers are used up in order; after them every request succeeds."""

    def __init__(self, secret: str | None = None, port: int = 0) -> None:
        self._secret = secret
        self._script: deque[Answer] = deque()
        self._deliveries: list[Delivery] = []
        self._acted: list[str] = []
        self._changed = threading.Condition()
        self._stopping = threading.Event()
        self._released = threading.Event()
        self._server = _Server(port, self)
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def deliveries(self) -> tuple[Delivery, ...]:
        """Every request that arrived, doubles included, in the order they arrived."""
        with self._changed:
            return tuple(self._deliveries)

    @property
    def effects(self) -> int:
        """How many distinct effects happened: what a receiver that honours the key would have done."""
        with self._changed:
            return len(self._acted)

    def seen(self, key: str) -> bool:
        with self._changed:
            return key in self._acted

    def script(self, *answers: Answer) -> None:
        with self._changed:
            self._script.extend(answers)

    def release(self) -> None:
        """Let every held request act, also those still to come."""
        self._released.set()

    def wait_for(self, deliveries: int = 0, effects: int = 0, timeout: float = 60.0) -> bool:
        """Block until so much has arrived and happened; False if it has not in time."""
        with self._changed:
            return self._changed.wait_for(
                lambda: len(self._deliveries) >= deliveries and len(self._acted) >= effects, timeout
            )

    def start(self) -> None:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="receiver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends delays at once; a delayed request does not act any more."""
        self._stopping.set()
        self._released.set()
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _arrived(self, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Delivery, Answer]:
        key = headers.get("idempotency-key")
        signed = self._is_signed(headers, body)
        with self._changed:
            delivery = Delivery(path, headers, body, key, signed, double=key is not None and key in self._acted)
            self._deliveries.append(delivery)
            answer = self._script.popleft() if self._script else Answer()
            self._changed.notify_all()
        return delivery, Answer(status=401, body=b"bad signature") if signed is False else answer

    def _is_signed(self, headers: Mapping[str, str], body: bytes) -> bool | None:
        if self._secret is None:
            return None
        signed = headers.get("x-becket-timestamp", "").encode() + b"." + body
        right = "sha256=" + hmac.new(self._secret.encode(), signed, hashlib.sha256).hexdigest()
        return hmac.compare_digest(right, headers.get("x-becket-signature", ""))

    def _act(self, delivery: Delivery, answer: Answer) -> None:
        """One step under one lock: two requests with one key that are in flight together are one effect."""
        self._stopping.wait(answer.delay)
        if answer.hold:
            self._released.wait()
        late = (answer.delay or answer.hold) and self._stopping.is_set()
        with self._changed:
            if answer.takes_effect and not late and (delivery.key is None or delivery.key not in self._acted):
                self._acted.append(delivery.key or f"without a key {len(self._acted)}")
                self._changed.notify_all()


class _Server(LoopbackServer):
    def __init__(self, port: int, receiver: Receiver) -> None:
        self.receiver = receiver
        super().__init__(port, _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.connection.settimeout(10)

    def do_POST(self) -> None:
        length = min(int(self.headers.get("Content-Length") or 0), _LONGEST_BODY)
        headers = {name.lower(): value for name, value in self.headers.items()}
        delivery, answer = self.server.receiver._arrived(self.path, headers, whole(self.rfile, length))
        self.server.receiver._act(delivery, answer)
        if answer.cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        more = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
        self._say(answer.status, answer.body, {**answer.headers, **more})

    def do_GET(self) -> None:
        folder, _, key = self.path.strip("/").rpartition("/")
        known = folder == "seen" and self.server.receiver.seen(key)
        self._say(200 if known else 404, b"{}", {})

    def _say(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), "Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Quiet: the deliveries are the record."""
