"""The demo's repository: documents of which one moved, so that the links to it are dead."""

from __future__ import annotations

import os
import subprocess
from importlib.resources import files
from pathlib import Path

from becket.contract.errors import UsageError

LOOP_FILE = ".becket/loops/links.yaml"

CONFIG = """\
version: 1
branch: main
autonomy: propose
sandbox: auto
"""

DOCUMENTS = {
    "README.md": "# Kettle\n\nBoils water, on time.\n\nStart with [installing](docs/install.md) it, then read the\n"
    "[guide](docs/guide.md).\n",
    "docs/guide.md": "# Guide\n\n1. Do what [installing](install.md) says.\n2. Fill in water.\n3. Wait.\n4. Pour.\n\n"
    "Back to the [start](../README.md).\n",
    "docs/install.md": "# Installing\n\nPlug it in. The [guide](guide.md) has the rest.\n",
}


def make(folder: Path) -> None:
    """Two commits: all is well; then a document moves and nobody mends what points at it."""
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; give a new folder with --keep")
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    package = files("becket.cli.demo")
    _write(folder / "becket.yaml", CONFIG)
    _write(folder / LOOP_FILE, (package / "links.yaml").read_text("utf-8"))
    _write(folder / "tools/check-links.sh", (package / "check-links.sh").read_text("utf-8"))
    for name, text in DOCUMENTS.items():
        _write(folder / name, text)
    _commit(folder, "A kettle with documents")
    moved = folder / "docs/setup/install.md"
    moved.parent.mkdir()
    (folder / "docs/install.md").rename(moved)
    _write(moved, moved.read_text(encoding="utf-8").replace("(guide.md)", "(../guide.md)"))
    _commit(folder, "Move the installation page")


def head(folder: Path) -> str:
    return _git(folder, "rev-parse", "refs/heads/main").strip()


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
