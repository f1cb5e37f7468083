"""From `report:` to a report: plain steps, files, folders, globs, and what is not there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from report_stage import DATA, by_id, outcomes, stored

from becket.kernel.contract.removal import remove
from becket.kernel.engine.redact import Redactor
from becket.parts.gates.ports.report import CaseOutcome, ProblemCode
from becket.parts.gates.reports.folder import ReportFolder
from becket.parts.gates.reports.formats import parse

GREEN = stored("junit/node-green.xml")


def nothing(path: str) -> None:
    return None


@pytest.mark.parametrize(
    ("exit_code", "outcome"),
    [
        (0, CaseOutcome.passed),
        (1, CaseOutcome.failed),
        (-9, CaseOutcome.error),
        (137, CaseOutcome.error),
        (None, CaseOutcome.error),
    ],
)
def test_a_plain_step_is_one_case(exit_code: int | None, outcome: CaseOutcome) -> None:
    assert outcomes(parse("plain", b"", nothing, exit_code=exit_code)) == {"step": outcome}


@pytest.mark.parametrize("kind", ["junit", "pytest", "go", "cargo", "tap"])
def test_a_report_file_that_was_not_written_is_missing(kind: str) -> None:
    """L11: a missing report is a failure."""
    report = parse(f"{kind}:out/report", b"1 passed in 0.01s\n", nothing)
    assert [problem.code for problem in report.problems] == [ProblemCode.missing]
    assert "out/report" in report.problems[0].text


SECRET = "Zq7-step-value"
XML = f"""<testsuite name="a"><testcase classname="t.{SECRET}" name="test[{SECRET}]" file="t/{SECRET}.py">
<failure message="no {SECRET}"/></testcase><testcase classname="t" name="one"/></testsuite>"""


@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("tap", f"TAP version 13\n1..2\nok 1 - one\nnot ok 2 - {SECRET}\n"),
        (
            "pytest",
            f"t.py F\n=== short test summary info ===\nFAILED t.py::test[{SECRET}] - no {SECRET}\n1 failed in 0.1s\n",
        ),
        ("junit", XML),
        ("go", f'{{"Action":"fail","Package":"a/b","Test":"Test/{SECRET}"}}\n'),
        ("cargo", f"running 1 test\ntest {SECRET} ... FAILED\n\ntest result: FAILED. 0 passed; 1 failed; 0 ignored\n"),
    ],
)
def test_a_secret_in_the_name_of_a_test_is_taken_out_wherever_it_stands(kind: str, output: str) -> None:
    """L25: names are compared, kept and shown; the same test has the same name in every report."""
    redact = Redactor({"STEP_TOKEN": SECRET}).text
    report = parse(kind, output.encode(), nothing, redact=redact)
    assert SECRET in parse(kind, output.encode(), nothing).model_dump_json(), "it is there to be taken out"
    assert SECRET not in report.model_dump_json()
    assert any("[redacted:STEP_TOKEN]" in case.id for case in report.failing)
    assert parse(kind, output.encode(), nothing, redact=redact) == report


def test_two_names_that_differ_in_their_secret_are_still_two() -> None:
    names = ("Zq7-step-value", "Zq8-step-value")
    redact = Redactor({f"TOKEN_{name[2]}": name for name in names}).text
    output = "".join(f"not ok {number} - {name}\n" for number, name in enumerate([*names, names[0]], 1))
    report = parse("tap", b"1..3\n" + output.encode(), nothing, redact=redact)
    assert len({case.id for case in report.failing}) == 3


def test_an_unknown_format_is_a_problem() -> None:
    assert [problem.code for problem in parse("xunit", b"", nothing).problems] == [ProblemCode.missing]


def test_a_text_report_may_stand_in_a_file() -> None:
    assert parse("pytest:log.txt", b"noise", {"log.txt": b".\n1 passed in 0.01s\n"}.get).tests_run == 1


@pytest.mark.parametrize("path", ["build", "build/", "build/*/TEST-*.xml", "build/**/*.xml"])
def test_a_folder_or_a_glob_joins_its_files(tmp_path: Path, path: str) -> None:
    (tmp_path / "build/a").mkdir(parents=True)
    (tmp_path / "build/a/TEST-one.xml").write_bytes(GREEN)
    (tmp_path / "build/a/TEST-two.xml").write_bytes(stored("junit/gradle.xml"))
    folder = ReportFolder(tmp_path)
    report = parse(f"junit:{path}", b"", folder.read, find_files=folder.find)
    assert {"one", "calc.CalcTest::adds()"} <= set(outcomes(report))
    assert report.problems == ()


def test_other_xml_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_bytes(GREEN)
    (tmp_path / "style.xml").write_bytes(b"<checkstyle/>")
    folder = ReportFolder(tmp_path / ".")
    report = parse("junit:*.xml", b"", folder.read, find_files=folder.find)
    assert report.problems == ()
    assert report.tests_run == 2


def test_a_broken_report_among_others_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_bytes(GREEN)
    (tmp_path / "two.xml").write_bytes(GREEN[:-30])
    folder = ReportFolder(tmp_path)
    report = parse("junit:*.xml", b"", folder.read, find_files=folder.find)
    assert [problem.code for problem in report.problems] == [ProblemCode.malformed]


def test_an_empty_folder_is_a_missing_report(tmp_path: Path) -> None:
    folder = ReportFolder(tmp_path)
    report = parse("junit:build", b"", folder.read, find_files=folder.find)
    assert [problem.code for problem in report.problems] == [ProblemCode.missing]


def test_the_reader_stays_inside_its_folder(tmp_path: Path) -> None:
    inside = tmp_path / "tree"
    inside.mkdir()
    (tmp_path / "secret.xml").write_bytes(GREEN)
    (inside / "link.xml").symlink_to(tmp_path / "secret.xml")
    (inside / "loop.xml").symlink_to(inside / "loop.xml")
    os.mkfifo(inside / "pipe.xml")
    folder = ReportFolder(inside)
    for path in ("link.xml", "loop.xml", "pipe.xml", "../secret.xml", str(tmp_path / "secret.xml"), "", ".", "a\0b"):
        assert folder.read(path) is None, path
    assert folder.find("*.xml") == folder.find("../*.xml") == folder.find(f"{tmp_path}/*.xml") == ()


def test_files_are_found_as_globs_find_them(tmp_path: Path) -> None:
    for name in (
        "a/TEST-1.xml",
        "a/b/TEST-2.xml",
        "a/b/c/other.xml",
        "TEST-0.xml",
        "a/.hidden/TEST-3.xml",
        "a/x[1].xml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a/back").symlink_to(tmp_path / "a")
    patterns = (
        "**/TEST-*.xml", "a/*.xml", "a/**/TEST-?.xml", "*/b/*.xml", "a/b/TEST-2.xml", "**/**/*.xml", "**", "*", "a/**",
        "./a/*.xml", "a/*/TEST-2.xml", "nowhere/*.xml", "a/x[[]1].xml",
    )  # fmt: skip
    for pattern in patterns:
        expected = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.glob(pattern) if path.is_file())
        assert list(ReportFolder(tmp_path).find(pattern)) == expected, pattern


def test_folders_in_folders_without_an_end_are_searched_so_far(tmp_path: Path) -> None:
    """Whoever made the tree chooses how many."""
    (tmp_path / "TEST-0.xml").touch()
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=folder)
        inner = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    try:
        assert ReportFolder(tmp_path).find("**/TEST-*.xml") == ("TEST-0.xml",)
    finally:
        remove(tmp_path / "d")  # what tidies up after tests calls itself for each folder


def test_a_report_never_makes_us_look_outside_the_tree() -> None:
    asked: list[str] = []

    def ask(path: str) -> bytes | None:
        asked.append(path)
        return b'<testsuite><testcase name="a" file="../../etc/passwd"/></testsuite>' if path == "r.xml" else None

    parse("junit:r.xml", b"", ask)
    assert all(not path.startswith("/") and ".." not in path.split("/") for path in asked)


def test_a_long_id_stays_unique_and_bounded() -> None:
    names = ["x" * 5000 + end for end in ("a", "b")]
    raw = "<testsuite>" + "".join(f'<testcase name="{name}"/>' for name in names) + "</testsuite>"
    cases = by_id(parse("junit:r", b"", {"r": raw.encode()}.get))
    assert len(cases) == 2
    assert all(len(name) < 1100 for name in cases)


def test_the_stored_reports_hold_no_path_of_the_machine_that_made_them() -> None:
    """L17."""
    for path in DATA.rglob("*.*"):
        text = path.read_text()
        assert "/root/" not in text, path
        assert "/tmp/" not in text, path
