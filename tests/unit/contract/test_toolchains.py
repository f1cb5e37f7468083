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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("registry=https://npm.example.org/\nstrict-ssl=true\n@mine:registry = https://npm.example.org/mine/\n", True),
        ("; for work\nca-file=x\n", False),
        ('key="-----BEGIN PRIVATE KEY-----\\nMIIE\\n-----END PRIVATE KEY-----"\n', False),
        ("certfile=/home/me/client.pem\n", False),
        ("//npm.example.org/:keyfile=/home/me/client.key\n", False),
        ("registry=https://npm.example.org/\nsession=0123456789abcdef\n", False),
        ("registry=https://npm.example.org/\n0123456789abcdef\n", False),
        ("", False),
    ],
)
def test_settings_are_shown_by_the_keys_that_are_known_to_be_harmless(tmp_path: Path, text: str, shown: bool) -> None:
    """L25: nobody knows all that a login can be called."""
    npm = write(tmp_path / ".npmrc", text)
    assert find({"HOME": str(tmp_path)}).variables == ({"NPM_CONFIG_USERCONFIG": str(npm)} if shown else {})


def test_settings_of_pip_and_go_are_read_as_they_are_written(tmp_path: Path) -> None:
    indexes = "https://one.example.org/simple\n    https://two.example.org/simple\n"
    pip = write(
        tmp_path / ".config/pip/pip.conf",
        f"[global]\nindex_url: https://a.example.org\nextra-index-url =\n    {indexes}trusted-host =\n  a.org:81\n",
    )
    go = write(tmp_path / ".config/go/env", "GOPROXY=https://proxy.example.org,direct\nGOFLAGS=-mod=mod\n")
    assert find({"HOME": str(tmp_path)}).variables == {"PIP_CONFIG_FILE": str(pip), "GOENV": str(go)}
    go.write_text("GOAUTH=netrc\n")
    pip.write_text("[global]\nclient-cert = /home/me/client.pem\n")
    assert find({"HOME": str(tmp_path)}).variables == {}


def test_other_settings_or_another_release_are_another_environment(tmp_path: Path) -> None:
    """L16"""
    settings = write(tmp_path / ".npmrc", "registry=https://one.example.org/\n")
    java = write(tmp_path / "jdk/release", 'JAVA_VERSION="17"\n')
    write(tmp_path / "jdk/bin/java")
    environ = {"HOME": str(tmp_path / "me"), "NPM_CONFIG_USERCONFIG": str(settings), "JAVA_HOME": str(java.parent)}
    seen = [find(environ).chosen]
    settings.write_text("registry=https://two.example.org/\n")
    seen.append(find(environ).chosen)
    java.write_text('JAVA_VERSION="21"\n')
    seen.append(find(environ).chosen)
    assert len({str(one) for one in seen}) == 3
