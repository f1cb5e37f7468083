"""Contract of the process port: toolchains and places to read below HOME, in every sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from process_stage import KINDS, Ground

from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import ContainedProcesses
from becket.kernel.process.places import unseen


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a rustup whose `tool` runs a toolchain, a login beside it, and a tool that nobody knows of."""
    home = tmp_path / "home"
    program(home / ".rustup/toolchains/stable/bin/real", "echo it runs")
    program(home / ".cargo/bin/tool", 'exec "$RUSTUP_HOME/toolchains/stable/bin/real"')
    program(home / "odd/bin/odd", "echo odd")
    (home / ".cargo/bin/odd").symlink_to(home / "odd/bin/odd")
    (home / ".cargo/credentials.toml").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/.cargo/bin:/usr/bin:/bin")
    return home


def program(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)


@pytest.mark.parametrize("kind", KINDS)
def test_a_toolchain_is_there_read_only_and_logins_are_not(kind: SandboxKind, home: Path, tmp_path: Path) -> None:
    """L13, L25"""
    ground = Ground(ContainedProcesses(kind, readable=lambda: (home / "odd",)), tmp_path)
    assert ground.shell("tool; odd", hidden=[home]).ok, ground.said
    assert ground.said == "it runs\nodd\n"
    if ground.processes.holds().files:
        for attempt in ("cat ~user/.cargo/credentials.toml", "touch ~user/.rustup/toolchains/x", "touch ~user/odd/x"):
            assert not ground.shell(attempt.replace("~user", str(home)), hidden=[home]).ok, attempt
    assert not (home / "odd/x").exists() or not ground.processes.holds().files


def nvm(home: Path) -> str:
    program(home / ".nvm/versions/node/v20.1.0/bin/tool", "echo it runs")
    secret(home / ".nvm/.npmrc")
    return ".nvm/versions/node/v20.1.0/bin"


def asdf(home: Path) -> str:
    """A shim asks asdf, which looks the version up in the project and starts what is installed."""
    installs = '"${ASDF_DATA_DIR:-$HOME/.asdf}/installs"'
    program(home / ".asdf/shims/tool", f'exec "{home}/.asdf/bin/asdf" exec tool "$@"')
    program(home / ".asdf/bin/asdf", f'exec {installs}/tool/"$(sed "s/tool //" .tool-versions)"/bin/"$2"')
    program(home / ".asdf/installs/tool/1.2.0/bin/tool", "echo it runs")
    secret(home / ".asdf/tmp/login")
    return ".asdf/shims"


def mise(home: Path) -> str:
    """`mise activate` puts the chosen version's folder itself on PATH; `latest` is a link."""
    program(home / ".local/share/mise/installs/tool/1.2.0/bin/tool", "echo it runs")
    (home / ".local/share/mise/installs/tool/latest").symlink_to("./1.2.0")
    secret(home / ".local/share/mise/login")
    return ".local/share/mise/installs/tool/latest/bin"


def sdkman(home: Path) -> str:
    program(home / ".sdkman/candidates/java/21-tem/bin/tool", "echo it runs")
    (home / ".sdkman/candidates/java/current").symlink_to(home / ".sdkman/candidates/java/21-tem")
    secret(home / ".sdkman/etc/login")
    return ".sdkman/candidates/java/current/bin"


def secret(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("secret")


@pytest.mark.parametrize("laid_out", [nvm, asdf, mise, sdkman])
@pytest.mark.parametrize("kind", KINDS)
def test_a_toolchain_runs_as_its_manager_lays_it_out(
    kind: SandboxKind, laid_out: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L13, L25: the version that is chosen runs, and what lies beside the toolchains is not shown."""
    home = tmp_path / "home"
    search = f"{home}/{laid_out(home)}:/usr/bin:/bin"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", search)
    ground = Ground(ContainedProcesses(kind), tmp_path)
    (ground.tree / ".tool-versions").write_text("tool 1.2.0\n")
    assert ground.shell("tool", hidden=[home]).ok, ground.said
    assert ground.said == "it runs\n"
    assert unseen(Path(search.partition(":")[0]) / "tool", search) is None
    (beside,) = [file for file in home.rglob("*") if file.is_file() and file.read_text() == "secret"]
    assert not ground.shell(f"cat {beside}", hidden=[home]).ok or not ground.processes.holds().files


def test_what_contained_programs_do_not_see_is_known_before(home: Path) -> None:
    search = f"{home}/.cargo/bin:/usr/bin:/bin"
    assert unseen(home / ".cargo/bin/tool", search) is None
    assert unseen(home / ".cargo/bin/odd", search) == home / "odd/bin/odd"
    assert unseen(home / ".cargo/bin/odd", search, [home / "odd"]) is None
    (home / ".cargo/bin/script").write_text(f"#!{home}/odd/bin/python\n")
    assert unseen(home / ".cargo/bin/script", search) == home / "odd/bin/python"
