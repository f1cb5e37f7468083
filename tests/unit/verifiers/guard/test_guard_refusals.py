"""What a refusal says: the rule, the path, the line, the way out, and whether a person may approve it."""

from __future__ import annotations

import pytest
from guard_base import BASE, TEST_CORE
from guard_honest import FIX_PY, GOT, JST, JT, PY, RS
from guard_stage import Deed, Edit, append, change_of, delete, judged, replace, tree, write

from becket.kernel.contract.guard import Change, GuardRule, Refusal
from becket.parts.guard.reading import words
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GuardConfig


def refusals(*edits: Edit) -> tuple[Refusal, ...]:
    return judged(Deed("", edits).change(BASE))


def line_of(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


def test_no_change_no_refusal() -> None:
    assert examine(Change((), 10), GuardConfig(), TestSide(())) == ()


def test_every_rule_has_a_way_out() -> None:
    assert set(words.FIXES) == set(GuardRule)


def test_rules_are_named_in_kebab_case() -> None:
    for name in GuardRule:
        assert str(name) == str(name).lower().replace("_", "-")


def test_a_refusal_reads_like_a_compilers_message() -> None:
    (found,) = refusals(replace(PY, "assert result == 3", "assert True"))
    line = line_of(TEST_CORE, "assert result == 3")
    assert str(found).startswith(f"tests/test_core.py:{line}: test-weakened: test_add: a check can no longer fail (")


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        (replace(PY, "def test_add():", "@pytest.mark.skip\ndef test_add():"), (PY, "def test_add():")),
        (replace(GOT, "require.Equal(t, 5,", "require.Equal(t, 6,"), (GOT, "require.Equal(t, 5,")),
        (replace(JST, "toBe(3)", "toBe(4)"), (JST, "toBe(3)")),
        (replace(RS, "assert_eq!(result, 3)", "assert_eq!(result, 4)"), (RS, "assert_eq!(result, 3)")),
        (replace(JT, "assertEquals(3, result)", "assertEquals(4, result)"), (JT, "assertEquals(3, result)")),
    ],
)
def test_the_line_is_where_the_change_is(edit: Edit, place: tuple[str, str]) -> None:
    (found,) = refusals(edit)
    path, part = place
    assert (found.path, found.line) == (path, line_of(BASE[path].content.decode(), part))


def test_a_deleted_test_is_shown_where_base_had_it() -> None:
    (found,) = refusals(
        replace(PY, "def test_cases():\n    for a, b, total in CASES:\n        assert add(a, b) == total\n", "")
    )
    assert found.rule is GuardRule.test_deleted
    assert found.line == line_of(TEST_CORE, "def test_cases")


def test_changes_of_tests_ask_and_others_do_not() -> None:
    """Only if all refusals ask may the run wait for an approval of the test change."""
    asking = refusals(
        FIX_PY, replace(PY, "assert result == 3", "assert result == 4"), append("tests/conftest.py", "x = 1\n")
    )
    assert [refusal.asks for refusal in asking] == [True, True]
    for edit in (append("becket.yaml", "#\n"), append("LICENSE", "x"), write(".gitattributes", "* text\n")):
        assert [refusal.asks for refusal in refusals(edit)] == [False]


def test_without_declared_globs_the_usual_names_are_tests() -> None:
    for path in (PY, GOT, JST, "web/src/clamp.test.ts", JT, "rust/tests/api.rs"):
        change = Deed("", (delete(path),)).change(BASE)
        found = examine(change, GuardConfig(), TestSide(()))
        assert {refusal.rule for refusal in found} == {GuardRule.test_deleted}, path


def test_a_secret_is_never_told() -> None:
    """L25."""
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    (found,) = refusals(append("README.md", f"\ntoken: {secret}\n"))
    assert found.rule is GuardRule.secret_added
    assert secret not in str(found)


def test_mass_deletion_counts_against_the_tree() -> None:
    """L1: 2,900 files became one."""
    before = tree({f"src/f{number}.py": f"x = {number}\n" for number in range(2900)})
    after = {"src/f0.py": before["src/f0.py"]}
    (found,) = examine(change_of(before, after), GuardConfig(), TestSide(()))
    assert found.rule is GuardRule.mass_deletion
    assert "2899 of 2900" in found.message


@pytest.mark.parametrize(("share", "refused"), [(0.5, False), (0.2, True), (0.0, True)])
def test_the_share_that_may_be_deleted_is_the_users(share: float, refused: bool) -> None:
    before = tree({f"f{number}.py": f"x = {number}\n" for number in range(20)})
    after = {path: entry for path, entry in before.items() if path > "f15"}
    found = examine(change_of(before, after), GuardConfig(max_deleted_share=share), TestSide(()))
    assert bool(found) is refused


def test_the_largest_file_is_the_users() -> None:
    change = change_of(tree({"a": "1"}), tree({"a": "1", "b.csv": "1" * 2000}))
    assert examine(change, GuardConfig(max_file=2000), TestSide(())) == ()
    (found,) = examine(change, GuardConfig(max_file=1999), TestSide(()))
    assert (found.rule, found.path) == (GuardRule.large_file, "b.csv")


def test_a_flood_of_refusals_is_cut_and_says_so() -> None:
    before = tree({f"tests/test_{number}.py": f"def test_it():\n    assert {number}\n" for number in range(100)})
    after = {path: tree({path: "def test_it():\n    pass\n"})[path] for path in before}
    found = examine(change_of(before, after), GuardConfig(), TestSide(("tests/**",)))
    assert len(found) == 41
    assert "60 more" in found[-1].message
    assert all(refusal.asks for refusal in found)
