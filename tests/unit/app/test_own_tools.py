"""Becket's own programs are not on the PATH of what it starts."""

from __future__ import annotations

from pathlib import Path

from becket.app.own_tools import leave_path


def path_after(folder: Path, own: Path) -> str:
    environ = {"PATH": f"{own}/bin:/usr/bin::{own}/bin/"}
    leave_path(environ, folder, own)
    return environ["PATH"]


def test_a_private_environment_leaves_the_path(tmp_path: Path) -> None:
    (tmp_path / "project/.git").mkdir(parents=True)
    (tmp_path / ".git").mkdir()  # a HOME that is a repository owns nothing of the project
    assert path_after(tmp_path / "project", tmp_path / "pipx/becket") == "/usr/bin:"


def test_an_environment_of_the_repository_itself_stays(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    assert path_after(tmp_path / "sub", tmp_path / ".venv").startswith(f"{tmp_path}/.venv/bin:")
