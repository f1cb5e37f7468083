"""The demo's repository: a small service with tests, first sound, then with a bug that somebody commits."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from becket.kernel.contract.errors import UsageError

BUG = ("celsius * 9 / 5 + 32", "(celsius + 32) * 9 / 5")
BUG_MESSAGE = "Convert without slow divisions"
PLACES = {
    "kettle.py": "kettle.py",
    "temperature.py": "temperature.py",
    "test_temperature.py": "tests/test_temperature.py",
    "run_tests.py": "tests/run_tests.py",
    "apprentice.py": "tools/apprentice.py",
}
CONFIG = """\
version: 1
branch: main
autonomy: release
gates:
  fast:
    - {{name: unit, run: "{python} tests/run_tests.py", report: "junit:report.xml", min_tests: 4, timeout: 1m}}
  slow:
    - {{name: compiles, run: "{python} -m compileall -q kettle.py temperature.py", timeout: 1m}}
test_side: ["tests/**"]
services:
  kettle: {{start: "exec {python} kettle.py", port: {port}, health: {{url: /health, samples: 3, soak: 1s}}}}
agents:
  fixer: {{driver: command, run: "{python} tools/apprentice.py", network: none, limits: {{time: 1m}}}}
sandbox: {sandbox}
"""


def make(folder: Path, missing: Sequence[str]) -> int:
    """One commit, all sound. `missing` is what the sandbox cannot hold: given up here in so many words."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give a new folder with --keep")
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    port = _free_port()
    sandbox = f"{{use: auto, without: [{', '.join(missing)}]}}" if missing else "auto"
    python = shlex.quote(getattr(sys, "_base_executable", None) or sys.executable)  # what is Becket's stays Becket's
    _write(folder / "becket.yaml", CONFIG.format(python=python, port=port, sandbox=sandbox))
    _write(folder / ".gitignore", "__pycache__/\nreport.*\n")
    package = files("becket.parts.demo") / "kettle"
    for name, place in PLACES.items():
        _write(folder / place, (package / name).read_text("utf-8"))
    _commit(folder, "A kettle that knows when water boils")
    return port


def commit_the_bug(folder: Path) -> str:
    source = folder / "temperature.py"
    source.write_text(source.read_text(encoding="utf-8").replace(*BUG), encoding="utf-8")
    _commit(folder, BUG_MESSAGE)
    return head(folder)


def head(folder: Path) -> str:
    return _git(folder, "rev-parse", "refs/heads/main").strip()


def _free_port() -> int:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return int(place.getsockname()[1])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "--all")
    _git(folder, "-c", "user.name=Becket demo", "-c", "user.email=demo@localhost", "commit", "--quiet", "-m", message)


def _git(folder: Path, *arguments: str) -> str:
    """The person's own git settings (hooks, signing) stay out of the demo."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    clean |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    told = subprocess.run(
        ["git", "-C", str(folder), *arguments], check=False, capture_output=True, text=True, env=clean
    )
    if told.returncode != 0:
        raise UsageError(f"git {arguments[0]} failed in {folder}: {told.stderr.strip()}")
    return told.stdout
