"""The test side is found: for each ecosystem, at usual and unusual places, with a reason for each file."""

from __future__ import annotations

import pytest
from found_trees import PROGRAMS, TREES, Found

from becket.parts.gates.reports.formats import PLAIN_ID
from becket.parts.guard.reading.failing import homes_of, names_tests, places_of
from becket.parts.guard.reading.found.find import find_test_side
from becket.parts.guard.reading.side import SideReason, TestSide


def side_of(tree: Found) -> TestSide:
    contents = {path: text.encode() for path, text in tree.files.items()}
    return find_test_side(tree.files, tree.globs, contents.get, tree.ran, tree.commands)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_each_file_of_the_tests_is_found_with_its_reason(tree: Found) -> None:
    side = side_of(tree)
    assert {path: reason.value for path, reason in side.found.items()} == dict(tree.tests)
    assert all(side.holds(path) and side.belongs(path) for path in tree.tests)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_the_product_stays_the_product(tree: Found) -> None:
    side = side_of(tree)
    assert [path for path in tree.product if side.belongs(path)] == []


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
def test_a_new_file_that_would_sit_with_tests_counts_as_one(tree: Found) -> None:
    side = side_of(tree)
    assert [path for path in tree.new if not side.belongs(path)] == []
    assert [path for path in tree.not_new if side.holds(path)] == []


def test_every_file_is_either_expected_or_product() -> None:
    """The tables above leave no file out by mistake."""
    for tree in TREES.values():
        assert not set(tree.tests) & set(tree.product)
        assert set(tree.product) <= set(tree.files)


def test_the_order_of_paths_does_not_matter() -> None:
    contents = {path: text.encode() for path, text in PROGRAMS.files.items()}
    backwards = find_test_side(list(PROGRAMS.files)[::-1], PROGRAMS.globs, contents.get)
    assert backwards.found == side_of(PROGRAMS).found


def test_without_contents_the_paths_still_tell() -> None:
    side = find_test_side(["tests/test_a.py", "tests/data/a.json", "src/a.py"], ("tests/test_*.py",), lambda path: None)
    assert side.reason("tests/test_a.py") is SideReason.declared
    assert side.reason("tests/data/a.json") is SideReason.sits_with
    assert side.reason("src/a.py") is None


PATHS = frozenset(
    {
        "crates/calc/src/lib.rs",
        "crates/calc/src/shape.rs",
        "crates/calc/src/deep/mod.rs",
        "crates/calc/tests/api.rs",
        "junit/GCD_TEST.java",
        "src/Gcd.java",
        "checks/CalcTest.php",
        "tool/suite.bats",
        "calc_test.go",
        "verify.mjs",
        "lib/a.mjs",
        "test/b.mjs",
    }
)
TEXTS = {
    "verify.mjs": b"check('adds two numbers')",
    "lib/a.mjs": b"'adds'",
    "test/b.mjs": b"describe('the calculator', () => it('adds', ...))",
}


@pytest.mark.parametrize(
    ("test", "path"),
    [
        ("calc:src/lib.rs::shape::tests::adds", "crates/calc/src/shape.rs"),
        ("calc:src/lib.rs::deep::tests::adds", "crates/calc/src/deep/mod.rs"),
        ("calc:src/lib.rs::tests::adds", "crates/calc/src/lib.rs"),
        ("api:tests/api.rs::adds", "crates/calc/tests/api.rs"),
        ("calc:doc::src/shape.rs - shape::Circle", "crates/calc/src/shape.rs"),
        ("junit.GCD_TEST::test_0", "junit/GCD_TEST.java"),
        ("CalcTest::adds", "checks/CalcTest.php"),
        ("suite.bats::says one", "tool/suite.bats"),
        ("calculator > adds two numbers", "verify.mjs"),
        ("unit: calculator > adds", "test/b.mjs"),
        ("the calculator adds", "test/b.mjs"),
        ("adds::the calculator adds", "test/b.mjs"),
        ("the calculator adds up", None),
        ("the adds", None),
        ("example.org/m::TestAdd", "calc_test.go"),
        ("example.org/m", "calc_test.go"),
        ("nobody > knows this one", None),
        ("the step unit", None),
    ],
)
def test_ids_lead_to_files(test: str, path: str | None) -> None:
    found = [place for place, _ in places_of([test], PATHS, TEXTS.get)]
    assert found == ([path] if path else [])


def test_what_stands_for_a_command_or_a_compilation_names_no_test() -> None:
    assert not names_tests(["unit: build", f"unit: {PLAIN_ID}"])
    assert names_tests(["unit: build", "nobody > knows"])


def test_a_report_that_gives_a_tests_file_ties_it() -> None:
    homes = [("suite > adds", "verify.mjs"), ("suite > other", "lib/a.mjs"), ("suite > adds too", "gone.mjs")]
    assert homes_of(["unit: suite > adds", "suite > adds too"], homes, PATHS) == (("verify.mjs", "adds"),)


def test_a_test_of_an_unnamed_binary_is_found_by_its_function() -> None:
    """Cargo tells of its binaries on another stream; the ids then name none."""
    texts = {"src/lib.rs": b"pub fn add() {}\n", "tests/calc.rs": b"#[test]\nfn adds() {}\n"}
    assert places_of(["unit: binary 2::adds"], texts, texts.get) == (("tests/calc.rs", "adds"),)
    assert places_of(["unit: binary 2::other"], texts, texts.get) == ()
