"""The fake claude behaves as Claude Code 2.1.325 was seen to, traps included."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from fake_stage import Stage

from becket.testing.model import (
    Cut,
    Edit,
    Hang,
    Loop,
    Refuse,
    Say,
    ScriptedModel,
    Shell,
    Status,
    Step,
    Think,
    Tokens,
    Truncate,
    Write,
)


def test_a_run_with_a_command_and_edits(tmp_path: Path) -> None:
    steps: list[Step] = [Think("hm"), Shell("echo hi; false"), Edit("calc.py", "a - b", "a + b"), Write("n/x", "1\n")]
    with ScriptedModel([*steps, Say("done")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude())
        model.check(finished=True)
        assert model.saw("Exit code 1\nhi")
    assert done.code == 0
    assert done.kinds == ["system init", *["assistant"] * 2, *["user", "assistant"] * 3, "result success"]
    assert (done.last["num_turns"], done.last["is_error"], done.last["result"]) == (4, False, "done")
    assert done.last["usage"]["input_tokens"] == 400
    assert done.events[1]["message"]["usage"]["output_tokens"] == 1  # what was known at the start
    assert "a + b" in (stage.tree / "calc.py").read_text()
    assert (stage.tree / "n/x").read_text() == "1\n"


def test_what_is_not_permitted_is_told_to_the_model_and_the_run_succeeds(tmp_path: Path) -> None:
    """L20: exit 0 although nothing could be done."""
    steps: list[Step] = [Shell("python3 -c 1"), Write(str(tmp_path / "outside"), "x"), Say("I gave up")]
    with ScriptedModel(steps) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude("--allowedTools", "Bash(git status:*)", "Edit"))
    assert (done.code, done.last["subtype"], done.last["is_error"]) == (0, "success", False)
    assert [denial["tool_name"] for denial in done.last["permission_denials"]] == ["Bash", "Write"]
    assert not (tmp_path / "outside").exists()


def test_rules_and_modes_permit_commands(tmp_path: Path) -> None:
    with ScriptedModel([Shell("python3 -c 1 && echo x"), Shell("touch y"), Say("done")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude("--allowedTools", "Bash(python3:*)", "Bash(touch:*)"))
    assert done.last["permission_denials"] == []
    with ScriptedModel([Write("z", "x"), Say("done")]) as model:
        stage.model = model
        done = stage.run(stage.claude(mode="dontAsk"))
    assert "system permission_denied" in done.kinds
    assert not (stage.tree / "z").exists()


def test_usage_is_of_one_run_and_money_of_the_whole_session(tmp_path: Path) -> None:
    with ScriptedModel([Shell("echo"), Say("one"), Say("two")], usage=Tokens(100_000, 1000, 20_000)) as model:
        stage = Stage(tmp_path, model)
        options = ("--model", "claude-sonnet-4-5")
        first = stage.run(stage.claude(*options))
        second = stage.run(stage.claude(*options, "--resume", first.last["session_id"], prompt="and now"))
        model.check(finished=True)
        assert model.requests[-1].says("fix it")
    assert (first.last["usage"]["input_tokens"], second.last["usage"]["input_tokens"]) == (160_000, 80_000)
    assert first.last["total_cost_usd"] == pytest.approx(0.522)
    assert second.last["total_cost_usd"] == pytest.approx(0.783)
    assert second.last["session_id"] == first.last["session_id"]


def test_an_unknown_session_is_an_error_with_a_result(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude("--resume", "bae5e950-2d98-40d3-abde-e7f12a148500"))
    assert (done.code, done.kinds) == (1, ["result error_during_execution"])
    assert done.last["errors"] == ["No conversation found with session ID: bae5e950-2d98-40d3-abde-e7f12a148500"]


def test_limits_are_checked_after_a_reply_and_a_budget_stop_loses_that_replys_usage(tmp_path: Path) -> None:
    with ScriptedModel([Loop(Shell("echo"))], usage=Tokens(100_000, 1000)) as model:
        stage = Stage(tmp_path, model)
        turns = stage.run(stage.claude("--max-turns", "2"))
        money = stage.run(stage.claude("--max-budget-usd", "0.1"))
    assert (turns.code, turns.last["subtype"], turns.last["num_turns"]) == (1, "error_max_turns", 3)
    assert (money.code, money.last["subtype"]) == (1, "error_max_budget_usd")
    assert money.last["total_cost_usd"] > 0.4
    assert money.last["usage"]["input_tokens"] == 0
    assert money.last["modelUsage"]["claude-opus-5-5"]["inputTokens"] == 100_000


@pytest.mark.parametrize(
    ("step", "requests", "status", "said"),
    [
        (Status(400), 6, 400, "API Error: 400"),
        (Status(401), 1, 401, "Invalid API key"),
        (Status(429, retry_after=7), 1, 429, "API Error: Request rejected (429)"),
        (Status(500), 1, 500, "API Error: 500"),
        (Status(529), 1, 529, "API Error: 529 Overloaded"),
        (Status(529, midstream=True), 2, 529, "API Error: 529 Overloaded"),
        (Cut(), 2, None, "API Error: Connection to the API was lost"),
        (Truncate("I will"), 4, None, "API Error: Claude's response exceeded"),
        (Refuse(), 2, None, "API Error: claude-opus-5-5's safeguards flagged"),
    ],
    ids=["400", "401", "429", "500", "529", "midstream", "cut", "truncated", "refused"],
)
def test_failures_are_called_success_with_exit_1(
    tmp_path: Path, step: Status | Cut | Truncate | Refuse, requests: int, status: int | None, said: str
) -> None:
    """L20: the subtype lies; is_error does not."""
    with ScriptedModel([Loop(step)]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude())
        model.check()
        assert len(model.requests) == requests
    assert (done.code, done.last["subtype"], done.last["is_error"]) == (1, "success", True)
    assert (done.last["api_error_status"], done.last["terminal_reason"]) == (status, "api_error")
    assert done.last["result"].startswith(said)


def test_a_refusal_is_answered_once_more_before_it_ends(tmp_path: Path) -> None:
    with ScriptedModel([Refuse(), Say("well then")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude())
    assert (done.code, done.last["result"], done.last["is_error"]) == (0, "well then", False)


def test_retries_are_events(tmp_path: Path) -> None:
    with ScriptedModel([Status(500), Say("at last")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude(), CLAUDE_CODE_MAX_RETRIES="1")
    assert done.kinds == ["system init", "system api_retry", "assistant", "result success"]
    assert (done.events[1]["error_status"], done.events[1]["attempt"]) == (500, 1)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_it_without_a_result(tmp_path: Path, number: signal.Signals, code: int) -> None:
    """L20: exit 0 after SIGINT, and no result event."""
    with ScriptedModel([Hang()]) as model:
        stage = Stage(tmp_path, model)
        with stage.started(stage.claude()) as running:
            assert model.wait_for(requests=1)
            running.send_signal(number)
            out = running.stdout.read() if running.stdout else ""
            assert running.wait(60) == code
    assert '"type":"result"' not in out


def test_without_a_login_it_says_so_and_calls_that_success(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.claude(), ANTHROPIC_API_KEY="")
        assert model.requests == ()
    assert (done.code, done.last["subtype"], done.last["result"]) == (1, "success", "Not logged in · Please run /login")


def test_its_command_line_is_as_strict_as_the_real_one(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        stage = Stage(tmp_path, model)
        assert stage.run(stage.claude("--nosuch")).told == "error: unknown option '--nosuch'\n"
        swallowed = [str(stage.programs / "claude"), "-p", "--allowedTools", "Bash", "the prompt"]
        assert "Input must be provided" in stage.run(swallowed).told
        quiet = [word for word in stage.claude() if word != "--verbose"]
        assert "requires --verbose" in stage.run(quiet).told
        assert stage.run([str(stage.programs / "claude"), "--version"]).out == "2.1.325 (Claude Code)\n"
        if os.geteuid() == 0:
            assert "cannot be used with root" in stage.run(stage.claude(mode="bypassPermissions")).told


def test_skills_are_seen_only_with_the_users_settings_and_the_skill_tool(tmp_path: Path) -> None:
    with ScriptedModel([Loop(Say("x"))]) as model:
        stage = Stage(tmp_path, model)
        skill = stage.home / ".claude/skills/tdd/SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: tdd\ndescription: Tests come first.\n---\n")
        stage.run(stage.claude("--setting-sources", "", "--tools", "Bash,Skill"))
        stage.run(stage.claude("--setting-sources", "user", "--tools", "Bash"))
        assert not model.saw("Tests come first.")
        stage.run(stage.claude("--setting-sources", "user,project", "--tools", "Bash,Skill"))
        assert model.saw("tdd: Tests come first.")
