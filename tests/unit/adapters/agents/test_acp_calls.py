"""Whole calls of an ACP agent whose program is scripted."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest
from acp_stage import Stage

from becket.kernel.contract.agent import AgentEventKind, AgentOutcome, CallState, Limits, judge
from becket.parts.agents.adapters.acp import call as acp_call


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_what_an_agent_says_and_does_becomes_events(stage: Stage) -> None:
    path = str(stage.tree / "calc.py")
    edit = {"toolCallId": "c1", "title": "Writing to calc.py", "kind": "edit", "locations": [{"path": path}]}
    diff = {"type": "diff", "path": path, "oldText": "a", "newText": "b"}
    report = stage.call(
        [
            {"thought": "Let me "},
            {"thought": "see."},
            {"chunk": "I will "},
            {"chunk": "fix it."},
            {"update": {"sessionUpdate": "tool_call", "status": "in_progress", **edit}},
            {"write": [path, "b"]},
            {"update": {"sessionUpdate": "tool_call_update", "status": "completed", "content": [diff], **edit}},
            {"chunk": "Done."},
        ]
    )
    assert stage.kinds() == ["thinking", "message", "tool_call", "edit", "message", "end"]
    assert [event.text for event in stage.events[:2]] == ["Let me see.", "I will fix it."]
    made = next(event for event in stage.events if event.kind is AgentEventKind.edit)
    assert (made.paths, made.state, made.call) == (("calc.py",), CallState.done, "c1")
    assert (report.ended, report.error, report.said) == (True, "", "Done.")
    assert (report.session, report.version, report.usage.turns) == ("session-1", "1.2.3", 2)
    assert judge(report, ("calc.py",)).outcome is AgentOutcome.changed
    assert stage.files.events.read_text().count('"kind":') == len(stage.events)


def test_the_program_leaves_by_itself_when_its_input_ends(stage: Stage) -> None:
    stage.call([{"chunk": "Hello."}])
    assert [(end.exit_code, end.left_running) for end in stage.processes.ends] == [(0, 0)]


def test_a_program_that_does_not_leave_is_killed(stage: Stage) -> None:
    report = stage.call([{"chunk": "Hello."}], stays=True)
    assert report.ended
    assert report.usage.seconds < 55, "it would stay for 60"


def test_unknown_updates_and_lines_that_are_no_messages_are_counted(stage: Stage) -> None:
    """L20: whatever a vendor adds, the call goes on."""
    report = stage.call(
        [
            {"line": "DEBUG loading"},
            {"line": "[1, 2]"},
            {"line": '{"id": [1], "result": {}}'},
            {"line": '{"id": 77, "error": "text"}'},
            {"line": "[" * 5000},
            {"update": {"sessionUpdate": "from_the_future"}},
            {"update": {"sessionUpdate": "tool_call", "toolCallId": 5, "content": "none", "locations": {"a": 1}}},
            {"message": {"method": "_vendor/notice", "params": {}}},
            {"chunk": "Still here."},
        ]
    )
    assert (report.ended, report.said, report.unknown_events) == (True, "Still here.", 7)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("refusal", AgentOutcome.refused),
        ("max_tokens", AgentOutcome.limit_reached),
        ("max_turn_requests", AgentOutcome.limit_reached),
        ("cancelled", AgentOutcome.cancelled),
        ("from_the_future", AgentOutcome.model_error),
    ],
)
def test_a_stop_reason_is_no_success(stage: Stage, reason: str, outcome: AgentOutcome) -> None:
    report = stage.call([{"result": {"stopReason": reason}}])
    assert judge(report, ("calc.py",)).outcome is outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"code": 401, "message": "API key not valid"}, AgentOutcome.auth_missing),
        ({"code": -32000, "message": "Authentication required"}, AgentOutcome.auth_missing),
        ({"code": 429, "message": "quota\nSuggested retry after 3600s."}, AgentOutcome.quota_wait),
        ({"code": 500, "message": "boom"}, AgentOutcome.model_error),
        ({"code": -32603, "message": "Internal error", "data": {"details": "overloaded"}}, AgentOutcome.model_error),
    ],
)
def test_an_error_is_told_apart(stage: Stage, error: dict[str, object], outcome: AgentOutcome) -> None:
    report = stage.call([{"error": error}])
    assert judge(report, ()).outcome is outcome
    if outcome is AgentOutcome.quota_wait:
        assert report.until is not None
        assert 3_500 < report.until - time.time() < 3_700


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("[API Error: 401 Incorrect API key provided]", AgentOutcome.auth_missing),
        ("unexpected status 429 Too Many Requests: slow down", AgentOutcome.quota_wait),
        ("Error: stream disconnected before completion", AgentOutcome.model_error),
        ("The tests failed with `401 unauthorized`; I can do nothing.", AgentOutcome.nothing_done),
    ],
)
def test_an_error_of_the_model_as_text_is_no_success(stage: Stage, text: str, outcome: AgentOutcome) -> None:
    """L20: codex-acp and qwen end their turn well and say the error."""
    report = stage.call([{"chunk": text}])
    assert report.ended
    assert judge(report, ()).outcome is outcome


def test_a_program_that_dies_within_a_prompt_has_crashed(stage: Stage) -> None:
    report = stage.call([{"chunk": "I will"}, {"complain": "segmentation fault"}, {"die": 3}])
    assert (report.ended, report.outcome_hint) == (False, AgentOutcome.crashed)
    assert "exit code 3" in report.error
    assert "segmentation fault" in report.error
    assert report.said == "I will"


def test_a_program_that_is_not_logged_in_says_so_before_it_dies(stage: Stage) -> None:
    report = stage.call(initialize={"steps": [{"complain": "Not logged in. Please run /login"}, {"die": 41}]})
    assert report.outcome_hint is AgentOutcome.auth_missing


def test_a_program_that_never_answers_ends_with_its_time(stage: Stage) -> None:
    report = stage.call(initialize={"steps": [{"hang": 1}]}, limits=Limits(seconds=1))
    assert (report.ended, report.outcome_hint) == (False, AgentOutcome.limit_reached)
    assert report.usage.seconds < 55, "it would hang for 60"


def test_a_program_that_calls_the_end_of_its_time_a_cancel_is_not_believed(stage: Stage) -> None:
    """L20: so qwen 0.24 answers when it is told to go."""
    for seconds in (2.5, 7.5, 22.5):  # as much time as it needs to answer so
        report = stage.call([{"until_told_to_go": {"stopReason": "cancelled"}}], limits=Limits(seconds=seconds))
        assert judge(report, ()).outcome is AgentOutcome.limit_reached, report
        if '"cancelled"' in stage.files.raw.read_text():
            return
    raise AssertionError("it was not told to go while it waited")


def test_a_missing_program_is_said_without_a_start(stage: Stage) -> None:
    agent = stage.agent()
    agent = type(agent)("helper", agent.config.model_copy(update={"run": "no-such-agent --acp"}), agent.driver_context)
    report = asyncio.run(agent.run("Fix it.", stage.tree, Limits(seconds=5)))
    assert (report.outcome_hint, stage.processes.ends) == (AgentOutcome.not_found, [])
    assert "no-such-agent" in report.error


def test_another_version_of_the_protocol_is_an_error(stage: Stage) -> None:
    report = stage.call(initialize={"version": 9})
    assert "version 9" in report.error
    assert judge(report, ()).outcome is AgentOutcome.model_error


def test_a_session_that_needs_a_login_is_auth_missing(stage: Stage) -> None:
    report = stage.call(session={"error": {"code": -32000, "message": "Gemini API key is missing or not configured."}})
    assert judge(report, ()).outcome is AgentOutcome.auth_missing


def test_an_endless_loop_ends_at_its_limit_of_turns(stage: Stage) -> None:
    """L23."""
    report = stage.call([{"loop": 1}], limits=Limits(seconds=120, turns=5))
    assert (report.ended, report.outcome_hint) == (False, AgentOutcome.limit_reached)
    assert "turns" in report.error
    assert 6 <= report.usage.turns < 5_000, "what it did until it heard of its limit counts"
    assert stage.asked("session/cancel")


def test_an_agent_that_is_deaf_to_its_limit_is_killed(stage: Stage) -> None:
    steps = [{"update": {"sessionUpdate": "tool_call", "toolCallId": f"c{n}", "status": "completed"}} for n in range(9)]
    report = stage.call([*steps, {"hang": 1}], limits=Limits(seconds=120, turns=3))
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert "turns" in report.error, "not its time"


def test_a_message_is_delivered_at_once_in_the_same_session(stage: Stage) -> None:
    stage.tell = {AgentEventKind.tool_call: "Use the other file."}
    begun = {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "status": "pending"}}
    report = stage.call([begun, {"until_cancelled": {"stopReason": "cancelled"}}], [{"chunk": "As you say."}])
    first, second = stage.asked("session/prompt")
    assert first["sessionId"] == second["sessionId"]
    assert "Use the other file." in second["prompt"][0]["text"]
    said = [(event.text, event.by) for event in stage.events if event.by]
    assert said == [("Use the other file.", "ada")]
    assert (report.ended, report.error, report.said, report.unheard) == (True, "", "As you say.", ())


def test_a_message_to_an_agent_that_dies_instead_of_stopping_is_unheard(stage: Stage) -> None:
    stage.tell = {AgentEventKind.message: "Stop that."}
    tool = {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "status": "pending"}}
    report = stage.call([{"chunk": "I begin."}, tool, {"die": 1}])
    assert (report.ended, report.unheard) == (False, ("Stop that.",))


def test_a_cancelled_call_leaves_nothing_running(stage: Stage) -> None:
    """L19."""

    async def cancelled() -> None:
        call = asyncio.create_task(stage.run(Limits(seconds=120)))
        while not any(event.kind is AgentEventKind.tool_call for event in stage.events):
            await asyncio.sleep(0.02)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    tool = {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "status": "pending"}}
    (stage.folder / "script.json").write_text(json.dumps({"prompts": [[tool, {"hang": 1}]]}))
    asyncio.run(cancelled())
    assert stage.processes.ends == []
    assert stage.events[-1].kind is AgentEventKind.end


@pytest.mark.parametrize(
    ("says", "outcome"),
    [
        ("Attempt 1 failed: You exceeded your current quota. Retrying after 61521ms...", AgentOutcome.quota_wait),
        ("Attempt 3 failed with status 500. Retrying with backoff...", AgentOutcome.model_error),
    ],
)
def test_an_agent_that_tries_its_model_until_its_time_is_over_is_not_at_its_limit(
    stage: Stage, says: str, outcome: AgentOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L23: gemini and qwen try again by themselves and say so only in their log. Another agent may have its turn."""
    steps: list[dict[str, object]] = [{"complain": says}, {"hang": 1}]
    for seconds in (1, 4, 16):  # as long as it takes to begin
        report = stage.call(steps, limits=Limits(seconds=seconds))
        if report.outcome_hint is not AgentOutcome.limit_reached:
            break
    assert report.outcome_hint is outcome
    monkeypatch.setattr(acp_call, "_IN_VAIN", 0.5)  # a minute
    report = stage.call(steps, limits=Limits(seconds=60))
    assert (report.outcome_hint, "tried its model in vain" in report.error) == (outcome, True)
    assert report.usage.seconds < 50


def test_a_turn_that_ended_well_without_a_token_is_an_error_of_the_model(stage: Stage) -> None:
    """L20: so gemini ends after a stream that was cut."""
    nothing = {"quota": {"token_count": {"input_tokens": 0, "output_tokens": 0}, "model_usage": []}}
    report = stage.call([{"chunk": "I was ab"}, {"result": {"stopReason": "end_turn", "_meta": nothing}}])
    assert judge(report, ()).outcome is AgentOutcome.model_error


def test_an_error_of_the_server_that_ended_a_turn_well_is_found_by_its_missing_count(stage: Stage) -> None:
    """L20: so codex-acp 2.6 ends after a 500."""
    result = {"stopReason": "end_turn", "usage": None, "_meta": {"quota": {"token_count": None, "model_usage": []}}}
    chunks = [{"chunk": "Warning: no metadata.\n\n"}, {"chunk": "We are experiencing high demand.\n\n"}]
    report = stage.call([*chunks, {"result": result}])
    assert report.error.endswith("high demand.")
    assert judge(report, ()).outcome is AgentOutcome.model_error


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("failed", 'Path not in workspace: Attempted path "/etc/motd" resolves outside'),
        ("completed", "Blocked: command substitution detected in shell command."),
    ],
)
def test_a_call_that_gemini_declines_by_itself_is_a_refusal(stage: Stage, status: str, said: str) -> None:
    """L20: whatever it calls it."""
    content = [{"type": "content", "content": {"type": "text", "text": said}}]
    over = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": status, "content": content}
    report = stage.call([{"update": over}, {"chunk": "Done."}])
    assert report.refusals == (said,)
    assert stage.events[0].state is CallState.refused
    assert judge(report, ()).outcome is AgentOutcome.refused


def test_a_call_that_failed_is_no_refusal_and_says_why(stage: Stage) -> None:
    content = [{"type": "content", "content": {"type": "text", "text": "No such file."}}]
    over = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "failed", "content": content}
    report = stage.call([{"update": over}, {"chunk": "Done."}])
    assert (stage.events[0].state, stage.events[0].text) == (CallState.failed, "No such file.")
    assert report.refusals == ()


def test_an_empty_message_only_makes_the_agent_go_on(stage: Stage) -> None:
    stage.tell = {AgentEventKind.tool_call: "  "}
    begun = {"update": {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "look", "status": "pending"}}
    report = stage.call([begun, {"until_cancelled": {"stopReason": "cancelled"}}], [{"chunk": "Done."}])
    assert (len(stage.asked("session/prompt")), report.said) == (2, "Done.")


def test_a_message_that_came_with_the_end_of_the_work_is_answered_in_the_same_call(stage: Stage) -> None:
    stage.tell = {AgentEventKind.message: "One more thing."}
    report = stage.call([{"chunk": "Done."}], [{"chunk": "That too."}])
    assert (len(stage.asked("session/prompt")), report.said, report.unheard) == (2, "That too.", ())
