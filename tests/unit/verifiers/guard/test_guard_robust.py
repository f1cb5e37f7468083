"""The guard never fails on what it is shown, and is fast on a large change."""

from __future__ import annotations

import time

import pytest
from guard_base import BASE
from guard_stage import EXECUTABLE, FILE, TEST_SIDE, Entry, change_of, judged, rules_in, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.guard import SUBMODULE, SYMLINK, GuardRule
from becket.parts.guard.reading.classes.classify import classify
from becket.parts.guard.reading.side import TestSide

PATHS = [
    *sorted(BASE),
    "x.tsx",
    "tests/a.kt",
    "a/b.pyi",
    "tests/x.toml",
    "tests/x.yaml",
    ".env",
    "Taskfile.yml",
    "a.gradle",
]
WORDS = [
    *[
        "def test_x():",
        "    assert x == 1",
        "class TestA:",
        "import a",
        "@pytest.mark.skip",
        "    pass",
        ">>> 1",
        "'''",
        '"""',
    ],
    *[
        "func TestA(t *testing.T) {",
        "}",
        "if x {",
        "t.Skip()",
        "it('a', () => {",
        "});",
        "expect(1).toBe(",
        "describe.only(",
    ],
    *[
        "#[test]",
        "fn a() {",
        "assert!(true);",
        "#[cfg(test)]",
        "mod t {",
        "/// ```",
        "@Test",
        "void a() {",
        "assertEquals(1,2);",
    ],
    *[
        "{",
        "}",
        "(",
        ")",
        "[",
        "<<<<<<< a",
        "=======",
        ">>>>>>> b",
        "test:",
        "\tpytest",
        "[tool.pytest]",
        '{"scripts":',
        "\0",
    ],
]
text = st.lists(st.sampled_from(WORDS), max_size=12).map(lambda lines: "\n".join(lines).encode())
content = st.one_of(st.binary(max_size=200), text, st.sampled_from([entry.content for entry in BASE.values()]))
entries = st.builds(Entry, content, st.sampled_from([FILE, EXECUTABLE, SYMLINK, SUBMODULE]))
names = st.one_of(st.sampled_from(PATHS), st.text(min_size=1, max_size=12).filter(lambda name: "\0" not in name))
trees = st.dictionaries(names, entries, max_size=6)


@settings(max_examples=150, deadline=None)
@given(before=trees, after=trees)
def test_any_change_is_judged_without_an_error(before: dict[str, Entry], after: dict[str, Entry]) -> None:
    change = change_of(before, after)
    for refusal in judged(change):
        assert str(refusal)
    for finding in classify(change, TestSide(TEST_SIDE)).findings:
        assert str(finding)


@settings(max_examples=100, deadline=None)
@given(
    path=st.sampled_from([path for path in PATHS if path.rpartition(".")[2] in {"py", "go", "js", "ts", "rs", "java"}]),
    lines=text,
)
def test_a_test_file_with_anything_added_is_judged(path: str, lines: bytes) -> None:
    before = tree({path: BASE[path].content}) if path in BASE else tree({path: b""})
    judged(change_of(before, {path: Entry(before[path].content + b"\n" + lines)}))


@pytest.mark.parametrize(
    ("path", "deep"),
    [
        ("tests/test_a.py", "x = " + "(" * 3000 + ")" * 3000),
        ("tests/test_a.py", "def test_a():\n    assert " + "-" * 5000 + "1\n"),
        ("tests/test_a.py", "def test_a():\n    assert " + " + ".join(["1"] * 3000) + "\n"),
        (
            "tests/test_a.py",
            "def test_a():\n" + "".join(" " * n + "if x:\n" for n in range(1, 90)) + " " * 91 + "pass\n",
        ),
        ("go/a_test.go", "package a\nfunc TestA(t *testing.T) {" + "{" * 3000 + "}" * 3000 + "}\n"),
        ("web/test/a.test.js", "it('a', () => {" + "[" * 5000 + "]" * 5000 + "});\n"),
        ("rust/src/lib.rs", "#[test]\nfn a() {" + "(" * 5000 + ")" * 5000 + "}\n"),
        ("java/src/test/java/ATest.java", "class ATest { @Test void a() {" + "{" * 3000 + "}" * 3000 + "} }\n"),
        ("web/package.json", "[" * 100_000),
        ("tests/data/a.json", "[" * 100_000),
        ("tests/data/a.yaml", "[" * 2000),
        ("pyproject.toml", "a = " + "[" * 3000),
    ],
)
def test_depth_is_no_trouble(path: str, deep: str) -> None:
    """What is too deep is compared as text, and a change of it is refused."""
    found = judged(change_of(tree({path: deep}), tree({path: deep.replace("1", "2") + "\n\nx(\n"})))
    assert isinstance(found, tuple)


def test_a_test_that_is_too_deep_to_compare_is_refused() -> None:
    deep = "it('a', () => {" + "[" * 3000 + "1" + "]" * 3000 + "});\n"
    found = judged(change_of(tree({"web/test/a.test.js": deep}), tree({"web/test/a.test.js": deep.replace("1", "2")})))
    assert rules_in(found) == {GuardRule.test_changed}


def test_a_language_newer_than_ours_is_compared_as_text() -> None:
    """A syntax that this Python cannot parse: additions pass, changes ask."""
    new_syntax = "type X[T] = list[T]\n\n\ndef test_a():\n    assert f(1) == 2\n\n\ndef g[T](x: T) -> T: return x\n"
    path = "tests/test_new.py"
    grown = new_syntax + "\n\ndef test_b():\n    assert f(2) == 3\n"
    weak = new_syntax.replace("assert f(1) == 2", "assert f(1)")
    skipped = new_syntax.replace("def test_a", "@pytest.mark.skip\ndef test_a")
    assert judged(change_of(tree({path: new_syntax}), tree({path: grown}))) == ()
    for cheat in (weak, skipped):
        (found,) = judged(change_of(tree({path: new_syntax}), tree({path: cheat})))
        assert (found.rule, found.asks) == (GuardRule.test_changed, True)


def test_a_large_change_is_judged_within_seconds() -> None:
    """2,000 changed files, 200 of them tests; the bound is wide because the machine is shared."""
    source = BASE["src/calc/core.py"].content.decode() * 3
    test = BASE["tests/test_core.py"].content.decode()
    before = {f"src/calc/m{number}.py": source for number in range(1800)} | {
        f"tests/test_m{number}.py": test for number in range(200)
    }
    after = {
        path: text.replace("math.sqrt(x)", "x ** 0.5").replace("# end", "")
        + "\n\ndef test_new():\n    assert 1 + 1 == 2\n"
        for path, text in before.items()
    }
    change = change_of(tree(before), tree(after))
    started = time.process_time()
    assert judged(change) == ()
    assert time.process_time() - started < 6
