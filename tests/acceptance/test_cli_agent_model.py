"""`becket agent` with programs that talk to a model: tool calls, edits, tokens and money live, and a person's word."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_stage import Stage, wait_for

from becket.testing.model import Edit, Loop, Say, ScriptedModel, Shell, Status, Tokens
from becket_lab.clis import install

CONFIG = """\
version: 1
branch: main
autonomy: propose
prices: {{scripted: {{input: 10, output: 100}}}}
agents:
  coder:
    driver: codex
    program: {bin}/codex
    model: scripted
    endpoint: {url}/v1
    key: MODEL_KEY
    limits: {{time: 1m, turns: 20, usd: 5}}
    fallback: [second]
  second:
    driver: claude
    program: {bin}/claude
    model: scripted
    endpoint: {url}
    key: MODEL_KEY
    limits: {{time: 1m, turns: 5}}
"""


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as started:
        yield started


@pytest.fixture
def stage(tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("MODEL_KEY", "k")
    made = Stage(tmp_path / "repo")
    install(tmp_path / "bin")
    made.write("becket.yaml", CONFIG.format(bin=tmp_path / "bin", url=model.url))
    made.write("calc.py", "def add(a, b):\n    return a - b\n")
    made.commit("agents")
    return made


def test_tool_calls_edits_tokens_and_money_are_shown_as_they_happen(stage: Stage, model: ScriptedModel) -> None:
    model.script(
        Shell("cat calc.py", usage=Tokens(1000, 10)),
        Edit("calc.py", "    return a - b\n", "    return a + b\n", usage=Tokens(1000, 10)),
        Say("It adds now.", usage=Tokens(1000, 10)),
    )
    told = stage.becket("agent", "run", "coder", "mend add").out
    assert "cat calc.py" in told
    assert "says      It adds now." in told
    assert "+    return a + b" in told
    assert "3,030 tokens" in told
    assert "$0.0330" in told  # 3000 in at 10, 30 out at 100 dollars for a million
    assert "changed: 1 path differs" in told
    (spent,) = stage.json("agent", "spend", "--by", "agent")["rows"]
    assert (spent["input_tokens"], spent["output_tokens"], spent["unpriced"]) == (3000, 30, 0)
    assert spent["usd"] == pytest.approx(0.033)


def test_where_an_agent_cannot_work_its_fallback_is_called_and_both_are_told(
    stage: Stage, model: ScriptedModel
) -> None:
    model.script(Status(401), Edit("calc.py", "    return a - b\n", "    return a + b\n"), Say("Done."))
    found = stage.becket("agent", "run", "coder", "mend add", "--json").json
    assert [(call["agent"], call["end"]["outcome"]) for call in found["calls"]] == [
        ("coder", "auth_missing"),
        ("second", "changed"),
    ]


def test_a_probe_is_of_the_agent_itself_and_not_of_its_fallback(stage: Stage, model: ScriptedModel) -> None:
    model.script(Status(401), Say("ok"))
    told = stage.becket("doctor", "--probe", "--agent", "coder", code=1).out
    assert "coder: auth missing" in told
    model.script(Say("ok"))
    found = stage.becket("doctor", "--probe", "--agent", "second", "--json", code=1).json
    assert found["probes"][0]["works"]  # the exit code is the missing gate's


def test_an_endless_agent_is_stopped_by_its_limit_and_that_is_no_success(stage: Stage, model: ScriptedModel) -> None:
    """L23: turns are counted by us."""
    model.script(Loop(Shell("true")))
    told = stage.becket("agent", "run", "second", "go on", code=1).out
    assert "limit reached" in told


def test_a_word_to_a_headless_agent_is_heard_when_its_turn_ends(stage: Stage, model: ScriptedModel) -> None:
    model.script(
        Shell("while [ ! -e go ]; do sleep 0.05; done"),
        Say("I am done."),
        Edit("calc.py", "    return a - b\n", "    return a + b\n"),
        Say("Now it adds."),
    )
    process = stage.start("agent", "run", "coder", "look at add")
    assert process.stdout is not None
    run_id = process.stdout.readline().split()[0]
    wait_for(lambda: model.requests)
    assert stage.json("agent", "tell", run_id, "please mend it")["delivered"] == "next_turn"
    (tree,) = wait_for(lambda: list(stage.state.glob(f"runs/{run_id}/work/1/**/calc.py")))
    (tree.parent / "go").touch()
    ended = stage.end(process)
    assert ended.code == 0
    assert "is told" in ended.out
    assert "says      Now it adds." in ended.out
    assert any(request.says("please mend it") for request in model.requests)
