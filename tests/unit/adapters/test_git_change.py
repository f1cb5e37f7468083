"""A change between two commits of a real repository, as the guard reads it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.guard import EXECUTABLE, READ_LIMIT, SUBMODULE, SYMLINK, Change, ChangedFile, ChangeStatus
from becket.kernel.git import blobs
from becket.kernel.git.change import parse_raw, read_change
from becket.kernel.git.program import GitPlace
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GuardConfig

_PERSON = {f"GIT_{role}_{what}": "ada@example.org" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def git(folder: Path, *command: str, stdin: bytes | None = None) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _PERSON
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    ended = subprocess.run(["git", *command], cwd=folder, env=env, input=stdin, capture_output=True, check=True)
    return ended.stdout.decode().strip()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "keep.py").write_text("x = 1\n")
    (folder / "edit.py").write_text("def test_a():\n    assert 1\n")
    (folder / "gone.txt").write_text("gone\n")
    (folder / "old name.py").write_text("".join(f"line_{number} = {number}\n" for number in range(40)))
    (folder / "run.sh").write_text("true\n")
    (folder / "turns").write_text("a file\n")
    return folder


def commit(folder: Path) -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "change")
    return git(folder, "rev-parse", "HEAD")


def change(folder: Path, base: str, candidate: str) -> Change:
    return asyncio.run(read_change(GitPlace(folder / ".git", folder), base, candidate))


def by_path(found: Change) -> dict[str, ChangedFile]:
    return {file.path: file for file in found.files}


def test_every_kind_of_change(home: Path) -> None:
    base = commit(home)
    (home / "edit.py").write_text("def test_a():\n    pass\n")
    (home / "gone.txt").unlink()
    (home / "old name.py").rename(home / "new\tname.py")
    with (home / "new\tname.py").open("a") as file:
        file.write("more = 1\n")
    (home / "run.sh").chmod(0o755)
    (home / "turns").unlink()
    (home / "turns").symlink_to("keep.py")
    (home / "fresh.bin").write_bytes(b"\0\1\n\0")
    found = change(home, base, commit(home))
    files = by_path(found)
    assert {path: file.status for path, file in files.items()} == {
        "edit.py": ChangeStatus.modified,
        "gone.txt": ChangeStatus.deleted,
        "new\tname.py": ChangeStatus.renamed,
        "run.sh": ChangeStatus.modified,
        "turns": ChangeStatus.typechange,
        "fresh.bin": ChangeStatus.added,
    }
    assert files["edit.py"].old() == b"def test_a():\n    assert 1\n"
    assert files["edit.py"].new() == b"def test_a():\n    pass\n"
    assert (files["edit.py"].old_size, files["edit.py"].new_size) == (27, 23)
    assert (files["gone.txt"].old(), files["gone.txt"].new(), files["gone.txt"].new_size) == (b"gone\n", b"", 0)
    assert files["new\tname.py"].old_path == "old name.py"
    assert files["new\tname.py"].new().endswith(b"more = 1\n")
    assert (files["run.sh"].new_mode, files["run.sh"].same) == (EXECUTABLE, True)
    assert (files["turns"].new_mode, files["turns"].new()) == (SYMLINK, b"keep.py")
    assert files["fresh.bin"].new() == b"\0\1\n\0"
    assert found.total_files == 6
    assert "keep.py" in found.base_paths


def test_a_submodule_pointer_has_no_content(home: Path) -> None:
    base = commit(home)
    git(home, "update-index", "--add", "--cacheinfo", f"{SUBMODULE},{base},lib")
    git(home, "commit", "--quiet", "-m", "submodule")
    (file,) = change(home, base, git(home, "rev-parse", "HEAD")).files
    assert (file.path, file.new_mode, file.new_size, file.new()) == ("lib", SUBMODULE, 0, b"")
    assert [str(refusal.rule) for refusal in examine(change(home, base, "HEAD"), GuardConfig(), TestSide(()))] == [
        "submodule-changed"
    ]


def test_nothing_changed(home: Path) -> None:
    base = commit(home)
    assert change(home, base, commit(home)).files == ()


def test_names_that_are_no_text_are_told_escaped(home: Path) -> None:
    base = commit(home)
    Path(os.fsdecode(os.fsencode(home) + b"/caf\xe9.py")).write_text("x = 1\n")
    (file,) = change(home, base, commit(home)).files
    assert file.path == "caf\\xe9.py"
    assert file.new() == b"x = 1\n"


def test_what_is_too_large_is_not_read(home: Path) -> None:
    base = commit(home)
    (home / "large").write_bytes(b"x" * (READ_LIMIT + 1))
    (file,) = change(home, base, commit(home)).files
    assert (file.new_size, file.new(), file.unread) == (READ_LIMIT + 1, b"", False)
    assert [str(refusal.rule) for refusal in examine(Change((file,), 6), GuardConfig(), TestSide(()))] == ["large-file"]


def test_a_change_beyond_the_memory_is_refused_not_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blobs, "MEMORY", 100)
    base = commit(home)
    for number in range(4):
        (home / f"part{number}.txt").write_text(str(number) * 40)
    found = change(home, base, commit(home))
    assert sorted(file.unread for file in found.files) == [False, False, True, True]
    refusals = examine(found, GuardConfig(), TestSide(()))
    assert {str(refusal.rule) for refusal in refusals} == {"large-file"}


def test_attributes_and_settings_of_the_repository_do_not_matter(home: Path) -> None:
    """A text conversion or a filter would show something else than what is committed."""
    (home / ".gitattributes").write_text("*.py diff=shout filter=shout\n")
    git(home, "config", "diff.shout.textconv", "tr a-z A-Z <")
    git(home, "config", "diff.renames", "false")
    base = commit(home)
    (home / "old name.py").rename(home / "moved.py")
    (file,) = change(home, base, commit(home)).files
    assert (file.status, file.path, file.same) == (ChangeStatus.renamed, "moved.py", True)
    assert file.new().startswith(b"line_0 = 0\n")


def test_an_unknown_commit_is_an_error_of_git(home: Path) -> None:
    base = commit(home)
    with pytest.raises(GitFailed):
        change(home, base, "0" * 40)


def test_an_unknown_answer_is_an_error() -> None:
    with pytest.raises(GitFailed, match="unknown"):
        list(parse_raw(b":100644 100644 a b U\0path\0"))
