"""Honest work: the guard must let it through."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import CORE, GO, GO_TEST, JAVA, JAVA_TEST, JS_TEST, RUST, RUST_TEST, TEST_CORE
from guard_stage import EXECUTABLE, append, delete, honest, link, move, replace, write

PY, GOT, JST, RS, JT = (
    "tests/test_core.py",
    "go/calc_test.go",
    "web/test/calc.test.js",
    "rust/src/lib.rs",
    "java/src/test/java/app/CalcTest.java",
)
TST = "web/src/clamp.test.ts"
RST = "rust/tests/api.rs"
CORE_PY = "src/calc/core.py"

FIX_PY = replace(CORE_PY, "return a - b", "return a + b")
FIX_GO = replace("go/calc.go", "return a - b", "return a + b")
FIX_JS = replace("web/src/calc.js", "a - b;", "a + b;")
FIX_TS = replace("web/src/clamp.ts", "? low : x;", "? low : x > high ? high : x;")
FIX_RS = replace(RS, "    a - b\n", "    a + b\n")
FIX_JAVA = replace("java/src/main/java/app/Calc.java", "return a - b;", "return a + b;")

SOURCE = (
    honest("py: small fix", FIX_PY),
    honest("go: small fix", FIX_GO),
    honest("js: small fix", FIX_JS),
    honest("ts: small fix", FIX_TS),
    honest("rust: small fix", FIX_RS),
    honest("java: small fix", FIX_JAVA),
    honest("all: one fix in every language", FIX_PY, FIX_GO, FIX_JS, FIX_TS, FIX_RS, FIX_JAVA),
    honest(
        "py: a fix over twelve files",
        *(replace(f"src/calc/part{n}.py", f"return x + {n}", f"return x * {n}") for n in range(12)),
    ),
    honest(
        "py: large new module",
        write("src/calc/parser.py", "\n".join(f"def rule_{n}(x):\n    return x + {n}\n" for n in range(300))),
    ),
    honest(
        "py: large rewrite of a module",
        write(CORE_PY, CORE.replace("a - b", "a + b") + "\n\ndef more(x):\n    return x\n" * 40),
    ),
    honest("py: dead function removed", replace(CORE_PY, "\n\ndef _unused(x):\n    return x * 2\n", "")),
    honest("rust: what is there for tests too", replace(RS, "self.0 + 1)", "self.0)")),
    honest("rust: dead function removed", replace(RS, "fn unused() -> i32 {\n    7\n}\n\n", "")),
    honest("py: three dead files removed", *(delete(f"src/calc/part{n}.py") for n in range(3))),
    honest("py: module renamed", move("src/calc/part1.py", "src/calc/first.py")),
    honest(
        "py: module moved and edited",
        move("src/calc/part2.py", "src/calc/deep/second.py"),
        replace("src/calc/deep/second.py", "x + 2", "x + 22"),
        renames={"src/calc/part2.py": "src/calc/deep/second.py"},
    ),
    honest(
        "py: module made a package",
        delete("src/calc/part3.py"),
        write("src/calc/part3/__init__.py", "from calc.part3.a import part3\n"),
        write("src/calc/part3/a.py", "def part3(x):\n    return x + 3\n"),
    ),
    honest(
        "py: package with a module named like the library's",
        write("src/calc/json.py", "def dump(x):\n    return str(x)\n"),
        write("src/calc/types.py", "Number = int\n"),
    ),
    honest(
        "py: comment and docstring changed",
        replace(CORE_PY, '"""Sums and quotients."""', '"""Sums, quotients and roots."""'),
        replace(CORE_PY, "def div(a, b):", "# never by zero\ndef div(a, b):"),
    ),
    honest(
        "py: prose of a docstring with examples changed",
        replace(CORE_PY, "Add two numbers.", "Add two numbers, whatever they are."),
    ),
    honest(
        "py: example added to a docstring",
        replace(CORE_PY, "    >>> add(-1, 1)\n    0\n", "    >>> add(-1, 1)\n    0\n    >>> add(2, 2)\n    4\n"),
    ),
    honest(
        "py: docstring with examples added",
        replace(CORE_PY, "def div(a, b):\n", 'def div(a, b):\n    """Divide.\n\n    >>> div(4, 2)\n    2.0\n    """\n'),
    ),
    honest(
        "py: a function before one with examples",
        replace(CORE_PY, "def add(a, b):", "def sub(a, b):\n    return a - b\n\n\ndef add(a, b):"),
    ),
    honest(
        "py: new class with a real comparison",
        append(
            CORE_PY,
            "\n\nclass P:\n    def __eq__(self, other):\n        return isinstance(other, P) and self.x == other.x\n",
        ),
    ),
    honest(
        "py: exit under the main guard",
        append(CORE_PY, '\n\nif __name__ == "__main__":\n    import sys\n\n    sys.exit(0)\n'),
    ),
    honest("py: exit in a function", append(CORE_PY, "\n\ndef stop():\n    import sys\n\n    sys.exit(0)\n")),
    honest("py: script that ends with its answer", replace("scripts/tool.py", "return 0", "return 1 - 1")),
    honest(
        "py: word test in source", append(CORE_PY, "\n\ndef is_test_environment(name):\n    return name == 'test'\n")
    ),
    honest("py: nan handled", append(CORE_PY, "\n\ndef mean(xs):\n    return sum(xs) / len(xs) if xs else math.nan\n")),
    honest("go: new function", append("go/calc.go", "\n// Sub subtracts.\nfunc Sub(a, b int) int { return a - b }\n")),
    honest(
        "go: main that exits",
        write("go/cmd/calc/main.go", 'package main\n\nimport "os"\n\nfunc main() {\n\tos.Exit(0)\n}\n'),
    ),
    honest("js: new module", write("web/src/sub.js", "exports.sub = (a, b) => a - b;\n")),
    honest("js: command line that exits", write("web/bin/calc.js", "#!/usr/bin/env node\nprocess.exit(0);\n")),
    honest("ts: types tightened", replace("web/src/clamp.ts", "return x", "const y: number = x;\n  return y")),
    honest(
        "rust: new public function with an example",
        replace(
            RS,
            "fn unused()",
            "/// Twice.\n///\n/// ```\n/// assert_eq!(calc::twice(2), 4);\n/// ```\npub fn twice(x: i32) -> i32 {\n    x * 2\n}\n\nfn unused()",
        ),
    ),
    honest(
        "rust: real comparison",
        replace(
            RS,
            "fn unused()",
            "struct P(i32);\nimpl PartialEq for P {\n    fn eq(&self, other: &Self) -> bool {\n        self.0 == other.0\n    }\n}\n\nfn unused()",
        ),
    ),
    honest(
        "java: real equals",
        replace(
            "java/src/main/java/app/Calc.java",
            "    public static int div",
            "    @Override\n    public boolean equals(Object o) {\n        return o instanceof Calc;\n    }\n\n    public static int div",
        ),
    ),
    honest(
        "js: formatting",
        write(
            "web/src/calc.js",
            'const add = (a, b) => a - b\n\nfunction div (a, b) {\n  if (b === 0) { throw new Error("zero") }\n  return a / b\n}\n\nmodule.exports = { add, div }\n',
        ),
    ),
    honest("go: formatting", write("go/calc.go", GO.replace("{ return a - b }", "{\n\treturn a - b\n}"))),
    honest("java: formatting", write("java/src/main/java/app/Calc.java", JAVA.replace("    ", "\t"))),
    honest(
        "rust: formatting",
        write(
            RS,
            RUST.replace(
                "if b == 0 { None } else { Some(a / b) }",
                "if b == 0 {\n        None\n    } else {\n        Some(a / b)\n    }",
            ),
        ),
    ),
    honest(
        "executable bit set",
        write("scripts/tool.py", "import sys\n\n\ndef main():\n    return 0\n\n\nsys.exit(main())\n", EXECUTABLE),
    ),
    honest("link inside the tree", link("docs/readme.md", "../README.md")),
)

TESTS = (
    honest(
        "py: new test function beside the fix",
        FIX_PY,
        append(PY, "\n\ndef test_add_negative():\n    assert add(-1, -2) == -3\n"),
    ),
    honest(
        "py: new test file",
        FIX_PY,
        write(
            "tests/test_more.py",
            "import pytest\nfrom calc.core import add\n\nX = 3\n\n\n@pytest.fixture(autouse=True)\ndef calm():\n    yield\n\n\ndef test_more(monkeypatch):\n    monkeypatch.setenv('A', 'b')\n    assert add(1, X) == 4\n",
        ),
    ),
    honest(
        "py: new test folder",
        write("tests/deep/__init__.py", ""),
        write("tests/deep/test_deep.py", "def test_deep():\n    assert True\n"),
    ),
    honest(
        "py: new test that is skipped elsewhere",
        append(
            PY,
            "\n\n@pytest.mark.skipif(LIMIT > 100, reason='never')\ndef test_skippable():\n    assert add(1, 1) == 2\n",
        ),
    ),
    honest(
        "py: new helper, constant and import for new tests",
        replace(PY, "import json\n", "import json\nimport os\n"),
        append(
            PY,
            "\n\nNAMES = ['x']\n\n\ndef make(n):\n    return [n]\n\n\ndef test_made():\n    assert make(1) == [1]\n    assert os.name\n",
        ),
    ),
    honest(
        "py: new fixture that no old test takes",
        append(
            PY, "\n\n@pytest.fixture\ndef words():\n    return ['a']\n\n\ndef test_words(words):\n    assert words\n"
        ),
    ),
    honest(
        "py: check added to a test",
        replace(PY, "    assert add(0, 0) == 0\n", "    assert add(0, 0) == 0\n    assert add(5, 5) == 10\n"),
    ),
    honest(
        "py: step and check added to a test",
        replace(
            PY,
            "    assert add(0, 0) == 0\n",
            "    assert add(0, 0) == 0\n    other = add(5, 5)\n    assert other == 10\n",
        ),
    ),
    honest(
        "py: check added in the middle",
        replace(PY, "    assert result == 3\n", "    assert isinstance(result, int)\n    assert result == 3\n"),
    ),
    honest("py: row added to a parametrised test", replace(PY, "(10, -1, 9)]", "(10, -1, 9), (7, 7, 14)]")),
    honest("py: row added to a table constant", replace(PY, "(2, 2, 4)]", "(2, 2, 4), (3, 3, 6)]")),
    honest(
        "py: method added to a test class",
        replace(
            PY,
            "    def test_names(self):",
            "    def test_third(self):\n        self.assertEqual(div(3, 3), 1)\n\n    def test_names(self):",
        ),
    ),
    honest(
        "py: new test class",
        append(
            PY,
            "\n\nclass TestMore:\n    def setup_method(self):\n        self.x = 1\n\n    def test_x(self):\n        assert self.x == 1\n",
        ),
    ),
    honest(
        "py: test file formatted",
        write(
            PY,
            TEST_CORE.replace(
                "[(1, 1, 2), (2, 3, 5), (10, -1, 9)])",
                "[\n        (1, 1, 2),\n        (2, 3, 5),\n        (10, -1, 9),\n    ],\n)",
            )
            .replace('"no"', "'no'")
            .replace("assert result == 3", "assert (result == 3)"),
        ),
    ),
    honest(
        "py: comments and docstrings of tests",
        replace(PY, '    """Adding works."""\n', '    """Adding works, always."""\n    # one and two\n'),
    ),
    honest(
        "py: type hints in tests",
        replace(PY, "def test_add():", "def test_add() -> None:"),
        replace(PY, "def test_root(numbers):", "def test_root(numbers: list[int]) -> None:"),
    ),
    honest(
        "py: tests reordered",
        write(
            PY,
            TEST_CORE.replace(
                "def test_cases():\n    for a, b, total in CASES:\n        assert add(a, b) == total\n\n\n", ""
            ).replace(
                "class TestDivision",
                "def test_cases():\n    for a, b, total in CASES:\n        assert add(a, b) == total\n\n\nclass TestDivision",
            ),
        ),
    ),
    honest(
        "py: imports sorted",
        replace(
            PY,
            "import json\nimport unittest\n\nimport pytest\n\nfrom calc.core import add, div, root\nfrom helpers import load\n",
            "import json\nimport unittest\nfrom helpers import load\n\nfrom calc.core import add, div, root\nimport pytest\n",
        ),
    ),
    honest("py: unused import removed", replace(PY, "import json\nimport unittest", "import unittest")),
    honest("py: test renamed", replace(PY, "def test_add():", "def test_add_two_numbers():")),
    honest("py: test file renamed", move("tests/test_old.py", "tests/test_legacy.py")),
    honest("py: test file moved to a folder of tests", move("tests/test_old.py", "tests/unit/test_old.py")),
    honest(
        "py: a test moved to another file",
        replace(
            PY,
            'def test_div_by_zero():\n    with pytest.raises(ZeroDivisionError, match="no"):\n        div(1, 0)\n\n\n',
            "",
        ),
        write(
            "tests/test_division.py",
            "import pytest\nfrom calc.core import div\n\n\ndef test_div_by_zero():\n    with pytest.raises(ZeroDivisionError, match='no'):\n        div(1, 0)\n",
        ),
    ),
    honest(
        "py: test file split in two",
        delete("tests/test_old.py"),
        write(
            "tests/test_old_one.py",
            "from calc.legacy import old\n\n\ndef test_old():\n    assert old(1) == 1\n\n\ndef test_older():\n    assert old(2) == 2\n",
        ),
    ),
    honest("py: helper module grows", append("tests/helpers.py", "\n\ndef save(name):\n    return name\n")),
    honest(
        "py: new data and helper files",
        write("tests/data/more.json", "[1]\n"),
        write("tests/builders.py", "def build():\n    return 1\n"),
    ),
    honest("py: comment in conftest", replace("tests/conftest.py", "import pytest\n", "# shared\nimport pytest\n")),
    honest("data: names formatted", write("tests/data/names.json", '[\n  "a",\n  "b"\n]\n')),
    honest("docs: about tests", append("tests/README.md", "More.\n")),
    honest(
        "ruby: example added",
        replace(
            "tests/spec/calc_spec.rb",
            "  end\nend\n",
            "  end\n  it 'adds more' do\n    expect(Calc.add(2, 2)).to eq(4)\n  end\nend\n",
        ),
    ),
    honest(
        "go: new test", FIX_GO, append(GOT, "\nfunc TestMore(t *testing.T) {\n\trequire.Equal(t, 2, Add(1, 1))\n}\n")
    ),
    honest("go: row added", replace(GOT, "{2, 2, 4},", "{2, 2, 4},\n\t\t{3, 3, 6},")),
    honest(
        "go: check added",
        replace(
            GOT, "require.Equal(t, 5, Add(2, 3))", "require.Equal(t, 5, Add(2, 3))\n\trequire.Equal(t, 6, Add(3, 3))"
        ),
    ),
    honest(
        "go: comments and formatting of tests",
        write(
            GOT,
            GO_TEST.replace("func TestDiv", "// TestDiv divides.\nfunc TestDiv").replace(
                "\t\t{1, 1, 2},", "\t\t{1, 1,\n\t\t\t2},"
            ),
        ),
    ),
    honest(
        "go: tests moved to a new file",
        write(GOT, GO_TEST[: GO_TEST.index("func TestDiv")] + GO_TEST[GO_TEST.index("func ExampleAdd") :]),
        write(
            "go/div_test.go",
            'package calc\n\nimport (\n\t"testing"\n\n\t"github.com/stretchr/testify/require"\n)\n\n'
            + GO_TEST[GO_TEST.index("func TestDiv") : GO_TEST.index("func ExampleAdd")],
        ),
    ),
    honest(
        "go: unused helper removed",
        replace(GOT, "\nfunc helper(t *testing.T) int {\n\tt.Helper()\n\treturn 1\n}\n", ""),
    ),
    honest(
        "go: new test file",
        write(
            "go/sub_test.go",
            'package calc\n\nimport "testing"\n\nfunc TestSub(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip("slow")\n\t}\n}\n',
        ),
    ),
    honest(
        "js: new test",
        FIX_JS,
        replace(
            JST,
            "  it('adds', () => {",
            "  it('adds more', () => {\n    expect(add(2, 2)).toBe(4);\n  });\n\n  it('adds', () => {",
        ),
    ),
    honest("js: row added", replace(JST, "[2, 3, 5]])('adds", "[2, 3, 5], [4, 4, 8]])('adds")),
    honest("js: table grows", replace(JST, "[2, 2, 4]];", "[2, 2, 4], [5, 5, 10]];")),
    honest(
        "js: tests formatted",
        write(
            JST,
            JS_TEST.replace("'adds'", '"adds"')
            .replace(";\n    expect(add(0", "\n    expect(add(0")
            .replace("[[1, 2, 3], [2, 2, 4]]", "[\n  [1, 2, 3],\n  [2, 2, 4],\n]"),
        ),
    ),
    honest(
        "js: check added",
        replace(
            JST,
            "    expect(add(0, 0)).toEqual(0);\n",
            "    expect(add(0, 0)).toEqual(0);\n    expect(add(4, 4)).toEqual(8);\n",
        ),
    ),
    honest(
        "js: new suite with its own set-up",
        append(
            JST,
            "\ndescribe('more', () => {\n  beforeEach(() => {\n    jest.useFakeTimers();\n  });\n  it('x', () => {\n    expect(1).toBe(1);\n  });\n});\n",
        ),
    ),
    honest(
        "js: new test file with mocks",
        write(
            "web/test/more.test.js",
            "jest.mock('../src/calc');\nconst calc = require('../src/calc');\n\ntest('mocked', () => {\n  calc.add.mockReturnValue(3);\n  expect(calc.add()).toBe(3);\n});\n",
        ),
    ),
    honest("js: snapshot added", append("web/test/__snapshots__/calc.test.js.snap", "\nexports[`b 1`] = `2`;\n")),
    honest(
        "ts: new test",
        FIX_TS,
        replace(
            TST,
            '  it("cuts what is above"',
            '  it("lifts what is below", () => {\n    expect(clamp(0, 1, 3)).toBe(1);\n  });\n\n  it("cuts what is above"',
        ),
    ),
    honest(
        "ts: imports sorted",
        replace(
            TST,
            'import { clamp } from "./clamp";\nimport { describe, expect, it } from "vitest";',
            'import { describe, expect, it } from "vitest";\nimport { clamp } from "./clamp";',
        ),
    ),
    honest(
        "js: test moved to a folder below, its import follows",
        move(JST, "web/test/unit/calc.test.js"),
        replace("web/test/unit/calc.test.js", "'../src/calc'", "'../../src/calc'"),
        replace("web/test/unit/calc.test.js", "'./names.json'", "'../names.json'"),
        renames={JST: "web/test/unit/calc.test.js"},
    ),
    honest("js: suite renamed", replace(JST, "describe('div'", "describe('division'")),
    honest("ts: test file renamed", move(TST, "web/src/limits.test.ts")),
    honest(
        "rust: new test in the module",
        FIX_RS,
        replace(
            RS,
            "    #[test]\n    fn table() {",
            "    #[test]\n    fn adds_more() {\n        assert_eq!(add(2, 2), 4);\n    }\n\n    #[test]\n    fn table() {",
        ),
    ),
    honest("rust: row added", replace(RS, "[(1, 1, 2), (2, 2, 4)]", "[(1, 1, 2), (2, 2, 4), (3, 3, 6)]")),
    honest(
        "rust: check added",
        replace(
            RST, "    assert_eq!(add(0, 0), 0);\n", "    assert_eq!(add(0, 0), 0);\n    assert_eq!(add(1, 0), 1);\n"
        ),
    ),
    honest(
        "rust: tests formatted",
        write(
            RST, RUST_TEST.replace("assert_eq!(add(2, 3), 5);", "assert_eq!(\n        add(2, 3),\n        5,\n    );")
        ),
    ),
    honest(
        "rust: lint attribute on a test",
        replace(RST, "#[test]\nfn divides", "#[allow(clippy::unwrap_used)]\n#[test]\nfn divides"),
    ),
    honest("rust: new test file", write("rust/tests/more.rs", "#[test]\nfn more() {\n    assert!(true);\n}\n")),
    honest(
        "rust: import in the test module", replace(RS, "    use super::*;\n", "    use super::*;\n    use std::fmt;\n")
    ),
    honest(
        "java: new test",
        FIX_JAVA,
        replace(
            JT,
            "    private int helper()",
            "    @Test\n    void addsMore() {\n        assertEquals(4, Calc.add(2, 2));\n    }\n\n    private int helper()",
        ),
    ),
    honest("java: row added", replace(JT, "{1, 2, 3})", "{1, 2, 3, 4})")),
    honest(
        "java: check added",
        replace(
            JT,
            "        assertEquals(3, result);\n",
            "        assertEquals(3, result);\n        assertEquals(9, Calc.add(4, 5));\n",
        ),
    ),
    honest(
        "java: tests formatted and commented",
        write(
            JT,
            JAVA_TEST.replace("    @Test\n    void adds()", "    // adding\n    @Test void adds()").replace(
                'Calc.add(0, 0), "zero"', 'Calc.add(0, 0),\n            "zero"'
            ),
        ),
    ),
    honest(
        "java: class renamed with its file",
        move(JT, "java/src/test/java/app/SumTest.java"),
        replace("java/src/test/java/app/SumTest.java", "class CalcTest", "class SumTest"),
        renames={JT: "java/src/test/java/app/SumTest.java"},
    ),
    honest(
        "java: new test class",
        write(
            "java/src/test/java/app/MoreTest.java",
            "package app;\n\nimport org.junit.jupiter.api.*;\n\nclass MoreTest {\n    @Test\n    void x() {\n        Assertions.assertTrue(true);\n    }\n}\n",
        ),
    ),
)

FILES = (
    honest(
        "version bump with lock: python",
        replace("pyproject.toml", '"1.0.0"', '"1.0.1"'),
        replace("pyproject.toml", "requests>=2.0", "requests>=2.1"),
        write("requirements.lock", "requests==2.32.0\n"),
        append("CHANGELOG.md", "## 1.0.1\n"),
    ),
    honest(
        "version bump with lock: node",
        replace("web/package.json", '"version": "1.0.0"', '"version": "1.0.1"'),
        replace("web/package.json", '"jest": "^29.0.0"', '"jest": "^29.7.0"'),
        write("web/package-lock.json", '{"name": "calc", "version": "1.0.1"}\n'),
    ),
    honest(
        "version bump with lock: rust",
        replace("rust/Cargo.toml", '"1.0.0"', '"1.0.1"'),
        replace("rust/Cargo.toml", 'libc = "0.2"', 'libc = "0.2"\nserde = "1"'),
        write("rust/Cargo.lock", '[[package]]\nname = "calc"\nversion = "1.0.1"\n'),
    ),
    honest(
        "version bump with sum: go",
        replace("go/go.mod", "v1.8.0", "v1.9.0"),
        write("go/go.sum", "github.com/stretchr/testify v1.9.0 h1:abd\n"),
    ),
    honest(
        "version bump: maven",
        replace("java/pom.xml", "<version>1.0.0</version>", "<version>1.0.1</version>"),
        replace("java/pom.xml", "5.9.0", "5.10.0"),
        replace("java/pom.xml", "<version>3.0.0</version>", "<version>3.2.5</version>"),
    ),
    honest("version bump: gradle", replace("java/build.gradle", "5.9.0", "5.10.0")),
    honest(
        "test tool bumped",
        replace("pyproject.toml", "pytest>=8", "pytest>=9"),
        replace("requirements-dev.txt", "8.0.0", "9.0.0"),
    ),
    honest("requirements of the tests", write("tests/requirements.txt", "pytest==9.0.0\n")),
    honest("dependency of the tests' environment", replace("tox.ini", "deps = pytest", "deps = pytest>=9")),
    honest("build script of node", replace("web/package.json", '"build": "tsc"', '"build": "tsc -b"')),
    honest("compile target of typescript", replace("web/tsconfig.json", "es2020", "es2022")),
    honest(
        "make target that tests nothing",
        replace("Makefile", "docker build -t", "docker build --pull -t"),
        replace("Makefile", "calc:1", "calc:2"),
    ),
    honest("comment in the makefile", replace("Makefile", "lint:\n", "# style\nlint:\n")),
    honest("isort settings", replace("tox.ini", "profile = black", "profile = google")),
    honest("metadata of setup.cfg", replace("setup.cfg", "name = calc", "name = calc\nauthor = Ada")),
    honest(
        "new package in a monorepo",
        write("libs/one/package.json", '{"name": "one", "scripts": {"test": "jest"}}\n'),
        write("libs/one/index.js", "exports.x = 1;\n"),
    ),
    honest(
        "generated file regenerated", write("src/calc/model_pb2.py", "# generated\nVERSION = 2\nFIELDS = ['a', 'b']\n")
    ),
    honest("generated bundle", write("web/dist/bundle.min.js", "!function(){" + "var a=1;" * 4000 + "}();\n")),
    honest(
        "picture added and changed",
        write("docs/shot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR1"),
        write("src/calc/logo.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR2"),
    ),
    honest("binary table regenerated", write("src/calc/table.bin", b"\0\1\2\4" * 10)),
    honest(
        "documentation",
        append("README.md", "\n=======\nMore\n=======\n"),
        write("docs/howto.rst", "How\n===\n\n>>>>>>> quoted deep\n"),
    ),
    honest(
        "documentation about keys",
        append(
            "README.md",
            "\nSet `AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE` and `TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx`.\n",
        ),
    ),
    honest(
        "settings by variables",
        append(
            "src/calc/core.py",
            "\nURL = 'postgres://user:secret@localhost/db'\nOTHER = f'https://{NAME}:{PASSWORD}@host.example.com'\nKEY = os.environ['API_KEY']\n",
        ),
    ),
    honest(
        "hashes and identifiers",
        write(
            "src/calc/ids.py",
            "SHA = '"
            + "0123456789abcdef" * 4
            + "'\nUUID = '123e4567-e89b-12d3-a456-426614174000'\nTASK = 'sk-learn-based-estimator-with-a-long-name'\n",
        ),
    ),
    honest("gitignore grows", append(".gitignore", "dist/\n")),
    honest(
        "a test key in words only",
        append("README.md", "\n-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----\n"),
    ),
    honest("ruff noise stays", replace(CORE_PY, "import math\n", "import math\nimport os  # noqa: F401\n")),
)

HONEST = (*SOURCE, *TESTS, *FILES)
