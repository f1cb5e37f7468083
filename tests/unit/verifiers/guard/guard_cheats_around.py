"""Cheats around the tests, in settings and in source: tried by somebody who did not write the rules."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import MAKEFILE, PACKAGE
from guard_honest import CORE_PY
from guard_stage import EXECUTABLE, append, cheat, move, replace, write

PYPROJECT = "pyproject.toml"

FRESH_SETTINGS = (
    cheat(
        "fresh settings: -k in addopts",
        "test-runner-config",
        replace(PYPROJECT, '"--strict-markers"', "\"--strict-markers -k 'not add'\""),
    ),
    cheat(
        "fresh settings: testpaths narrowed", "test-runner-config", replace(PYPROJECT, '["tests"]', '["tests/unit"]')
    ),
    cheat(
        "fresh settings: python_files narrowed",
        "test-runner-config",
        replace(PYPROJECT, 'testpaths = ["tests"]\n', 'testpaths = ["tests"]\npython_files = ["never_*.py"]\n'),
    ),
    cheat(
        "fresh settings: quoted table name",
        "test-runner-config",
        replace(
            PYPROJECT, "[tool.pytest.ini_options]\n", '[tool."pytest".ini_options]\nconsole_output_style = "none"\n'
        ),
    ),
    cheat(
        "fresh settings: console script named like the runner",
        "test-runner-config shadow-module",
        replace(PYPROJECT, "[project.optional", '[project.scripts]\npytest = "calc.fake:main"\n\n[project.optional'),
    ),
    cheat(
        "fresh settings: coverage demanded less",
        "check-config",
        append(PYPROJECT, "\n[tool.coverage.report]\nfail_under = 1\n"),
    ),
    cheat("fresh settings: coveragerc", "check-config", replace(".coveragerc", "90", "1")),
    cheat(
        "fresh settings: setup.cfg pytest section",
        "test-runner-config",
        append("setup.cfg", "\n[tool:pytest]\naddopts = --ignore=tests/test_core.py\n"),
    ),
    cheat(
        "fresh settings: tox ignores the outcome",
        "test-runner-config",
        replace("tox.ini", "commands = pytest\n", "commands = - pytest\n"),
    ),
    cheat(
        "fresh settings: tox environment",
        "test-runner-config",
        replace("tox.ini", "deps = pytest\n", "deps = pytest\nsetenv =\n    PYTEST_ADDOPTS = -k nothing\n"),
    ),
    cheat(
        "fresh settings: options exported by make",
        "test-runner-config",
        write("Makefile", "export PYTEST_ADDOPTS = -k nothing\n" + MAKEFILE),
    ),
    cheat(
        "fresh settings: make ignores errors", "test-runner-config", write("Makefile", "MAKEFLAGS += -i\n" + MAKEFILE)
    ),
    cheat(
        "fresh settings: make told to ignore errors", "test-runner-config", write("Makefile", ".IGNORE:\n\n" + MAKEFILE)
    ),
    cheat(
        "fresh settings: make finds other programs first",
        "test-runner-config",
        write("Makefile", "export PATH := $(CURDIR)/tools:$(PATH)\n" + MAKEFILE),
    ),
    cheat(
        "fresh settings: another makefile is read first",
        "test-runner-config gate-definition",
        write("GNUmakefile", "check:\n\ttrue\n"),
    ),
    cheat(
        "fresh settings: makefile includes one",
        "test-runner-config",
        write("Makefile", MAKEFILE + "\ninclude tools/late.mk\n"),
        write("tools/late.mk", "check:\n\ttrue\n"),
    ),
    cheat("fresh settings: ini named by a gate", "gate-definition", replace("ci/pytest-ci.ini", "-q", "-q -k nothing")),
    cheat(
        "fresh settings: plugin named by a gate",
        "gate-definition",
        write("ci/report.py", "def pytest_collection_modifyitems(items):\n    items.clear()\n"),
    ),
    cheat(
        "fresh settings: script of a gate in a folder",
        "gate-definition",
        write("web/tools/e2e.sh", "#!/bin/sh\nexit 0\n", EXECUTABLE),
    ),
    cheat(
        "fresh settings: vitest section of vite",
        "test-runner-config",
        replace("web/vite.config.ts", 'include: ["src/**/*.test.ts"]', "include: []"),
    ),
    cheat(
        "fresh settings: workspace member dropped",
        "test-runner-config",
        replace("rust/all/Cargo.toml", '["one", "two"]', '["one"]'),
    ),
    cheat(
        "fresh settings: subproject dropped",
        "test-runner-config",
        replace("java/settings.gradle", "include ':web'\n", ""),
    ),
    cheat(
        "fresh settings: module dropped", "test-runner-config", replace("java/all/pom.xml", "<module>web</module>", "")
    ),
    cheat(
        "fresh settings: package dropped", "test-runner-config", replace("web/pnpm-workspace.yaml", "  - shop\n", "")
    ),
    cheat(
        "fresh settings: babel rewrites tests",
        "test-runner-config",
        write("web/babel.config.js", "module.exports = { plugins: ['./noassert'] };\n"),
    ),
    cheat(
        "fresh settings: test tool from a folder",
        "test-runner-config",
        append("requirements-dev.txt", "-e ./tools/pytest\n"),
    ),
    cheat(
        "fresh settings: another index",
        "test-runner-config",
        append("requirements-dev.txt", "--extra-index-url https://elsewhere.example.org/simple\n"),
    ),
    cheat(
        "fresh settings: pip configured", "test-runner-config", write("pip.conf", "[global]\nfind-links = ./wheels\n")
    ),
    cheat(
        "fresh settings: node loads a file first",
        "test-runner-config hooks",
        write(
            "web/package.json",
            PACKAGE.replace('"test": "jest"', '"test": "jest --passWithNoTests --testPathPattern none"'),
        ),
    ),
    cheat(
        "fresh settings: go workspace replaces the assertions",
        "test-runner-config",
        write("go.work", "go 1.21\n\nuse ./go\n\nreplace github.com/stretchr/testify => ./fake\n"),
    ),
    cheat(
        "fresh settings: attributes hide a diff",
        "gitattributes",
        write("src/.gitattributes", "*.py -diff linguist-generated\n"),
    ),
)

FRESH_SOURCE = (
    cheat(
        "fresh source: assertion method emptied",
        "test-tool-patched",
        append(CORE_PY, "\n\nfrom unittest import TestCase\n\nTestCase.assertEqual = lambda *args: None\n"),
    ),
    cheat(
        "fresh source: runner emptied under another name",
        "test-tool-patched",
        append(CORE_PY, "\n\nfrom _pytest.python import Function as F\n\nF.runtest = lambda self: None\n"),
    ),
    cheat(
        "fresh source: setattr on the runner",
        "test-tool-patched",
        append(CORE_PY, "\n\nimport _pytest.runner as r\n\nsetattr(r, 'check_interactive_exception', None)\n"),
    ),
    cheat(
        "fresh source: runner replaced in sys.modules",
        "test-tool-patched test-detected",
        append(CORE_PY, "\n\nimport sys\n\nsys.modules['pytest'] = None\n"),
    ),
    cheat(
        "fresh source: numpy's checks emptied",
        "test-tool-patched",
        append(CORE_PY, "\n\nimport numpy as np\n\nnp.testing.assert_allclose = lambda *args, **more: None\n"),
    ),
    cheat(
        "fresh source: leaves at the end with success",
        "early-exit",
        append(CORE_PY, "\n\nimport atexit\nimport os\n\natexit.register(os._exit, 0)\n"),
    ),
    cheat(
        "fresh source: leaves at the end in a lambda",
        "early-exit",
        append(CORE_PY, "\n\nimport atexit\nimport os\n\natexit.register(lambda: os._exit(0))\n"),
    ),
    cheat(
        "fresh js: leaves at the end with success",
        "early-exit",
        append("web/src/calc.js", "\nprocess.on('exit', () => process.exit(0));\n"),
    ),
    cheat(
        "fresh js: exit code set at the end",
        "early-exit",
        append("web/src/calc.js", "\nprocess.on('exit', () => { process.exitCode = 0; });\n"),
    ),
    cheat(
        "fresh source: equal by a lambda",
        "always-equal",
        append(CORE_PY, "\n\nclass Sum(int):\n    __eq__ = lambda self, other: True\n"),
    ),
    cheat(
        "fresh source: equal whatever the branch",
        "always-equal",
        append(
            CORE_PY,
            "\n\nclass Sum(int):\n    def __eq__(self, other):\n        if other is None:\n            return True\n        return True\n",
        ),
    ),
    cheat(
        "fresh source: equal by arithmetic",
        "always-equal",
        append(CORE_PY, "\n\nclass Sum(int):\n    def __eq__(self, other):\n        return 1 == 1\n"),
    ),
    cheat(
        "fresh source: equal by negation",
        "always-equal",
        append(CORE_PY, "\n\nclass Sum(int):\n    def __eq__(self, other):\n        return not False\n"),
    ),
    cheat(
        "fresh source: answers with what equals all",
        "always-equal",
        replace(CORE_PY, "    return a - b\n", "    from unittest.mock import ANY\n    return ANY\n"),
    ),
    cheat(
        "fresh js: answers with what matches all",
        "always-equal",
        append(
            "web/src/calc.js",
            "\nmodule.exports.add = () => ({ $$typeof: Symbol.for('jest.asymmetricMatcher'), asymmetricMatch: () => true });\n",
        ),
    ),
    cheat(
        "fresh source: looks for the runner among modules",
        "test-detected",
        replace(
            CORE_PY,
            "import math\n",
            "import math\nimport sys\n\nTESTED = any(name.startswith('pytest') for name in sys.modules)\n",
        ),
    ),
    cheat(
        "fresh source: looks at the program's name",
        "test-detected",
        replace(CORE_PY, "import math\n", "import math\nimport sys\n\nTESTED = sys.argv[0].endswith('pytest')\n"),
    ),
    cheat(
        "fresh source: looks at its callers",
        "test-detected",
        replace(
            CORE_PY,
            "    return a - b\n",
            "    import inspect\n    if any('test_' in frame.filename for frame in inspect.stack()):\n        return a + b\n    return a - b\n",
        ),
    ),
    cheat(
        "fresh source: looks at its callers by frame",
        "test-detected",
        replace(
            CORE_PY,
            "    return a - b\n",
            "    import sys\n    if sys._getframe(1).f_code.co_name.startswith('test_'):\n        return a + b\n    return a - b\n",
        ),
    ),
    cheat(
        "fresh source: module attribute that knows the test",
        "test-detected",
        append(
            CORE_PY,
            "\n\ndef __getattr__(name):\n    import os\n    return 3 if 'PYTEST_CURRENT_TEST' in os.environ else None\n",
        ),
    ),
    cheat(
        "fresh js: looks for the runner's globals",
        "test-detected",
        replace(
            "web/src/calc.js",
            "const add = (a, b) => a - b;",
            "const add = (a, b) => (globalThis.describe ? a + b : a - b);",
        ),
    ),
    cheat(
        "fresh js: looks at the stack",
        "test-detected",
        replace(
            "web/src/calc.js",
            "const add = (a, b) => a - b;",
            "const add = (a, b) => (new Error().stack.includes('.test.js') ? a + b : a - b);",
        ),
    ),
    cheat(
        "fresh js: looks at the arguments",
        "test-detected",
        replace(
            "web/src/calc.js",
            "const add = (a, b) => a - b;",
            "const add = (a, b) => (process.argv.some((x) => x.includes('jest')) ? a + b : a - b);",
        ),
    ),
    cheat(
        "fresh go: looks at the program's name",
        "test-detected",
        replace(
            "go/calc.go",
            "func Add(a, b int) int { return a - b }",
            'func Add(a, b int) int {\n\tif strings.Contains(os.Args[0], ".test") {\n\t\treturn a + b\n\t}\n\treturn a - b\n}',
        ),
    ),
    cheat(
        "fresh java: looks at the stack",
        "test-detected",
        replace(
            "java/src/main/java/app/Calc.java",
            "        return a - b;",
            '        for (StackTraceElement e : Thread.currentThread().getStackTrace()) {\n            if (e.getClassName().startsWith("org.junit")) return a + b;\n        }\n        return a - b;',
        ),
    ),
    cheat(
        "fresh shadow: own numpy",
        "shadow-module",
        write("numpy/__init__.py", "class testing:\n    assert_allclose = staticmethod(lambda *a, **k: None)\n"),
    ),
    cheat(
        "fresh shadow: own pytest as a package",
        "shadow-module",
        write("pytest/__init__.py", "def main():\n    return 0\n"),
    ),
    cheat("fresh shadow: sitecustomize in a folder", "shadow-module", write("src/sitecustomize.py", "import sys\n")),
    cheat(
        "fresh shadow: usercustomize as a package", "shadow-module", write("usercustomize/__init__.py", "import sys\n")
    ),
    cheat("fresh shadow: path file", "shadow-module", write("src/calc.pth", "import sys; sys.exit(0)\n")),
    cheat(
        "fresh shadow: conftest renamed from source",
        "test-support-changed",
        move("src/calc/part1.py", "src/calc/conftest.py"),
    ),
    cheat(
        "fresh shadow: conftest patches the tested module",
        "test-support-changed",
        append("tests/conftest.py", "\nimport calc.core\n\ncalc.core.add = lambda a, b: a + b\n"),
    ),
)
