"""JUnit XML of real tools, and XML that means harm."""

from __future__ import annotations

import time

import pytest
from report_stage import by_id, outcomes, read, stored

from becket.parts.gates.ports.report import CaseOutcome, ProblemCode, TestReport
from becket.parts.gates.reports.formats import parse


def junit(text: str | bytes, path: str = "report.xml") -> TestReport:
    raw = text.encode() if isinstance(text, str) else text
    return parse(f"junit:{path}", b"", lambda name: raw if name == path else None)


@pytest.mark.parametrize("name", ["pytest", "pytest-xunit1"])
def test_pytest_cases_get_the_ids_that_pytest_takes(name: str) -> None:
    found = outcomes(read(f"junit/{name}.xml"))
    assert found["tests/test_calc.py::TestShelf::test_put"] is CaseOutcome.failed
    assert found[r"tests/test_calc.py::test_text[\u65e5\u672c\u8a9e]"] is CaseOutcome.failed
    assert found["tests/test_calc.py::test_text[x::y]"] is CaseOutcome.passed
    assert found["tests/test_calc.py::test_setup_error"] is CaseOutcome.error
    assert found["tests/test_calc.py::test_teardown_error"] is CaseOutcome.error
    assert found["tests/test_calc.py::test_xfail"] is CaseOutcome.xfailed
    assert found["tests/test_calc.py::test_skipped"] is CaseOutcome.skipped
    assert len(found) == 21


def test_xml_and_terminal_agree_on_every_id() -> None:
    """The same tests keep their ids when a step changes how it reports."""
    assert set(outcomes(read("junit/pytest.xml"))) == set(outcomes(read("pytest/v.txt")))


def test_a_report_in_a_subfolder_finds_its_files_there() -> None:
    tree = {"sub/report.xml": stored("junit/pytest-green.xml"), "sub/tests/deep/test_more.py": b""}
    report = parse("junit:sub/report.xml", b"", tree.get)
    case = by_id(report)["tests/deep/test_more.py::Case::test_sub"]
    assert case.file == "sub/tests/deep/test_more.py"


def test_collection_errors_are_files() -> None:
    report = read("junit/pytest-collect.xml")
    assert outcomes(report, groups=True) == {
        "tests2/test_import.py": CaseOutcome.error,
        "tests2/test_syntax.py": CaseOutcome.error,
    }


def test_surefire_reads_a_folder_with_its_reruns() -> None:
    """L14: a test that passed only on a rerun passed, and says so."""
    cases = by_id(read("junit/surefire"))
    assert cases["calc.CalcTest::adds"].place == "src/test/java/calc/CalcTest.java:13"
    assert cases["calc.CalcTest::adds"].message == "the sum ==> expected: <3> but was: <-1>"
    assert cases["calc.CalcTest::flaky"].outcome is CaseOutcome.passed
    assert cases["calc.CalcTest::flaky"].message.startswith("passed only when it was run again")
    assert cases["calc.CalcTest::throwsIt"].outcome is CaseOutcome.error
    assert cases["calc.CalcTest::texts(String)[3]"].outcome is CaseOutcome.failed
    assert cases["calc.SetupTest"].outcome is CaseOutcome.error


def test_gradle_names_its_tests_with_parentheses() -> None:
    cases = by_id(read("junit/gradle.xml"))
    assert cases["calc.CalcTest::adds()"].place == "src/test/java/calc/CalcTest.java:13"
    assert cases["calc.CalcTest::[2] 日本語"].outcome is CaseOutcome.passed
    assert cases["calc.CalcTest::skipped()"].outcome is CaseOutcome.skipped


def test_go_parents_of_subtests_are_groups() -> None:
    cases = by_id(read("junit/gotestsum.xml"))
    assert cases["example.com/calc/calc::TestTable"].group
    assert cases["example.com/calc/calc::TestTable/日本語"].place == "calc/calc_test.go:20"
    assert cases["example.com/calc/calc::TestAdd"].message == "calc_test.go:11: Add(1, 2) = -1, want 3"
    assert cases["example.com/calc/panics::TestPanics"].message.startswith("panic: assignment to entry in nil map")


def test_failures_that_a_suite_counts_and_no_case_shows_are_a_problem() -> None:
    """L11: gotestsum counts a package that does not build and lists nothing for it."""
    problems = read("junit/gotestsum.xml").problems
    assert [problem.code for problem in problems] == [ProblemCode.mismatch]
    assert "counts 6 failures, but its cases show 5" in problems[0].text


def test_subtests_that_pytest_counts_within_one_case_are_no_problem() -> None:
    """But a failure that no case shows is one, beside them too."""
    text = """<testsuites><testsuite name="pytest" failures="{count}" tests="5">
    <testcase classname="test_s.T" name="test_a"><failure message="assert 0 == 1">at</failure>
    <failure message="assert 2 == 1">at</failure></testcase><testcase classname="test_s.T" name="test_b"/>
    </testsuite></testsuites>"""
    shown = parse("junit:r.xml", b"", lambda name: text.format(count=2).encode())
    assert [case.id for case in shown.failing if not case.group] == ["test_s/T.py::test_a"]
    assert shown.problems == ()
    hidden = parse("junit:r.xml", b"", lambda name: text.format(count=3).encode())
    assert [problem.code for problem in hidden.problems] == [ProblemCode.mismatch]


def test_jest_and_mocha() -> None:
    jest = by_id(read("junit/jest.xml"))
    assert jest["adds"].place == "t/calc.test.js:3"
    assert jest["shelf takes 日本語"].outcome is CaseOutcome.failed
    assert jest["shelf adds"].outcome is jest["shelf adds #2"].outcome is CaseOutcome.passed
    assert any(name.startswith("Test suite failed to run") for name in by_id(read("junit/jest-errors.xml")))
    mocha = by_id(read("junit/mocha.xml"))
    assert mocha["shelf::puts"].place == "m.test.js:3"
    assert mocha["shelf::puts"].message.startswith("Expected values to be strictly equal:\n1 !== 2")


def test_node_suites_are_part_of_the_id() -> None:
    cases = by_id(read("junit/node.xml"))
    assert cases["shelf > puts"].place == "test/calc.test.js:29"
    assert cases["texts > 日本語"].place == "test/calc.test.js:15"
    assert cases["todo fails"].outcome is CaseOutcome.xfailed
    assert cases["todo passes"].outcome is CaseOutcome.xpassed
    assert cases["test/syntax.test.js"].outcome is CaseOutcome.failed


def test_a_path_of_this_machine_is_no_part_of_an_id() -> None:
    """L17: the same commit is proven at different places."""
    here = read("junit/node.xml")
    there = read("junit/node.xml", stored("junit/node.xml").replace(b"/repo/", b"/somewhere/else/"))
    assert [case.id for case in here.cases] == [case.id for case in there.cases]
    assert [case.place for case in here.cases] == [case.place for case in there.cases]


def test_doubles_are_told_apart_by_their_suite_whatever_the_order_of_suites() -> None:
    one = '<testsuite name="a"><testcase name="adds" classname="C"/></testsuite>'
    two = '<testsuite name="b"><testcase name="adds" classname="C"><failure/></testcase></testsuite>'
    forwards = outcomes(junit(f"<testsuites>{one}{two}</testsuites>"))
    backwards = outcomes(junit(f"<testsuites>{two}{one}</testsuites>"))
    assert forwards == backwards == {"a > C::adds": CaseOutcome.passed, "b > C::adds": CaseOutcome.failed}


def test_doubles_within_a_suite_are_numbered_and_never_meet_a_real_name() -> None:
    cases = '<testcase name="t"/><testcase name="t"/><testcase name="t #2"/><testcase name="t"/>'
    assert list(outcomes(junit(f'<testsuite name="">{cases}</testsuite>'))) == ["t", "t #3", "t #2", "t #4"]


def test_a_report_in_the_output_of_the_step() -> None:
    output = b"building...\n" + stored("junit/node-green.xml") + b"\ndone\n"
    assert set(outcomes(parse("junit", output, lambda _: None))) == {"one", "two > sub"}


def test_what_was_read_before_a_fault_is_kept() -> None:
    whole = stored("junit/pytest.xml")
    report = read("junit/pytest.xml", whole[: len(whole) // 2])
    assert by_id(report)["tests/test_calc.py::test_add"].outcome is CaseOutcome.failed
    assert [problem.code for problem in report.problems] == [ProblemCode.malformed]


@pytest.mark.parametrize(
    "raw", [b"", b"   ", b"not xml", b"<html></html>", b"<testsuite>", b"\x00\xff\xfe", b"\xff\xfe<\x00"]
)
def test_what_is_no_report_is_a_problem(raw: bytes) -> None:
    assert [problem.code for problem in junit(raw).problems] == [ProblemCode.malformed]


def test_entities_do_not_expand() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9)
    )
    begin = time.process_time()
    report = junit(f'{bomb}]><testsuite><testcase name="&j;"/></testsuite>')
    assert time.process_time() - begin < 5
    assert report.cases == ()
    assert "document type" in report.problems[0].text


def test_an_outside_entity_is_refused() -> None:
    report = junit(
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&a;"/></testsuite>'
    )
    assert report.cases == ()
    assert report.problems


def test_deep_nesting_is_refused() -> None:
    report = junit("<testsuite>" * 5000 + "</testsuite>" * 5000)
    assert "nest deeper" in report.problems[0].text


def test_control_characters_that_tests_print_do_not_spoil_a_report() -> None:
    raw = '<testsuite><testcase name="a"><system-out>\x1b[31mred&#27;[0m&#x0;</system-out></testcase></testsuite>'
    report = junit(raw)
    assert report.problems == ()
    assert outcomes(report) == {"a": CaseOutcome.passed}


@pytest.mark.parametrize("time_text", ["nan", "inf", "-1", "1e400", "x", "", "9" * 400])
def test_a_strange_duration_is_none(time_text: str) -> None:
    assert by_id(junit(f'<testsuite><testcase name="a" time="{time_text}"/></testsuite>'))["a"].seconds is None


def test_a_test_that_fails_and_cannot_be_torn_down_is_one_test() -> None:
    raw = (
        '<testsuite name="pytest"><testcase classname="m" name="t"><failure message="assert 0">x</failure></testcase>'
        '<testcase classname="m" name="t"><error message="failed on teardown with &quot;y&quot;">y</error></testcase>'
        "</testsuite>"
    )
    assert outcomes(junit(raw)) == {"m::t": CaseOutcome.error}
