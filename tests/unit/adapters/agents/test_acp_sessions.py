"""Sessions, permissions, modes and usage of an ACP agent whose program is scripted."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acp_stage import Stage

from becket.kernel.contract.agent import AgentOutcome, CallFiles, CallState, Limits, PriceSource, Usage, judge

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
MODES = {"currentModeId": "default", "availableModes": [{"id": "default"}, {"id": "bypassPermissions"}]}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def ask(path: str, key: str = "c1") -> dict[str, Any]:
    call = {"toolCallId": key, "title": f"Writing {path}", "kind": "edit", "locations": [{"path": path}]}
    return {"ask": {"toolCall": call, "options": OPTIONS}}


def answers(stage: Stage) -> list[object]:
    return [message["result"]["outcome"] for message in stage.told if str(message.get("id")).startswith("ask-")]


def test_a_known_session_is_loaded_and_its_replay_is_no_event(stage: Stage) -> None:
    replay = [
        {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "old words"}},
        {"sessionUpdate": "tool_call", "toolCallId": "old", "status": "completed", "title": "old"},
    ]
    report = stage.call([{"chunk": "New words."}], initialize={"load": True}, replay=replay, resume="session-0")
    assert stage.asked("session/load") == [{"cwd": str(stage.tree), "mcpServers": [], "sessionId": "session-0"}]
    assert stage.asked("session/new") == []
    assert stage.kinds() == ["message", "end"]
    assert (report.session, report.said, report.usage.turns) == ("session-0", "New words.", 1)


def test_a_session_that_is_gone_begins_anew(stage: Stage) -> None:
    report = stage.call([{"chunk": "Hello."}], initialize={"load": True}, resume="session-0")
    assert (report.ended, report.session) == (True, "session-1")


def test_an_agent_that_cannot_load_is_not_asked_to(stage: Stage) -> None:
    report = stage.call([{"chunk": "Hello."}], resume="session-0")
    assert (stage.asked("session/load"), report.session) == ([], "session-1")


def test_resuming_without_a_replay_is_preferred(stage: Stage) -> None:
    report = stage.call([{"chunk": "Hello."}], initialize={"load": True, "resume": True}, resume="session-0")
    assert (stage.asked("session/load"), len(stage.asked("session/resume"))) == ([], 1)
    assert report.session == "session-0"


def test_inside_a_sandbox_an_agent_is_let_do_what_it_asks_for(stage: Stage) -> None:
    """The sandbox decides; `once`, because `always` would change the agent's own rules."""
    stage.call([ask("/etc/passwd"), {"chunk": "Done."}])
    assert answers(stage) == [{"outcome": "selected", "optionId": "once"}]
    assert stage.kinds() == ["tool_call", "message", "end"]


def test_without_a_sandbox_a_path_outside_of_the_workspace_is_refused(tmp_path: Path) -> None:
    """L18, L25: also through a link."""
    stage = Stage(tmp_path, held=False)
    (stage.tree / "link").symlink_to("/etc")
    inside, outside = str(stage.tree / "calc.py"), str(stage.tree / "link" / "passwd")
    report = stage.call([ask(inside), ask(outside, "c2"), ask("../x", "c3"), {"chunk": "I could not."}])
    assert [answer["optionId"] for answer in answers(stage)] == ["once", "no", "no"]  # type: ignore[index]
    refused = [event.call for event in stage.events if event.state is CallState.refused]
    assert (refused, len(report.refusals)) == (["c2", "c3"], 2)
    assert judge(report, ()).outcome is AgentOutcome.refused


def test_a_question_without_an_option_to_allow_is_cancelled(stage: Stage) -> None:
    call = {"toolCallId": "c1", "title": "What now?"}
    stage.call([{"ask": {"toolCall": call, "options": [{"optionId": "x", "kind": "other"}]}}, {"chunk": "Hm."}])
    assert answers(stage) == [{"outcome": "cancelled"}]


def test_inside_a_sandbox_the_agent_is_set_to_work_without_asking(stage: Stage) -> None:
    stage.call([{"chunk": "Hello."}], session={"modes": MODES})
    assert [params["modeId"] for params in stage.asked("session/set_mode")] == ["bypassPermissions"]


def test_without_a_sandbox_its_mode_is_left_as_it_is(tmp_path: Path) -> None:
    stage = Stage(tmp_path, held=False)
    stage.call([{"chunk": "Hello."}], session={"modes": MODES})
    assert stage.asked("session/set_mode") == []


def test_modes_and_models_that_are_settings_are_set_as_such(stage: Stage) -> None:
    mode = {
        "id": "m",
        "category": "mode",
        "currentValue": "ask",
        "options": [{"value": "ask"}, {"value": "full-access"}],
    }
    groups = [{"name": "all", "options": [{"value": "small"}, {"value": "large"}]}]
    model = {"id": "n", "category": "model", "currentValue": "small", "options": groups}
    report = stage.call([{"chunk": "Hello."}], session={"configOptions": [mode, model]}, config={"model": "large"})
    asked = [(params["configId"], params["value"]) for params in stage.asked("session/set_config_option")]
    assert asked == [("m", "full-access"), ("n", "large")]
    assert report.model == "large"


def test_nothing_is_offered_that_acts_outside_of_the_sandbox(stage: Stage) -> None:
    read = {"id": "r1", "method": "fs/read_text_file", "params": {"sessionId": "session-1", "path": "/etc/passwd"}}
    report = stage.call([{"message": read}, {"chunk": "Hello."}])
    assert stage.asked("initialize")[0]["clientCapabilities"]["terminal"] is False
    assert [message["error"]["code"] for message in stage.told if message.get("id") == "r1"] == [-32601]
    assert (report.ended, report.unknown_events) == (True, 1)


def test_a_brief_that_begins_like_a_command_of_the_agent_is_text(stage: Stage) -> None:
    (stage.folder / "script.json").write_text("{}")
    asyncio.run(stage.agent().run("/quit is broken", stage.tree, Limits(seconds=10)))
    said = stage.asked("session/prompt")[0]["prompt"][0]["text"]
    assert not said.startswith("/")
    assert said.endswith("/quit is broken")


USAGE = {"totalTokens": 170, "inputTokens": 100, "outputTokens": 20, "cachedReadTokens": 40, "cachedWriteTokens": 10}
QUOTA = {"token_count": {"input_tokens": 300, "output_tokens": 60}, "model_usage": [{"model": "gemini-2.5-pro"}]}
STEP = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": ""}}


@pytest.mark.parametrize(
    ("steps", "tokens"),
    [
        ([{"result": {"stopReason": "end_turn", "usage": USAGE}}], (150, 20, 40)),
        ([{"result": {"stopReason": "end_turn", "_meta": {"quota": QUOTA}}}], (300, 60, 0)),
        (
            [
                {"update": {**STEP, "_meta": {"usage": {"inputTokens": 50, "outputTokens": 5, "totalTokens": 55}}}},
                {"update": {**STEP, "_meta": {"usage": {"promptTokens": 70, "completionTokens": 7}}}},
            ],
            (120, 12, 0),
        ),
        ([{"result": {"stopReason": "end_turn", "usage": {"inputTokens": -1, "outputTokens": "many"}}}], (0, 0, 0)),
    ],
)
def test_tokens_are_found_where_each_vendor_tells_them(
    stage: Stage, steps: list[dict[str, Any]], tokens: tuple[int, int, int]
) -> None:
    report = stage.call([{"chunk": "Hello."}, *steps])
    assert (report.usage.input_tokens, report.usage.output_tokens, report.usage.cached_tokens) == tokens
    again = stage.agent().used(stage.files)
    assert again is not None
    assert (again.input_tokens, again.output_tokens, again.turns) == (*tokens[:2], 1)


def test_tokens_are_priced_by_the_model_that_was_used(stage: Stage) -> None:
    report = stage.call([{"result": {"stopReason": "end_turn", "_meta": {"quota": QUOTA}}}])
    assert (report.model, report.usage.priced) == ("gemini-2.5-pro", PriceSource.table)
    assert report.usage.usd == pytest.approx((300 * 1.0 + 60 * 10.0) / 1_000_000)


def test_the_money_of_a_resumed_session_is_this_calls_alone(stage: Stage) -> None:
    """The agent tells what the whole session cost."""

    def spent(amount: float) -> dict[str, Any]:
        cost = {"amount": amount, "currency": "USD"}
        return {"update": {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": cost}}

    first = stage.call([{"chunk": "Hello."}, spent(0.5)], initialize={"resume": True})
    second = stage.call([{"chunk": "Hello."}, spent(0.75)], initialize={"resume": True}, resume=first.session)
    assert (first.usage.usd, first.usage.priced) == (0.5, PriceSource.vendor)
    assert second.usage.usd == pytest.approx(0.25)
    again = stage.agent().used(stage.files)
    assert again is not None
    assert again.usd == pytest.approx(0.25)


def test_money_that_is_counted_anew_in_every_process_is_added(stage: Stage) -> None:
    """So claude-agent-acp 0.49 tells it, against the protocol."""
    cost = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": {"amount": 0.5, "currency": "USD"}}
    later = {**cost, "cost": {"amount": 0.2, "currency": "USD"}}
    first = stage.call([{"chunk": "Hello."}, {"update": cost}], initialize={"resume": True})
    steps = [{"chunk": "Hello."}, {"update": later}, {"update": later}]
    second = stage.call(steps, initialize={"resume": True}, resume=first.session)
    assert second.usage.usd == pytest.approx(0.2)


def test_a_limit_of_money_ends_the_call(stage: Stage) -> None:
    cost = {"amount": 2.0, "currency": "USD"}
    update = {"sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": cost}
    report = stage.call(
        [{"update": update}, {"until_cancelled": {"stopReason": "cancelled"}}], limits=Limits(seconds=120, usd=1)
    )
    assert report.outcome_hint is AgentOutcome.limit_reached
    assert "usd" in report.error


def test_a_crash_of_ours_leaves_what_was_used_so_far(stage: Stage) -> None:
    """Without the last prompt's answer: the steps that were told, and not the replay before the answer to a setting."""
    usage = {"_meta": {"usage": {"inputTokens": 50, "outputTokens": 5}}}
    old = {**STEP, "content": {"type": "text", "text": "old"}, **usage}
    steps = [{"update": {**STEP, **usage}}, {"chunk": "I"}, {"die": 9}]
    stage.call(steps, initialize={"load": True}, replay=[old], session={"modes": MODES}, resume="session-0")
    again = stage.agent().used(stage.files)
    assert again is not None
    assert (again.input_tokens, again.output_tokens, again.turns) == (50, 5, 1)


def test_a_crash_of_ours_does_not_make_free_what_was_not_told_yet(stage: Stage) -> None:
    """L23: it worked, and would have told at the end of its prompt."""
    stage.call([{"chunk": "I"}, {"die": 9}])
    assert stage.agent().used(stage.files) is None


def test_who_was_never_asked_used_nothing(stage: Stage) -> None:
    assert stage.agent().used(CallFiles(stage.folder / "never")) is None
    stage.files.folder.mkdir(exist_ok=True)
    assert stage.agent().used(stage.files) == Usage()


def test_a_command_line_for_a_shell_is_run_by_one(stage: Stage) -> None:
    agent = stage.agent()
    run = f"GREETING=1 && exec {agent.config.run}"
    driver_context = replace(agent.driver_context, shown=(str(Path(__file__).parent),))
    agent = type(agent)("helper", agent.config.model_copy(update={"run": run}), driver_context)
    (stage.folder / "script.json").write_text("{}")
    report = asyncio.run(agent.run("Fix it.", stage.tree, Limits(seconds=10)))
    assert (report.ended, report.said) == (True, "Nothing more to do."), report.error


def test_the_library_is_loaded_only_by_a_call() -> None:
    """It takes half a second, which `becket status` does not have."""
    code = "import sys, becket.parts.agents.adapters.acp; sys.exit('acp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
