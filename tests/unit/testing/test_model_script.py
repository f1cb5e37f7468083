"""What a script can do, whatever the wire: loops, delays, hangs, several scripts at once, portable tool steps."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from wire_clients import CLIENTS, SCHEMA, ask, talk

from becket.testing.model import Call, Delay, Edit, Hang, Loop, Say, ScriptedModel, Shell, Step, Think, Together, Write
from becket.testing.model.exchange import ModelRequest, Offered, ToolCall
from becket.testing.model.scripted import OVER
from becket.testing.model.tools import NoTool, call_for

CLIENT = CLIENTS[0]


def plain(**properties: str) -> dict[str, object]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


PATHS = {"file_path": "string"}
CODEX = ModelRequest(tools=[Offered("exec_command", plain(cmd="string"))])
CODEX_PATCH = ModelRequest(tools=[*CODEX.tools, Offered("apply_patch", freeform=True)])
CLAUDE = ModelRequest(
    tools=[
        Offered("Bash", plain(command="string")),
        Offered("Write", plain(content="string", **PATHS)),
        Offered("Edit", plain(old_string="string", new_string="string", **PATHS)),
    ],
    prompts=[" - Primary working directory: /w/tree\n - Platform: linux"],
)
GEMINI = ModelRequest(
    tools=[
        Offered("run_shell_command", plain(command="string")),
        Offered("write_file", plain(content="string", **PATHS)),
        Offered(
            "replace",
            {
                **plain(instruction="string", old_string="string", new_string="string", **PATHS),
                "required": ["instruction"],
            },
        ),
    ],
    prompts=["- **Workspace Directories:**\n  - /w/tree\n"],
)
OPENCODE = ModelRequest(
    tools=[
        Offered("bash", {**plain(command="string", description="string"), "required": ["command", "description"]}),
        Offered("write", plain(filePath="string", content="string")),
        Offered("edit", plain(filePath="string", oldString="string", newString="string")),
    ]
)


def test_a_loop_goes_on_for_ever() -> None:
    with ScriptedModel([Say("first"), Loop(Think("hm"), Say("a"), Say("b")), Say("never")]) as model:
        heard = [talk(CLIENT, model, CLIENT.begin("go")).text for _ in range(6)]
    assert heard == ["first", "a", "b", "a", "b", "a"]


def test_a_loop_that_never_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step that answers"):
        Loop(Think("hm"))


def test_after_its_last_step_the_model_ends_every_turn() -> None:
    with ScriptedModel([Say("all")]) as model:
        assert [talk(CLIENT, model, CLIENT.begin("go")).text for _ in range(2)] == ["all", OVER]
        model.check(finished=True)


def test_steps_left_are_told() -> None:
    with ScriptedModel([Say("one"), Say("two")]) as model:
        talk(CLIENT, model, CLIENT.begin("go"))
        model.check()
        with pytest.raises(AssertionError, match="two"):
            model.check(finished=True)


def test_a_delay_comes_before_the_reply() -> None:
    with ScriptedModel([Delay(0.2), Say("late")]) as model:
        began = time.monotonic()
        assert talk(CLIENT, model, CLIENT.begin("go")).text == "late"
    assert time.monotonic() - began > 0.19


@pytest.mark.parametrize("step", [Hang(), Hang("I am thinking about")], ids=["at once", "after some text"])
def test_a_hang_ends_when_the_client_goes_and_the_server_stays_usable(step: Hang) -> None:
    with ScriptedModel([step, Say("still here")]) as model:
        connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=0.3)
        body = json.dumps({**CLIENT.begin("go"), "stream": True})
        connection.request("POST", CLIENT.path(True), body, CLIENT.headers("k"))
        assert model.wait_for(requests=1)
        with pytest.raises(TimeoutError):
            connection.getresponse().read()
        connection.close()
        assert talk(CLIENT, model, CLIENT.begin("go")).text == "still here"


def test_stopping_ends_hangs_and_delays_at_once() -> None:
    """L19: nothing of a test may outlive it."""
    before = threading.active_count()
    began = time.monotonic()
    with ThreadPoolExecutor(2) as pool, ScriptedModel([Hang(), Delay(60), Say("late")]) as model:
        for _ in range(2):
            pool.submit(ask, CLIENT, model, CLIENT.begin("go"))
        assert model.wait_for(requests=2)
    assert time.monotonic() - began < 55
    assert threading.active_count() <= before


def test_a_connection_kept_for_later_does_not_hold_up_the_stop() -> None:
    connection = http.client.HTTPConnection("127.0.0.1", 0, timeout=10)
    with ScriptedModel([Say("one"), Say("two")]) as model:
        connection.port = model.port
        for _ in range(2):
            connection.request("POST", CLIENT.path(False), json.dumps(CLIENT.begin("go")), CLIENT.headers("k"))
            assert connection.getresponse().read()
        began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 25, "the server would keep it for 30"


def test_scripts_by_key_and_by_prompt_do_not_mix() -> None:
    """Parallel agents share one server."""
    with ScriptedModel([Say("anyone")]) as model:
        model.script(*(Say(f"a{number}") for number in range(20)), key="a")
        model.script(*(Say(f"b{number}") for number in range(20)), key="b")
        model.script(Say("the parser"), prompt="parser.py")

        def play(key: str) -> list[str]:
            return [talk(CLIENT, model, CLIENT.begin("go"), key=key).text for _ in range(20)]

        with ThreadPoolExecutor(2) as pool:
            heard = list(pool.map(play, ["a", "b"]))
        assert heard == [[f"{key}{number}" for number in range(20)] for key in "ab"]
        assert talk(CLIENT, model, CLIENT.begin("fix parser.py"), key="a").text == "the parser"
        assert talk(CLIENT, model, CLIENT.begin("go"), key="c").text == "anyone"
        model.check(finished=True)
        assert {request.script for request in model.requests} == {"key a", "key b", "prompt 'parser.py'", "default"}


@pytest.mark.parametrize(
    ("asked", "name", "given"),
    [
        (CODEX, "exec_command", {"cmd": "ls"}),
        (CLAUDE, "Bash", {"command": "ls"}),
        (GEMINI, "run_shell_command", {"command": "ls"}),
        (OPENCODE, "bash", {"command": "ls", "description": "scripted"}),
        (
            ModelRequest(tools=[Offered("shell", {"properties": {"command": {"type": "array"}}})]),
            "shell",
            {"command": ["bash", "-lc", "ls"]},
        ),
    ],
    ids=["codex", "claude", "gemini", "opencode", "an array"],
)
def test_a_command_line_suits_the_client(asked: ModelRequest, name: str, given: dict[str, object]) -> None:
    assert call_for(Shell("ls"), asked, "c") == ToolCall("c", name, given)


def test_files_are_changed_by_the_clients_own_tools_below_its_folder() -> None:
    write, edit = Write("a/b.py", "x\n"), Edit("a/b.py", "x", "y")
    place = {"file_path": "/w/tree/a/b.py"}
    assert call_for(write, CLAUDE, "c") == ToolCall("c", "Write", {**place, "content": "x\n"})
    assert call_for(edit, CLAUDE, "c") == ToolCall("c", "Edit", {**place, "old_string": "x", "new_string": "y"})
    assert call_for(write, GEMINI, "c") == ToolCall("c", "write_file", {**place, "content": "x\n"})
    replace = {**place, "old_string": "x", "new_string": "y", "instruction": "scripted"}
    assert call_for(edit, GEMINI, "c") == ToolCall("c", "replace", replace)
    assert call_for(edit, OPENCODE, "c").arguments == {"filePath": "a/b.py", "oldString": "x", "newString": "y"}
    patch = call_for(edit, CODEX_PATCH, "c")
    assert patch.text == "*** Begin Patch\n*** Update File: a/b.py\n@@\n-x\n+y\n*** End Patch\n"


def test_where_only_a_shell_is_offered_it_changes_files(tmp_path: Path) -> None:
    text = 'it\'s "quoted" $HOME `x` \\n\n'
    for step in (Write("new/a.txt", text), Edit("new/a.txt", "it's", "it is")):
        command = call_for(step, CODEX, "c").arguments["cmd"]
        subprocess.run(["bash", "-c", str(command)], cwd=tmp_path, check=True)
    assert (tmp_path / "new/a.txt").read_text() == text.replace("it's", "it is")


def test_a_raw_call_goes_out_as_it_is() -> None:
    assert call_for(Call("nosuch", {"a": 1}), CODEX, "c") == ToolCall("c", "nosuch", {"a": 1})
    assert call_for(Call("apply_patch", {"input": "p"}), CODEX_PATCH, "c") == ToolCall("c", "apply_patch", {}, text="p")


def test_a_step_that_the_client_has_no_tool_for_is_a_broken_contract() -> None:
    with pytest.raises(NoTool, match="look"):
        call_for(Shell("ls"), ModelRequest(tools=[Offered("look", SCHEMA)]), "c")
    body = {**CLIENT.begin("go"), "tools": [{"type": "function", "name": "look", "parameters": SCHEMA}]}
    with ScriptedModel([Shell("ls")]) as model:
        assert ask(CLIENT, model, body).status == 500
        with pytest.raises(AssertionError, match="no tool for a command line"):
            model.check()


def test_an_answer_in_a_shape_is_given_to_requests_without_tools() -> None:
    schema = {"type": "object", "properties": {"next": {"type": "string", "enum": ["user", "model"]}}}
    body = {**CLIENT.begin("who?", tools=False), "text": {"format": {"type": "json_schema", "schema": schema}}}
    with ScriptedModel() as model:
        assert json.loads(talk(CLIENT, model, body).text) == {"next": "user"}


def test_everything_about_a_request_is_kept() -> None:
    step: Step = Together((Say("hm"), Shell("true")))
    with ScriptedModel([step]) as model:
        talk(CLIENT, model, CLIENT.begin("please"))
        request = model.requests[0]
    assert (request.wire, request.path, request.model, request.streamed) == ("responses", "/v1/responses", "m", True)
    assert (request.tools, request.prompts, request.answer) == (("shell",), ("please",), step)
    assert request.headers["authorization"] == "(given)"
    assert request.body["model"] == "m"


def test_the_package_offers_it_and_loads_it_only_when_asked() -> None:
    program = (
        "import sys, becket.testing\n"
        "assert 'http.server' not in sys.modules\n"
        "from becket.testing import ScriptedModel\n"
        "assert 'http.server' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("sent", [b"", b'{"model": "m", "inp'])
@pytest.mark.parametrize("told", [b"Content-Length: 400\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n190\r\n"])
def test_a_client_that_is_killed_while_it_asks_has_not_asked(told: bytes, sent: bytes) -> None:
    """An agent at its limit is ended at any moment: half a request is no breach of the contract."""
    with ScriptedModel([Say("Whole.")]) as model:
        with socket.create_connection(("127.0.0.1", model.port)) as client:
            client.sendall(b"POST /v1/responses HTTP/1.1\r\nHost: m\r\n" + told + sent)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""
        assert (model.requests, model.violations) == ((), ())
