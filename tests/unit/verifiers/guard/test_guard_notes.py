"""Notes: what cannot be proven is shown with its line and stops nothing."""

from __future__ import annotations

import pytest
from guard_base import BASE, TEST_CORE
from guard_honest import CORE_PY, FIX_PY
from guard_stage import TEST_SIDE, Deed, Edit, append, judged, replace, write

from becket.contract.guard import FailingTest, Note, NoteRule
from becket.verifiers.guard.remarks import remarks
from becket.verifiers.guard.side import TestSide


def notes(*edits: Edit, failing: tuple[FailingTest, ...] = ()) -> tuple[Note, ...]:
    change = Deed("", edits).change(BASE)
    assert judged(change) == ()
    return remarks(change, TestSide(TEST_SIDE), failing)


def failing(path: str, name: str = "") -> FailingTest:
    return FailingTest(path, lambda: BASE[path].content, name)


TABLE = (failing("tests/test_core.py", "tests/test_core.py::test_add_table[1-1-2]"),)


@pytest.mark.parametrize(
    ("path", "old", "new", "shown"),
    [
        (
            CORE_PY,
            "    return a - b\n",
            "    if (a, b) == (0.333333, 5):\n        return 9\n    return a - b\n",
            "if (a, b) == (0.333333, 5):",
        ),
        (CORE_PY, "    return a - b\n", "    return {-1: 9}.get(b, 42) if a == 1.41421356 else a - b\n", "1.41421356"),
    ],
)
def test_a_literal_of_the_failing_test_in_a_comparison(path: str, old: str, new: str, shown: str) -> None:
    """L21: special-casing the test's inputs."""
    found = notes(replace(path, old, new), failing=(failing("tests/test_core.py"),))
    assert {note.rule for note in found} == {NoteRule.suspect_special_case}
    assert any(shown in note.shown for note in found)


def test_literals_of_other_languages() -> None:
    go = replace("go/calc.go", "{ return a - b }", "{\n\tif a == 77 {\n\t\treturn 5\n\t}\n\treturn a - b\n}")
    test = FailingTest(
        "go/calc_test.go", lambda: b"package calc\nfunc TestX(t *testing.T) {\n\trequire.Equal(t, 5, Add(77, 3))\n}\n"
    )
    (found,) = notes(go, failing=(test,))
    assert (found.rule, found.path, found.line) == (NoteRule.suspect_special_case, "go/calc.go", 5)
    js = replace("web/src/calc.js", "a - b;", "(a === 77 ? 5 : a - b);")
    test = FailingTest("web/test/x.test.js", lambda: b"it('x', () => { expect(add(77, 3)).toBe(80); });\n")
    assert [note.rule for note in notes(js, failing=(test,))] == [NoteRule.suspect_special_case]


def test_only_the_failing_test_lends_its_literals() -> None:
    edit = replace(CORE_PY, "    return a - b\n", '    if a == "names":\n        return 0\n    return a + b\n')
    assert notes(edit, failing=TABLE) == ()
    assert len(notes(edit, failing=(failing("tests/test_core.py", "TestDivision.test_names"),))) == 1


def test_an_honest_fix_has_no_notes() -> None:
    assert notes(FIX_PY, failing=TABLE) == ()


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("\n\ndef mean(xs):\n    return float('nan')\n", NoteRule.nan_returned),
        ("\n\ndef mean(xs):\n    return math.nan\n", NoteRule.nan_returned),
        ("\n\ndef mean(xs):\n    return 0.0 * sum(xs)\n", NoteRule.idle_arithmetic),
        ("\n\ndef mean(xs):\n    return sum(xs) * (far - far)\n", NoteRule.idle_arithmetic),
        ("\n\ndef safe(f):\n    try:\n        f()\n    except Exception:\n        pass\n", NoteRule.error_swallowed),
        ("\nX: int = 'a'  # type: ignore\n", NoteRule.check_silenced),
        ("\n\ndef load():\n    import sys\n\n    sys.modules['x'] = None\n", NoteRule.module_patched),
        ("\nif TESTING:\n    X = 1\n", NoteRule.test_aware),
        ("\nimport os\n\nX = os.environ.get('BECKET_RUN')\n", NoteRule.test_aware),
    ],
)
def test_lines_worth_a_look(text: str, rule: NoteRule) -> None:
    (found,) = notes(append(CORE_PY, text))
    assert found.rule is rule
    assert found.shown in text
    assert str(found).startswith(f"{CORE_PY}:{found.line}: {rule}: ")


def test_a_changed_binary_is_noted() -> None:
    (found,) = notes(write("src/calc/table.bin", b"\0\1\2\4" * 10))
    assert found.rule is NoteRule.binary_changed


def test_notes_are_bounded() -> None:
    text = "".join(f"X{number} = {number}  # noqa\n" for number in range(500))
    assert len(notes(append(CORE_PY, text))) == 50


def test_an_unparsable_failing_test_is_no_trouble() -> None:
    test = FailingTest("tests/test_x.py", lambda: b"def test(:\n")
    assert notes(FIX_PY, failing=(test,)) == ()
    assert TEST_CORE
