"""A repair is watched as it happens, and whoever watches misses nothing."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import pytest
from cli_stage import wait_for
from web_stage import WebHouse

pytestmark = pytest.mark.web


def shows(page: Any, text: str) -> None:
    page.locator("#main", has_text=re.compile(text)).wait_for()


def mark(page: Any) -> None:
    page.evaluate("window.stillTheSame = true")


def is_same(page: Any) -> bool:
    return bool(page.evaluate("window.stillTheSame === true"))


def test_a_repair_is_watched_to_green_without_loading_again(merging: WebHouse, comes: Any, shots: Any) -> None:
    visit = comes(merging)
    page = visit.page()
    shows(page, f"green[^#]*{merging.head[:12]}")  # it was proven as Becket came up
    mark(page)
    broken = merging.bug()
    shows(page, broken[:7])
    found = wait_for(lambda: [one for one in merging.runs("heal") if broken in one["subject"]["name"]])[0]
    run = visit.page(f"/runs/{found['run_id']}")
    mark(run)
    run.screenshot(path=shots / "watching.png", full_page=True)
    repaired = wait_for(lambda: merging.head if merging.head != broken else "")
    shows(run, "[Pp]roven")
    shows(page, f"green[^#]*{repaired[:12]}")
    assert is_same(page)
    assert is_same(run)


def test_pages_that_are_open_while_the_front_is_killed_miss_nothing(merging: WebHouse, comes: Any) -> None:
    visit = comes(merging)
    visit.lost = True
    pages = [visit.page(), visit.page("/runs")]
    for page in pages:
        mark(page)
    first = merging.front
    os.kill(first, signal.SIGKILL)
    pages[0].locator("#live:not([hidden])").wait_for()
    merging.becket("run", "ask", "--with", "topic=cocoa", "--no-follow")
    merging.served(first)
    for page in pages:
        shows(page, "cocoa")
        page.locator("#live[hidden]").wait_for(state="attached")
        assert is_same(page)


def test_a_page_whose_login_is_revoked_goes_to_the_login(merging: WebHouse, comes: Any) -> None:
    visit = comes(merging)
    visit.lost = True  # the console tells of the answer 401
    page, other = visit.page(), visit.page("/runs")
    other.get_by_role("button", name="Log out").click()
    page.wait_for_url(re.compile(r"/login\?next=/"))
    visit.complaints = [text for text in visit.complaints if "401" not in text]


def test_what_somebody_typed_and_holds_stays_while_the_page_changes(merging: WebHouse, comes: Any) -> None:
    visit = comes(merging)
    page = visit.page("/runs")
    typed = page.locator("input[type=search], input[type=text], input[name=q], input[name=find]").first
    typed.fill("somebody types this")
    merging.becket("run", "ask", "--with", "topic=barley", "--no-follow")
    shows(page, "barley")
    assert typed.input_value() == "somebody types this"
    assert page.evaluate("document.activeElement.tagName") == "INPUT"


HIDE = """hidden => {
  Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_page_that_nobody_sees_lets_go_and_catches_up(merging: WebHouse, comes: Any) -> None:
    """A browser has six connections for all tabs of a site."""
    visit = comes(merging)
    pages = [visit.page("/runs") for _ in range(6)]
    for page in pages:
        page.evaluate(HIDE, True)
    pages[0].wait_for_timeout(5500)
    seventh = visit.page("/runs")
    merging.becket("run", "ask", "--with", "topic=rice", "--no-follow")
    shows(seventh, "rice")
    assert "rice" not in pages[0].locator("#main").inner_text()
    pages[0].evaluate(HIDE, False)
    shows(pages[0], "rice")
