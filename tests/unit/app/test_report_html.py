"""The page of a report: only what we wrote is markup, nothing runs or loads, and everybody can read it (L24)."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files

import pytest
import report_samples as samples

from becket.app.record.report.collect import without_secrets
from becket.app.record.report.html import html_of
from becket.app.record.report.markdown import markdown_of
from becket.app.record.report.model import Report
from becket.kernel.engine.redact import Redactor

OURS = {
    "a", "b", "body", "br", "code", "dd", "details", "div", "dl", "dt", "footer", "h1", "h2", "h3", "head", "header",
    "html", "li", "main", "meta", "nav", "ol", "p", "pre", "rect", "section", "span", "strong", "style", "summary",
    "svg", "table", "tbody", "td", "th", "thead", "title", "tr", "ul",
}  # fmt: skip
ATTRIBUTES = {
    "aria-hidden", "aria-label", "aria-labelledby", "charset", "class", "content", "data-name", "height", "href",
    "http-equiv", "id", "lang", "name", "open", "role", "scope", "tabindex", "width",
}  # fmt: skip
CLASSES = {
    "about", "add", "bad", "bar", "commands", "decision", "diff", "facts", "good", "hunk", "minus", "note", "number",
    "phase", "pill", "plain", "plus", "remove", "same", "soft", "steps", "story", "tiles", "time", "unsure",
}  # fmt: skip
SAMPLES = pytest.mark.parametrize("sample", samples.ALL, ids=lambda sample: sample.__name__)
Sample = Callable[[], Report]


class Page(HTMLParser):
    """A page as its elements, each with its attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.odd: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data if self.open[-1:] != ["style"] else ""

    def handle_comment(self, data: str) -> None:
        self.odd.append(data)

    def handle_pi(self, data: str) -> None:
        self.odd.append(data)

    def values(self, name: str) -> list[str]:
        return [attributes[name] for _, attributes in self.elements if name in attributes]

    def tags(self) -> list[str]:
        return [tag for tag, _ in self.elements]


@SAMPLES
def test_no_element_attribute_or_class_is_there_that_we_did_not_write(sample: Sample) -> None:
    page = Page(html_of(sample()))
    assert set(page.tags()) <= OURS
    assert {name for _, attributes in page.elements for name in attributes} <= ATTRIBUTES
    assert {name for value in page.values("class") for name in value.split()} <= CLASSES
    assert (page.odd, page.open) == ([], [])


def test_hostile_text_is_shown_as_text_wherever_it_stands() -> None:
    text = html_of(samples.hostile())
    page = Page(text)
    assert page.text.count("<script>alert(1)</script>") > 50
    assert not re.search("[\x00\x1b\u202e\ud800]", text)
    text.encode()


def test_hostile_text_adds_no_element_to_what_harmless_text_has() -> None:
    """The number of elements is that of the shape of the report, not of its words."""
    assert Page(html_of(samples.hostile())).tags() == Page(html_of(samples.hostile("word"))).tags()


@SAMPLES
def test_the_policy_allows_this_style_and_nothing_else(sample: Sample) -> None:
    text = html_of(sample())
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    (policy,) = [found["content"] for _, found in Page(text).elements if "http-equiv" in found]
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression", style)


@SAMPLES
def test_the_page_has_landmarks_one_title_and_links_that_lead_somewhere(sample: Sample) -> None:
    page = Page(html_of(sample()))
    tags, ids = page.tags(), page.values("id")
    assert [tags.count(tag) for tag in ("header", "nav", "main", "footer", "h1")] == [1] * 5
    assert len(ids) == len(set(ids))
    assert {link.removeprefix("#") for link in page.values("href")} <= set(ids)
    assert set(page.values("aria-labelledby")) <= set(ids)
    assert all(link.startswith("#") for link in page.values("href"))


@SAMPLES
def test_what_scrolls_can_be_reached_by_the_keyboard_and_has_a_name(sample: Sample) -> None:
    for tag, attributes in Page(html_of(sample())).elements:
        if tag == "pre" and attributes.get("class") != "commands":
            assert (attributes["tabindex"], attributes["role"]) == ("0", "region")
            assert attributes["aria-label"].strip()


def order(text: str, *marks: str) -> list[int]:
    return [text.index(mark) for mark in marks]


def test_verdict_and_proof_come_first_then_the_story() -> None:
    page = html_of(samples.proven())
    found = order(
        page, "Done, and proven", 'id="proof"', "becket verify run_", 'id="story"', 'id="change"', 'id="gates"'
    )
    assert found == sorted(found)
    assert 'id="people"' not in page


def test_what_is_settled_is_headed_by_how_and_no_more_by_whose_it_was() -> None:
    (handoff,) = samples.asking().handoffs
    for by, said in (("ann", "The repair was accepted by ann"), ("", "Settled")):
        over = handoff.model_copy(update={"settled_at": samples.BEGAN, "accepted_by": by})
        assert f"<h1>{said}</h1>" in html_of(samples.asking().model_copy(update={"handoffs": (over,)}))


def test_what_a_person_has_to_decide_comes_before_everything_else() -> None:
    page = html_of(samples.asking())
    found = order(page, "<h1>Handed to team-orders", "May tests/test_orders.py", "becket approve apr_", 'id="check"')
    assert found == sorted(found)
    assert "becket deny apr_1m7hddegfsyrkje9" in page
    assert "becket handoffs take hnd_1m7hddegfsyrkje8" in page
    decided = samples.asking().approvals[0].model_copy(update={"state": "approved", "decided_by": "ann"})
    after = html_of(samples.asking().model_copy(update={"approvals": (decided,)}))
    assert "becket approve" not in after
    assert "by ann" in after


def test_a_question_is_shown_in_full_and_with_its_lines() -> None:
    question = "line\n" * 400
    asked = samples.asking().approvals[0].model_copy(update={"question": question})
    assert question in html_of(samples.asking().model_copy(update={"approvals": (asked,)}))


@pytest.mark.parametrize("form", [html_of, markdown_of], ids=["html", "markdown"])
def test_the_class_its_lines_the_hold_out_and_the_trust_are_told(form: Callable[[Report], str]) -> None:
    text = unescape(form(samples.proposed()))
    for said in (
        "powerful: adds the power to read the environment: gcd.py:9", "ordinary: adds a new function: gcd.py:20",
        "and 11 more lines", "it can look around or reach out, or cannot be read: a person decides",
        "check_1.py", "it uses a test framework",
        "guard.promote is powerful: the tests alone decide; nobody looks at what a change can do",
    ):  # fmt: skip
        assert said in text, said


def test_a_run_that_has_not_ended_says_so() -> None:
    page = Page(html_of(samples.running())).text
    assert "It has not ended: this is how it stood at 2023-11-14 23:53:20 UTC." in page
    assert "at work" in page
    assert "It has not ended" not in html_of(samples.proven())


def test_a_long_diff_is_folded_and_what_is_left_out_is_said() -> None:
    text = html_of(samples.proven())
    assert "<details open><summary><code>src/orders/totals.py</code>" in text
    assert "<details><summary><code>src/orders/long.py</code>" in text
    shown = Page(text).text
    assert "1 more file without their lines" in shown
    assert "lines are left out" in shown


def test_money_and_tokens_are_summed_and_what_has_no_price_is_not_free() -> None:
    page = Page(html_of(samples.proven())).text
    assert "$1.6294without 1 call" in page
    assert "3 calls4 min 40 s, 580,020 tokens" in page
    assert "money?no price is known" in Page(html_of(samples.running())).text


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


PAIRS = [
    *((ink, back) for ink in ("ink", "soft", "link", "green", "red", "amber", "hunk") for back in ("paper", "card")),
    ("soft", "grey-bg"), ("green", "green-bg"), ("red", "red-bg"), ("amber", "amber-bg"), ("ink", "amber-bg"),
    ("ink", "red-bg"),
]  # fmt: skip


def test_all_colours_of_text_have_contrast_enough_in_light_dark_and_print() -> None:
    style = (files("becket.app.record.report") / "page.css").read_text("utf-8")
    palettes = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", block))
        for block in re.findall(r":root {(.*?)}", style, re.DOTALL)
    ]
    assert len(palettes) == 3
    weak = [
        (index, ink, back, round(contrast(palette[ink], palette[back]), 2))
        for index, palette in enumerate(palettes)
        for ink, back in PAIRS
        if contrast(palette[ink], palette[back]) < 4.5
    ]
    assert weak == []


def without_proof(report: Report) -> Report:
    return report.model_copy(update={"proofs": (), "gates": ()})


def not_proven(report: Report) -> Report:
    return report.model_copy(update={"proofs": (report.proofs[0].model_copy(update={"says": "not_proven"}),)})


def with_a_red_gate(report: Report) -> Report:
    red = report.gates[-1].model_copy(update={"color": "red"})
    return report.model_copy(update={"proofs": (), "gates": (*report.gates, red)})


def with_lost_evidence(report: Report) -> Report:
    return report.model_copy(update={"lost": ("a receipt is gone",)})


@pytest.mark.parametrize("less", [without_proof, not_proven, with_a_red_gate, with_lost_evidence])
def test_only_what_is_proven_is_called_so_and_is_green(less: Callable[[Report], Report]) -> None:
    proven = html_of(samples.proven())
    assert "<h1>Done, and proven</h1>" in proven
    assert '<header class="good">' in proven
    page = html_of(less(samples.proven()))
    assert "<h1>Completed</h1>" in page
    assert '<header class="good">' not in page


def test_a_run_that_found_all_gates_green_is_proven_by_them() -> None:
    green = tuple(gate.model_copy(update={"color": "green"}) for gate in samples.proven().gates)
    assert "Done, and proven" in html_of(samples.proven().model_copy(update={"proofs": (), "gates": green}))


def test_of_a_change_that_is_not_kept_whole_no_sum_is_claimed() -> None:
    part = samples.proven().changes[0].model_copy(update={"kept_whole": False})
    page = Page(html_of(samples.proven().model_copy(update={"changes": (part,)}))).text
    assert "at least" in page
    assert "too much to be kept" in page
    assert "has all of it" not in page


@SAMPLES
def test_a_report_without_secrets_is_shown_as_it_is(sample: Sample) -> None:
    report = sample()
    assert without_secrets(report, Redactor({"TOKEN": SECRET}).text) == report


SECRET = "decoyEnvFileValue98765"


@pytest.mark.parametrize("unseen", ["", "\u200b", "\x1b[1m", "\u2060", "\x00"])
def test_a_secret_is_not_put_together_where_a_report_is_shown(unseen: str) -> None:
    """L25: what a page leaves out may not join what it shows."""
    split = unseen.join((SECRET[:8], SECRET[8:]))
    change = samples.change(samples.patch(("a.py", 1)) + f"+    key = '{split}'\n")
    report = samples.ALL[0]().model_copy(update={"changes": (change,)})
    shown = without_secrets(report, Redactor({"TOKEN": SECRET}).text)
    for text in (html_of(shown), markdown_of(shown), shown.model_dump_json()):
        assert SECRET not in text
        assert SECRET[8:] not in text
        assert "redacted:TOKEN" in text
