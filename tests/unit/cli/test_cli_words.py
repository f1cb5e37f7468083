"""Small words: durations, times, evidence, one line per event."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from typing import Any

import pytest

from becket.cli import words
from becket.cli.events import _SAYS, event_line
from becket.cli.plain import Paint, evidence, line, safe, took, wrapped
from becket.kernel.contract.events import Event, EventKind


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0.00s"), (-1, "0.00s"), (0.314, "0.31s"), (9.99, "9.99s"), (12.34, "12.3s"), (59.94, "59.9s"),
     (59.96, "1m00s"), (252, "4m12s"), (3599.6, "1h00m"), (7380, "2h03m"), (273600, "3d04h")],
)  # fmt: skip
def test_durations_read_as_people_say_them(seconds: float, text: str) -> None:
    assert took(seconds) == text


def test_evidence_is_short_and_leaves_out_what_says_nothing() -> None:
    found = {"exit_code": 1, "end": "exited", "by": "tests", "log": "f" * 64, "said": "", "names": ["a", "b"]}
    assert evidence(found) == 'exit code 1, log ffffffff, names ["a", "b"]'


def test_a_line_is_broken_between_words_only() -> None:
    text = "  main is red: becket runs show run_1m7r8gscc9b0qdzj"
    assert wrapped(text, 60) == text
    assert wrapped(text, 30).split("\n") == ["  main is red: becket runs", "      show", "      run_1m7r8gscc9b0qdzj"]
    assert wrapped("\x1b[31;1mone two\x1b[0m", 7) == "\x1b[31;1mone two\x1b[0m", "colours take no room"
    assert wrapped("x" * 50, 10) == "x" * 50
    assert wrapped("", 10) == ""


def test_a_line_is_one_line_and_bounded() -> None:
    assert line("a\n\n  b\tc") == "a b c"
    assert line("x" * 500, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    "nasty", ["\x1b[31mred", "\x1b]8;;http://x\x07link", "a\x00b", "\u202egnp.exe", "\x9b2J", "\x1b"]
)
def test_safe_text_holds_nothing_a_terminal_obeys(nasty: str) -> None:
    assert not set(safe(nasty)) & {"\x1b", "\x07", "\x00", "\u202e", "\x9b"}


def test_no_colours_where_nobody_looks() -> None:
    assert Paint(io.StringIO()).red("x") == "x"


def event(kind: EventKind, data: dict[str, Any]) -> Event:
    return Event(run_id="run_1", seq=1, at=0.0, kind=kind, data=data, previous="", digest="")


def said(kind: EventKind, /, **data: Any) -> str:
    return event_line(event(kind, data)).split("  ", 1)[1]


def test_every_kind_of_event_has_words() -> None:
    assert set(_SAYS) == set(EventKind)


def test_an_event_without_the_usual_data_is_told_as_it_is() -> None:
    assert said(EventKind.run_ended, odd=1) == "run.ended (odd 1)"


def test_events_say_what_happened_in_one_line() -> None:
    step = {"phase": "act", "id": "fix", "seconds": 1.5, "conditions": ["fixed"], "attempts": 2}
    assert said(EventKind.step_done, **step) == "act.fix done in 1.50s, 2 attempts, raised fixed"
    failed = {"phase": "act", "id": "fix", "seconds": 0.1, "error": "no\nfile", "kind": "exit_2"}
    assert said(EventKind.step_failed, **failed) == "act.fix failed in 0.10s, exit_2: no file"
    ended = said(EventKind.run_ended, status="ready_for_handoff", reason="no_progress", detail={})
    assert ended == "handed off: an iteration brought nothing new"
    asked = said(EventKind.approval_asked, approval_id="apr_1", question="May I?", role="owner")
    assert asked == "asks the owner: May I? (becket approve apr_1)"


def test_events_say_by_which_way_in_where_it_is_not_the_command_line() -> None:
    decided = {"approval_id": "apr_1", "state": "approved", "by": "ada", "role": "owner"}
    assert said(EventKind.approval_decided, **decided) == "apr_1 is approved by ada", "as it was told before"
    assert said(EventKind.approval_decided, **decided, via="command_line") == "apr_1 is approved by ada"
    assert said(EventKind.approval_decided, **decided, via="chat") == "apr_1 is approved by ada via chat"
    assert said(EventKind.run_held, by="ada", via="page") == "held by ada via page"
    assert said(EventKind.cancel_asked, by="ada", via="forge", note="no") == "ada via forge asked to cancel it: no"
    assert said(EventKind.handoff_changed, handoff_id="hnd_1", state="done", by="becket", via="becket").endswith(
        "by becket"
    )


SOURCE = Path(words.__file__).parents[1]
FILES_OF_WORDS = sorted([SOURCE / "cli" / "words.py", *SOURCE.glob("parts/*/words.py")])


@pytest.mark.parametrize("file", FILES_OF_WORDS, ids=lambda file: file.parent.name)
def test_every_sentence_is_said_somewhere(file: Path) -> None:
    own = file.read_text()
    texts = [path.read_text() for path in SOURCE.rglob("*.py") if path != file]
    said = [node for node in ast.parse(own).body if isinstance(node, ast.Assign)]
    public = [name.id for node in said for name in ast.walk(node.targets[0]) if isinstance(name, ast.Name)]
    unsaid = [
        name
        for name in public
        if not name.startswith("_") and own.count(name) < 2 and not any(f"words.{name}" in text for text in texts)
    ]
    assert unsaid == []
