"""`becket init` on the shapes that repositories have: its proposal is tried as it is written, with the real tools.

Tried: everything whose tools `make test-slow` fetches. Detected only: gradle and maven, which fetch half a world first,
and poetry, whose lock wants an interface of the index that mirrors do not have.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_stage import Stage, environment

pytestmark = pytest.mark.slow

TOOLS = Path(__file__).parents[2] / ".cache" / "shapes"
PLACES = (TOOLS / "bin", TOOLS / "node_modules" / ".bin")
OF_THE_MACHINE = ("PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "npm_config_registry")
"""Without these a machine behind a mirror reaches no registry; nothing else of a proposal is changed."""

PYTHON = {"pkg/__init__.py": "def one():\n    return 1\n", "tests/test_one.py": "from pkg import one\n\ndef test_one():\n    assert one() == 1\n"}  # fmt: skip # noqa: E501
IN_SRC = {f"src/{name}" if name.startswith("pkg") else name: text for name, text in PYTHON.items()}
PROJECT = '[project]\nname = "pkg"\nversion = "1"\nrequires-python = ">=3.11"\n'
HATCH = """\
[build-system]
requires = ["hatchling", "hatch-vcs"]
build-backend = "hatchling.build"
[project]
name = "pkg"
dynamic = ["version"]
[project.optional-dependencies]
tests = ["pytest"]
[tool.hatch.version]
source = "vcs"
[tool.hatch.build.hooks.vcs]
version-file = "src/pkg/_version.py"
[tool.ruff]
"""
NODE = {
    "package.json": json.dumps(
        {"name": "x", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"left-pad": "1.3.0"}}
    ),
    "one.test.js": "const test = require('node:test'); const pad = require('left-pad');\n"
    "test('pads', () => { if (pad('1', 2) !== ' 1') throw new Error('no') })\n",
}
C = {"one.c": "int main(void) { return 0; }\n"}


@dataclass(frozen=True)
class Shape:
    """`lock` makes the lock file, as the project's people do; `name` is the ecosystem that is found."""

    files: dict[str, str]
    name: str
    needs: tuple[str, ...] = ()
    lock: str = ""


SHAPES = {
    "uv": Shape({**PYTHON, "pyproject.toml": f"{PROJECT}[dependency-groups]\ndev = ['pytest']\n"}, "python", ("uv",), "uv lock -q"),  # noqa: E501
    "pip-tools": Shape({**PYTHON, "requirements.in": "pytest\n"}, "python", ("uv",), "uv pip compile -q requirements.in -o requirements.txt"),  # noqa: E501
    "hatch with a version file made at build": Shape({**IN_SRC, "src/pkg/__init__.py": "from pkg._version import version\n\ndef one():\n    return 1\n", "pyproject.toml": HATCH}, "python"),  # noqa: E501
    "tox": Shape({**PYTHON, "tox.ini": "[testenv]\ndeps =\n    pytest\ncommands = pytest\n", "setup.py": "import setuptools\nsetuptools.setup(name='pkg')\n"}, "python"),  # noqa: E501
    "npm": Shape(NODE, "npm", ("npm",), "npm install --silent --package-lock-only"),
    "pnpm": Shape(NODE, "pnpm", ("pnpm",), "pnpm install --silent --lockfile-only"),
    "yarn": Shape(NODE, "yarn", ("yarn",), "yarn install --silent"),
    "cargo workspace": Shape(
        {
            "Cargo.toml": '[workspace]\nmembers = ["a", "b"]\nresolver = "2"\n',
            "a/Cargo.toml": '[package]\nname = "a"\nversion = "0.1.0"\nedition = "2021"\n',
            "a/src/lib.rs": "pub fn one() -> u8 { 1 }\n",
            "b/Cargo.toml": '[package]\nname = "b"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\na = { path = "../a" }\n',  # noqa: E501
            "b/src/lib.rs": "#[test]\nfn one() { assert_eq!(a::one(), 1) }\n",
        },
        "cargo", ("cargo",), "cargo generate-lockfile --quiet --offline",
    ),
    "go modules": Shape({"go.mod": "module example.org/one\n\ngo 1.19\n", "one.go": "package one\n\nfunc One() int { return 1 }\n", "one_test.go": 'package one\n\nimport "testing"\n\nfunc TestOne(t *testing.T) {\n\tif One() != 1 {\n\t\tt.Fatal("no")\n\t}\n}\n'}, "go", ("go",)),  # noqa: E501
    "setup.py with lists": Shape({**PYTHON, "setup.py": "import setuptools\nsetuptools.setup(name='pkg', install_requires=['idna'], tests_require=['pytest'])\n", "pkg/__init__.py": "import idna\n\ndef one():\n    return 1\n"}, "python"),  # noqa: E501
    "meson": Shape({"meson.build": "project('x', 'c')\ntest('one', executable('one', 'one.c'))\n", **C}, "meson", ("meson",)),  # noqa: E501
    "cmake": Shape({"CMakeLists.txt": "cmake_minimum_required(VERSION 3.10)\nproject(x C)\nenable_testing()\nadd_executable(one one.c)\nadd_test(NAME one COMMAND one)\n", **C}, "cmake", ("cmake",)),  # noqa: E501
    "make check": Shape({"Makefile": "check: one\n\t./one\n", **C}, "make", ("make", "cc")),
    "rake": Shape({"Rakefile": "require 'rake/testtask'\nRake::TestTask.new\n", "test/test_one.rb": "require 'minitest/autorun'\nclass TestOne < Minitest::Test\n  def test_one\n    assert true\n  end\nend\n"}, "ruby", ("rake",)),  # noqa: E501
    "make only": Shape({"Makefile": "test:\n\tgrep -q one one.txt\n", "one.txt": "one\n"}, "make", ("make",)),
}  # fmt: skip
POETRY = f"{PROJECT}[tool.poetry.group.dev.dependencies]\npytest = '*'\n"
DETECTED_ONLY = {
    "poetry": ({**PYTHON, "pyproject.toml": POETRY, "poetry.lock": ""}, "poetry install --no-root"),
    "gradle": (
        {"build.gradle": "plugins { id 'java' }\n", "src/test/java/OneTest.java": ""},
        "gradle test --no-daemon",
    ),
    "maven": ({"pom.xml": "<project></project>\n", "src/test/java/OneTest.java": ""}, "mvn "),
}

Make = Callable[[dict[str, str]], Stage]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    system = ("/usr/local/bin", "/usr/bin", "/bin")  # what lies below HOME is not seen by what runs contained
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, PLACES), *system]))

    def made(files: dict[str, str]) -> Stage:
        stage = Stage(tmp_path / "repo")
        (stage.root / "becket.yaml").unlink()
        for name, text in {**files, ".gitignore": "node_modules/\ntarget/\n__pycache__/\n"}.items():
            stage.write(name, text)
        return stage

    return made


@pytest.mark.parametrize("name", SHAPES)
def test_the_proposal_is_green_as_it_is_written(make: Make, name: str) -> None:
    shape = SHAPES[name]
    stage = make(shape.files)
    for tool in shape.needs:
        assert shutil.which(tool), f"{tool} is not there; `make test-slow` fetches it"
    if shape.lock:
        subprocess.run(shape.lock, shell=True, cwd=stage.root, env=environment(), check=True, timeout=120)
        shutil.rmtree(stage.root / "node_modules", ignore_errors=True)
    stage.commit("a project")
    begun = stage.json("init", "--no-try", "--no-example")
    assert [found["name"] for found in begun["detected"]["ecosystems"]] == [shape.name]
    with_the_machines_variables(stage.root / "becket.yaml")
    tried = stage.json("gates", "try")
    assert tried["green"], tried
    assert [one["step"]["step"] for one in tried["steps"] if one["step"]["gate"] == "fast"]


def with_the_machines_variables(config: Path) -> None:
    given = " ".join(f"{name}={shlex.quote(os.environ[name])}" for name in OF_THE_MACHINE if name in os.environ)
    text = config.read_text()
    config.write_text(text.replace('setup:\n  run: "', f'setup:\n  run: "export {given}; ', 1) if given else text)


@pytest.mark.parametrize("name", DETECTED_ONLY)
def test_what_is_only_detected_has_its_command(make: Make, name: str) -> None:
    files, command = DETECTED_ONLY[name]
    stage = make(files)
    stage.commit("a project")
    (found,) = stage.json("init", "--no-try", "--no-example")["detected"]["ecosystems"]
    assert found["name"] == {"poetry": "python"}.get(name, name)
    assert command in (found["setup"] or found["fast"][0])["run"]
