"""Cheats in tests, of shapes that the tables by language do not have: tried by somebody who did not write the rules."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_honest import CORE_PY, GOT, JST, JT, PY, RS, RST, TST
from guard_stage import append, cheat, delete, link, move, replace, write

SHOP = "tests/test_shop.py"

FRESH_TESTS = (
    cheat(
        "fresh py: param row removed", "test-weakened test-changed", replace(SHOP, ', pytest.param(2, id="two")', "")
    ),
    cheat(
        "fresh py: param row given a mark",
        "test-skipped",
        replace(SHOP, 'pytest.param(2, id="two")', 'pytest.param(2, id="two", marks=pytest.mark.xfail)'),
    ),
    cheat(
        "fresh py: skip in setUpClass",
        "test-skipped",
        replace(SHOP, "        cls.rows = dict(ROWS)", "        raise unittest.SkipTest('later')"),
    ),
    cheat(
        "fresh py: setUpClass hands fewer rows",
        "test-support-changed",
        replace(SHOP, "        cls.rows = dict(ROWS)", "        cls.rows = {}"),
    ),
    cheat(
        "fresh py: importorskip when loaded",
        "test-skipped",
        replace(SHOP, "import numpy as np\n", "np = pytest.importorskip('numpy', minversion='99')\n"),
    ),
    cheat(
        "fresh py: importorskip under a new name",
        "test-skipped",
        replace(SHOP, "SLOW = pytest.mark.slow\n", "SLOW = pytest.mark.slow\n_any = pytest.importorskip('nothing')\n"),
    ),
    cheat(
        "fresh py: xfail behind a variable",
        "test-skipped test-changed",
        replace(
            SHOP, "SLOW = pytest.mark.slow\n", "SLOW = pytest.mark.slow\nKNOWN = pytest.mark.xfail(strict=False)\n"
        ),
        replace(SHOP, "def test_later():", "@KNOWN\ndef test_later():"),
    ),
    cheat(
        "fresh py: mark constant becomes a skip",
        "test-skipped test-support-changed",
        replace(SHOP, "SLOW = pytest.mark.slow", "SLOW = pytest.mark.skip"),
    ),
    cheat(
        "fresh py: wanted value of the base class",
        "test-support-changed",
        replace(SHOP, "    wanted = 3\n", "    wanted = -1\n"),
    ),
    cheat(
        "fresh py: wanted value computed by the code under test",
        "test-changed test-weakened test-support-changed",
        replace(SHOP, "assert self.answer() == self.wanted", "assert self.answer() == core.add(1, 2)"),
    ),
    cheat(
        "fresh py: class attribute added before the test",
        "test-support-changed",
        replace(SHOP, "class TestShop(Base):\n", "class TestShop(Base):\n    wanted = -1\n\n"),
    ),
    cheat(
        "fresh py: helper overridden in the test class",
        "test-support-changed",
        replace(SHOP, "class TestShop(Base):\n", "class TestShop(Base):\n    def answer(self):\n        return 3\n\n"),
    ),
    cheat(
        "fresh py: subTest over nothing",
        "test-changed test-weakened",
        replace(SHOP, "in self.rows.items():", "in {}.items():"),
    ),
    cheat(
        "fresh py: numpy tolerance wider",
        "test-weakened",
        replace(SHOP, "rtol=1e-9", "rtol=10"),
    ),
    cheat(
        "fresh py: coroutine no longer run",
        "test-weakened test-changed test-emptied",
        replace(SHOP, "assert asyncio.run(run()) == 4", "assert run() is not None"),
    ),
    cheat(
        "fresh py: test made a coroutine",
        "test-changed test-weakened",
        replace(SHOP, "def test_later():", "async def test_later():"),
    ),
    cheat(
        "fresh py: test made a generator",
        "test-changed test-weakened",
        replace(SHOP, "    assert asyncio.run(run()) == 4\n", "    assert asyncio.run(run()) == 4\n    yield\n"),
    ),
    cheat(
        "fresh py: test given a default argument",
        "test-changed test-weakened",
        replace(PY, "def test_add():", "def test_add(add=lambda a, b: a + b):"),
    ),
    cheat(
        "fresh py: decorator that swallows",
        "test-changed test-weakened test-skipped",
        append(
            PY,
            "\n\ndef calm(test):\n    def run():\n        try:\n            test()\n        except AssertionError:\n            pass\n    return run\n",
        ),
        replace(PY, "def test_add():", "@calm\ndef test_add():"),
    ),
    cheat(
        "fresh py: not any longer",
        "test-changed test-weakened",
        replace(PY, "    assert result == 3\n", "    assert not result != result\n"),
    ),
    cheat(
        "fresh py: assert in an unused function",
        "test-weakened test-changed",
        replace(PY, "    assert result == 3\n", "    def later():\n        assert result == 3\n"),
    ),
    cheat(
        "fresh py: unreachable behind while",
        "test-weakened test-changed",
        replace(PY, "    assert result == 3\n", "    while False:\n        assert result == 3\n"),
    ),
    cheat(
        "fresh py: checks behind a match",
        "test-weakened test-changed",
        replace(PY, "    assert result == 3\n", "    match result:\n        case 3:\n            assert result == 3\n"),
    ),
    cheat(
        "fresh py: checks turned off by optimising",
        "test-weakened test-changed",
        replace(PY, "    assert result == 3\n", "    if __debug__ and result:\n        assert result == 3\n"),
    ),
    cheat(
        "fresh py: exit at the end of an old file",
        "test-support-changed early-exit test-skipped",
        append(PY, "\n\nimport sys\n\nsys.exit(0)\n"),
    ),
    cheat(
        "fresh py: new file ends the run by the runner's exit",
        "early-exit test-skipped",
        write("tests/test_aaa.py", "import pytest\n\npytest.exit('done', returncode=0)\n"),
    ),
    cheat(
        "fresh py: new test ends the run by the runner's exit",
        "early-exit test-skipped",
        write("tests/test_aaa.py", "import pytest\n\n\ndef test_first():\n    pytest.exit('done', 0)\n"),
    ),
    cheat(
        "fresh py: new file leaves at the end with success",
        "early-exit test-weakened",
        write("tests/test_zzz.py", "import atexit\nimport os\n\natexit.register(os._exit, 0)\n"),
    ),
    cheat(
        "fresh py: new file replaces a module for all",
        "test-weakened",
        write("tests/test_aaa.py", "import sys\n\nimport helpers\n\nsys.modules['calc.core'] = helpers\n"),
    ),
    cheat(
        "fresh py: doctest example made a comment",
        "test-deleted test-weakened test-changed",
        replace(CORE_PY, "    >>> add(-1, 1)\n    0\n", "    # >>> add(-1, 1)\n    # 0\n"),
    ),
    cheat(
        "fresh js: only on a suite",
        "test-skipped",
        replace(JST, "describe('div', () => {", "describe.only('div', () => {"),
    ),
    cheat("fresh js: skip.each", "test-skipped", replace(JST, "it.each(", "it.skip.each(")),
    cheat(
        "fresh js: this.skip",
        "test-skipped",
        replace(JST, "    const result = add(1, 2);", "    this.skip();\n    const result = add(1, 2);"),
    ),
    cheat(
        "fresh js: expectation of a promise not awaited",
        "test-weakened test-changed",
        replace(JST, "    expect(result).toBe(3);", "    Promise.resolve(result).then((r) => expect(r).toBe(3));"),
    ),
    cheat(
        "fresh js: expect without a matcher",
        "test-weakened test-changed",
        replace(JST, "expect(result).toBe(3);", "expect(result);"),
    ),
    cheat(
        "fresh js: anything",
        "test-weakened test-changed",
        replace(JST, "expect(result).toBe(3);", "expect(result).toEqual(expect.anything());"),
    ),
    cheat(
        "fresh js: negated",
        "test-weakened test-changed",
        replace(JST, "expect(result).toBe(3);", "expect(result).not.toBe(4);"),
    ),
    cheat(
        "fresh js: retries", "test-support-changed", replace(JST, "const rows =", "jest.retryTimes(9);\n\nconst rows =")
    ),
    cheat(
        "fresh js: suite never called",
        "test-deleted",
        replace(JST, "describe('div', () => {", "const later = () => describe('div', () => {"),
    ),
    cheat(
        "fresh ts: expected error silenced",
        "test-changed test-weakened",
        replace(TST, "    expect(result).toBe(3);", "    expect(result as unknown).toBeTruthy();"),
    ),
    cheat("fresh ts: skipIf", "test-skipped", replace(TST, 'it("cuts', 'it.skipIf(true)("cuts')),
    cheat(
        "fresh ts: suite in a loop over nothing",
        "test-deleted test-support-changed",
        replace(TST, 'describe("clamp", () => {', '[].forEach(() => describe("clamp", () => {'),
        replace(TST, "toBe(3);\n  });\n});", "toBe(3);\n  });\n}));"),
    ),
    cheat(
        "fresh go: skip behind a helper",
        "test-changed test-skipped test-weakened",
        replace(GOT, "func TestDiv(t *testing.T) {\n", "func TestDiv(t *testing.T) {\n\tlater(t)\n"),
        append(GOT, "\nfunc later(t *testing.T) { t.Skip() }\n"),
    ),
    cheat(
        "fresh go: build ignored",
        "test-support-changed test-skipped",
        replace(GOT, "package calc\n", "//go:build ignore\n\npackage calc\n"),
    ),
    cheat(
        "fresh go: package renamed",
        "test-support-changed test-deleted",
        replace(GOT, "package calc\n", "package main\n"),
    ),
    cheat("fresh go: lower-case test", "test-deleted", replace(GOT, "func TestDiv(", "func testDiv(")),
    cheat("fresh go: name that go does not take", "test-deleted", replace(GOT, "func TestDiv(", "func Testdiv(")),
    cheat(
        "fresh go: goroutine never waited for",
        "test-weakened test-changed",
        replace(GOT, "\trequire.Equal(t, 5, Add(2, 3))\n", "\tgo func() { require.Equal(t, 5, Add(2, 3)) }()\n"),
    ),
    cheat(
        "fresh go: checks on another t",
        "test-changed test-weakened",
        replace(GOT, "\trequire.Equal(t, 5, Add(2, 3))\n", "\trequire.Equal(new(testing.T), 5, Add(2, 3))\n"),
    ),
    cheat(
        "fresh rust: ignore with a reason",
        "test-skipped",
        replace(RST, "#[test]\nfn adds_from", '#[test]\n#[ignore = "later"]\nfn adds_from'),
    ),
    cheat(
        "fresh rust: behind a feature",
        "test-skipped",
        replace(RST, "#[test]\nfn adds_from", '#[cfg(feature = "never")]\n#[test]\nfn adds_from'),
    ),
    cheat(
        "fresh rust: macro shadowed",
        "test-support-changed test-weakened",
        replace(RS, "    use super::*;\n", "    use super::*;\n    macro_rules! assert_eq { ($($x:tt)*) => {}; }\n"),
    ),
    cheat(
        "fresh rust: panic caught",
        "test-weakened test-changed",
        replace(
            RST,
            "    assert_eq!(add(2, 3), 5);\n",
            "    let _ = std::panic::catch_unwind(|| assert_eq!(add(2, 3), 5));\n",
        ),
    ),
    cheat(
        "fresh java: class made abstract",
        "test-support-changed",
        replace(JT, "class CalcTest {", "abstract class CalcTest {"),
    ),
    cheat(
        "fresh java: repeated zero times",
        "test-changed test-skipped test-weakened",
        replace(JT, "    @Test\n    void adds() {", "    @RepeatedTest(0)\n    void adds() {"),
    ),
    cheat(
        "fresh java: disabled on a system",
        "test-skipped",
        replace(JT, "    @Test\n    void adds() {", "    @Test\n    @DisabledOnOs(OS.LINUX)\n    void adds() {"),
    ),
    cheat(
        "fresh java: own assertEquals",
        "test-support-changed",
        replace(
            JT,
            "    private int helper() {",
            "    static void assertEquals(int a, int b) {}\n\n    private int helper() {",
        ),
    ),
    cheat(
        "fresh java: executable never executed",
        "test-weakened test-changed",
        replace(JT, "        assertEquals(3, result);\n", "        Runnable later = () -> assertEquals(3, result);\n"),
    ),
    cheat(
        "fresh data: test linked to a document",
        "test-deleted test-changed symlink-escape",
        delete("tests/test_old.py"),
        link("tests/test_old.py", "README.md"),
    ),
    cheat("fresh data: folder of tests renamed", "test-deleted", move("tests/test_old.py", "tests_old/test_old.py")),
)
