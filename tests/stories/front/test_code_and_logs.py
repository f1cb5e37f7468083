"""Logs and code that others wrote: bounded, in colours, and never markup."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from becket.app.record.conversation import joined
from becket.app.record.log_part import WINDOW, read_part, redacted_parts, search
from becket.app.record.report.diff import files_of, shortened
from becket.app.record.report.model import ChangeFacts, FindingFacts, GuardFacts, RemarkFacts
from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallState
from becket.kernel.engine.redact import Redactor
from becket.parts.front.ansi import html_lines
from becket.parts.front.diff_view import change_html
from becket.parts.front.highlight import colored

SECRET = "correct-horse-battery-staple"
REDACT = Redactor({"KEY": SECRET}).text


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[31mred\x1b[0m", '<span class="t-red">red</span>'),
        (
            "\x1b[1;4;97;41mx\x1b[22my",
            '<span class="t-bold t-line t-white t-on-red">x</span><span class="t-line t-white t-on-red">y</span>',
        ),
        ("\x1b[38;5;196mx", '<span class="t-red">x</span>'),
        ("\x1b[38;2;0;200;0mx\x1b[39my", '<span class="t-green">x</span>y'),
        ("\x1b[99999;;38;5mx", "x"),
        ("\x1b]0;<title>\x07\x1b[2J<b onclick=x>", "&lt;b onclick=x&gt;"),
        ("10%\r20%\r100%\r", "100%"),
        ('\x1b[31;" onmouseover=alert(1) x="mz', "nmouseover=alert(1) x=&quot;mz"),
    ],
)  # fmt: skip
def test_colours_are_classes_and_all_else_is_text(printed: str, shown: str) -> None:
    assert "".join(html_lines(printed)) == shown


def test_a_colour_lasts_over_the_ends_of_lines() -> None:
    assert list(html_lines("\x1b[32ma\nb\x1b[0m\nc\n")) == [
        '<span class="t-green">a</span>', '<span class="t-green">b</span>', "c",
    ]  # fmt: skip


def test_windows_of_a_huge_log_meet_and_never_hold_more_than_they_may(tmp_path: Path) -> None:
    path = tmp_path / "log"
    lines = [f"{number} {'x' * (number % 300)}" for number in range(1, 9_001)]
    path.write_text("\n".join(lines) + "\n")
    at, seen = 0, []
    while True:
        part = read_part(path, at, REDACT)
        assert len(part.text) <= WINDOW
        assert part.first == len(seen) + 1
        seen += part.text.splitlines()
        if part.end == part.size:
            break
        at = part.end
    assert seen == lines
    end = read_part(path, None, REDACT)
    assert end.text.splitlines() == lines[end.first - 1 :]


def test_a_line_without_end_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"y" * (3 << 20))
    assert [len(read_part(path, at, REDACT).text) for at in (0, WINDOW, None)] == [WINDOW] * 3
    assert b"".join(redacted_parts(path, REDACT)) == path.read_bytes()


def test_a_secret_is_neither_shown_at_a_windows_border_nor_found_by_trying(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("a" * (WINDOW - 10) + SECRET + "\nafter\n" + "z\n" * 5)
    for at in (0, WINDOW - 20, WINDOW, WINDOW + 3, None):
        assert not any(SECRET[begin : begin + 8] in read_part(path, at, REDACT).text for begin in range(20))
    assert search(path, SECRET[:6], REDACT).lines == ()
    assert [line.number for line in search(path, "AFTER", REDACT).lines] == [2]


def test_a_search_ends_where_there_is_too_much(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("same\n" * 100_000)
    found = search(path, "same", REDACT)
    assert len(found.lines) == 200
    assert found.cut


def change(patch: str) -> ChangeFacts:
    diff, left_out = shortened(patch)
    return ChangeFacts(iteration=1, action="fix", kind="repair", commit="c" * 40, parent="p" * 40, patch="d" * 64,
                       files=tuple(files_of(patch)), diff=diff, left_out=left_out)  # fmt: skip


def patch_of(path: str, lines: list[str]) -> str:
    added = "\n".join(f"+{line}" for line in lines)
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n{added}\n"


def guard(line: int) -> GuardFacts:
    remark = RemarkFacts(rule="no-skip", path="a.py", line=line, message="<b>skipped</b>", more="")
    finding = FindingFacts(kind="powerful", power="", path="a.py", line=900, message="opens a socket", shown="")
    return GuardFacts(iteration=1, says="", refusals=(remark,), findings=(finding,))


def test_the_guards_remarks_stand_below_their_lines_and_none_is_lost() -> None:
    html = "".join(change_html(change(patch_of("a.py", ["one", "two", "three"])), [guard(2)]))
    after = html[html.index('data-line="2"') :]
    assert after.index("guard: refused, no-skip: &lt;b&gt;skipped") < after.index('data-line="3"')
    assert "<li>line 900: powerful: opens a socket</li>" in html


def test_a_change_of_ten_megabytes_is_shown_within_bounds_and_time() -> None:
    patch = "".join(patch_of(f"f{number}.py", ["x = '(((' # <script>" * 20] * 300) for number in range(90))
    assert len(patch) > 10_000_000
    began = time.process_time()
    found = change(patch)
    told = time.process_time() - began
    html = "".join(change_html(found, []))
    assert len(html) < 1_500_000
    assert "are left out here" in html
    assert "<script" not in html
    assert time.process_time() - began - told < 3.0


def test_code_is_coloured_line_by_line_and_says_the_same() -> None:
    lines = ["def f():", '    """<b>', '    two"""', "    return 1  # &"]
    made = colored("a.py", lines, time.thread_time() + 5)
    assert len(made) == len(lines)
    assert '<span class="h-k">def</span>' in made[0]
    plain = [re.sub("<[^>]*>", "", line) for line in made]
    assert plain == [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
                     for line in lines]  # fmt: skip
    assert colored("a.py", lines, 0.0)[0] == "def f():"


def test_the_events_of_one_tool_call_are_one_turn() -> None:
    kind = AgentEventKind
    turns = joined([
        AgentEvent(kind=kind.message, text="I look"),
        AgentEvent(kind=kind.tool_call, text="ls", tool="Bash", call="1", state=CallState.started),
        AgentEvent(kind=kind.usage),
        AgentEvent(kind=kind.tool_call, call="1", state=CallState.failed),
        AgentEvent(kind=kind.message, text="hurry", by="ada"),
        AgentEvent(kind=kind.error, text="no"), AgentEvent(kind=kind.error, text="no"),
    ])  # fmt: skip
    assert [(turn.kind, turn.text, turn.state) for turn in turns] == [
        ("message", "I look", ""), ("tool_call", "ls", "failed"), ("person", "hurry", ""), ("error", "no", ""),
    ]  # fmt: skip
