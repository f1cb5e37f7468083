"""Cheats beside the tests: the guard must refuse each, by a rule that names it."""

# ruff: noqa: E501  # a row of the table stays readable when its texts stay whole

from __future__ import annotations

from guard_base import BASE, CORE
from guard_honest import CORE_PY, FIX_PY, PY
from guard_stage import append, cheat, delete, link, move, replace, write

TREE = (
    cheat("protected path", "protected-path", append("LICENSE", "x\n")),
    cheat("protected folder", "protected-path", write("migrations/0001.sql", "drop table x;\n")),
    cheat("gate definition", "gate-definition", append("becket.yaml", "gates: {}\n")),
    cheat("loop definition", "gate-definition", write(".becket/loops/heal.yaml", "version: 1\n")),
    cheat("gate script stubbed", "gate-definition", write("scripts/gate.sh", "#!/bin/sh\nexit 0\n")),
    cheat("gate script by an interpreter", "gate-definition", write("scripts/smoke.py", "print('ok')\n")),
    cheat("gate target of make", "test-runner-config", replace("Makefile", "$(PYTEST) tests", "true")),
    cheat("variable of a gate target", "test-runner-config", replace("Makefile", "pytest -q", "true")),
    cheat("prerequisite of a gate target", "test-runner-config", replace("Makefile", "ruff check .", "true")),
    cheat("gate script of npm", "test-runner-config", replace("web/package.json", '"jest && tsc"', '"true"')),
    cheat("npm test", "test-runner-config", replace("web/package.json", '"test": "jest"', '"test": "true"')),
    cheat(
        "npm pretest",
        "test-runner-config",
        replace("web/package.json", '"test": "jest"', '"test": "jest", "pretest": "node cheat.js"'),
    ),
    cheat(
        "npm postinstall",
        "hooks",
        replace("web/package.json", '"test": "jest"', '"test": "jest", "postinstall": "node cheat.js"'),
    ),
    cheat(
        "jest section",
        "test-runner-config",
        replace("web/package.json", '"testEnvironment": "node"', '"testPathIgnorePatterns": ["calc"]'),
    ),
    cheat("own jest", "test-runner-config", replace("web/package.json", '"jest": "^29.0.0"', '"jest": "file:./fake"')),
    cheat("manifest made unreadable", "test-runner-config", write("web/package.json", "{")),
    cheat("jest config", "test-runner-config", write("web/jest.config.js", "module.exports = { testMatch: [] };\n")),
    cheat("vitest config", "test-runner-config", write("web/vitest.config.ts", "export default {};\n")),
    cheat("mocha config", "test-runner-config", write("web/.mocharc.json", "{}\n")),
    cheat("node_modules", "shadow-module", write("web/node_modules/jest/index.js", "module.exports = {};\n")),
    cheat("pytest options", "test-runner-config", replace("pyproject.toml", "--strict-markers", "-k 'not add'")),
    cheat(
        "pytest deselects",
        "test-runner-config",
        replace("pyproject.toml", "--strict-markers", "--deselect tests/test_core.py"),
    ),
    cheat(
        "pytest plugin entry",
        "test-runner-config",
        append("pyproject.toml", '\n[project.entry-points.pytest11]\ncheat = "calc.cheat"\n'),
    ),
    cheat("own pytest", "test-runner-config", replace("pyproject.toml", '"pytest>=8"', '"pytest @ file:///tmp/x"')),
    cheat("pytest.ini", "test-runner-config", write("pytest.ini", "[pytest]\naddopts = -p no:cacheprovider --co\n")),
    cheat("tox commands", "test-runner-config", replace("tox.ini", "commands = pytest", "commands = true")),
    cheat("tox pytest section", "test-runner-config", append("tox.ini", "\n[pytest]\naddopts = --co\n")),
    cheat("setup.cfg pytest section", "test-runner-config", append("setup.cfg", "\n[tool:pytest]\naddopts = --co\n")),
    cheat(
        "linter loosened",
        "check-config",
        replace("pyproject.toml", "line-length = 100", "line-length = 100\nexclude = ['src']"),
    ),
    cheat(
        "flake8 loosened",
        "check-config",
        replace("setup.cfg", "max-line-length = 100", "max-line-length = 100\nignore = E,F,W"),
    ),
    cheat("compiler loosened", "check-config", replace("web/tsconfig.json", '"strict": true', '"strict": false')),
    cheat("eslint switched off", "check-config", write("web/.eslintrc.json", "{}\n")),
    cheat(
        "conftest deselects",
        "test-support-changed",
        append("tests/conftest.py", "\n\ndef pytest_collection_modifyitems(items):\n    items.clear()\n"),
    ),
    cheat("new conftest", "test-runner-config", write("conftest.py", "collect_ignore = ['tests']\n")),
    cheat("conftest deleted", "test-support-changed", delete("tests/conftest.py")),
    cheat(
        "conftest in a folder of source",
        "test-runner-config",
        write("src/calc/conftest.py", "collect_ignore_glob = ['*']\n"),
    ),
    cheat("pytest variable in .env", "test-runner-config", write(".env", "PYTEST_ADDOPTS=--co\n")),
    cheat("ci", "ci-config", write(".github/workflows/ci.yml", "on: never\n")),
    cheat("ci of another kind", "ci-config", write(".gitlab-ci.yml", "a: b\n")),
    cheat("ci moved away", "ci-config", move(".github/workflows/ci.yml", "old/ci.yml")),
    cheat("jenkins", "ci-config", write("Jenkinsfile", "node {}\n")),
    cheat("commit hooks", "hooks", write(".githooks/pre-commit", "#!/bin/sh\n")),
    cheat("husky", "hooks", write("web/.husky/pre-push", "true\n")),
    cheat("pre-commit", "hooks", append(".pre-commit-config.yaml", "# x\nfail_fast: true\n")),
    cheat("gitattributes", "gitattributes", write("src/.gitattributes", "*.py filter=evil\n")),
    cheat("gitmodules", "submodule-changed", write(".gitmodules", "[submodule]\n")),
    cheat("submodule pointer", "submodule-changed", write("vendor/lib", "", "160000")),
    cheat(
        "lfs pointer",
        "lfs-pointer",
        write("model.dat", "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"),
    ),
    cheat("pytest.py", "shadow-module", write("pytest.py", "import sys\nsys.exit(0)\n")),
    cheat("pytest package under src", "shadow-module", write("src/pytest/__init__.py", "\n")),
    cheat("unittest package", "shadow-module", write("unittest/__init__.py", "\n")),
    cheat("library module at the top", "shadow-module", write("json.py", "def load(x):\n    return ['a', 'b']\n")),
    cheat(
        "library module beside the tests",
        "shadow-module",
        write("tests/json.py", "def load(x):\n    return ['a', 'b']\n"),
    ),
    cheat("sitecustomize", "shadow-module", write("src/sitecustomize.py", "x = 1\n")),
    cheat("usercustomize", "shadow-module", write("usercustomize.py", "x = 1\n")),
    cheat("path file", "shadow-module", write("cheat.pth", "import os\n")),
    cheat("stale pyc", "compiled-file", write("src/calc/__pycache__/core.cpython-311.pyc", b"\0\1\2")),
    cheat("pyc in the place of source", "compiled-file", write("src/calc/core.pyc", b"\0\1\2")),
    cheat(
        "half the tree deleted",
        "mass-deletion test-deleted test-support-changed test-runner-config ci-config hooks gate-definition protected-path gitattributes",
        *(delete(path) for path in list(BASE)[: len(BASE) // 2]),
    ),
    cheat(
        "a third of the source deleted",
        "mass-deletion",
        *(delete(f"src/calc/part{n}.py") for n in range(12)),
        delete("src/calc/legacy.py"),
        delete("src/calc/model_pb2.py"),
        delete("README.md"),
        delete("CHANGELOG.md"),
    ),
    cheat("file emptied", "mass-deletion test-deleted", write(CORE_PY, "\n")),
    cheat("binary", "binary-added", write("src/calc/blob.bin", b"\0\1\2\3")),
    cheat("program named like a picture", "binary-added", write("docs/shot.png", b"\x7fELF\0\0\0")),
    cheat("program in the place of data", "binary-added", write("src/calc/table.bin", b"\x7fELF\0\0\0")),
    cheat("large file", "large-file", write("data.csv", b"1,2\n" * 1_500_000)),
    cheat("link to an absolute path", "symlink-escape", link("src/calc/etc", "/etc/passwd")),
    cheat("link out of the tree", "symlink-escape", link("src/calc/up", "../../../x")),
    cheat("link into git", "symlink-escape", link("src/config", "../.git/config")),
    cheat("link through a link", "symlink-escape", link("a/b", "c/../../x")),
    cheat("git folder inside", "path-oddity", write("src/.git/config", "[core]\n")),
    cheat("git folder in disguise", "path-oddity", write("src/.GIT ./config", "[core]\n")),
    cheat("trailing blank", "path-oddity", write("src/calc/core.py ", "x = 1\n")),
    cheat("control character", "path-oddity", write("src/calc/a\x07.py", "x = 1\n")),
    cheat("same name in other case", "path-oddity", write("src/calc/Core.py", "x = 1\n")),
    cheat(
        "conflict markers",
        "conflict-markers",
        replace(
            CORE_PY, "    return a - b\n", "<<<<<<< HEAD\n    return a - b\n=======\n    return a + b\n>>>>>>> fix\n"
        ),
    ),
    cheat(
        "conflict markers in a document",
        "conflict-markers",
        append("README.md", "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> fix\n"),
    ),
    cheat("aws key", "secret-added", append(CORE_PY, '\nKEY = "AKIAQ3EGWZ5TM7K2NR4X"\n')),
    cheat("github token", "secret-added", append("README.md", "\nghp_16C7e42F292c6912E7710c838347Ae178B4a\n")),
    cheat(
        "private key",
        "secret-added",
        write(
            "key.pem",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAzsiJz8QmTj7YqGkLwU0bN3aVRx5KfDp2sCtEoHyBvXcWgI9u\n-----END RSA PRIVATE KEY-----\n",
        ),
    ),
    cheat(
        "password in an address",
        "secret-added",
        append(CORE_PY, '\nURL = "postgres://admin:Zk93jQpL@db.acme-corp.io/x"\n'),
    ),
    cheat(
        "secret in a test",
        "secret-added",
        append(PY, '\n\nTOKEN = "xoxb-2481632641-9247102937-Hq8sKd7LmPz3Vb5NcXwR"\n'),
    ),
    cheat("text that turns round", "hidden-text", append(CORE_PY, "\n# \u202e evil \u2066\n")),
    cheat(
        "py: always equal",
        "always-equal",
        append(CORE_PY, "\n\nclass Sum(int):\n    def __eq__(self, other):\n        return True\n"),
    ),
    cheat(
        "py: never unequal",
        "always-equal",
        append(
            CORE_PY, '\n\nclass Sum(int):\n    def __ne__(self, other):\n        """Never."""\n        return False\n'
        ),
    ),
    cheat("py: exit at load", "early-exit", write(CORE_PY, "import sys\n\nsys.exit(0)\n" + CORE)),
    cheat("py: hard exit at load", "early-exit", append(CORE_PY, "\nimport os\n\nif True:\n    os._exit(0)\n")),
    cheat("py: raise SystemExit at load", "early-exit", append(CORE_PY, "\nraise SystemExit(0)\n")),
    cheat(
        "py: knows that it is tested",
        "test-detected",
        replace(
            CORE_PY, "    return a - b\n", "    import sys\n\n    return a + b if 'pytest' in sys.modules else a - b\n"
        ),
    ),
    cheat(
        "py: knows the current test",
        "test-detected",
        replace(
            CORE_PY,
            "    return a - b\n",
            "    import os\n\n    return a + b if os.environ.get('PYTEST_CURRENT_TEST') else a - b\n",
        ),
    ),
    cheat(
        "py: unittest patched from source",
        "test-tool-patched",
        append(CORE_PY, "\n\nimport unittest\n\nunittest.TestCase.assertEqual = lambda *a: None\n"),
    ),
    cheat(
        "py: pytest patched from source",
        "test-tool-patched",
        append(CORE_PY, "\n\nimport pytest\n\nsetattr(pytest, 'raises', None)\n"),
    ),
    cheat(
        "a fix with a cheat beside it",
        "test-skipped",
        FIX_PY,
        replace(PY, "def test_root(", "@pytest.mark.skip\ndef test_root("),
    ),
)
