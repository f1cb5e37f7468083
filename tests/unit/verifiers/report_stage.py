"""The stored reports of real tools, and the tree they speak about."""

from __future__ import annotations

from pathlib import Path

from becket.parts.gates.ports.report import CaseOutcome, TestCase, TestReport
from becket.parts.gates.reports.folder import ReportFolder
from becket.parts.gates.reports.formats import parse

DATA = Path(__file__).parent / "data"

TREE = {
    "calc.py",
    "tests/test_calc.py",
    "tests/deep/test_more.py",
    "tests2/test_import.py",
    "tests2/test_syntax.py",
    "tests3/test_crash.py",
    "src/lib.rs",
    "tests/api.rs",
    "calc/calc_test.go",
    "panics/panics_test.go",
    "broken/broken.go",
    "timeout/t_test.go",
    "exits/e_test.go",
    "prints/p_test.go",
    "test/calc.test.js",
    "test/syntax.test.js",
    "test/exit.test.js",
    "test/green.test.js",
    "t/calc.test.js",
    "m.test.js",
    "taps/a.test.js",
    "src/test/java/calc/CalcTest.java",
}


def read_file(path: str) -> bytes | None:
    if path == "go.mod":
        return b"module example.com/calc\n\ngo 1.19\n"
    return b"" if path in TREE else ReportFolder(DATA).read(path)


def stored(name: str) -> bytes:
    return (DATA / name).read_bytes()


def read(name: str, content: bytes | None = None) -> TestReport:
    """The stored report, or other content in its place."""
    kind = name.partition("/")[0]
    if kind != "junit":
        return parse(kind, stored(name) if content is None else content, read_file)
    if content is None:
        return parse(f"junit:{name}", b"", read_file, find_files=ReportFolder(DATA).find)
    return parse("junit:report.xml", b"", lambda path: content if path == "report.xml" else read_file(path))


def by_id(report: TestReport) -> dict[str, TestCase]:
    return {case.id: case for case in report.cases}


def outcomes(report: TestReport, *, groups: bool = False) -> dict[str, CaseOutcome]:
    return {case.id: case.outcome for case in report.cases if case.group == groups}


def all_names() -> list[str]:
    """Every stored report, a folder of several files counted file by file."""
    return sorted(path.relative_to(DATA).as_posix() for path in DATA.rglob("*") if path.suffix in (".txt", ".xml"))
