"""Real repositories for the git suites, made by the git program with an identity and configuration of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENV = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *command: str, ok: tuple[int, ...] = (0,)) -> str:
    """What a person does at a shell in that folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _ENV
    ended = subprocess.run(["git", *command], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode in ok, f"git {' '.join(command)}: {ended.stderr}"
    return ended.stdout.strip()


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def commit(folder: Path, files: dict[str, str], message: str = "change") -> str:
    write(folder, files)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path, *options: str) -> Path:
    """A repository with one commit on main."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main", *options)
    commit(folder, {"app.py": "x = 1\n", "src/lib.py": "y = 1\n", ".gitignore": "*.pyc\nbuild/\n"}, "first")
    return folder


def planted_script(folder: Path, marker: Path) -> Path:
    """An executable that proves by a file that somebody ran it."""
    script = folder / "planted.sh"
    script.write_text(f"#!/bin/sh\necho ran >> '{marker}'\ncat\n")
    script.chmod(0o755)
    return script
