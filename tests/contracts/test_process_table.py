"""The page about sandboxes says what the escapes come to: its table is made from what their tests assert."""

from __future__ import annotations

from process_table import PAGE, attempts, page_with, rendered


def test_page_holds_the_table() -> None:
    """If this fails, the outcomes have changed: `python tests/contracts/process_table.py` writes them anew."""
    assert PAGE.read_text(encoding="utf-8") == page_with(rendered())


def test_every_attempt_has_its_row() -> None:
    """No attempt is made in silence, and no row is without one."""
    rows = [line for line in rendered().splitlines() if line.startswith("| ")][1:]
    assert len(rows) == len(attempts(reach=True))


def test_what_is_open_is_in_bold() -> None:
    """bwrap denies every attempt; the others say openly what they do not."""
    for row in rendered().splitlines()[2:]:
        bwrap, landlock, none = row.split(" | ")[1:]
        assert "not denied" not in bwrap
        assert "not denied" in none or "not denied" not in landlock
