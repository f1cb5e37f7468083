"""The small parts: globs, sides, gate commands, secrets, manifests, growth."""

from __future__ import annotations

import pytest
from guard_stage import change_of, tree

from becket.kernel.contract.globs import matches
from becket.kernel.contract.lines import added_lines, shown
from becket.kernel.engine.secret_lines import secrets_in
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.gates import GatePrograms
from becket.parts.guard.reading.moves import absolute_origin
from becket.parts.guard.reading.side import TestSide, would_run
from becket.parts.guard.reading.task_runners import obeys_otherwise
from becket.parts.guard.section import GuardConfig


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("tests/**", ["tests/a.py", "tests/x/y.py"], ["tests", "src/tests/a.py", "atests/a.py"]),
        ("**/tests/**", ["tests/a.py", "x/tests/a/b.py"], ["x/tests", "mytests/a.py"]),
        ("conftest.py", ["conftest.py", "a/b/conftest.py"], ["conftest.pyx", "myconftest.py"]),
        ("/conftest.py", ["conftest.py"], ["a/conftest.py"]),
        ("*_test.go", ["a_test.go", "x/y/a_test.go"], ["a_test.gox"]),
        ("**/*.test.*", ["a.test.ts", "x/a.test.js"], ["a.tests.ts"]),
        ("src/*.py", ["src/a.py"], ["src/a/b.py"]),
        ("docs/", ["docs/a.md", "x/docs/a.md"], ["docsy/a.md"]),
        ("a?c", ["abc", "x/abc"], ["a/c", "ac"]),
        ("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "/.txt"]),
        ("[!a].txt", ["b.txt"], ["a.txt"]),
        ("we[[]ird/**", ["we[ird/x"], ["weird/x"]),
        ("*.{yml,yaml}", ["a.yml", "x/b.yaml"], ["a.ymlx", "a.json"]),
        ("odd{name", ["odd{name"], ["oddname"]),
        ("a.b+c(d)", ["a.b+c(d)"], ["aXb+c(d)"]),
        ("./tests/**", ["tests/a"], ["x/tests/a"]),
    ],
)
def test_globs_read_like_gitignore(pattern: str, inside: list[str], outside: list[str]) -> None:
    assert [path for path in inside if not matches(path, [pattern])] == []
    assert [path for path in outside if matches(path, [pattern])] == []


def test_no_pattern_matches_nothing() -> None:
    assert not matches("a", ())


@pytest.mark.parametrize(
    ("path", "runs"),
    [
        ("tests/test_a.py", True),
        ("a_test.py", True),
        ("tests/a.py", False),
        ("tests/.old/test_a.py", False),
        ("build/test_a.py", False),
        ("x/a_test.go", True),
        ("x/a_linux_test.go", True),
        ("x/a_windows_test.go", False),
        ("_x/a_test.go", False),
        ("src/a.test.ts", True),
        ("src/a.tests.ts", False),
        ("src/test/java/app/ATest.java", True),
        ("src/test/java/app/A.java", False),
        ("src/main/java/app/ATest.java", False),
    ],
)
def test_which_files_a_runner_takes(path: str, runs: bool) -> None:
    assert would_run(path) is runs


def test_sides() -> None:
    side = TestSide(["spec/**"])
    assert side.declared("spec/a.rb")
    assert not side.declared("a_test.go")
    assert side.holds("a_test.go")
    assert not side.holds("src/testing.py")


@pytest.mark.parametrize(
    ("command", "files", "targets"),
    [
        ("./scripts/test.sh --all", {"scripts/test.sh"}, set()),
        ("bash -eu ci/run && make test lint", {"ci/run"}, {"test", "lint"}),
        ("sh -c 'tools/check.py; true'", {"tools/check.py"}, set()),
        ("CI=1 ./run.sh | tee log", {"run.sh"}, set()),
        ("npm run test:unit -- --ci", set(), {"test:unit"}),
        ("pytest tests/test_a.py -q", set(), set()),
        ("python -m pytest", set(), set()),
        ("python app.py --selftest", set(), set()),
        ("python run_tests.py", {"run_tests.py"}, set()),
        ("sh gate", {"gate"}, set()),
        ("go test ./...", set(), set()),
        ("echo 'unclosed", set(), set()),
        ("cd web\nyarn test", set(), {"test"}),
    ],
)
def test_what_gates_run(command: str, files: set[str], targets: set[str]) -> None:
    found = GatePrograms.of([command])
    assert (set(found.files), set(found.targets)) == (files, targets)


@pytest.mark.parametrize(
    ("command", "path", "runner"),
    [
        ("make test", "Makefile", "make"),
        ("make -C native test", "native/Makefile", "make"),
        ("make -f ci.mk test", "ci.mk", "make"),
        ("cd web && npm test", "web/package.json", "npm"),
        ("npm --prefix web test", "web/package.json", "npm"),
        ("bundle exec rake spec", "Rakefile", "rake"),
        ("python -m tox -q", "tox.ini", "tox"),
        ("uv run nox", "noxfile.py", "nox"),
    ],
)
def test_which_file_a_gates_runner_obeys(command: str, path: str, runner: str) -> None:
    assert GatePrograms.of([command]).runners_of(path) == (runner,)


def test_a_dependency_is_no_order_to_a_runner_and_a_script_is() -> None:
    before, bumped = b'{"scripts": {"test": "jest"}}', b'{"scripts": {"test": "jest"}, "dependencies": {"a": "1"}}'
    assert not obeys_otherwise("npm", "web/package.json", before, bumped)
    assert obeys_otherwise("npm", "web/package.json", before, b'{"scripts": {"test": "true"}}')
    assert obeys_otherwise("npm", "web/package.json", before, b"{")
    assert obeys_otherwise("make", "Makefile", b"test:\n\tpytest\n", b"test:\n\t@true\n")


SECRETS = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11BQ7LMZ0Kd72pXv9TzR4w_Wb3Yc6Np1Hf5Js0GaQm8Lr2Xv9Tz4Kd7Wb3Yc6Np1Hf5",
    "glpat-Zx8Kd02LmQp7Rt5Vb9Yw",
    "xoxb-2481632641-9247102937-Hq8sKd7LmPz3Vb5NcXwR",
    "AKIAQ3EGWZ5TM7K2NR4X",
    "AIzaSyD9fKq2LmX8vR3tBw7YzH5nJc4pQe6UgAk",
    "sk_live_51H8sKd7LmPz3Vb5NcXwRq2T",
    "sk-proj-Qm8Lr2Xv9Tz4Kd7Wb3Yc6Np1Hf5Js0Ga",
    "npm_q8Zk3Lm7Vb5NcXwRt2Yd9Hf4Jp6Gs1Qa0EuT",
    "bk_Qm8Lr2Xv9Tz4Kd7Wb3Yc6Np1Hf5Js0Ga7Re",
    "aws_secret_access_key = wJq3rLXUtnFEMI/K7MDENG/bPxRfiCYz8Kd02LmQ",
    "https://hooks.slack.com/services/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",
    "mysql://root:Xy7kQ92mLp@db.acme-corp.io:3306/x",
]
HARMLESS = [
    "AKIAIOSFODNN7EXAMPLE",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "sk-learn-based-estimator-with-a-long-name-indeed",
    "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "postgres://user:password@localhost:5432/db",
    "postgres://user:hunter22@db:5432/db",
    "https://user:${PASSWORD}@api.acme-corp.io",
    "https://git:<token>@github.com",
    "password = os.environ['PASSWORD']",
    "def token(self): return self._token",
    "integrity sha512-Zk3Lm7Vb5NcXwRt2Yd9Hf4Jp6Gs1Qa0EuTq8Zk3Lm7Vb5NcXwRt2Yd9Hf4Jp6Gs1Qa0EuT==",
    "3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
    "-----BEGIN PUBLIC KEY-----",
    "bk_count_of_all_the_things_in_here",
]


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_seen(text: str) -> None:
    """L25."""
    assert [number for number, _ in secrets_in(b"a\n", f"a\nx = '{text}'\n".encode())] == [2]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_like_a_secret_passes(text: str) -> None:
    assert list(secrets_in(b"", f"x = '{text}'\n".encode())) == []


def test_a_secret_that_was_there_before_is_not_added() -> None:
    line = f"x = '{SECRETS[0]}'\n".encode()
    assert list(secrets_in(line, b"# moved\n" + line)) == []
    assert list(secrets_in(line, b"if True:\n    " + line)) == []


def test_added_lines_are_those_found_nowhere_before() -> None:
    assert list(added_lines(b"a\nb\r\n", b"b\nc\na\n")) == [(2, "c")]


def test_a_shown_line_is_short_and_plain() -> None:
    assert shown("  a\tb\x1b[31m  ") == "a b [31m"
    assert len(shown("x" * 500)) == 100


@pytest.mark.parametrize(
    ("path", "origin", "absolute"),
    [
        ("tests/a/test_x.py", "calc.core:add", "calc.core:add"),
        ("tests/a/test_x.py", ".helpers:load", "tests/a/helpers:load"),
        ("tests/a/test_x.py", "..helpers:load", "tests/helpers:load"),
        ("web/test/x.test.js", "../src/calc:add", "web/src/calc:add"),
        ("web/test/a/x.test.js", "../../src/calc:add", "web/src/calc:add"),
    ],
)
def test_where_an_import_leads(path: str, origin: str, absolute: str) -> None:
    assert absolute_origin(path, origin) == absolute


def test_many_files_are_as_large_as_one() -> None:
    """Each within the limit, together far beyond it (L21)."""
    limits = GuardConfig(max_file=1_000)
    text = "x" * 78 + "\n"
    small = {f"data/{number}.txt": text * 10 for number in range(3)}
    large = {f"data/{number}.txt": text * 10 for number in range(9)}
    base = {"a.txt": "a\n"}
    assert "large-file" not in rules_of(base, base | small, limits)
    assert "large-file" in rules_of(base, base | large, limits)


def rules_of(old: dict[str, str], new: dict[str, str], limits: GuardConfig) -> set[str]:
    return {refusal.rule.value for refusal in examine(change_of(tree(old), tree(new)), limits, TestSide(()))}
