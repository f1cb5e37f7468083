"""What programs and people wrote is shown as it is written, and no terminal obeys it."""

from __future__ import annotations

import pytest

from becket.cli.plain import line, safe, visible
from becket.kernel.contract.text import harmless, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x9cx", "x"),
        ("a\x1b", "a"),
        ("\x1b[", ""),
        ("a\x9b31mb", "a31mb"),
        ("a\u202eb\u2066c\u200bd\u061ce\ufefff", "abcdef"),
        ("a\u2028b\u2029c\x85d", "abcd"),
        ("a\ud800b\udfffc", "abc"),
        ("a\rb\r\nc\td\x00\x08\x7f", "a\nb\nc    d"),
        ("Grüße, 你好 🎉\n", "Grüße, 你好 🎉\n"),
    ],
)
def test_nothing_is_left_that_a_terminal_obeys_or_that_hides_something(text: str, shown: str) -> None:
    assert harmless(text) == safe(text) == shown
    shown.encode()  # and every stream takes it


def test_in_one_line_the_end_is_left_out_and_said_so() -> None:
    assert one_line("a\n\x1b[1m b\t c") == "a b c"
    assert one_line("x" * 10, 5) == line("x" * 10, 5) == "xxxx…"


def test_made_visible_nothing_is_left_out() -> None:
    assert visible("a\x1b[1mb\t\r\nc\ud800\u202e") == "a\\x1b[1mb\t\r\nc\\ud800\\u202e"
