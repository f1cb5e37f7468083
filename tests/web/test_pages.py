"""Every page of the table: reached by links, read by everybody, decided on by clicking."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from cli_stage import wait_for
from starlette.routing import compile_path
from web_stage import WebHouse, findings

from becket.parts.front.routes import PAGES

pytestmark = pytest.mark.web
MOST_VISITED = 60
LOOKS = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 380, "height": 800}, "has_touch": True},
    "chinese": {"locale": "zh-CN"},
}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(scope="module")
def full(proposing: WebHouse) -> WebHouse:
    """Something on every page: a repair that is ready, a question, a failure."""
    wait_for(lambda: proposing.runs("heal", "completed") or proposing.runs("verify", "completed"))
    proposing.bug()
    for topic in ("tea", "milk"):
        proposing.becket("run", "ask", "--with", f"topic={topic}", "--no-follow")
    proposing.becket("run", "fail", "--no-follow")
    wait_for(lambda: proposing.json("proposals", "list"))
    wait_for(lambda: len(proposing.runs("ask", "waiting")) == 2 and not proposing.runs("fail", "running"))
    return proposing


def examples(page: Any) -> dict[str, str]:
    """For each page of the table one address that links lead to."""
    patterns = {route.path: compile_path(route.path)[0] for route in PAGES}
    home = page.url.rstrip("/")
    found, queue, seen = {"/": "/"}, ["/"], {"/"}
    while queue and len(seen) < MOST_VISITED and found.keys() != patterns.keys():
        page.goto(home + queue.pop(0))
        for href in page.eval_on_selector_all(
            "a[href^='/']:not([download])", "all => all.map(a => a.getAttribute('href'))"
        ):
            path = urlsplit(href).path
            route = next((name for name, pattern in patterns.items() if pattern.match(path)), None)
            if route is not None and route not in found:
                found[route] = href
                queue.append(href)
            elif route is not None and path not in seen and len(seen) < MOST_VISITED:
                queue.append(href)
            seen.add(path)
    return found


@pytest.fixture(scope="module")
def addresses(full: WebHouse, browser: Any) -> dict[str, str]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(full.json("open", "--print")["url"])
    try:
        return examples(page)
    finally:
        context.close()


def test_links_lead_to_every_page(addresses: dict[str, str]) -> None:
    assert sorted(addresses) == sorted(route.path for route in PAGES)


@pytest.mark.parametrize("look", LOOKS)
def test_everybody_can_read_every_page(
    full: WebHouse, comes: Any, axe: str, shots: Any, addresses: dict[str, str], look: str
) -> None:
    visit, wrong = comes(full, **LOOKS[look]), []
    for route, path in {**addresses, "nothing": "/nothing"}.items():
        page = visit.page(path)
        page.screenshot(
            path=shots / f"{re.sub(r'[^a-z]+', '-', route).strip('-') or 'home'}-{look}.png", full_page=True
        )
        if route == "nothing":
            continue
        wrong += [f"{path}: {one}" for one in findings(page, axe)]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"):
            wrong.append(f"{path} is wider than the window")
        if look == "chinese" and not CHINESE.search(page.locator("h1, nav").all_inner_texts()[0]):
            wrong.append(f"{path} is not in Chinese")
        page.close()
    visit.complaints = [text for text in visit.complaints if "404" not in text]
    assert not wrong, "\n".join(wrong)


def test_the_login_can_be_read_too(full: WebHouse, browser: Any, axe: str, shots: Any) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{full.served().page}/login")
    page.screenshot(path=shots / "login-light.png")
    assert not findings(page, axe)
    page.context.close()


def test_a_keyboard_is_enough(full: WebHouse, comes: Any) -> None:
    page = comes(full).page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached: set[str] = set()
    page.goto(page.url)
    everything = set(page.eval_on_selector_all("#main a[href]", "all => all.map(a => a.getAttribute('href'))"))
    for _ in range(150):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "(() => { const a = document.activeElement, s = getComputedStyle(a);"
            " return [a.getAttribute('href') || '', s.outlineStyle !== 'none' || s.boxShadow !== 'none'] })()"
        )
        if not here[0] and here[0] in reached:
            break
        assert here[1] or not here[0], f"the focus is not seen on {here[0]}"
        reached.add(here[0])
        if everything <= reached:
            break
    assert everything <= reached


def test_a_question_is_answered_by_clicking_and_by_one_of_two(full: WebHouse, comes: Any) -> None:
    ada, bob = comes(full), comes(full)
    first = ada.page()
    first.locator("article", has_text="Make tea?").get_by_role("link", name="Look and answer").click()
    second = bob.page(urlsplit(first.url).path)
    first.get_by_role("button", name="Approve").first.click()
    first.wait_for_load_state()
    wait_for(lambda: [run for run in full.runs("ask", "completed") if run["subject"]["name"] == "question/tea"])
    second.locator(
        "#main", has_text=re.compile("approved|answered", re.IGNORECASE)
    ).wait_for()  # it is told without loading again
    assert second.get_by_role("button", name="Approve").count() == 0


def test_changes_are_asked_for_and_a_repair_is_accepted_by_clicking(full: WebHouse, comes: Any) -> None:
    visit, broken = comes(full), full.head
    page = visit.page()
    page.get_by_role("link", name="Look and decide").first.click()
    page.get_by_label(re.compile("A note")).first.fill("Say why in a comment.")
    page.get_by_role("button", name="Ask for changes").click()
    page.wait_for_load_state()
    wait_for(lambda: len(full.runs("heal")) > 1 and not full.runs("heal", "running"))
    wait_for(lambda: full.json("proposals", "list"))
    page.goto(visit.home)
    page.get_by_role("link", name="Look and decide").first.click()
    page.get_by_role("button", name="Accept").click()
    wait_for(lambda: full.head != broken)
    assert "return number + 1" in full.git("show", "main:value.py")


def test_what_is_handed_over_says_how_to_take_it(full: WebHouse, comes: Any) -> None:
    page = comes(full).page()
    page.locator("article", has_text="fail").get_by_role("link", name="Look and take over").first.click()
    assert page.locator("pre.commands").inner_text().strip()
    page.get_by_role("button", name=re.compile("Take")).first.click()
    page.wait_for_load_state()
    assert [one for one in full.json("handoffs", "list") if one["state"] == "taken"]
