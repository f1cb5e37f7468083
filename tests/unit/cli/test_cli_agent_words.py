"""What an agent does, as people see it: one harmless line per event, money that nobody knows marked as such."""

from __future__ import annotations

import io

import pytest
import typer

from becket.cli.agent_lines import EventLines, used_words
from becket.cli.events import event_line
from becket.cli.front import run, typer_of
from becket.cli.plain import fitted, money
from becket.cli.verbs import find_verb
from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, CallState, Limits, PriceSource, Usage
from becket.kernel.contract.calls import AgentCall, CallEnd
from becket.kernel.contract.events import Event, EventKind
from becket.parts.agents.desk import MessageDelivery
from becket.parts.agents.verbs.attach import delivery_words, how
from becket.parts.agents.verbs.call import call_words


def told(*events: AgentEvent, width: int = 80) -> list[str]:
    out = io.StringIO()
    lines = EventLines(out, width)
    for event in events:
        lines.tell(event)
    return out.getvalue().splitlines()


def test_every_kind_of_event_is_one_line_with_its_time_and_its_verb() -> None:
    used = Usage(turns=2, input_tokens=1200, cached_tokens=1000, output_tokens=34, usd=0.5, priced=PriceSource.vendor)
    assert told(
        AgentEvent(kind=AgentEventKind.thinking, at=0.1, text="where is it"),
        AgentEvent(kind=AgentEventKind.message, at=0.2, text="I will\nlook."),
        AgentEvent(kind=AgentEventKind.tool_call, at=0.3, tool="shell", text="make test", state=CallState.started),
        AgentEvent(kind=AgentEventKind.tool_call, at=1.3, tool="shell", text="make test", state=CallState.failed),
        AgentEvent(kind=AgentEventKind.tool_call, at=1.4, tool="shell", text="rm -rf /", state=CallState.refused),
        AgentEvent(kind=AgentEventKind.edit, at=12.0, paths=("calc.py", "b.py"), state=CallState.done),
        AgentEvent(kind=AgentEventKind.usage, at=13.0, usage=used),
        AgentEvent(kind=AgentEventKind.error, at=14.0, text="overloaded"),
        AgentEvent(kind=AgentEventKind.message, at=15.0, text="mind the tests", by="ann"),
        AgentEvent(kind=AgentEventKind.end, at=75.0, text="cut", usage=used),
    ) == [
        "   0.10s  thinks    where is it",
        "   0.20s  says      I will look.",
        "   0.30s  runs      shell  make test",
        "   1.30s  failed    shell  make test",
        "   1.40s  refused   shell  rm -rf /",
        "   12.0s  edited    calc.py b.py",
        "   13.0s  used      2 turns, 1,234 tokens (1,000 cached), $0.5000",
        "   14.0s  error     overloaded",
        "   15.0s  is told   mind the tests (ann)",
        "   1m15s  ends      cut  2 turns, 1,234 tokens (1,000 cached), $0.5000",
    ]


def test_an_agents_words_cannot_steer_the_terminal() -> None:
    """L24: control characters, escape codes and hidden text of an agent are gone."""
    (line,) = told(AgentEvent(kind=AgentEventKind.message, text="a\x1b[2Jb\x1b]0;title\x07c\r\nd\u202e\u200be\x9b1m"))
    assert line == "   0.00s  says      abc de1m"


@pytest.mark.parametrize("width", [40, 60])
def test_a_line_never_wraps_whatever_the_script(width: int) -> None:
    """Wide characters take two cells of a terminal."""
    (line,) = told(AgentEvent(kind=AgentEventKind.message, text="日本語" * 100), width=width)
    cells = sum(2 if character > "\u2fff" else 1 for character in line)
    assert width - 2 <= cells <= width
    assert line.endswith("…")


def test_the_same_usage_is_told_once() -> None:
    event = AgentEvent(kind=AgentEventKind.usage, usage=Usage(turns=1, input_tokens=5))
    more = AgentEvent(kind=AgentEventKind.usage, usage=Usage(turns=2, input_tokens=9))
    assert len(told(event, event, more, more)) == 2


def test_an_error_that_is_said_again_is_told_once() -> None:
    again = AgentEvent(kind=AgentEventKind.error, text="401: wrong key")
    other = AgentEvent(kind=AgentEventKind.error, text="cut")
    assert [said.split()[-1] for said in told(again, again, other, again)] == ["key", "cut", "key"]


def test_fitted_counts_cells_and_leaves_what_fits() -> None:
    assert fitted("abc", 3) == "abc"
    assert fitted("abcd", 3) == "ab…"
    assert fitted("日本", 4) == "日本"
    assert fitted("日本語", 4) == "日…"
    assert fitted("e\u0301e\u0301", 2) == "e\u0301e\u0301"


def test_money_that_nobody_knows_is_never_shown_as_nothing() -> None:
    assert money(0.0) == "$0.0000"
    assert money(0.0, known=False) == "$?"
    assert money(1234.5) == "$1,234.50"
    assert money(0.25, known=False) == "$0.2500?"
    assert used_words(Usage(turns=1, input_tokens=7)) == "1 turn, 7 tokens, $?"
    assert used_words(Usage()) == "tokens and money not told"


def test_a_call_is_told_with_its_outcome_and_its_overshoot() -> None:
    end = CallEnd(
        outcome=AgentOutcome.limit_reached, usage=Usage(seconds=3, turns=9, output_tokens=50), over=("turns: 9 of 8",)
    )
    call = AgentCall(
        call_id="c", run_id="r", loop_id="once", iteration=1, step_id="call", agent="fixer", driver="codex", model="",
        limits=Limits(seconds=5), began_at=0.0, end=end,
    )  # fmt: skip
    assert call_words(call) == "fixer: limit reached in 3.00s, 9 turns, 50 tokens, $?; over its limits: turns: 9 of 8"
    assert "nobody saw its end" in call_words(call.model_copy(update={"end": None}))


@pytest.mark.parametrize(
    ("driver", "when", "words"),
    [
        ("acp", "at_once", "is told now"),
        ("codex", "next_turn", "when its turn ends"),
        ("claude", "next_turn", "when its turn ends"),
        ("command", "next_brief", "in its next brief"),
        (None, "next_call", "the next one is told"),
    ],
)
def test_a_message_says_when_it_is_heard(driver: str | None, when: str, words: str) -> None:
    done = MessageDelivery(run_id="run_1", agent="fixer" if driver else None, driver=driver or "")
    assert how(done) == when
    assert words in delivery_words(done)


def test_the_verb_has_its_five_commands() -> None:
    command = typer.main.get_command(typer_of(find_verb("agent")))
    assert set(command.commands) == {"run", "attach", "tell", "list", "spend"}  # type: ignore[attr-defined]


def test_wrong_usage_is_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agent", "run", "fixer", "  "]) == 2
    assert run(["agent", "run", "fixer", "x", "--in", "/nowhere/at/all"]) == 2
    assert run(["agent", "spend", "--by", "moon"]) == 2
    assert run(["doctor", "--agent", "fixer"]) == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(seconds=0.08).model_dump(mode="json"), "fixer changed, used 0.08s, tokens and money not told"),
        (
            Usage(seconds=2, turns=1, output_tokens=7, usd=0.5, priced=PriceSource.vendor).model_dump(mode="json"),
            "fixer changed, used 2.00s, 1 turn, 7 tokens, $0.5000",
        ),
        ({"seconds": "odd"}, "call.settled (agent fixer, outcome changed"),
    ],
)
def test_a_settled_call_claims_no_zero_that_nobody_told(usage: dict[str, object], said: str) -> None:
    data = {"agent": "fixer", "outcome": "changed", "used": {}, "usage": usage}
    event = Event(run_id="r", seq=1, at=0.0, kind=EventKind.call_settled, data=data, previous="", digest="")
    assert said in event_line(event)
