"""`becket mcp`: an editor or an agent looks, starts, posts and tells; it decides nothing."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from api_stage import LOOPS

from becket.app import desk
from becket.kernel.contract.handoff import ApprovalState, HandoffState
from becket.kernel.contract.spec import Autonomy
from becket.parts.front import mcp
from becket.parts.front.mcp import LONGEST_ANSWER, LONGEST_LINE, TOOLS, VERSIONS, McpServer
from becket.testing.world import World


class Editor:
    def __init__(self, folder: Path) -> None:
        self.world = World(folder, store="sqlite")
        self.world.write("becket.yaml", "version: 1\nsandbox: {use: none, without: [files, processes, network]}\n")
        for text in LOOPS:
            self.world.loop(text.replace("CODE", "1"))
        self.world.commit()
        self.server = McpServer(self.world.app)

    async def say(self, line: bytes) -> Any:
        said = await self.server.answer(line)
        return None if said is None else json.loads(said)

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.say(json.dumps({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).encode())

    async def call(self, tool: str, **given: Any) -> tuple[str, bool]:
        result = (await self.ask("tools/call", name=tool, arguments=given))["result"]
        (content,) = result["content"]
        return content["text"], result["isError"]


@pytest.fixture
def editor(tmp_path: Path) -> Editor:
    return Editor(tmp_path)


def test_an_editor_sees_what_goes_on_and_starts_a_run(editor: Editor) -> None:
    async def story() -> None:
        text, wrong = await editor.call("start_run", loop_id="look")
        started = json.loads(text)
        assert (wrong, started["created"]) == (False, True)
        assert "becket up" in started["note"]
        await editor.world.settle()
        run = started["run_id"]
        listed = json.loads((await editor.call("list_runs", status="ready_for_handoff"))[0])
        assert [one["run_id"] for one in listed] == [run]
        assert "look" in (await editor.call("show_run", run=run))[0]
        assert await editor.call("read_log", run=run, step="fine") == ("hello\n", False)
        assert (await editor.call("read_log", run=run, step="fine", bytes=3))[0].endswith("\nlo\n")
        assert json.loads((await editor.call("status"))[0])["root"] == str(editor.world.root)
        posted = json.loads((await editor.call("post_event", name="ci.failed"))[0])
        assert len(posted["runs"]) == 1
        told = json.loads((await editor.call("tell_agent", run=posted["runs"][0], text="wait"))[0])
        assert told["agent"] is None

    asyncio.run(story())


def test_wrong_input_of_a_tool_is_an_answer_that_says_so(editor: Editor) -> None:
    async def story() -> None:
        for tool, given, said in (
            ("show_run", {"run": "run_none"}, "there is no run"), ("start_run", {"loop_id": "none"}, "none"),
            ("list_runs", {"limit": 1000}, "limit:"), ("list_runs", {"strange": 1}, "strange:"),
            ("start_run", {"loop_id": "look", "autonomy": "release"}, "autonomy:"),
            ("read_log", {"run": "run_none", "step": "x"}, "there is no run"), ("status", {"all": True}, "all:"),
            ("post_event", {"name": "Not One"}, "name:"), ("tell_agent", {"run": "r", "text": " "}, "text:"),
        ):  # fmt: skip
            text, wrong = await editor.call(tool, **given)
            assert wrong, tool
            assert said in text, (tool, text)

    asyncio.run(story())


def test_the_protocol_is_spoken(editor: Editor) -> None:
    async def story() -> None:
        for version in VERSIONS:
            began = (await editor.ask("initialize", protocolVersion=version, capabilities={}))["result"]
            assert (began["protocolVersion"], began["capabilities"]) == (version, {"tools": {}})
        unknown = (await editor.ask("initialize", protocolVersion="1999-01-01"))["result"]
        assert unknown["protocolVersion"] == VERSIONS[0]
        assert (await editor.ask("ping"))["result"] == {}
        listed = (await editor.ask("tools/list"))["result"]["tools"]
        assert {one["name"] for one in listed} == set(TOOLS)
        assert all(one["inputSchema"]["type"] == "object" for one in listed)
        for line in (
            b'{"jsonrpc": "2.0", "method": "notifications/initialized"}', b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
            b'[{"jsonrpc": "2.0", "method": "notifications/cancelled"}]',
        ):  # fmt: skip
            assert await editor.say(line) is None
        both = await editor.say(b'[{"jsonrpc": "2.0", "id": "a", "method": "ping"}, 7]')
        assert [one["id"] for one in both] == ["a", None]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700), (b"\xff", -32700), (b"[" * 100_000, -32700), (b"7", -32600), (b"[]", -32600), (b"{}", -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600), (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "approve"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "approve"}}', -32602),
        (b" " * (LONGEST_LINE + 1), -32600),
    ],
    ids=range(12),
)  # fmt: skip
def test_what_is_no_request_has_its_code(editor: Editor, line: bytes, code: int) -> None:
    assert asyncio.run(editor.say(line))["error"]["code"] == code


def test_a_long_answer_is_cut_and_has_no_secret(editor: Editor, monkeypatch: pytest.MonkeyPatch) -> None:
    editor.world.app.redactor.learn({"KEY": "hush-hush-4711-xyz"})

    async def long(app: object, given: object) -> object:
        return {"it": "hush-hush-4711-xyz " + "x" * 2 * LONGEST_ANSWER}

    monkeypatch.setitem(TOOLS, "status", TOOLS["status"]._replace(run=long))
    text, _ = asyncio.run(editor.call("status"))
    assert "hush-hush" not in text
    assert LONGEST_ANSWER < len(text) < LONGEST_ANSWER + 200


DECIDING = {"decide", "revoke", "change_handoff", "accept", "decline", "hold", "pause", "cancel", "drop", "migrate",
            "decide_approval", "revoke_approval", "set_control", "order"}  # fmt: skip


def test_no_tool_reaches_what_decides() -> None:
    tree = ast.parse(inspect.getsource(mcp))
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    assert used.isdisjoint(DECIDING)
    assert {"start", "post_event"} == {name for name in used if inspect.iscoroutinefunction(getattr(desk, name, None))}
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {"becket.app.proposals", "becket.parts.services.desk"} & imported


def test_whatever_is_called_nothing_is_decided_and_nothing_goes_beyond_the_branch(editor: Editor) -> None:
    async def story() -> None:
        world = editor.world
        asking, handed = await world.run("ask"), await world.run("look")
        for tool in TOOLS:
            for given in ({}, {"run": asking.run_id, "step": "fine", "text": "approve it"}, {"loop_id": "ask"}):
                await editor.ask("tools/call", name=tool, arguments=given)
        await world.settle()
        (asked,) = await world.store.approvals(asking.run_id)
        (item,) = await world.store.handoffs(run_id=handed.run_id)
        assert (asked.state, item.state) == (ApprovalState.asked, HandoffState.open)
        assert mcp.caller(world.app).role == "member"
        run_id = json.loads((await editor.call("start_run", loop_id="look", subject="another"))[0])["run_id"]
        run = await world.store.get_run(run_id)
        assert (run.autonomy, run.by) == (Autonomy.merge, mcp.caller(world.app).name)

    asyncio.run(story())


def test_the_real_program_answers_on_standard_output_and_says_nothing_else(editor: Editor) -> None:
    asks = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": VERSIONS[-1]}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "status"}},
    ]
    lines = "\n".join([*map(json.dumps, asks), "x" * (3 * LONGEST_LINE), "", "no json", ""])
    command = [sys.executable, "-m", "becket.cli", "-C", str(editor.world.root), "mcp"]
    done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=120, check=True)
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["id"] for one in said] == [1, 2, None, None]
    assert said[0]["result"]["protocolVersion"] == VERSIONS[-1]
    assert str(editor.world.root) in said[1]["result"]["content"][0]["text"]
    assert [one["error"]["code"] for one in said[2:]] == [-32600, -32700]
