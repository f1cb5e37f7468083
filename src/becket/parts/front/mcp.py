"""The Model Context Protocol over standard input and output: for an editor or an agent that wants to know what goes on.

It looks, starts, posts and tells. It decides nothing: no tool leads to an approval, a proposal, a handoff or a service,
and a run that it starts goes no further than the watched branch.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, BinaryIO, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from becket import __version__
from becket.app import desk
from becket.app.compose import App
from becket.app.keyboard import at_keyboard
from becket.app.record.overview import overview
from becket.app.record.report.collect import read_report
from becket.app.record.report.markdown import markdown_of
from becket.app.record.shown import step_log
from becket.app.record.status import take
from becket.app.state import StateFolder
from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import RunFilter
from becket.parts.agents.desk import say
from becket.parts.front.api.asks import AgentMessage, Asking, NewEventWanted, Nothing, Short, Wrong, read_body
from becket.parts.front.api.serve import redacted

log = logging.getLogger("becket.mcp")

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
LONGEST_LINE = 1_000_000
LONGEST_ANSWER = 60_000
MOST_AT_ONCE = 50
PARSE, REQUEST, METHOD, PARAMS, FAULT = -32700, -32600, -32601, -32602, -32603
ABOUT = (
    "Becket runs closed loops over this repository and proves what agents claim. Look with `status`, `list_runs`, "
    "`show_run` and `read_log`. Approving, accepting, declining and releasing are for people."
)


class ToolRuns(Asking):
    loop: Short | None = None
    status: RunStatus | None = None
    limit: int = Field(default=20, ge=1, le=100)


class ToolRun(Asking):
    run: Short = Field(description="Its id; the beginning is enough.")


class ToolLog(ToolRun):
    step: Short = Field(description="As `show_run` names it.")
    bytes: int = Field(default=16_384, ge=1, le=50_000, description="So much of its end.")


class ToolStart(Asking):
    loop_id: Short
    subject: Short | None = None
    sha: Short | None = Field(default=None, description="The commit, where the loop is about one.")
    inputs: dict[str, Json] = Field(default_factory=dict)
    dry_run: bool = False
    autonomy: Literal["observe", "propose", "merge"] = Field(default="merge", description="It goes no further.")


class ToolTell(AgentMessage, ToolRun):
    pass


class Tool(NamedTuple):
    """Answers with a text, or with what is shown as JSON."""

    says: str
    asks: type[Asking]
    run: Callable[[App, Any], Awaitable[object]]


def caller(app: App) -> Caller:
    """Whoever sits here, with the lowest role: who types into an editor has not decided anything."""
    return Caller(name=at_keyboard(app.config).name, role="member", via=Via.api)


async def _status(app: App, given: Nothing) -> object:
    return await overview(app) if app.config.database else await asyncio.to_thread(take, app.state)


async def _list_runs(app: App, given: ToolRuns) -> object:
    statuses = () if given.status is None else (given.status,)
    runs = await app.store.list_runs(RunFilter(loop_id=given.loop, statuses=statuses, limit=given.limit))
    return [
        {"run_id": run.run_id, "loop_id": run.loop_id, "subject": run.subject.name, "status": run.status.value,
         "reason": run.reason, "waiting_on": run.waiting_on, "created_at": run.created_at, "ended_at": run.ended_at}
        for run in runs
    ]  # fmt: skip


async def _show_run(app: App, given: ToolRun) -> object:
    return markdown_of(await read_report(app, given.run))


async def _read_log(app: App, given: ToolLog) -> object:
    found = await step_log(app, given.run, given.step, given.bytes)
    return f"(the last {given.bytes} of {found.size} bytes)\n{found.text}" if found.cut else found.text


async def _start_run(app: App, given: ToolStart) -> object:
    wish = {**dict(given), "autonomy": Autonomy(given.autonomy)}
    started = await desk.start(app, caller(app), desk.RunRequest(**wish))
    if started.run is None:
        return f"nothing was started: {started.dropped}"
    told = {"run_id": started.run.run_id, "status": started.run.status.value, "created": started.created}
    if not desk.daemon_is_up(app.state):
        told["note"] = "nobody works on it until a person types `becket up --detach`"
    return told


async def _post_event(app: App, given: NewEventWanted) -> object:
    event_id, started = await desk.post_event(app, caller(app), given.name, given.data, given.event_id)
    return {"event_id": event_id, "runs": [one.run.run_id for one in started if one.run is not None]}


async def _tell_agent(app: App, given: ToolTell) -> object:
    return await say(app, caller(app), given.run, given.text)


TOOLS = {
    "status": Tool("What is asked of people, what is going on, and how things are.", Nothing, _status),
    "list_runs": Tool("Runs of loops, the newest first.", ToolRuns, _list_runs),
    "show_run": Tool("A run's verdict, proof and story, as Markdown.", ToolRun, _show_run),
    "read_log": Tool("The end of what a step of a run printed.", ToolLog, _read_log),
    "start_run": Tool("Start a run of a loop, or find the one that answers. It never releases.", ToolStart, _start_run),
    "post_event": Tool("Say that something happened that loops may listen to.", NewEventWanted, _post_event),
    "tell_agent": Tool("Say something to the agent at work on a run, or to the next one.", ToolTell, _tell_agent),
}


class RpcError(Exception):
    def __init__(self, code: int, why: str) -> None:
        super().__init__(why)
        self.code = code


class McpServer:
    """Answers one line at a time."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def answer(self, line: bytes) -> bytes | None:
        """None: nothing is said to this."""
        if len(line) > LONGEST_LINE:
            return _line(_failed(None, REQUEST, f"a line has at most {LONGEST_LINE:,} bytes"))
        try:
            message = json.loads(line.decode())
        except (ValueError, RecursionError):
            return _line(_failed(None, PARSE, "this line is no JSON"))
        if not isinstance(message, list):
            said = await self._said(message)
            return None if said is None else _line(said)
        if not 0 < len(message) <= MOST_AT_ONCE:
            return _line(_failed(None, REQUEST, f"a batch has 1 to {MOST_AT_ONCE} messages"))
        all_said = [said for one in message if (said := await self._said(one)) is not None]
        return _line(all_said) if all_said else None

    async def _said(self, message: Json) -> Json | None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _failed(None, REQUEST, "this is no JSON-RPC 2.0 request")
        if not isinstance(message.get("method"), str):
            ours = "result" in message or "error" in message  # we ask nothing, so this answers nothing
            return None if ours else _failed(None, REQUEST, "a request names its method")
        if "id" not in message:
            return None  # a notification: nothing here depends on any
        mark = message["id"]
        if not isinstance(mark, str | int) or isinstance(mark, bool):
            return _failed(None, REQUEST, "an id is a text or a whole number")
        return await self._to(mark, message["method"], message.get("params", {}))

    async def _to(self, mark: str | int, method: str, params: Json) -> Json:
        try:
            if not isinstance(params, dict):
                raise RpcError(PARAMS, "params are an object")
            return {"jsonrpc": "2.0", "id": mark, "result": await self._result(method, params)}
        except RpcError as error:
            return _failed(mark, error.code, str(error))
        except Exception:
            log.exception("%s", method[:100])
            return _failed(mark, FAULT, "a fault in Becket; what it was is on standard error")

    async def _result(self, method: str, params: dict[str, Json]) -> Json:
        if method == "initialize":
            wanted = params.get("protocolVersion")
            return {
                "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "becket", "version": __version__},
                "instructions": ABOUT,
            }
        if method == "ping":
            return {}
        if method == "tools/list":
            return {"tools": [_described(name, tool) for name, tool in TOOLS.items()]}
        if method == "tools/call":
            return await self._called(params)
        raise RpcError(METHOD, f"there is no method {method[:80]!r}")

    async def _called(self, params: dict[str, Json]) -> Json:
        name, given = params.get("name"), params.get("arguments") or {}
        if not isinstance(name, str) or name not in TOOLS:
            raise RpcError(PARAMS, f"there is no such tool; there are {', '.join(TOOLS)}")
        tool = TOOLS[name]
        try:
            asked = read_body(tool.asks, json.dumps(given).encode())
            answer = await tool.run(self._app, asked)
        except (BecketError, Wrong, ValidationError) as error:
            return self._content(str(error), wrong=True)
        return self._content(answer)

    def _content(self, answer: object, *, wrong: bool = False) -> Json:
        redact = self._app.redactor.text
        if isinstance(answer, str):
            text = redact(answer)
        else:
            text = json.dumps(redacted(_ANY.dump_python(answer, mode="json"), redact), ensure_ascii=False)
        if len(text) > LONGEST_ANSWER:
            text = f"{text[:LONGEST_ANSWER]}\n(cut: {len(text):,} characters; ask for less)"
        return {"content": [{"type": "text", "text": text}], "isError": wrong}


_ANY: TypeAdapter[Any] = TypeAdapter(Any)


def _described(name: str, tool: Tool) -> Json:
    looks = name in ("status", "list_runs", "show_run", "read_log")
    return {
        "name": name, "description": tool.says, "inputSchema": tool.asks.model_json_schema(),
        "annotations": {"readOnlyHint": looks},
    }  # fmt: skip


def _failed(mark: Json, code: int, why: str) -> Json:
    return {"jsonrpc": "2.0", "id": mark, "error": {"code": code, "message": why}}


def _line(message: Json) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def lines_of(source: BinaryIO) -> Iterator[bytes]:
    """Of a line that is too long only the beginning is kept."""
    while line := source.readline(LONGEST_LINE + 2):
        rest = line
        while not rest.endswith(b"\n") and len(rest) > LONGEST_LINE:
            rest = source.readline(LONGEST_LINE + 2)
        if line.strip():
            yield line


def serve(state: StateFolder) -> int:
    """Until standard input ends. Nothing else may write to standard output."""
    out = sys.stdout.buffer
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    with contextlib.redirect_stdout(sys.stderr), asyncio.Runner() as runner:
        app = App.open(state, sys.stderr, tolerant=True)
        server = McpServer(app)
        try:
            for line in lines_of(sys.stdin.buffer):
                if (said := runner.run(server.answer(line))) is not None:
                    out.write(said)
                    out.flush()
        except (BrokenPipeError, KeyboardInterrupt):
            return 0  # whoever asked is gone
        finally:
            runner.run(app.store.close())
    return 0
