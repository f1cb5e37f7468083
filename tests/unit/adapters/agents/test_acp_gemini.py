"""What the driver reads and writes below HOME for Gemini CLI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from acp_stage import Stage

from becket.kernel.contract.agent import AgentOutcome, judge
from becket.parts.agents.adapters.acp.gemini import GeminiLedger, make_room, settle

SESSION = "59144d6b-1f22-4398-bae4-548d13368094"


@pytest.fixture
def chats(tmp_path: Path) -> Path:
    folder = tmp_path / ".gemini" / "tmp" / "tree" / "chats"
    folder.mkdir(parents=True)
    return folder


def record(chats: Path, minute: str = "33") -> Path:
    return chats / f"session-2026-11-16T02-{minute}-59144d6b.jsonl"


def answer(key: str, given: int, made: int) -> str:
    tokens = {"input": given, "output": made, "cached": 40, "thoughts": 5, "tool": 0, "total": given + made}
    return json.dumps({"id": key, "type": "gemini", "content": "", "tokens": tokens, "model": "scripted"}) + "\n"


def test_what_was_used_since_is_told_while_the_prompt_goes_on(tmp_path: Path, chats: Path) -> None:
    record(chats).write_text(answer("old", 100, 20))
    ledger = GeminiLedger(tmp_path, SESSION)
    assert ledger.used.tokens == 0
    with record(chats).open("a") as file:
        file.write(answer("a", 100, 20) + "no record\n[1]\n" + answer("b", 50, 10)[:-9])
        file.flush()
        assert (ledger.used.input_tokens, ledger.used.output_tokens, ledger.used.cached_tokens) == (100, 25, 40)
        file.write(answer("b", 50, 10)[-9:] + answer("a", 100, 20))
    assert (ledger.used.input_tokens, ledger.used.output_tokens, ledger.model) == (150, 40, "scripted")


@pytest.mark.parametrize(
    ("counted", "cut"),
    [(150, False), (50, True), (100, False), (200, False)],
    ids=["all", "all-but-the-last", "all-but-an-earlier-one", "tried-again"],
)
def test_an_answer_that_is_recorded_and_not_counted_has_no_end(
    tmp_path: Path, chats: Path, counted: int, cut: bool
) -> None:
    """L20: gemini ends its turn as if all were well."""
    record(chats).write_text(answer("before", 900, 20))
    ledger = GeminiLedger(tmp_path, SESSION)
    assert not ledger.ends_cut(0)
    with record(chats).open("a") as file:
        file.write(answer("of a prompt that was cancelled", 900, 20))
    ledger.prompt()
    with record(chats).open("a") as file:
        file.write(answer("a", 50, 20) + answer("b", 100, 10))
    assert ledger.ends_cut(counted) is cut


RESULTS = json.dumps({"id": "r", "type": "user", "content": [{"functionResponse": {}}]}) + "\n"


@pytest.mark.parametrize(
    ("recorded", "said", "counted", "outcome"),
    [
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "Done.", None, AgentOutcome.changed),
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "Done.", 150, AgentOutcome.changed),
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "I was ab", 50, AgentOutcome.model_error),
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "", 150, AgentOutcome.changed),
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "", 50, AgentOutcome.model_error),
        (answer("a", 50, 20) + RESULTS, "", 50, AgentOutcome.model_error),
        (answer("a", 50, 20) + RESULTS, "", 150, AgentOutcome.model_error),
        (answer("a", 50, 20) + RESULTS + answer("b", 100, 10), "", None, AgentOutcome.model_error),
    ],
    ids=["no-count", "whole", "cut", "empty", "empty-and-cut", "nothing", "nothing-tried-again", "empty-no-count"],
)
def test_an_end_after_a_tool_call_is_judged_by_what_is_recorded_and_counted(
    tmp_path: Path, recorded: str, said: str, counted: int | None, outcome: AgentOutcome
) -> None:
    """L20: an empty answer that gemini itself takes for one is a good end; what it only leaves uncounted is none."""
    stage = Stage(tmp_path, named="gemini")
    chats = stage.home / ".gemini" / "tmp" / "tree" / "chats"
    chats.mkdir(parents=True)
    result: dict[str, object] = {"stopReason": "end_turn"}
    if counted is not None:
        result["_meta"] = {"quota": {"token_count": {"input_tokens": counted, "output_tokens": 30}}}
    call = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "kind": "edit", "status": "completed"}
    report = stage.call(
        [{"update": call}, {"write": [str(record(chats)), recorded]}, {"chunk": said}, {"result": result}],
        session={"sessionId": SESSION},
    )
    assert judge(report, ("calc.py",)).outcome is outcome, report


def test_a_session_of_an_agent_without_such_records_has_used_nothing(tmp_path: Path) -> None:
    assert GeminiLedger(tmp_path, "../../*").used.tokens == 0


def test_no_link_is_followed_out_of_home(tmp_path: Path, chats: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    record(outside).write_text(answer("a", 100, 20))
    home = tmp_path / "home"
    (home / ".gemini" / "tmp" / "tree").mkdir(parents=True)
    (home / ".gemini" / "tmp" / "tree" / "chats").symlink_to(outside)
    make_room(home, SESSION)
    assert (GeminiLedger(home, SESSION).model, record(outside).exists()) == ("", True)


def test_a_session_can_be_loaded_within_the_minute_of_its_beginning(tmp_path: Path, chats: Path) -> None:
    record(chats, "33").write_text(answer("a", 100, 20))
    record(chats, "34").write_text('{"sessionId": "59144d6b"}\n')
    make_room(tmp_path, SESSION)
    make_room(tmp_path, SESSION)
    assert [path.name for path in chats.iterdir()] == ["session-2000-01-01T00-00-59144d6b.jsonl"]


def test_a_home_without_settings_gets_some(tmp_path: Path) -> None:
    settle(tmp_path, {"GEMINI_API_KEY": "k"})
    settings = json.loads((tmp_path / ".gemini" / "settings.json").read_text())
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"


def test_settings_that_are_there_are_left_alone(tmp_path: Path, chats: Path) -> None:
    settings = tmp_path / ".gemini" / "settings.json"
    settings.write_text("{}")
    settle(tmp_path, {"GEMINI_API_KEY": "k"})
    assert settings.read_text() == "{}"
