"""ScriptedModel: the server that loop authors and our own tests use in place of a model."""

from __future__ import annotations

import itertools
import json
import ssl
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from becket.testing.model.composing import compose
from becket.testing.model.exchange import Frame, ModelRequest, Reply, Stop, WireName
from becket.testing.model.lanes import Lane, Lanes, ScriptedTurn
from becket.testing.model.server import Line, Server
from becket.testing.model.steps import Cut, Hang, Say, Status, Step, Tokens
from becket.testing.model.tools import NoTool
from becket.testing.model.wires import Wire
from becket.testing.model.wires.reading import some_json

SIDE_ANSWER = "scripted"
"""What a request without tools gets: titles, summaries and the like, which no script is about."""

OVER = "The script is over."
"""What a request gets when its script has no step left."""

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "proxy-authorization", "cookie"})


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it arrived. Keys are not kept, only whether one came."""

    wire: WireName
    path: str  # without the query
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    key_given: bool
    model: str
    streamed: bool
    tools: tuple[str, ...]
    prompts: tuple[str, ...]
    results: tuple[str, ...]  # what the tools of earlier steps gave back
    script: str = ""  # the script that answered, or "" for none
    answer: object = None  # the step that answered
    wrong: tuple[str, ...] = field(default=())

    def says(self, text: str) -> bool:
        return any(text in one for one in (*self.prompts, *self.results))


class ScriptedModel:
    """Started by `with` or `start`. `keys`, if given, are the only API keys that are let in; others get the
    vendor's own refusal.

    `sides=False` lets requests without tools play steps too: for clients that have no tools at all.
    """

    def __init__(
        self,
        steps: Iterable[Step] = (),
        *,
        port: int = 0,
        keys: Iterable[str] | None = None,
        usage: Tokens | None = None,
        models: Iterable[str] = ("scripted",),
        sides: bool = True,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.stopping = threading.Event()
        self._changed = threading.Condition()
        self._lanes = Lanes()
        self._requests: list[Request] = []
        self._violations: list[str] = []
        self._numbers = itertools.count(1)
        self._keys = None if keys is None else frozenset(keys)
        self._usage = usage or Tokens()
        self._models = tuple(models)
        self._sides = sides
        self._server = Server(port, self, context)
        self._scheme = "http" if context is None else "https"
        self._thread: threading.Thread | None = None
        first = tuple(steps)
        if first:
            self.script(*first)

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
        """Without a path: Anthropic and Gemini clients want this one, OpenAI clients `url + "/v1"`."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request for a reply that arrived, in order."""
        with self._changed:
            return tuple(self._requests)

    @property
    def violations(self) -> tuple[str, ...]:
        """What the real service would have refused, or no script could answer."""
        with self._changed:
            return tuple(self._violations)

    @property
    def left(self) -> dict[str, tuple[Step, ...]]:
        """The steps that nobody asked for yet, by script."""
        with self._changed:
            return self._lanes.left

    def script(self, *steps: Step, key: str | None = None, prompt: str | None = None) -> None:
        """Add steps, for all requests or for those with this API key or with this text in a prompt."""
        with self._changed:
            self._lanes.add(Lane(steps, key, prompt))

    def saw(self, text: str) -> bool:
        """Whether a prompt or a tool's result contained this."""
        return any(request.says(text) for request in self.requests)

    def check(self, *, finished: bool = False) -> None:
        """Raises AssertionError for requests that the real service would refuse; `finished`: for steps left, too."""
        if self.violations:
            raise AssertionError("requests broke the contract:\n" + "\n".join(f"- {one}" for one in self.violations))
        if finished and self.left:
            raise AssertionError(f"steps were not played: {self.left}")

    def wait_for(self, requests: int, timeout: float = 60.0) -> bool:
        """Block until so many have arrived; False if they have not in time."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._requests) >= requests, timeout)

    def start(self) -> None:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="model", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends delays and hangs at once."""
        self.stopping.set()
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def models(self, wire: Wire, path: str, headers: Mapping[str, str], line: Line) -> None:
        line.send_json(200, wire.models(self._models), {})

    def count(self, wire: Wire, path: str, headers: Mapping[str, str], body: bytes, line: Line) -> None:
        line.send_json(200, wire.count(max(1, len(body) // 4)), {})

    def ask(self, wire: Wire, path: str, headers: Mapping[str, str], body: bytes, line: Line) -> None:
        parsed, ask = _read(wire, path, headers, body)
        key = wire.key(path, headers)
        with self._changed:
            lane, turn = self._next(wire, key, ask)
            reply = self._compose(turn, ask)
            self._note(wire, path, headers, parsed, key, ask, lane, turn)
        self._perform(wire, ask, turn, reply, line)

    def _next(self, wire: Wire, key: str | None, ask: ModelRequest) -> tuple[str, ScriptedTurn]:
        if key is None:
            ask.wrong.append("no API key in the header that this vendor reads")
            return "", ScriptedTurn(wire.unauthorized(given=False))
        if self._keys is not None and key not in self._keys:
            return "", ScriptedTurn(wire.unauthorized(given=True))
        if ask.wrong:
            return "", ScriptedTurn(Status(400, message=ask.wrong[0]))
        if not ask.tools and self._sides:
            text = SIDE_ANSWER if ask.answer_schema is None else json.dumps(some_json(ask.answer_schema))
            return "", ScriptedTurn(Say(text))
        lane = self._lanes.of(key, ask)
        if lane is None:
            return "", ScriptedTurn(Say(OVER))
        return lane.name, lane.turn() or ScriptedTurn(Say(OVER))

    def _compose(self, turn: ScriptedTurn, ask: ModelRequest) -> Reply | Status:
        if isinstance(turn.step, Status):
            return turn.step
        try:
            return compose(turn, ask, lambda: f"s{next(self._numbers):04d}", self._usage)
        except NoTool as error:
            ask.wrong.append(str(error))
            return Status(500, message=str(error))

    def _note(
        self,
        wire: Wire,
        path: str,
        headers: Mapping[str, str],
        body: Mapping[str, Any],
        key: str | None,
        ask: ModelRequest,
        lane: str,
        turn: ScriptedTurn,
    ) -> None:
        request = Request(
            wire=wire.name,
            path=path.partition("?")[0],
            headers={name: "(given)" if name in _SECRET_HEADERS else value for name, value in headers.items()},
            body=body,
            key_given=key is not None,
            model=ask.model,
            streamed=ask.stream,
            tools=tuple(tool.name for tool in ask.tools),
            prompts=tuple(ask.prompts),
            results=tuple(ask.results),
            script=lane,
            answer=turn.step,
            wrong=tuple(ask.wrong),
        )
        self._requests.append(request)
        self._violations += [f"request {len(self._requests)} ({wire.name}): {one}" for one in ask.wrong]
        self._changed.notify_all()

    def _perform(self, wire: Wire, ask: ModelRequest, turn: ScriptedTurn, reply: Reply | Status, line: Line) -> None:
        self.stopping.wait(turn.delay)
        if isinstance(reply, Status):
            _fail(wire, ask, reply, line)
        elif isinstance(turn.step, Hang):
            _hang(wire, ask, turn.step, reply, line)
        elif isinstance(turn.step, Cut):
            _cut(wire, ask, turn.step, reply, line)
        elif ask.stream:
            line.send_stream(wire.stream(reply, ask))
        else:
            line.send_json(200, wire.whole(reply), {})


def _read(wire: Wire, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Mapping[str, Any], ModelRequest]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}, ModelRequest(wrong=["We could not parse the JSON body of your request."])
    if not isinstance(parsed, dict):
        return {}, ModelRequest(wrong=["The body must be a JSON object."])
    return parsed, wire.read(path, headers, parsed)


def _fail(wire: Wire, ask: ModelRequest, status: Status, line: Line) -> None:
    headers, body = wire.error(status)
    if status.midstream and ask.stream:
        begun = list(wire.stream(Reply("begun", ask.model, (), Stop.done, Tokens()), ask))[:1]
        line.send_stream([*begun, wire.error_frame(status)])
        return
    line.send_json(status.code, body if status.body is None else status.body, {**headers, **status.headers})


def _hang(wire: Wire, ask: ModelRequest, step: Hang, reply: Reply, line: Line) -> None:
    if step.text and ask.stream:
        line.send_stream(_first_half(wire.stream(reply, ask)), end=False)
    line.hang()


def _cut(wire: Wire, ask: ModelRequest, step: Cut, reply: Reply, line: Line) -> None:
    if step.at_once:
        line.cut()
    elif ask.stream:
        line.send_stream(_first_half(wire.stream(reply, ask)), end=False)
        line.cut()
    else:
        line.send_json(200, wire.whole(reply), {}, cut=True)


def _first_half(frames: Iterable[Frame]) -> list[Frame]:
    """Some of the text, and nothing of the end, however short the text is."""
    whole = list(frames)
    return whole[: max(1, len(whole) // 2)]
