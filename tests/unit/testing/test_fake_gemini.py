"""The fake gemini speaks ACP as Gemini CLI 0.61.0 was seen to, traps included."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp_peer import gemini
from fake_stage import Stage

from becket.testing.model import Cut, Edit, Hang, Loop, Refuse, Say, ScriptedModel, Shell, Status, Think, Write


def test_a_turn_asks_for_permission_and_shows_diffs(tmp_path: Path) -> None:
    steps = (Think("hm"), Shell("true; false"), Edit("calc.py", "a - b", "a + b"), Write("n/x", "1\n"), Say("done"))
    with ScriptedModel(steps) as model:
        stage = Stage(tmp_path, model)
        with gemini(stage) as peer:
            result = peer.prompt(peer.begin(stage), "fix it")["result"]
        model.check(finished=True)
        assert model.saw("Exit Code: 1")
    assert result["stopReason"] == "end_turn"
    assert result["_meta"]["quota"]["token_count"] == {"input_tokens": 400, "output_tokens": 40}
    assert [call["kind"] for call in peer.asked] == ["execute", "edit", "edit"]
    assert peer.asked[1]["content"][0]["newText"].endswith("a + b\n")
    assert peer.kinds == ["agent_thought_chunk", *["tool_call_update"] * 3, "agent_message_chunk"]
    assert "a + b" in (stage.tree / "calc.py").read_text()
    assert (stage.tree / "n/x").exists()


def test_without_questions_calls_are_announced_and_what_fails_is_told(tmp_path: Path) -> None:
    with ScriptedModel([Edit("calc.py", "nosuch", "x"), Say("oh")]) as model:
        stage = Stage(tmp_path, model)
        with gemini(stage, "--approval-mode", "yolo") as peer:
            peer.prompt(peer.begin(stage), "fix it")
    assert peer.asked == []
    assert [(one["sessionUpdate"], one.get("status")) for one in peer.updates[:2]] == [
        ("tool_call", "in_progress"),
        ("tool_call_update", "failed"),
    ]


def test_a_rejected_call_leaves_no_event_and_the_turn_goes_on(tmp_path: Path) -> None:
    with ScriptedModel([Edit("calc.py", "a - b", "a + b"), Say("I gave up")]) as model:
        stage = Stage(tmp_path, model)
        with gemini(stage, option="cancel") as peer:
            assert peer.prompt(peer.begin(stage), "fix it")["result"]["stopReason"] == "end_turn"
        model.check(finished=True)
    assert peer.kinds == ["agent_message_chunk"]
    assert "a - b" in (stage.tree / "calc.py").read_text()


def test_a_cancelled_turn_ends_while_the_model_hangs_and_the_session_goes_on(tmp_path: Path) -> None:
    with ScriptedModel([Hang(), Hang("I think"), Say("here")]) as model:
        stage = Stage(tmp_path, model)
        with gemini(stage) as peer:
            session = peer.begin(stage)
            for number in (1, 2):
                text = [{"type": "text", "text": "go"}]
                peer.send({"id": number, "method": "session/prompt", "params": {"sessionId": session, "prompt": text}})
                assert model.wait_for(requests=number)
                peer.send({"method": "session/cancel", "params": {"sessionId": session}})
                assert peer.answer(number)["result"] == {"stopReason": "cancelled"}
            assert peer.prompt(session, "and now")["result"]["stopReason"] == "end_turn"
        model.check(finished=True)


@pytest.mark.parametrize(
    ("step", "code", "said"),
    [
        (Status(400), 400, "INVALID_ARGUMENT"),
        (Status(401), 401, "UNAUTHENTICATED"),
        (Status(429, kind="quota"), 429, "You have exhausted your daily quota on this model."),
        (Status(500), 500, "INTERNAL"),
    ],
    ids=["400", "401", "quota", "500"],
)
def test_errors_are_errors_of_the_prompt(tmp_path: Path, step: Status, code: int, said: str) -> None:
    with ScriptedModel([Loop(step)]) as model:
        stage = Stage(tmp_path, model)
        stage.log_in(maxAttempts=2)
        with gemini(stage) as peer:
            error = peer.prompt(peer.begin(stage), "go")["error"]
        assert len(model.requests) == (2 if code == 500 else 1)
    assert error["code"] == code
    assert said in error["message"]


@pytest.mark.parametrize("step", [Refuse(), Cut()], ids=["refused", "cut"])
def test_refusals_and_cut_streams_end_the_turn_as_if_all_were_well(tmp_path: Path, step: Refuse | Cut) -> None:
    """L20: end_turn says nothing about success."""
    with ScriptedModel([Loop(step)]) as model:
        stage = Stage(tmp_path, model)
        stage.log_in(maxAttempts=2)
        with gemini(stage) as peer:
            assert peer.prompt(peer.begin(stage), "go")["result"]["stopReason"] == "end_turn"


def test_a_session_of_another_process_can_be_loaded_unless_its_record_is_of_this_minute(tmp_path: Path) -> None:
    with ScriptedModel([Shell("echo"), Say("one"), Say("two")]) as model:
        stage = Stage(tmp_path, model)
        stage.log_in()
        with gemini(stage) as peer:
            session = peer.begin(stage)
            peer.prompt(session, "first")
        (record,) = stage.home.glob(f".gemini/tmp/*/chats/session-*-{session[:8]}.jsonl")
        assert '"tokens": {"input": 100' in record.read_text()
        record.rename(record.with_name(f"session-2000-01-01T00-00-{session[:8]}.jsonl"))
        with gemini(stage) as peer:
            peer.call("initialize", protocolVersion=1)
            assert "error" not in peer.call("session/load", sessionId=session, cwd=str(stage.tree), mcpServers=[])
            assert peer.said == "one"
            peer.prompt(session, "second")
            lost = peer.call("session/load", sessionId="nosuch", cwd=str(stage.tree), mcpServers=[])
            assert lost["error"]["data"]["details"] == "No previous sessions found for this project."
        model.check(finished=True)
        assert model.requests[-1].says("first")


def test_it_wants_a_key_known_options_and_known_sessions(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        stage = Stage(tmp_path, model)
        with gemini(stage, GEMINI_API_KEY="") as peer:
            peer.call("initialize", protocolVersion=1)
            refused = peer.call("session/new", cwd=str(stage.tree), mcpServers=[])["error"]
            assert refused == {"code": -32000, "message": "Gemini API key is missing or not configured."}
            assert peer.call("session/nosuch")["error"]["code"] == -32601
            assert peer.prompt("nosuch", "x")["error"]["message"] == "Session not found: nosuch"
        assert stage.run([str(stage.programs / "gemini"), "--acp", "--nosuch"]).code == 1
        assert stage.run([str(stage.programs / "gemini"), "--version"]).out == "0.61.0\n"


def test_skills_below_home_are_told_to_the_model(tmp_path: Path) -> None:
    with ScriptedModel([Say("x")]) as model:
        stage = Stage(tmp_path, model)
        skill = stage.home / ".gemini/skills/tdd/SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: tdd\ndescription: Tests come first.\n---\n")
        with gemini(stage) as peer:
            peer.prompt(peer.begin(stage), "go")
        assert model.saw("<description>Tests come first.</description>")
