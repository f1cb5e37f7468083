"""What a person sees while a run is at work: on a terminal, in a pipe, and of which file the last line is."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest
from tales import BEGAN, TESTS, condition, decision, run, step, story, text_of

from becket.app.record.output_now import PrintedLine, last_output
from becket.cli import follow
from becket.cli.live import live, still
from becket.kernel.contract.agent import AgentEvent, AgentEventKind
from becket.kernel.contract.run import StepState


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


BASE = step("discover", "base", 0.02)
NOW = PrintedLine(BEGAN + 3, "test_third.py ..F")


def test_the_step_at_work_stands_last_with_its_time_and_its_last_line() -> None:
    assert text_of(live(story(BASE, TESTS), NOW)) == (
        "heal  main@aaaaaaaa                                             at work, 3.00s\n"
        "run_1  manual by ann  22:13:20\n"
        "\n"
        "  ├ ✓ tests  red                                                         2.00s\n"
        "  └ ▸ fix                                                                1.00s\n"
        "      test_third.py ..F"
    )


def test_what_an_earlier_step_printed_is_not_shown_as_its_own() -> None:
    assert "..F" not in text_of(live(story(BASE, TESTS), PrintedLine(BEGAN - 5, "..F")))


def test_a_step_whose_when_is_false_is_not_taken_for_the_current_one() -> None:
    green = step("discover", "tests", conditions=(condition("base.green"),))
    assert "▸ good" in text_of(live(story(BASE, green), None))


def test_skipped_steps_and_earlier_iterations_take_no_room() -> None:
    skipped = step("act", "other", 0.0, StepState.skipped, iteration=2, attempts=0)
    first = (TESTS, decision("again", "stop_conditions_unmet"))
    text = text_of(live(story(*first, step("discover", "base", iteration=2), skipped, run=run(iteration=2)), None))
    assert "iteration 2" in text
    assert "tests  red" not in text
    assert "other" not in text


def test_forty_steps_leave_the_one_at_work_on_a_screen_of_24_rows() -> None:
    many = [step("discover", f"step{number}", 1.5) for number in range(40)]
    lines = text_of(live(story(*many, BASE, TESTS), NOW, height=24)).split("\n")
    assert len(lines) < 24
    assert lines[-2].startswith("  └ ▸ fix")


def test_a_pipe_is_told_now_and_then_that_a_step_is_still_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    assert still(story(BASE, TESTS), NOW, BEGAN + 62) == "22:14:22  fix at work for 1m00s: test_third.py ..F"
    out = io.StringIO()
    lines = follow.LineView(out)
    lines.tell(story(BASE, TESTS))
    lines.hear(NOW)
    before = out.getvalue()
    monkeypatch.setattr(follow, "QUIET_FOR", 0.0)
    lines.hear(NOW)
    assert before == ""
    assert "  fix at work for " in out.getvalue()


def test_the_last_line_is_that_of_the_file_that_grew_last(tmp_path: Path) -> None:
    gate, agent, setup = (
        tmp_path / name
        for name in ("run/logs/1-discover-base_fast.log", "run/calls/c/events.jsonl", "setups/k/setup.log")
    )
    said = AgentEvent(kind=AgentEventKind.message, text="I look at calc.py").model_dump_json()
    silent = AgentEvent(kind=AgentEventKind.usage).model_dump_json()
    for at, (path, text) in enumerate(((gate, "one\ntwo\n\n"), (agent, f"{said}\n{silent}\n"), (setup, "installs\n"))):
        path.parent.mkdir(parents=True)
        path.write_text(text)
        os.utime(path, (at, at))
    seen = []
    for path in (setup, agent, gate):
        found = last_output(tmp_path / "run", tmp_path / "setups")
        assert found is not None
        seen.append(found.text)
        path.unlink()
    assert seen == ["installs", "I look at calc.py", "two"]
    assert last_output(tmp_path / "run", tmp_path / "setups") is None
