"""The wheel of `make dist`, installed as a person does it: an empty home, a bare PATH, nothing of ours beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from content import ROOT, dev_tools

pytestmark = pytest.mark.dist

INSTALL = {"uv": ("uv", "tool", "install"), "pipx": ("pipx", "install")}
PYTHON = getattr(sys, "_base_executable", sys.executable)  # not that of our own environment
REGISTRY = re.compile(r"(PIP|UV|SSL|REQUESTS)_.+|(https?|no|all)_proxy", re.IGNORECASE)
"""How this machine reaches its package registry."""
EVERY_MODULE = """
import importlib, pkgutil, becket
for found in pkgutil.walk_packages(becket.__path__, "becket."):
    if not found.name.endswith(("__main__", "store.postgres")):  # the latter needs the extra `postgres`
        importlib.import_module(found.name)
"""
EVERY_PACKAGE = "import importlib.metadata as m; print(*[d.name for d in m.distributions()])"


@dataclass(frozen=True)
class Home:
    """A person's home with Becket in it."""

    path: Path

    @property
    def bin(self) -> Path:
        return self.path / ".local/bin"

    @property
    def env(self) -> dict[str, str]:
        return {"HOME": str(self.path), "PATH": f"{self.bin}:/usr/bin:/bin", "LOGNAME": "ada"}

    def run(self, *words: str, code: int = 0, cwd: Path | None = None, **more: str) -> str:
        done = subprocess.run(
            words, cwd=cwd or self.path, env=self.env | more, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def python(self, code: str) -> str:
        """By the Python of the environment that the installer made."""
        return self.run(str((self.bin / "becket").resolve().with_name("python")), "-c", code)


@pytest.fixture(scope="module", params=sorted(INSTALL))
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Other packages in the versions of our lock: a new one of theirs is not this suite's business."""
    program, *words = INSTALL[request.param]
    tools = os.environ.get("BECKET_INSTALLERS", "")
    wheels = list((ROOT / "dist").glob("*.whl"))
    if not Path(tools, program).is_file() or len(wheels) != 1:
        pytest.fail("no wheel in dist/, or no installers: run `make test-dist`, which makes both")
    made = Home(tmp_path_factory.mktemp(program))
    locked = re.findall(r"^[\w.\[\]-]+==[^\\\n]+", (ROOT / "requirements/dev.lock").read_text(), re.MULTILINE)
    (made.path / "versions.txt").write_text("\n".join(locked))
    held = {"PIP_CONSTRAINT": str(made.path / "versions.txt"), "UV_CONSTRAINT": str(made.path / "versions.txt")}
    registry = {name: value for name, value in os.environ.items() if REGISTRY.fullmatch(name)}
    made.run(str(Path(tools, program)), *words, "--python", PYTHON, str(wheels[0]), **registry, **held)
    return made


def test_nothing_but_becket_is_put_on_path_and_no_tool_of_ours_came_along(home: Home) -> None:
    assert [path.name for path in home.bin.iterdir()] == ["becket"]
    installed = set(home.python(EVERY_PACKAGE).split())
    assert "becket" in installed
    assert installed & dev_tools() == set()


def test_every_module_of_the_wheel_can_be_imported(home: Home) -> None:
    assert home.python(EVERY_MODULE) == ""


def test_it_sets_up_a_repository(home: Home, tmp_path: Path) -> None:
    assert re.fullmatch(r"becket \d+\.\d+\.\d+\S*\n", home.run("becket", "--version"))
    (tmp_path / "Makefile").write_text("test:\n\ttest -f Makefile\n")
    home.run("git", "init", "--quiet", "--initial-branch=main", cwd=tmp_path)
    home.run("becket", "init", cwd=tmp_path)
    home.run("git", "add", "--all", cwd=tmp_path)
    home.run("git", "-c", "user.name=ada", "-c", "user.email=ada@localhost", "commit", "-qm", "Begin", cwd=tmp_path)
    assert "make test" in (tmp_path / "becket.yaml").read_text()
    assert "without a finding" in home.run("becket", "loops", "lint", cwd=tmp_path)
    home.run("becket", "run", "hello", cwd=tmp_path)  # the journal is made: the migrations are in the wheel


def test_the_demo_ends_well(home: Home, tmp_path: Path) -> None:
    told = json.loads(home.run("becket", "demo", "--json", TMPDIR=str(tmp_path)))
    assert (told["ok"], told["problem"]) == (True, "")


def test_the_parts_are_those_of_the_package_and_the_bench_is_none_of_them(home: Home) -> None:
    found = json.loads(home.run("becket", "parts", "list", "--json"))
    assert {part["from"].partition(" ")[0] for part in found} == {"becket"}
    assert {"kernel", "gates", "guard", "agents", "heal", "init"} <= {part["part"] for part in found}
    assert "there is no verb 'bench'" in home.run("becket", "bench", "cheats", code=2)
