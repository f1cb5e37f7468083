"""A report that a `run:` action parses is read as gates read theirs: what is torn, hostile or lies is no report."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.kernel.contract.errors import ActionFailed
from becket.kernel.engine.commands import _junit

GOOD = """<?xml version="1.0"?>
<testsuites><testsuite name="s" failures="1">
  <testcase classname="a" name="one"/>
  <testcase classname="a" name="two"><failure message="no"/></testcase>
  <testcase classname="b" name="three"><skipped/></testcase>
</testsuite></testsuites>"""


def read(folder: Path, text: str) -> object:
    (folder / "r.xml").write_text(text)
    return _junit(folder / "r.xml")


def test_the_tests_of_a_report_are_counted(tmp_path: Path) -> None:
    assert read(tmp_path, GOOD) == {"tests": 3, "failed": 1, "skipped": 1, "failing": ["a::two"]}


@pytest.mark.parametrize(
    ("text", "kind", "why"),
    [
        (GOOD[:-30], "bad_report", "r.xml"),
        ("<testsuite", "bad_report", "r.xml"),
        ("", "bad_report", "r.xml"),
        ("<html><testcase/></html>", "bad_report", "no testsuite"),
        (GOOD.replace('"1.0"?>', '"1.0"?><!DOCTYPE x [<!ENTITY a "b">]>'), "bad_report", "document type"),
        (GOOD.replace('failures="1"', 'failures="2"'), "bad_report", "counts 2 failures, but its cases show 1"),
        (f"<testsuite>{'<a>' * 300}{'</a>' * 300}</testsuite>", "bad_report", "deeper"),
        ("<testsuite/>", "no_tests", "no executed test"),
        ("<testsuite><testcase><skipped/></testcase></testsuite>", "no_tests", "no executed test"),
    ],
)
def test_a_report_that_cannot_be_believed_is_a_failure(tmp_path: Path, text: str, kind: str, why: str) -> None:
    with pytest.raises(ActionFailed, match=why) as failed:
        read(tmp_path, text)
    assert failed.value.kind == kind


def test_no_report_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(ActionFailed) as failed:
        _junit(tmp_path / "none.xml")
    assert failed.value.kind == "bad_report"
