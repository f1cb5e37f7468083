"""Reading shell commands without running them."""

from __future__ import annotations

import pytest

from becket.kernel.checks.shell import Program, cannot_fail, program_of


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("pytest -q", Program("", "pytest")),
        ("CI=true FOO='a b' npm test", Program("", "npm")),
        ("cd web && npm test", Program("web", "npm")),
        ("cd web && cd app; ./run", Program("web/app", "./run")),
        ("(cd 'my web' && npm ci) && (cd b && make)", Program("my web", "npm")),
        ("set -x; export A=1; make", Program("", "make")),
        ("exec env A=1 ./server --port 1", Program("", "./server")),
        ("2>log.txt make test", Program("", "make")),
        ("make \\\n test", Program("", "make")),
        ("echo start\nmake", Program("", "make")),
        ("echo 'a && b' && go vet", Program("", "go")),
        (".venv/bin/python -m pytest", Program("", ".venv/bin/python")),
        ("$RUNNER x", None),
        ("`which x` y", None),
        ("~/bin/x", None),
        ("cd $HOME && x", None),
        ("nice -n 5 make", None),
        ("if true; then make; fi", None),
        ("echo hello", None),
        ("", None),
    ],
)
def test_the_first_program_of_a_command(text: str, program: Program | None) -> None:
    assert program_of(text) == program


def test_an_unclosed_quote_is_an_error() -> None:
    with pytest.raises(ValueError, match="quotation"):
        program_of("echo 'x")


@pytest.mark.parametrize(
    ("text", "toothless"),
    [
        ("pytest", False),
        ("pytest && true", False),
        ("false || pytest", False),
        ("echo a && exit 1", False),
        ("pytest; true", False),
        ("pytest 2>&1", False),
        ("set -o pipefail; pytest | tee log", False),
        ("grep x log | sort", False),
        ("pytest && echo done", False),
        ("echo 'unclosed", False),
        ("pytest || true", True),
        ("pytest || :", True),
        ("pytest || exit 0", True),
        ("pytest || echo failed", True),
        ("pytest | tee log", True),
        ("pytest |& cat", True),
        ("pytest &", True),
        ("true", True),
        ("echo ok; exit 0", True),
        ("  ", True),
    ],
)
def test_a_command_that_cannot_fail(text: str, toothless: bool) -> None:
    """L11."""
    assert cannot_fail(text) is toothless


def test_without_dash_e_the_last_command_decides() -> None:
    assert cannot_fail("jest; true", stops_at_error=False)
    assert not cannot_fail("true; jest", stops_at_error=False)
