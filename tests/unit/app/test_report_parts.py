"""What parts tell of a run stands in every form of its report, and harms none of them."""

from __future__ import annotations

import io
from collections.abc import Iterator

import report_samples as samples
from rich.console import Console

from becket.app.record.report.collect import MOST_LINES, told_by_parts, without_secrets
from becket.app.record.report.html import html_of
from becket.app.record.report.markdown import markdown_of
from becket.app.record.report.model import PartFacts, Report
from becket.app.record.story import Story
from becket.cli.proof import proof_sections
from becket.kernel.contract.part import Part
from becket.kernel.engine.redact import Redactor

HERE = __name__


def tell(story: Story) -> Iterator[str]:
    yield "the water stands at 7"


def tell_for_ever(story: Story) -> Iterator[str]:
    while True:
        yield "and on"


def tell_nothing(story: Story) -> tuple[str, ...]:
    return ()


def fall(story: Story) -> Iterator[str]:
    yield "the water"
    raise LookupError("no gauge")


def found(**targets: str) -> tuple[PartFacts, ...]:
    parts = [Part(name=name, evidence=target and f"{HERE}:{target}") for name, target in targets.items()]
    return tuple(told_by_parts(None, parts))  # type: ignore[arg-type]  # none of them looks at it


def forms(report: Report) -> tuple[str, ...]:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(*proof_sections(report), sep="\n")
    return console.export_text(), markdown_of(report), html_of(report), report.model_dump_json()


def test_each_part_tells_its_lines_and_one_with_none_is_not_there() -> None:
    assert found(tide="tell", silent="tell_nothing", plain="") == (
        PartFacts(part="tide", lines=("the water stands at 7",)),
    )


def test_a_part_that_fails_says_so_and_loses_no_report() -> None:
    assert found(broken="fall", tide="tell")[0].lines == ("it cannot tell its evidence: no gauge",)
    assert found(gone="nothing_here")[0].lines[0].startswith("it cannot tell its evidence: ")


def test_a_part_cannot_talk_for_ever() -> None:
    assert len(found(tide="tell_for_ever")[0].lines) == MOST_LINES


def test_every_form_of_a_report_has_it_without_secrets_and_markup() -> None:
    told = PartFacts(part="tide", lines=("the water stands at 7", "<b>by\x1b[31m</b> redbuoy4711x"))
    report = samples.proven().model_copy(update={"parts": (told,)})
    report = without_secrets(report, Redactor({"buoy": "redbuoy4711x"}).text)
    for text in forms(report):
        assert "tide" in text
        assert "the water stands at 7" in text
        assert "redbuoy4711x" not in text
        assert "\x1b" not in text
    _, markdown, page, _ = forms(report)
    assert "<b>by" not in page
    assert "<b>by" not in markdown
