"""Contract of the artifacts: named by content, on disk before they are named, never changed."""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from becket.kernel.contract import crash
from becket.kernel.contract.artifacts import Artifacts
from becket.kernel.contract.errors import NotFound
from becket.kernel.store import FileArtifacts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def artifacts(folder: Path) -> Artifacts:
    return FileArtifacts(folder)


def test_content_is_found_by_its_digest(artifacts: Artifacts, folder: Path) -> None:
    digest, size = artifacts.put(b"hello")
    assert (digest, size) == (hashlib.sha256(b"hello").hexdigest(), 5)
    assert artifacts.path(digest) == folder / digest[:2] / digest[2:]
    assert artifacts.read(digest) == b"hello"
    assert artifacts.read(digest, 2) == b"he"
    assert artifacts.check(digest)
    assert artifacts.digests() == {digest}


def test_files_are_streamed_and_copied(artifacts: Artifacts, tmp_path: Path) -> None:
    source = tmp_path / "big.log"
    source.write_bytes(os.urandom(1 << 20) * 3 + b"end")
    digest, size = artifacts.put(source)
    assert size == 3 * (1 << 20) + 3
    source.write_bytes(b"changed afterwards")
    assert artifacts.check(digest)
    assert artifacts.put(b"")[1] == 0


def test_a_file_that_changes_while_it_is_read_is_stored_as_it_was_read(artifacts: Artifacts, tmp_path: Path) -> None:
    """The digest is of our copy: a log that grows, or is swapped, gives content that fits its name."""
    source = tmp_path / "growing.log"
    source.write_bytes(b"first")

    def grow(name: str) -> None:
        if name == "artifacts.before_rename":
            source.write_bytes(b"second")

    crash.install(grow)
    try:
        digest, size = artifacts.put(source)
    finally:
        crash.install(None)
    assert (artifacts.read(digest), size) == (b"first", 5)
    assert artifacts.check(digest)


def test_the_same_content_is_one_file(artifacts: Artifacts, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "same").write_bytes(b"same")
    first = artifacts.put(b"same")
    inode = artifacts.path(first[0]).stat().st_ino
    assert artifacts.put(tmp_path / "same") == first
    assert artifacts.path(first[0]).stat().st_ino == inode
    assert len(artifacts.digests()) == 1
    assert list((folder / "incoming").iterdir()) == []


def test_content_cannot_be_written_by_accident(artifacts: Artifacts) -> None:
    digest, _ = artifacts.put(b"proof")
    assert stat.S_IMODE(artifacts.path(digest).stat().st_mode) == 0o400


def test_tampering_is_noticed(artifacts: Artifacts) -> None:
    digest, _ = artifacts.put(b"proof")
    path = artifacts.path(digest)
    path.chmod(0o600)
    path.write_bytes(b"prooF")
    assert not artifacts.check(digest)
    assert not artifacts.check("0" * 64)


@pytest.mark.parametrize("digest", ["0" * 64, "", "../../etc/passwd", "ab", "A" * 64, "0" * 65])
def test_what_is_not_kept_is_not_found(artifacts: Artifacts, digest: str) -> None:
    """Names that are no digests never become paths."""
    with pytest.raises(NotFound):
        artifacts.path(digest)
    with pytest.raises(NotFound):
        artifacts.read(digest)


def test_artifacts_are_removed(artifacts: Artifacts) -> None:
    first, second = artifacts.put(b"1")[0], artifacts.put(b"2")[0]
    artifacts.remove([first, "0" * 64])
    assert artifacts.digests() == {second}
    assert not artifacts.check(first)


def test_content_that_is_wanted_again_is_young_again(artifacts: Artifacts) -> None:
    """L44: retention must not remove what another run has just stored and not referred to yet."""
    digest, _ = artifacts.put(b"x")
    os.utime(artifacts.path(digest), (1000, 1000))
    assert artifacts.older_than(digest, 1001)
    assert not artifacts.older_than(digest, 1000)
    artifacts.put(b"x")
    assert not artifacts.older_than(digest, 1001)
    assert not artifacts.older_than("0" * 64, 9e9)


def test_a_crash_leaves_no_half_content_under_a_name(folder: Path) -> None:
    for point in ("artifacts.before_rename", "artifacts.after_rename"):
        code = f"from becket.kernel.store import FileArtifacts as F; F({str(folder)!r}).put({point.encode()!r})"
        environment = {**os.environ, crash.ENV: point}
        died = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
        assert died.returncode == -9
    artifacts = FileArtifacts(folder)
    assert [artifacts.read(digest) for digest in artifacts.digests()] == [b"artifacts.after_rename"]
    artifacts.put(b"artifacts.before_rename")
    assert len(artifacts.digests()) == 2
    assert all(artifacts.check(digest) for digest in artifacts.digests())
