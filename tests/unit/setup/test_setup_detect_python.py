"""Python projects: what counts as evidence, which command is proposed, and what set-up never does."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from becket.kernel.contract.process import Network
from becket.parts.init.detect import Detected, detect
from becket.parts.init.ecosystem import Tools

Look = Callable[[Mapping[str, str]], Detected]

PYTEST = "python3 -m pytest -q --junitxml=report.xml"
TEST = {"tests/test_a.py": "def test_a(): pass\n"}


@pytest.mark.parametrize(
    ("files", "evidence"),
    [
        ({"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pyproject.toml"),
        ({"pytest.ini": "[pytest]\n"}, "pytest.ini"),
        ({"tox.ini": "[testenv]\ncommands = pytest\n"}, "tox.ini"),
        ({"setup.cfg": "[tool:pytest]\n", **TEST}, "setup.cfg"),
        (TEST, "tests/test_a.py"),
        ({"test_top.py": ""}, "test_top.py"),
        ({"tests/deep/er/a_test.py": ""}, "tests/deep/er/a_test.py"),
    ],
)
def test_pytest_is_found_by_its_settings_or_its_files(look: Look, files: Mapping[str, str], evidence: str) -> None:
    (found,) = look(files).ecosystems
    assert (found.name, found.evidence) == ("python", evidence)
    (step,) = found.fast
    assert (step.name, step.run, step.report) == ("pytest", PYTEST, "junit:report.xml")
    assert (step.rerun, step.min_tests) == ("python3 -m pytest -q --junitxml=report.xml {tests}", 1)
    assert found.setup is None
    assert found.missing == ()


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"tests/a.test.js": ""},
        {"setup.cfg": "[flake8]\nmax-line-length = 100\n"},
        {"tox.ini": "[flake8]\n"},
        {".hidden/test_a.py": ""},
        {"node_modules/x/test_a.py": ""},
        {"README.md": "run pytest"},
    ],
)
def test_what_is_no_python_project(look: Look, files: Mapping[str, str]) -> None:
    assert look(files).ecosystems == ()


SCRIPT = "import sys\n\ndef main():\n    return int(sys.argv[1])\n\nsys.exit(main())\n"


@pytest.mark.parametrize("name", ["scripts/regex_test.py", "regex_test.py", "tests/regex_test.py"])
def test_a_script_that_is_called_a_test_is_none(look: Look, name: str) -> None:
    found = look({name: SCRIPT, "Makefile": "all:\n\tcc x.c\n"})
    assert found.fast == ()
    assert found.notes == (f"these were seen, and no command that runs their tests is known: Makefile, {name}",)
    beside = look({"setup.py": "", name: SCRIPT, "tests/test_a.py": "class Test_A:\n    def test_a(self): ...\n"})
    assert [step.name for step in beside.fast] == ["pytest"]


def test_a_project_without_tests_gets_no_test_step_but_is_told_so(look: Look) -> None:
    """L11: no command is made up that would pass or fail for want of tests."""
    (found,) = look({"pyproject.toml": "[project]\nname = 'x'\n", "requirements.txt": "requests\n"}).ecosystems
    assert found.fast == ()
    assert found.setup is None
    assert "no tests" in found.notes[0]


def test_pytest_named_without_test_files_is_proposed_with_a_warning(look: Look) -> None:
    (found,) = look({"pytest.ini": "[pytest]\n"}).ecosystems
    assert found.fast
    assert "red until" in found.notes[0]


@pytest.mark.parametrize(
    ("files", "run", "key"),
    [
        (
            {"uv.lock": "", "pyproject.toml": ""},
            "UV_PYTHON_DOWNLOADS=never uv sync --frozen --no-install-workspace",
            ("uv.lock", "pyproject.toml"),
        ),
        (
            {"uv.lock": "", "pyproject.toml": "[project.optional-dependencies]\nqa = ['pytest']\n"},
            "UV_PYTHON_DOWNLOADS=never uv sync --frozen --no-install-workspace --extra qa",
            ("uv.lock", "pyproject.toml"),
        ),
        (
            {"uv.lock": "", "pyproject.toml": "[dependency-groups]\ntests = ['pytest>8']\ndev = ['ruff']\n"},
            "UV_PYTHON_DOWNLOADS=never uv sync --frozen --no-install-workspace --group tests",
            ("uv.lock", "pyproject.toml"),
        ),
        (
            {"poetry.lock": "", "pyproject.toml": "[tool.poetry]\n"},
            "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-root --no-interaction",
            ("poetry.lock", "pyproject.toml"),
        ),
        (
            {
                "poetry.lock": "",
                "pyproject.toml": "[tool.poetry.group.qa]\noptional = true\n"
                "[tool.poetry.group.qa.dependencies]\npytest = '*'\n",
            },
            "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install --no-root --no-interaction --with qa",
            ("poetry.lock", "pyproject.toml"),
        ),
        (
            {"requirements.txt": "pytest==8\n"},
            "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements.txt",
            ("requirements.txt",),
        ),
        (
            {
                "requirements/dev.lock": "pytest==8\n",
                "requirements/dev.txt": "pytest\n",
                "requirements/docs.lock": "x\n",
            },
            "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements/dev.lock",
            ("requirements/dev.lock",),
        ),
        (
            {
                "requirements-dev.txt": "-c limits.txt\npytest\n",
                "limits.txt": "pytest==8\n",
                "requirements-docs.txt": "x",
            },
            "python3 -m venv .venv && .venv/bin/python -m pip install -r requirements-dev.txt",
            ("requirements-dev.txt", "limits.txt"),
        ),
    ],
)
def test_a_lock_becomes_the_set_up(look: Look, files: Mapping[str, str], run: str, key: tuple[str, ...]) -> None:
    (found,) = look({**files, **TEST}).ecosystems
    assert found.setup is not None
    assert (found.setup.run, found.setup.key, found.setup.network) == (run, key, Network.full)
    assert found.fast[0].run == ".venv/bin/python -m pytest -q --junitxml=report.xml"


@pytest.mark.parametrize("line", ["-e .", "--editable=.", ".", ".[test]", "./"])
def test_set_up_never_installs_the_project_itself(look: Look, line: str) -> None:
    """L6: a project installed into a cached set-up would be proven instead of the tree."""
    (found,) = look({"requirements.txt": f"pytest\n{line}\n", **TEST}).ecosystems
    assert found.setup is None
    assert "installs the project itself" in found.notes[0]


def test_an_unpinned_pytest_is_added_and_said(look: Look) -> None:
    (found,) = look({"requirements.txt": "requests\npytest-cov\n", **TEST}).ecosystems
    assert found.setup is not None
    assert found.setup.run.endswith("-r requirements.txt pytest")
    assert "pin it" in found.notes[0]


def test_pytest_is_not_mixed_into_requirements_with_hashes(look: Look) -> None:
    (found,) = look({"requirements.lock": "a==1 --hash=sha256:00\n", **TEST}).ecosystems
    assert found.setup is not None
    assert found.setup.run.endswith("-r requirements.lock")
    assert "add it there" in found.notes[0]


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({"pyproject.toml": "[project]\nname = 'x'\ndependencies = ['requests']\n"}, "requests pytest"),
        (
            {"pyproject.toml": "[dependency-groups]\nt = ['pytest>=8']\ndev = [{include-group='t'}]\n"},
            "'pytest>=8'",
        ),
        ({"pyproject.toml": "[project.optional-dependencies]\ntests = ['pytest', 'freezegun']\n"}, "pytest freezegun"),
        ({"setup.cfg": "[options]\ninstall_requires =\n  six\n[options.extras_require]\nt = pytest\n"}, "six pytest"),
        ({"tox.ini": "[testenv]\ndeps =\n  pytest  # runs\n  -r other.txt\n  py38: x\n  pytz\n"}, "pytest pytz"),
    ],
)
def test_without_a_lock_the_set_up_lists_what_the_files_ask_for(
    look: Look, files: Mapping[str, str], installed: str
) -> None:
    (found,) = look({**files, **TEST}).ecosystems
    assert found.setup is not None
    assert found.setup.run == f"python3 -m venv .venv && .venv/bin/python -m pip install {installed}"
    assert found.setup.key == tuple(files)
    assert "uv lock" in found.notes[0]


def test_a_pytest_that_is_not_on_the_machine_is_installed_by_the_set_up(
    tree: Callable[..., Path], tools: Callable[..., Tools]
) -> None:
    root = tree({"pyproject.toml": "[tool.pytest.ini_options]\n", **TEST})
    found = detect(root, tools("python3", failing=("python3",))).ecosystems[0]
    assert found.setup is not None
    assert found.setup.run.endswith("pip install pytest")
    assert found.missing == ()


@pytest.mark.parametrize(
    "more",
    [
        {"src/x/__init__.py": "from importlib.metadata import version\n"},
        {"pyproject.toml": "[build-system]\nrequires = ['hatchling', 'hatch-vcs']\n[project]\nname = 'x'\n"},
    ],
)
def test_what_only_a_build_makes_is_built_by_the_step_from_its_own_tree(look: Look, more: Mapping[str, str]) -> None:
    """L6: the set-up holds the build's tools, never the project."""
    pyproject = "[build-system]\nrequires = ['hatchling']\n[project]\nname = 'x'\n"
    (found,) = look({"src/x/__init__.py": "", "pyproject.toml": pyproject, **more, **TEST}).ecosystems
    assert found.setup is not None
    assert "hatchling" in found.setup.run
    assert (
        "--no-deps --no-build-isolation --target .becket-built . && PYTHONPATH=src:.becket-built " in found.fast[0].run
    )
    assert " -q --upgrade --no-index " in found.fast[0].run  # what an earlier run built there is replaced
    assert "as built from this very commit" in found.comments[found.fast[0].run]
    assert found.fast[0].rerun == f"{found.fast[0].run} {{tests}}"


def test_of_many_requirements_files_those_for_tests_and_for_running_are_taken(look: Look) -> None:
    files = {"tests.txt": "pytest==8\n", "typing.txt": "mypy\npytest==7\n", "base.txt": "six\n"}
    (found,) = look({**{f"requirements/{name}": text for name, text in files.items()}, **TEST}).ecosystems
    assert found.setup is not None
    assert found.setup.key == ("requirements/base.txt", "requirements/tests.txt")


@pytest.mark.parametrize(
    ("files", "prefix"),
    [
        ({"src/pkg/__init__.py": ""}, "PYTHONPATH=src "),
        ({"src/pkg/__init__.py": "", "pytest.ini": "[pytest]\npythonpath = src\n"}, ""),
        ({"src/main.c": ""}, ""),
        ({"pkg/__init__.py": ""}, ""),
    ],
)
def test_a_src_layout_is_importable_from_a_clean_tree(look: Look, files: Mapping[str, str], prefix: str) -> None:
    assert look({**files, **TEST}).fast[0].run == prefix + PYTEST


@pytest.mark.parametrize(
    ("files", "slow"),
    [
        ({"pyproject.toml": "[tool.ruff]\n"}, ["ruff check ."]),
        ({"ruff.toml": ""}, ["ruff check ."]),
        ({"pyproject.toml": "[tool.mypy]\n"}, ["mypy ."]),
        ({"pyproject.toml": "[tool.mypy]\nfiles = ['src']\n"}, ["mypy"]),
        ({"mypy.ini": "[mypy]\n"}, ["mypy ."]),
        ({"setup.cfg": "[mypy]\npackages = x\n"}, ["mypy"]),
        ({"setup.cfg": "[metadata]\nname = mypy-stuff\n"}, []),
        (
            {"pyproject.toml": "[dependency-groups]\ndev = ['ruff']\n[tool.ruff]\n[tool.mypy]\n", "uv.lock": ""},
            [".venv/bin/python -m ruff check ."],
        ),
    ],
)
def test_ruff_and_mypy_are_slow_steps_where_configured(look: Look, files: Mapping[str, str], slow: list[str]) -> None:
    assert [step.run for step in look({**files, **TEST}).slow] == slow


def test_django_without_pytest_uses_its_own_runner(look: Look) -> None:
    files = {"manage.py": "", "requirements.txt": "django==5\n", "app/tests/test_a.py": ""}
    detected = look(files)
    assert [step.run for step in detected.fast] == [".venv/bin/python manage.py test"]
    assert detected.setup is not None
    assert "pytest" not in detected.setup.run


def test_the_test_side_has_tests_helpers_and_settings(look: Look) -> None:
    side = look({"pytest.ini": "[pytest]\n", **TEST}).test_side
    assert {"tests/**", "conftest.py", "**/conftest.py", "**/test_*.py", "pytest.ini"} <= set(side)


@pytest.mark.parametrize("name", ["pyproject.toml", "tox.ini"])
def test_a_broken_file_is_a_note_not_a_crash(look: Look, name: str) -> None:
    detected = look({name: "[broken\n= what", **TEST})
    assert detected.ecosystems == ()
    assert detected.notes[0].startswith(f"{name} cannot be read")


def test_binary_rubbish_is_no_crash(tree: Callable[..., Path], tools: Callable[..., Tools]) -> None:
    root = tree(TEST)
    (root / "requirements.txt").write_bytes(b"\xff\xfe\x00pytest")
    (root / "package.json").write_bytes(b"\x00\x01")
    detected = detect(root, tools("python3"))
    assert [found.name for found in detected.ecosystems] == ["python"]
    assert detected.notes[0].startswith("package.json cannot be read")


def test_a_link_out_of_the_repository_is_not_read(
    tree: Callable[..., Path], tools: Callable[..., Tools], tmp_path: Path
) -> None:
    (tmp_path / "outside.toml").write_text("[tool.pytest.ini_options]\n")
    root = tree({"README": ""})
    (root / "pyproject.toml").symlink_to(tmp_path / "outside.toml")
    assert detect(root, tools("python3")).ecosystems == ()


def test_a_missing_pytest_is_named_with_its_cure(tree: Callable[..., Path], tools: Callable[..., Tools]) -> None:
    """L13: a missing tool is known before it looks like a code failure."""
    found = detect(tree(TEST), tools("python3", failing=("python3",))).ecosystems[0]
    assert [(item.tool, item.mend) for item in found.missing] == [("pytest", "python3 -m pip install pytest")]


@pytest.mark.parametrize(
    ("files", "present", "missing"),
    [
        (TEST, (), ["python3"]),
        ({"uv.lock": "", "pyproject.toml": "", **TEST}, ("python3",), ["uv"]),
        ({"poetry.lock": "", "pyproject.toml": "", **TEST}, ("python3",), ["poetry"]),
        ({"ruff.toml": "", **TEST}, ("python3",), []),
    ],
)
def test_missing_tools(
    tree: Callable[..., Path],
    tools: Callable[..., Tools],
    files: Mapping[str, str],
    present: tuple[str, ...],
    missing: list[str],
) -> None:
    found = detect(tree(files), tools(*present)).ecosystems[0]
    assert [item.tool for item in found.missing] == missing


SETUP_PY = """\
import re, setuptools
base = ["attrs>=20"]
tests = ["pytest", "hypothesis; python_version > '3.8'"]
config = dict(install_requires=base + ["idna"], extras_require={"docs": ["sphinx"], "test": tests}, version=re.x(1))
if __name__ == "__main__":
    setuptools.setup(name="x", **config)
"""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (SETUP_PY, ["attrs>=20", "idna", "pytest", "hypothesis; python_version > '3.8'"]),
        ("setup(install_requires='a\\nb>1', tests_require=['pytest', *[]])\n", ["a", "b>1", "pytest"]),
        ("import setuptools\nsetuptools.setup(install_requires=open('x'), tests_require=['pytest'])\n", ["pytest"]),
        ("raise SystemExit('this was run')\nsetup(tests_require={'pytest'})\n", ["pytest"]),
    ],
)  # fmt: skip
def test_what_setup_py_asks_for_is_read_and_never_run(look: Look, text: str, wanted: list[str]) -> None:
    (found,) = look({"setup.py": text, **TEST}).ecosystems
    assert found.setup is not None
    assert shlex.split(found.setup.run.partition("pip install ")[2]) == wanted
    assert found.setup.key == ("setup.py",)


def test_setup_cfg_may_name_the_requirements_of_tests(look: Look) -> None:
    text = "[options]\ninstall_requires =\n    attrs\ntests_require =\n    pytest\n    mock\n"
    (found,) = look({"setup.cfg": text, "setup.py": "import setuptools\nsetuptools.setup()\n", **TEST}).ecosystems
    assert found.setup is not None
    assert found.setup.run.endswith(" pip install attrs pytest mock")


@pytest.mark.parametrize(
    "text", ["def (", "setup(**1)", "setup(extras_require={1: 2, **a})", "x = " + "+".join("1" * 9000)]
)
def test_a_setup_py_that_tells_nothing_is_no_crash(look: Look, text: str) -> None:
    assert look({"setup.py": text, **TEST}).fast


@pytest.mark.parametrize(
    ("setup_py", "build"),
    [
        ("setup(ext_modules=[Extension('x', ['x.c'])])", ["setuptools", "wheel"]),
        ("setup(use_scm_version=True, setup_requires=['setuptools_scm'])", ["setuptools", "setuptools_scm", "wheel"]),
    ],
)
def test_a_setup_py_that_makes_something_is_built_in_the_step(look: Look, setup_py: str, build: list[str]) -> None:
    (found,) = look({"setup.py": setup_py, **TEST}).ecosystems
    assert found.setup is not None
    assert set(build) <= set(shlex.split(found.setup.run))
    assert "--no-build-isolation --target .becket-built ." in found.fast[0].run


@pytest.mark.parametrize(
    ("settings", "there", "absent"),
    [
        ("testpaths = ['checks', 'pkg/testing']\n", {"checks/**", "pkg/testing/**"}, {"pkg/**"}),
        ("testpaths = ['.', 'src', 'pkg', '../x', 'no']\n", set(), {"./**", "src/**", "pkg/**", "../x/**", "no/**"}),
        ("python_files = 'check_*.py'\n", {"check_*.py", "**/check_*.py"}, {"test_*.py"}),
        ("python_files = '*.py'\n", {"conftest.py"}, {"*.py", "**/*.py"}),
    ],
)  # fmt: skip
def test_pytests_own_settings_say_what_is_a_test(look: Look, settings: str, there: set[str], absent: set[str]) -> None:
    """A folder of sources that has tests in it stays open to repairs."""
    files = {"checks/check_a.py": "", "pkg/__init__.py": "", "pkg/testing/__init__.py": "", "src/a.py": ""}
    (found,) = look({"pyproject.toml": f"[tool.pytest.ini_options]\n{settings}", **files}).ecosystems
    assert there <= set(found.test_side)
    assert not absent & set(found.test_side)
    assert bool(found.notes) is ("python_files" not in settings)  # no test_*.py here


def test_the_proposed_command_really_runs(look: Look, tree: Callable[..., Path]) -> None:
    """The proposal, run by a shell as a gate would, leaves the report where becket.yaml says."""
    step = look({"tests/test_a.py": "def test_a(): assert 1\n"}).fast[0]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    end = subprocess.run(["sh", "-euc", step.run], cwd=tree({}), env={"PATH": path}, capture_output=True, check=False)
    assert end.returncode == 0, end.stdout
    assert (tree({}) / step.report.removeprefix("junit:")).read_text().startswith("<?xml")
