"""The fake programs against the real ones: the same script, the same events, exit codes and number of requests."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from acp_peer import gemini
from fake_stage import Done, Stage

from becket.testing.model import (
    Call,
    Cut,
    Edit,
    Loop,
    Refuse,
    Say,
    ScriptedModel,
    Shell,
    Status,
    Step,
    Think,
    Together,
    Truncate,
    Write,
)

pytestmark = pytest.mark.agents

SCRIPTS: Mapping[str, Sequence[Step]] = {
    "work": (
        Think("hm"),
        Shell("echo hi; false"),
        Edit("calc.py", "    return a - b", "    return a + b"),
        Write("n/x", "1\n"),
        Say("done"),
    ),
    "parallel": (Together((Say("both"), Shell("echo a"), Shell("echo b"))), Say("x")),
    "no such tool": (Call("nosuch"), Say("x")),
    "nothing said": (Say(""), Say("y")),
    "400": (Loop(Status(400)),),
    "401": (Loop(Status(401)),),
    "429": (Loop(Status(429, retry_after=9)),),
    "500": (Loop(Status(500)),),
    "overloaded midstream": (Loop(Status(529, midstream=True)),),
    "cut": (Loop(Cut()),),
    "truncated": (Loop(Truncate()),),
    "refused": (Loop(Refuse()),),
}
CHATTER = {"thinking_tokens", "task_started", "task_notification"}
"""Events of the real claude that come or not with the time something takes."""

each_script = pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS.keys())


def real_programs() -> Path:
    return Path(os.environ["BECKET_AGENTS"])


def shape(event: Mapping[str, Any]) -> str:
    if event["type"] in {"assistant", "user"}:
        return f"{event['type']} {[block['type'] for block in event['message']['content']]}"
    return f"{event['type']} {event.get('subtype') or event.get('item', {}).get('type', '')}"


def told(done: Done, model: ScriptedModel) -> tuple[int, int, list[str]]:
    model.check()
    shapes = [shape(event) for event in done.events if event.get("subtype") not in CHATTER]
    return done.code, len(model.requests), shapes


@each_script
@pytest.mark.parametrize("program", ["codex", "claude"])
def test_the_same_script_gives_the_same_events(tmp_path: Path, program: str, script: Sequence[Step]) -> None:
    heard = []
    for name, programs in (("real", real_programs()), ("fake", None)):
        with ScriptedModel(script) as model:
            stage = Stage(tmp_path / name, model, programs)
            options = ("--tools", "Bash,Edit,Read,Write", "--setting-sources", "")
            command = stage.codex("--skip-git-repo-check") if program == "codex" else stage.claude(*options)
            heard.append(told(stage.run(command), model))
    assert heard[0] == heard[1]


@pytest.mark.parametrize("option", ["proceed_once", "cancel"])
def test_gemini_asks_and_tells_the_same(tmp_path: Path, option: str) -> None:
    heard = []
    for name, programs in (("real", real_programs()), ("fake", None)):
        with ScriptedModel(SCRIPTS["work"]) as model:
            stage = Stage(tmp_path / name, model, programs)
            stage.log_in()
            with gemini(stage, "-m", "gemini-2.5-pro", option=option) as peer:
                result = peer.prompt(peer.begin(stage), "fix it")["result"]
            model.check()
            kinds = [kind for kind in peer.kinds if kind != "available_commands_update"]
            asked = [(call["kind"], call["title"], sorted(call)) for call in peer.asked]
            heard.append((kinds, asked, result, len(model.requests)))
    assert heard[0] == heard[1]
