"""Toolchains below HOME: found where people keep them, and nothing that lies beside is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.kernel.contract.toolchains import Toolchains, find

CERTIFICATE = "# An Authority\n-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


def write(file: Path, text: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def places(found: Toolchains, folder: Path) -> set[Path]:
    """Without what the machine itself has."""
    return {path for path in found.places if path.is_relative_to(folder)}


def test_only_the_toolchains_of_a_manager_are_shown(tmp_path: Path) -> None:
    write(tmp_path / ".rustup/toolchains/stable/bin/cargo")
    write(tmp_path / ".rustup/settings.toml")
    write(tmp_path / ".cargo/credentials.toml")
    write(tmp_path / ".local/share/mise/installs/node/20/bin/node")
    found = find({"HOME": str(tmp_path)})
    assert found.names == ("rustup", "mise")
    assert places(found, tmp_path) == {
        tmp_path / ".rustup/toolchains",
        tmp_path / ".rustup/settings.toml",
        tmp_path / ".local/share/mise/installs",
    }
    assert found.variables["RUSTUP_HOME"] == str(tmp_path / ".rustup")


def test_a_manager_is_found_where_its_variable_says(tmp_path: Path) -> None:
    write(tmp_path / "opt/py/versions/3.12/bin/python")
    found = find({"HOME": str(tmp_path / "me"), "PYENV_ROOT": str(tmp_path / "opt/py")})
    assert places(found, tmp_path) == {tmp_path / "opt/py/versions"}
    assert find({"PYENV_ROOT": str(tmp_path / "opt/py")}).places == ()


def test_another_choice_of_version_is_another_environment(tmp_path: Path) -> None:
    """L16: a shim stays the same file whatever it starts."""
    version = write(tmp_path / ".pyenv/version", "3.11\n")
    before = find({"HOME": str(tmp_path)}).chosen
    version.write_text("3.12\n")
    assert find({"HOME": str(tmp_path)}).chosen != before


@pytest.mark.parametrize(
    ("text", "shown"), [(CERTIFICATE, True), (CERTIFICATE + "-----BEGIN PRIVATE KEY-----\n", False), ("x", False)]
)
def test_certificates_are_shown_and_keys_are_not(tmp_path: Path, text: str, shown: bool) -> None:
    """L25"""
    bundle = write(tmp_path / "company.pem", text)
    found = find({"HOME": str(tmp_path), "SSL_CERT_FILE": str(bundle), "NODE_EXTRA_CA_CERTS": "company.pem"})
    assert found.variables == ({"SSL_CERT_FILE": str(bundle)} if shown else {})
    assert places(found, tmp_path) == ({bundle} if shown else set())


def test_settings_without_a_login_are_shown(tmp_path: Path) -> None:
    """L25"""
    settings = write(tmp_path / ".config/pip/pip.conf", "[global]\nindex-url = https://pypi.example.org/simple\n")
    npm = write(tmp_path / ".npmrc", "//npm.example.org/:_authToken=x\n")
    assert find({"HOME": str(tmp_path)}).variables == {"PIP_CONFIG_FILE": str(settings)}
    settings.write_text("[global]\nindex-url = https://me:word@pypi.example.org/simple\n")
    npm.write_text("registry=https://npm.example.org/\n")
    assert find({"HOME": str(tmp_path)}).variables == {"NPM_CONFIG_USERCONFIG": str(npm)}


def test_the_whole_of_home_is_never_shown(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    assert not places(find({"HOME": str(tmp_path), "JAVA_HOME": str(tmp_path)}), tmp_path)
