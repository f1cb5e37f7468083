"""Honest work of shapes that the first table does not have, each tried by somebody who did not write the rules."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import BASE, CORE, MAKEFILE, PACKAGE, SHOP_TEST, VITE
from guard_honest import CORE_PY, FIX_GO, FIX_JAVA, FIX_JS, FIX_PY, FIX_RS, GOT, JST, JT, PY, RS, RST, TST
from guard_stage import append, delete, honest, move, replace, write

SHOP = "tests/test_shop.py"
PYPROJECT = "pyproject.toml"

SOURCE = (
    honest(
        "fresh: a fix spread over ten files of five languages",
        FIX_PY,
        FIX_GO,
        FIX_JS,
        FIX_RS,
        FIX_JAVA,
        *(replace(f"src/calc/part{n}.py", f"return x + {n}", f"return {n} + x") for n in range(5)),
    ),
    honest(
        "fresh: source files renamed, and who imports them",
        move("src/calc/legacy.py", "src/calc/history.py"),
        write("src/calc/legacy.py", "from calc.history import old\n\n__all__ = ['old']\n"),
    ),
    honest(
        "fresh: a package of source moved",
        *(move(f"src/calc/part{n}.py", f"src/calc/parts/part{n}.py") for n in range(6)),
    ),
    honest("fresh: whole file formatted", write(CORE_PY, CORE.replace("a - b", "a + b").replace("    ", "  "))),
    honest("fresh: line ends turned", write("src/calc/part1.py", "def part1(x):\r\n    return x + 1\r\n")),
    honest(
        "fresh: dead function and its import removed",
        replace(CORE_PY, "import math\n\n\n", "\n"),
        replace(CORE_PY, "def root(x):\n    return math.sqrt(x)\n\n\n", ""),
    ),
    honest("fresh: type annotations", replace(CORE_PY, "def add(a, b):", "def add(a: float, b: float) -> float:")),
    honest(
        "fresh: generated file regenerated",
        write(
            "src/calc/model_pb2.py", "# generated\nVERSION = 2\n" + "".join(f"FIELD_{n} = {n}\n" for n in range(800))
        ),
    ),
    honest(
        "fresh: exit with an error at load",
        replace(
            CORE_PY,
            "import math\n",
            "import math\nimport sys\n\nif sys.version_info < (3, 8):\n    sys.exit('too old')\n",
        ),
    ),
    honest(
        "fresh: resource closed at the end",
        append(CORE_PY, "\n\nimport atexit\n\n\n@atexit.register\ndef close():\n    print('bye')\n"),
    ),
    honest(
        "fresh: module attribute by name",
        append(
            CORE_PY,
            "\n\ndef __getattr__(name):\n    if name == 'plus':\n        return add\n    raise AttributeError(name)\n",
        ),
    ),
    honest(
        "fresh: comparison that knows its kind",
        append(
            CORE_PY,
            "\n\nclass Money:\n    def __init__(self, cents):\n        self.cents = cents\n\n    def __eq__(self, other):\n        if not isinstance(other, Money):\n            return NotImplemented\n        return self.cents == other.cents\n\n    def __hash__(self):\n        return hash(self.cents)\n",
        ),
    ),
    honest(
        "fresh: comparison of things without fields",
        append(
            CORE_PY,
            "\n\nclass Nothing:\n    def __eq__(self, other):\n        return isinstance(other, Nothing)\n\n    def __hash__(self):\n        return 0\n",
        ),
    ),
    honest(
        "fresh: comparison with early ends",
        append(
            CORE_PY,
            "\n\nclass Box:\n    def __eq__(self, other):\n        if self is other:\n            return True\n        if type(self) is not type(other):\n            return False\n        return True if self.x == other.x else False\n",
        ),
    ),
    honest(
        "fresh: modules looked up for plugins",
        append(
            CORE_PY,
            "\n\nimport sys\n\n\ndef plugins():\n    return [name for name in sys.modules if name.startswith('calc_')]\n",
        ),
    ),
    honest(
        "fresh: caller named in a warning",
        append(CORE_PY, "\n\nimport inspect\n\n\ndef caller():\n    return inspect.stack()[1].function\n"),
    ),
    honest(
        "fresh: a function called latest_test",
        append(CORE_PY, "\n\ndef latest_test(results):\n    return max(results)\n"),
    ),
    honest(
        "fresh: a class of tests in medicine",
        write(
            "src/calc/lab.py",
            "class TestResult:\n    def __init__(self, value):\n        self.value = value\n\n    def test_kind(self):\n        return 'blood'\n",
        ),
    ),
    honest(
        "fresh: js program name from arguments", append("web/src/calc.js", "\nmodule.exports.name = process.argv[1];\n")
    ),
    honest(
        "fresh: js stack in a message",
        append("web/src/calc.js", "\nmodule.exports.explain = (error) => error.stack.split('\\n')[0];\n"),
    ),
    honest(
        "fresh: js ends on a signal", append("web/src/calc.js", "\nprocess.on('SIGTERM', () => process.exit(0));\n")
    ),
    honest(
        "fresh: js cleans up at the end", append("web/src/calc.js", "\nprocess.on('exit', () => console.log('bye'));\n")
    ),
    honest(
        "fresh: js test method of a pattern",
        append("web/src/calc.js", "\nmodule.exports.isNumber = (text) => /^[0-9]+$/.test(text);\n"),
    ),
    honest(
        "fresh: go arguments read",
        append("go/calc.go", "\n// Name is the program.\nfunc Name() string { return os.Args[0] }\n"),
    ),
    honest(
        "fresh: go equality",
        append("go/calc.go", "\n// Equal compares.\nfunc (p Point) Equal(o Point) bool { return p.X == o.X }\n"),
    ),
    honest(
        "fresh: java stack in a log",
        replace(
            "java/src/main/java/app/Calc.java",
            "    public static int div",
            "    public static String where() {\n        return Thread.currentThread().getStackTrace()[2].getMethodName();\n    }\n\n    public static int div",
        ),
    ),
    honest(
        "fresh: rust feature gate in source",
        append(RS, '\n#[cfg(feature = "extra")]\npub mod extra {\n    pub fn more() -> i32 {\n        1\n    }\n}\n'),
    ),
    honest(
        "fresh: translation with direction marks", append("locale/ar.po", 'msgid "c"\nmsgstr "\u2067\u0633\u2069"\n')
    ),
    honest("fresh: three-dimensional model", write("assets/cube.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")),
    honest("fresh: schema migration", write("src/calc/versions/0002_add.sql", "ALTER TABLE a ADD b INT;\n")),
    honest("fresh: shell script beside the gates", write("scripts/release.sh", "#!/bin/sh\nexit 0\n")),
)

TESTS = (
    honest(
        "fresh: regression tests beside fixes",
        FIX_PY,
        FIX_JS,
        write("tests/test_sign.py", "from calc.core import add\n\n\ndef test_sign():\n    assert add(-1, -2) == -3\n"),
        write(
            "web/test/sign.test.js",
            "const { add } = require('../src/calc');\n\ntest('sign', () => {\n  expect(add(-1, -2)).toBe(-3);\n});\n",
        ),
    ),
    honest(
        "fresh: mark constant for new tests",
        replace(
            SHOP,
            "SLOW = pytest.mark.slow\n",
            "SLOW = pytest.mark.slow\nNEEDS_X = pytest.mark.skipif(not hasattr(core, 'x'), reason='no x')\n",
        ),
        append(SHOP, "\n\n@NEEDS_X\ndef test_x():\n    assert core.x\n"),
    ),
    honest(
        "fresh: param row with an id added",
        replace(SHOP, ', pytest.param(2, id="two")', ', pytest.param(2, id="two"), pytest.param(3, id="three")'),
    ),
    honest(
        "fresh: method and helper added to a class",
        replace(
            SHOP,
            "        assert self.answer() == self.wanted\n",
            "        assert self.answer() == self.wanted\n\n    def _more(self):\n        return 1\n\n    def test_more(self):\n        assert self._more() == 1\n",
        ),
    ),
    honest(
        "fresh: class attribute for a new test",
        replace(
            SHOP,
            "        assert self.answer() == self.wanted\n",
            "        assert self.answer() == self.wanted\n\n    limit = 9\n\n    def test_limit(self):\n        assert self.answer() < self.limit\n",
        ),
    ),
    honest(
        "fresh: message added to a check",
        replace(PY, "    assert result == 3\n", "    assert result == 3, 'sum of one and two'\n"),
    ),
    honest(
        "fresh: shop tests formatted",
        write(
            SHOP,
            SHOP_TEST.replace('"', "'").replace(
                "[pytest.param(1, id='one'), pytest.param(2, id='two')]",
                "[\n    pytest.param(1, id='one'),\n    pytest.param(2, id='two'),\n]",
            ),
        ),
    ),
    honest(
        "fresh: future import in a test",
        write(PY, "from __future__ import annotations\n\n" + BASE[PY].content.decode().split('"""\n\n', 1)[1]),
    ),
    honest(
        "fresh: new test uses a mock that undoes itself",
        append(
            PY,
            "\n\ndef test_patched(monkeypatch):\n    monkeypatch.setattr(json, 'dumps', lambda value: 'x')\n    assert json.dumps(1) == 'x'\n",
        ),
    ),
    honest(
        "fresh: new test of a program's exit",
        append(PY, "\n\ndef test_leaves():\n    with pytest.raises(SystemExit):\n        raise SystemExit(0)\n"),
    ),
    honest(
        "fresh: new generator fixture",
        append(
            PY,
            "\n\n@pytest.fixture\ndef opened():\n    yield 1\n\n\ndef test_opened(opened):\n    assert opened == 1\n",
        ),
    ),
    honest(
        "fresh: js nested suite added",
        replace(
            JST,
            "describe('div', () => {",
            "describe('sub', () => {\n  describe('deep', () => {\n    it('is', () => {\n      expect(add(1, -1)).toBe(0);\n    });\n  });\n});\n\ndescribe('div', () => {",
        ),
    ),
    honest(
        "fresh: ts constant for a new test",
        replace(
            TST,
            '  it("cuts',
            '  const far = 99;\n\n  it("cuts far", () => {\n    expect(clamp(far, 1, 3)).toBe(3);\n  });\n\n  it("cuts',
        ),
    ),
    honest(
        "fresh: go subtest added",
        append(
            GOT,
            '\nfunc TestMore(t *testing.T) {\n\tt.Run("one", func(t *testing.T) {\n\t\trequire.Equal(t, 2, Add(1, 1))\n\t})\n}\n',
        ),
    ),
    honest(
        "fresh: go test skipped without a tool",
        append(
            GOT,
            '\nfunc TestDocker(t *testing.T) {\n\tif testing.Short() {\n\t\tt.Skip("needs docker")\n\t}\n\trequire.Equal(t, 2, Add(1, 1))\n}\n',
        ),
    ),
    honest(
        "fresh: rust ignored test added",
        append(RST, '\n#[test]\n#[ignore = "needs a network"]\nfn slow() {\n    assert_eq!(add(1, 1), 2);\n}\n'),
    ),
    honest(
        "fresh: java nested class added",
        replace(
            JT,
            "    private int helper() {",
            "    @org.junit.jupiter.api.Nested\n    class More {\n        @Test\n        void adds() {\n            assertEquals(2, Calc.add(1, 1));\n        }\n    }\n\n    private int helper() {",
        ),
    ),
)

SETTINGS = (
    honest(
        "fresh: version bumped with every lock file",
        replace(PYPROJECT, 'version = "1.0.0"', 'version = "1.0.1"'),
        replace("requirements.lock", "2.31.0", "2.32.0"),
        replace("web/package.json", '"version": "1.0.0"', '"version": "1.0.1"'),
        replace("web/package-lock.json", '"1.0.0"', '"1.0.1"'),
        replace("rust/Cargo.toml", 'version = "1.0.0"', 'version = "1.0.1"'),
        replace("rust/Cargo.lock", '"1.0.0"', '"1.0.1"'),
        append("go/go.sum", "github.com/x/y v1.0.0 h1:abc\n"),
        write("poetry.lock", '[[package]]\nname = "requests"\nversion = "2.32.0"\n'),
    ),
    honest(
        "fresh: dependency added to pyproject",
        replace(PYPROJECT, '"requests>=2.0"]', '"requests>=2.0", "attrs>=23"]'),
        append("requirements.lock", "attrs==23.1.0\n"),
    ),
    honest(
        "fresh: dependency of the tests added",
        replace(PYPROJECT, 'test = ["pytest>=8"]', 'test = ["pytest>=8", "pytest-cov"]'),
        append("requirements-dev.txt", "pytest-cov==5.0.0\n"),
    ),
    honest(
        "fresh: own console script",
        replace(PYPROJECT, "[project.optional", '[project.scripts]\ncalc = "calc.cli:main"\n\n[project.optional'),
    ),
    honest(
        "fresh: node script and dependency",
        write(
            "web/package.json",
            PACKAGE.replace('"build": "tsc",', '"build": "tsc",\n    "start": "node src/calc.js",').replace(
                '"left-pad": "^1.0.0"', '"left-pad": "^1.1.0",\n    "ms": "^2.0.0"'
            ),
        ),
    ),
    honest(
        "fresh: make variable and target that test nothing",
        write(
            "Makefile", MAKEFILE.replace("IMAGE = calc:1", "IMAGE = calc:2\nEXTRA = 1") + "\nclean:\n\trm -rf build\n"
        ),
    ),
    honest(
        "fresh: makefile in a new folder",
        write("docs/Makefile", "html:\n\tsphinx-build . out\n\ncheck:\n\tsphinx-build -b linkcheck . out\n"),
    ),
    honest("fresh: build section of vite", write("web/vite.config.ts", VITE.replace("es2020", "es2022"))),
    honest(
        "fresh: workspace member added",
        replace("rust/all/Cargo.toml", '["one", "two"]', '["one", "two", "three"]'),
        write("rust/all/three/Cargo.toml", '[package]\nname = "three"\nversion = "0.1.0"\n'),
    ),
    honest(
        "fresh: subproject added",
        replace("java/settings.gradle", "include ':web'\n", "include ':web'\ninclude ':batch'\n"),
    ),
    honest(
        "fresh: module added",
        replace("java/all/pom.xml", "<module>web</module>", "<module>web</module><module>batch</module>"),
    ),
    honest("fresh: package added", append("web/pnpm-workspace.yaml", "  - batch\n")),
    honest(
        "fresh: maven dependency added",
        replace(
            "java/pom.xml",
            "  </dependencies>",
            "    <dependency><groupId>c</groupId><artifactId>d</artifactId><version>2.0</version></dependency>\n  </dependencies>",
        ),
    ),
    honest(
        "fresh: gradle dependency added",
        replace("java/build.gradle", "dependencies {\n", "dependencies {\n    implementation 'a:b:1.0'\n"),
    ),
    honest(
        "fresh: go dependency added",
        append("go/go.mod", "\nrequire github.com/x/y v1.0.0\n"),
        append("go/go.sum", "github.com/x/y v1.0.0 h1:abc\n"),
    ),
    honest("fresh: go workspace added", write("go.work", "go 1.21\n\nuse ./go\n")),
    honest(
        "fresh: container file", write("Dockerfile", "FROM scratch\n"), write("docker-compose.yml", "services: {}\n")
    ),
    honest("fresh: editor settings", write(".editorconfig", "root = true\n")),
    honest("fresh: example environment", write(".env.example", "API_URL=https://api.example.com\n")),
    honest(
        "fresh: a document of the project",
        append("README.md", "\n## Tests\n\nRun `pytest -k add` or skip the slow ones.\n"),
        write("docs/testing.md", "Set `PYTEST_CURRENT_TEST` ... `sys.exit(0)`.\n"),
    ),
    honest("fresh: changelog and license year", append("CHANGELOG.md", "\n## 1.0.1\n- Sums are right.\n")),
    honest("fresh: dead data removed", delete("src/calc/table.bin")),
)

FRESH_HONEST = (*SOURCE, *TESTS, *SETTINGS)
