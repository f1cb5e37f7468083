"""The scripted model as a program, its YAML form, and TLS."""

from __future__ import annotations

import json
import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from fake_stage import Stage, certificate

from becket.testing.model import (
    Call,
    Delay,
    Edit,
    Hang,
    Loop,
    Say,
    ScriptedModel,
    Shell,
    Status,
    Together,
    Tokens,
    Write,
)
from becket.testing.model.script_file import BadScript, load

SCRIPT = """\
- say: hello
  usage: {input: 5, output: 2}
- shell: make test
- write: {path: a.py, text: "x = 1\\n"}
- edit: {path: a.py, old: "1", new: "2"}
- call: {tool: look, arguments: {deep: {a: [1]}}}
- status: 401
- status: {code: 429, retry_after: 60, kind: rate}
- delay: 0.5
- together: [{say: both}, {shell: ls}]
- hang
- loop:
    - say: again
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "script.yaml"
    path.write_text(text)
    return path


def test_every_kind_of_step_can_be_written(tmp_path: Path) -> None:
    (part,) = load(written(tmp_path, SCRIPT))
    assert part.steps == (
        Say("hello", Tokens(input=5, output=2)),
        Shell("make test"),
        Write("a.py", "x = 1\n"),
        Edit("a.py", "1", "2"),
        Call("look", {"deep": {"a": [1]}}),
        Status(401),
        Status(429, retry_after=60, kind="rate"),
        Delay(0.5),
        Together((Say("both"), Shell("ls"))),
        Hang(),
        Loop(Say("again")),
    )


def test_a_file_can_hold_several_scripts(tmp_path: Path) -> None:
    parts = load(written(tmp_path, "scripts:\n- {key: a, steps: [{say: x}]}\n- {prompt: p, steps: [hang]}\n"))
    assert [(part.key, part.prompt, part.steps) for part in parts] == [("a", None, (Say("x"),)), (None, "p", (Hang(),))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1: it is empty"),
        ("- say: hi\n- sing: la\n", "2: 'sing' is not known here"),
        ("- say: hi\n- {say: a, shell: b}\n", "2: a step has one kind, not 2"),
        ("- say: 3\n", "1: expected text"),
        ("- status: teapot\n", "1: expected a number"),
        ("- write:\n    path: a\n", "2: write needs text"),
        ("- loop:\n    - delay: 1\n", "2: a Loop needs at least one step"),
        ("- together:\n    - hang\n", "2: together takes only"),
        ("- say: [\n", "2: not YAML"),
        ("steps: []\n", "1: 'steps' is not known here"),
        ("scripts:\n  - key: a\n", "2: a script needs `steps`"),
        ("- shell: ls\n  usage: {input: many}\n", "2: expected a number"),
    ],
)
def test_mistakes_are_told_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadScript) as told:
        load(written(tmp_path, text))
    assert str(told.value).startswith(f"script.yaml:{message}")


def program(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "becket.testing.model", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_program_serves_until_it_is_told_to_stop_and_tells_what_was_wrong(tmp_path: Path) -> None:
    running = program(str(written(tmp_path, "- say: hello from YAML\n")))
    assert running.stdout is not None
    url = running.stdout.readline().strip()
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": [look()]}
    said = post(f"{url}/v1/chat/completions", body)
    assert json.loads(said)["choices"][0]["message"]["content"] == "hello from YAML"
    with pytest.raises(urllib.error.HTTPError) as refused:
        post(f"{url}/v1/chat/completions", {"model": "m"})
    refused.value.close()
    assert refused.value.code == 400
    running.send_signal(signal.SIGTERM)
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (1, "request 2 (chat): Missing required parameter: 'messages'.\n")


def post(url: str, body: object) -> bytes:
    headers = {"Authorization": "Bearer k", "Content-Type": "application/json"}
    with urllib.request.urlopen(
        urllib.request.Request(url, json.dumps(body).encode(), headers), timeout=60
    ) as response:
        found: bytes = response.read()
    return found


def look() -> dict[str, object]:
    return {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def test_the_program_refuses_a_bad_script_with_exit_2(tmp_path: Path) -> None:
    running = program(str(written(tmp_path, "- sing: la\n")))
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told.split(";")[0]) == (2, "script.yaml:1: 'sing' is not known here")


def test_the_program_refuses_a_port_that_cannot_be_with_exit_2(tmp_path: Path) -> None:
    running = program(str(written(tmp_path, "- say: hello\n")), "--port", "99999")
    _, told = running.communicate(timeout=60)
    assert (running.returncode, told) == (2, "port 99999: no such port; choose one up to 65535 with --port\n")


@pytest.mark.slow
def test_it_speaks_tls_with_a_context_of_yours(tmp_path: Path) -> None:
    """What stands behind a CONNECT proxy is https. Needs the program `openssl`."""
    public, context = certificate(tmp_path)
    trust = ssl.create_default_context(cafile=str(public))
    with ScriptedModel([Say("secret")], context=context) as model:
        assert model.url.startswith("https://")
        with urllib.request.urlopen(f"{model.url}/v1/models", timeout=60, context=trust) as response:
            assert json.load(response)["data"][0]["id"] == "scripted"


@pytest.mark.slow
def test_the_fake_programs_speak_tls_with_an_authority_of_yours(tmp_path: Path) -> None:
    public, context = certificate(tmp_path)
    with ScriptedModel([Loop(Say("over TLS"))], context=context) as model:
        stage = Stage(tmp_path, model)
        assert stage.run(stage.codex()).last["type"] == "turn.failed"
        assert stage.run(stage.codex(), SSL_CERT_FILE=str(public)).last["type"] == "turn.completed"
        assert stage.run(stage.claude(), NODE_EXTRA_CA_CERTS=str(public)).last["result"] == "over TLS"
        model.check()
