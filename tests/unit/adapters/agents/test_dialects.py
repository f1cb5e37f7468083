"""What the lines of codex and claude mean. The lines are written after what the real programs print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallState, PriceSource, Usage
from becket.kernel.contract.base import Json
from becket.kernel.contract.process import ChildEnd, ChildResult, SandboxKind
from becket.parts.agents.adapters.claude_dialect import ClaudeDialect
from becket.parts.agents.adapters.codex_dialect import CodexDialect
from becket.parts.agents.adapters.command import PlainDialect
from becket.parts.agents.adapters.dialect import Dialect, Heard

TREE = Path("/tree")
NOW = 1_000_000.0


def ended(code: int | None = 0, end: ChildEnd = ChildEnd.exited) -> ChildResult:
    return ChildResult(
        end=end, exit_code=code, seconds=1.0, output_bytes=1, output_capped=False, sandbox=SandboxKind.none
    )


def fed(dialect: Dialect, *events: dict[str, Json]) -> list[AgentEvent]:
    return [made for event in events for made in dialect.take(json.dumps(event))]


def codex(before: Usage | None = None) -> CodexDialect:
    return CodexDialect(TREE, before or Usage(), clock=lambda: NOW)


def claude(before: Usage | None = None) -> ClaudeDialect:
    return ClaudeDialect(TREE, before or Usage(), clock=lambda: NOW)


def item(kind: str, number: int = 0, *, over: bool = True, **more: Json) -> dict[str, Json]:
    return {"type": f"item.{'completed' if over else 'started'}", "item": {"id": f"i{number}", "type": kind} | more}


def turn(tokens_in: int, tokens_out: int, cached: int = 0) -> dict[str, Json]:
    usage = {"input_tokens": tokens_in, "cached_input_tokens": cached, "output_tokens": tokens_out}
    return {"type": "turn.completed", "usage": usage}


THREAD: dict[str, Json] = {"type": "thread.started", "thread_id": "t-1"}


def test_codex_tells_words_commands_and_edits() -> None:
    dialect = codex()
    made = fed(
        dialect,
        THREAD,
        {"type": "turn.started"},
        item("reasoning", 0, text="hmm"),
        item("agent_message", 1, text="I look"),
        item("command_execution", 2, over=False, command="ls", status="in_progress"),
        item("command_execution", 2, command="ls", exit_code=2, status="completed"),
        item("file_change", 3, changes=[{"path": "/tree/calc.py", "kind": "update"}], status="completed"),
        item("todo_list", 4),
        item("agent_message", 5, text="done"),
        turn(200, 20, 40),
    )
    told = [(event.kind, event.text, event.state, event.paths) for event in made]
    assert told == [
        (AgentEventKind.thinking, "hmm", None, ()),
        (AgentEventKind.message, "I look", None, ()),
        (AgentEventKind.tool_call, "ls", CallState.started, ()),
        (AgentEventKind.tool_call, "ls", CallState.failed, ()),
        (AgentEventKind.edit, "", CallState.done, ("calc.py",)),
        (AgentEventKind.message, "done", None, ()),
        (AgentEventKind.usage, "", None, ()),
    ]
    heard = dialect.heard
    assert (heard.session, heard.said, heard.ended, heard.error, heard.unknown) == ("t-1", "done", True, "", 0)
    assert heard.usage == Usage(turns=3, input_tokens=200, cached_tokens=40, output_tokens=20)


def test_codex_counts_a_thread_from_its_beginning_and_we_count_the_call() -> None:
    dialect = codex(Usage(input_tokens=200, cached_tokens=40, output_tokens=20))
    fed(dialect, THREAD, item("agent_message", text="more"), turn(1200, 120, 540))
    assert dialect.heard.usage == Usage(turns=1, input_tokens=1000, cached_tokens=500, output_tokens=100)
    assert dialect.heard.total.input_tokens == 1200


def test_tools_at_the_same_time_are_one_turn() -> None:
    dialect = codex()
    both = [item("command_execution", number, over=False) for number in (1, 2)]
    fed(dialect, *both, item("command_execution", 1), item("command_execution", 2), item("agent_message", 3))
    assert dialect.heard.usage.turns == 2


def test_an_error_item_of_codex_is_no_failure_and_turn_failed_is() -> None:
    """L20: neither the word error nor its absence decides."""
    dialect = codex()
    fed(dialect, THREAD, item("error", message="Model metadata not found"), turn(1, 1))
    assert (dialect.heard.ended, dialect.heard.error) == (True, "")
    dialect = codex()
    fed(dialect, THREAD, {"type": "turn.failed", "error": {"message": "stream disconnected before completion"}})
    assert dialect.heard.ended
    assert dialect.heard.hint is AgentOutcome.model_error


def test_a_failed_turn_without_a_reason_is_still_a_failure() -> None:
    dialect = codex()
    fed(dialect, {"type": "turn.failed", "error": None})
    assert dialect.heard.ended
    assert dialect.heard.error


def test_codex_is_waited_for_through_a_limit_by_the_minute_and_not_for_hours() -> None:
    """L23: it waits by itself for as long as Retry-After says, which it does not tell."""
    dialect = codex()
    fed(dialect, {"type": "error", "message": "Reconnecting... 1/2 (last status: 429 Too Many Requests)"})
    assert 60 < dialect.heard.patience <= 120
    fed(dialect, item("agent_message", text="there I am"))
    assert (dialect.heard.patience, dialect.heard.last_error) == (0, "")
    fed(dialect, {"type": "error", "message": "Reconnecting... waiting for network"})
    assert dialect.heard.patience > 0
    assert not dialect.heard.ended


def test_a_thread_that_codex_does_not_know_is_told_apart() -> None:
    dialect = codex()
    dialect.close(ended(1), "WARNING: x\nError: thread/resume failed: no rollout found for thread id t-1")
    assert dialect.heard.session_gone
    assert "no rollout" in dialect.heard.last_error


def test_a_command_that_codex_was_not_let_run_is_a_refusal() -> None:
    dialect = codex()
    (made,) = fed(dialect, item("command_execution", command="curl x", exit_code=-1, status="declined"))
    assert made.state is CallState.refused
    assert dialect.heard.refusals == ["curl x"]


INIT: dict[str, Json] = {
    "type": "system", "subtype": "init", "session_id": "s-1", "model": "claude-opus-4-6",
    "claude_code_version": "2.1.325",
}  # fmt: skip


def says(*blocks: dict[str, Json], answer: str = "m", tokens: int = 100) -> dict[str, Json]:
    usage = {"input_tokens": tokens, "output_tokens": 1, "cache_read_input_tokens": 50}
    return {"type": "assistant", "message": {"id": answer, "content": list(blocks), "usage": usage}}


def uses(tool: str, call: str = "c1", **given: Json) -> dict[str, Json]:
    return {"type": "tool_use", "id": call, "name": tool, "input": given}


def returned(call: str = "c1", *, error: bool = False) -> dict[str, Json]:
    block = {"type": "tool_result", "tool_use_id": call, "is_error": error, "content": "x"}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def result(**more: Json) -> dict[str, Json]:
    return {"type": "result", "subtype": "success", "is_error": False, "session_id": "s-1", "result": "done"} | more


def models(tokens_in: int, tokens_out: int, usd: float, cached: int = 0) -> dict[str, Json]:
    told = {"inputTokens": tokens_in, "outputTokens": tokens_out, "costUSD": usd, "cacheReadInputTokens": cached}
    return {"claude-opus-4-6": told}


def test_claude_tells_words_commands_and_edits() -> None:
    dialect = claude()
    made = fed(
        dialect,
        INIT,
        says({"type": "thinking", "thinking": "hmm"}),
        says({"type": "text", "text": "I look"}),
        says(uses("Bash", command="ls")),
        returned(error=True),
        says(uses("Edit", "c2", file_path="/tree/calc.py", old_string="-")),
        returned("c2"),
        says({"type": "text", "text": "done"}),
        result(total_cost_usd=0.5, modelUsage=models(300, 30, 0.5, 7)),
    )
    told = [(event.kind, event.text, event.tool, event.state, event.paths) for event in made]
    assert told == [
        (AgentEventKind.thinking, "hmm", "", None, ()),
        (AgentEventKind.message, "I look", "", None, ()),
        (AgentEventKind.tool_call, "ls", "Bash", CallState.started, ()),
        (AgentEventKind.tool_call, "ls", "Bash", CallState.failed, ()),
        (AgentEventKind.edit, "", "Edit", CallState.started, ("calc.py",)),
        (AgentEventKind.edit, "", "Edit", CallState.done, ("calc.py",)),
        (AgentEventKind.message, "done", "", None, ()),
        (AgentEventKind.usage, "", "", None, ()),
    ]
    heard = dialect.heard
    assert (heard.session, heard.model, heard.version) == ("s-1", "claude-opus-4-6", "2.1.325")
    assert (heard.ended, heard.error, heard.said, heard.unknown) == (True, "", "done", 0)
    expected = Usage(turns=3, input_tokens=307, cached_tokens=7, output_tokens=30, usd=0.5, priced=PriceSource.vendor)
    assert heard.usage == expected


def test_until_the_result_comes_claude_is_counted_by_what_is_seen() -> None:
    dialect = claude()
    fed(dialect, INIT, says({"type": "text", "text": "x" * 400}), says(uses("Bash", command="y" * 400)))
    assert dialect.heard.usage.turns == 1
    assert dialect.heard.usage.input_tokens == 150
    assert 200 <= dialect.heard.usage.output_tokens <= 260
    fed(dialect, returned(), says({"type": "text", "text": "z"}))
    assert (dialect.heard.usage.turns, dialect.heard.usage.input_tokens) == (2, 300)


def test_agents_that_claude_starts_do_not_break_up_its_own_turn() -> None:
    dialect = claude()
    theirs = [says({"type": "text", "text": "y"}, answer=f"s{n}") | {"parent_tool_use_id": f"c{n}"} for n in (1, 2)]
    mine = says({"type": "text", "text": "x"})
    fed(dialect, INIT, mine, theirs[0], mine, theirs[1], theirs[0], mine)
    assert dialect.heard.usage.turns == 3


def test_the_cost_of_a_resumed_session_is_not_charged_twice() -> None:
    """total_cost_usd and modelUsage count the session; the newer field counts the call."""
    before = Usage(input_tokens=100, output_tokens=10, usd=0.4, priced=PriceSource.vendor)
    older, newer = claude(before), claude()
    fed(older, INIT, result(total_cost_usd=0.5, modelUsage=models(1100, 110, 0.5)))
    own = models(1000, 100, 0.1)
    fed(newer, result(total_cost_usd=0.5, modelUsage=models(1100, 110, 0.5), model_usage_since_last_result=own))
    for dialect in (older, newer):
        assert dialect.heard.usage.tokens == 1100
        assert dialect.heard.usage.usd == pytest.approx(0.1)
        assert dialect.heard.total.usd == 0.5


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ({"is_error": True, "api_error_status": 500, "result": "API Error: 500 boom"}, AgentOutcome.model_error),
        ({"is_error": True, "api_error_status": 401, "result": "Invalid API key"}, AgentOutcome.auth_missing),
        ({"is_error": True, "api_error_status": 429, "result": "Request rejected"}, AgentOutcome.quota_wait),
        ({"is_error": True, "api_error_type": "rate_limit_error", "result": "no"}, AgentOutcome.quota_wait),
        ({"is_error": True, "stop_reason": "refusal", "result": "API Error"}, AgentOutcome.refused),
        ({"subtype": "error_max_turns", "is_error": True, "errors": ["Reached 3"]}, AgentOutcome.limit_reached),
        ({"subtype": "error_max_budget_usd", "is_error": True}, AgentOutcome.limit_reached),
        ({"subtype": "error_during_execution", "is_error": True, "errors": [None, 3]}, None),
        ({"is_error": None}, None),
        ({"subtype": "something new"}, None),
    ],
)
def test_success_beside_an_error_is_an_error(told: dict[str, Json], hint: AgentOutcome | None) -> None:
    """L20: `subtype: success` stands in the result of a failed call."""
    dialect = claude()
    fed(dialect, INIT, result(**told))
    assert dialect.heard.ended
    assert dialect.heard.error
    assert dialect.heard.hint is hint


def test_a_rate_limit_event_says_when_the_quota_is_back() -> None:
    dialect = claude()
    limit = {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": NOW + 77}}
    fed(dialect, limit, result(is_error=True, api_error_status=429, result="You've hit your limit"))
    assert dialect.heard.until == NOW + 77


def test_a_tool_that_claude_was_not_let_use_is_a_refusal() -> None:
    dialect = claude()
    denied = {"type": "system", "subtype": "permission_denied", "tool_use_id": "c1"}
    made = fed(dialect, INIT, says(uses("Bash", command="curl x")), denied, returned(error=True))
    assert made[-1].state is CallState.refused
    fed(dialect, result(permission_denials=[{"tool_name": "Bash", "tool_input": {"command": "curl x"}}]))
    assert dialect.heard.refusals == ["Bash curl x"]
    assert dialect.heard.error == ""


def test_a_session_that_claude_does_not_know_is_told_apart() -> None:
    dialect = claude()
    gone = result(subtype="error_during_execution", is_error=True, errors=["No conversation found with session ID: s"])
    fed(dialect, gone)
    assert dialect.heard.session_gone


def test_the_servers_retries_are_told_while_they_happen() -> None:
    dialect = claude()
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "error_status": 500}
    (made,) = fed(dialect, retry)
    assert made.kind is AgentEventKind.error
    assert made.text == "the model's server: 500; try 1 of 2"


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_KEYS = (
    "type item id error message usage text status changes path subtype content session_id input name result errors"
    " is_error permission_denials modelUsage total_cost_usd rate_limit_info resetsAt command exit_code thread_id"
)
_TYPES = (
    "thread.started turn.started item.started item.completed error system assistant user rate_limit_event init tool_use"
    " api_retry agent_message command_execution file_change tool_result text thinking reasoning unheard.of"
)
_near = st.dictionaries(
    st.sampled_from(_KEYS.split()),
    st.one_of(
        _json,
        st.sampled_from(_TYPES.split()),
        st.dictionaries(st.sampled_from(_KEYS.split()), st.one_of(_json, st.sampled_from(_TYPES.split())), max_size=4),
        st.lists(st.dictionaries(st.sampled_from(_KEYS.split()), _json, max_size=4), max_size=2),
    ),
    max_size=6,
)
_lines = st.lists(st.one_of(st.text(max_size=30), _json.map(json.dumps), _near.map(json.dumps)), max_size=6)


@settings(max_examples=150, deadline=None)
@given(_lines)
def test_no_line_breaks_a_dialect_or_looks_like_success(lines: list[str]) -> None:
    """L20: unknown lines are counted, never believed; without a terminal event nothing has ended."""
    for dialect in (codex(), claude()):
        for line in lines:
            for event in dialect.take(line):
                AgentEvent.model_validate_json(event.model_dump_json())
        dialect.close(ended(0), "")
        assert isinstance(dialect.heard, Heard)
        assert not dialect.heard.ended
        assert dialect.heard.usage.tokens >= 0


def test_what_is_no_event_is_counted() -> None:
    for dialect in (codex(), claude()):
        for line in ("no json", "[1]", '{"type": "brand.new"}', "", "[" * 100_000, '{"n": ' + "9" * 5_000):
            assert dialect.take(line) == []
        assert dialect.heard.unknown == 5


def test_any_program_says_lines_and_ends_by_its_exit_code() -> None:
    dialect = PlainDialect()
    assert [event.text for event in (*dialect.take("one"), *dialect.take(""), *dialect.take("{}"))] == ["one", "{}"]
    assert dialect.heard.said == "one\n\n{}\n"
    dialect.close(ended(3), "")
    assert (dialect.heard.ended, dialect.heard.hint) == (False, AgentOutcome.crashed)
    dialect = PlainDialect()
    dialect.close(ended(0), "")
    assert dialect.heard.ended
