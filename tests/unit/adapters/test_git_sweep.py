"""Sweeping and removing: everything that should go goes, nothing else does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from becket.kernel.contract.removal import remove
from becket.kernel.git.sweep import Inventory, defuse, stuck_on, sweep


def listing(*entries: str) -> bytes:
    """As `ls-tree -r -z` prints it; a trailing slash marks a submodule."""
    lines = []
    for entry in entries:
        mode = "160000 commit" if entry.endswith("/") else "100644 blob"
        lines.append(f"{mode} {'a' * 40}\t{entry.rstrip('/')}\0")
    return "".join(lines).encode()


def put(tree: Path, *names: str) -> None:
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name)


def left(tree: Path) -> set[str]:
    return {str(path.relative_to(tree)) for path in tree.rglob("*")}


def test_an_inventory_knows_files_their_folders_and_submodules() -> None:
    inventory = Inventory.of(listing("a.py", "x/y/b.py", "with\nbreak", "lib/sub/"))
    assert inventory.files == {b"a.py", b"x/y/b.py", b"with\nbreak"}
    assert inventory.folders == {b"x", b"x/y", b"lib", b"lib/sub"}
    assert not inventory.converts
    assert Inventory.of(listing("x/.gitattributes")).converts
    assert Inventory.of(b"").files == set()


def test_only_the_inventory_is_left(tmp_path: Path) -> None:
    put(tmp_path, "a.py", "x/b.py", "x/b.pyc", "x/.git/config", ".git/config", "new/deep/er", "sub/evil", "Ä")
    (tmp_path / "void").mkdir()
    sweep(tmp_path, Inventory.of(listing("a.py", "x/b.py", "sub/", "missing.py")))
    assert left(tmp_path) == {"a.py", "x", "x/b.py", "sub"}


def test_names_that_are_no_text_are_swept(tmp_path: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe"))).write_text("")
    sweep(tmp_path, Inventory())
    assert left(tmp_path) == set()


def test_links_are_removed_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside, "precious")
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("unknown", "folder", "sub"):
        (tree / name).symlink_to(outside)
    (tree / "tracked").symlink_to(outside / "precious")
    sweep(tree, Inventory.of(listing("folder/precious", "sub/", "tracked")))
    assert left(tree) == {"tracked"}
    assert left(outside) == {"precious"}
    (tmp_path / "link").symlink_to(outside)
    with pytest.raises(OSError, match="link"):
        sweep(tmp_path / "link", Inventory())
    assert left(outside) == {"precious"}


def test_a_folder_in_a_files_place_and_the_reverse(tmp_path: Path) -> None:
    put(tmp_path, "file/inside", "folder")
    sweep(tmp_path, Inventory.of(listing("file", "folder/inside")))
    assert left(tmp_path) == set()


def test_pipes_and_sockets_are_removed_unopened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    sweep(tmp_path, Inventory())
    assert left(tmp_path) == set()


def test_permissions_are_no_obstacle(tmp_path: Path) -> None:
    put(tmp_path, "locked/inner/file", "kept/a.py", "kept/x")
    for path, mode in {"locked/inner": 0, "locked": 0o500, "kept": 0o555}.items():
        (tmp_path / path).chmod(mode)
    sweep(tmp_path, Inventory.of(listing("kept/a.py")))
    assert left(tmp_path) == {"kept", "kept/a.py"}
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o755


def test_a_tower_of_folders_is_taken_down(tmp_path: Path) -> None:
    """Deeper than Python's recursion and than a path name can be long."""
    top = os.open(tmp_path, os.O_RDONLY)
    folder = top
    for _ in range(1100):
        os.mkdir("d", dir_fd=folder)
        deeper = os.open("d", os.O_RDONLY, dir_fd=folder)
        if folder != top:
            os.close(folder)
        folder = deeper
    os.close(folder)
    os.close(top)
    remove(tmp_path / "d")
    assert list(tmp_path.iterdir()) == []


def test_remove_takes_files_folders_and_nothing(tmp_path: Path) -> None:
    put(tmp_path, "folder/deep/file", "file")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("folder", "link", "missing", "missing/deeper"):
        remove(tmp_path / name)
    assert left(tmp_path) == {"file"}


def test_a_pipe_in_a_tracked_files_place_is_swept(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".gitignore")
    sweep(tmp_path, Inventory.of(listing(".gitignore")))
    assert left(tmp_path) == set()


def test_only_what_git_cannot_save_goes_when_a_tree_is_made_safe(tmp_path: Path) -> None:
    put(tmp_path, "work", "a/b/work", ".git/config", "a/.git/HEAD", ".gitignore", "git~1x", "x.git")
    kept = left(tmp_path)
    put(tmp_path, ".GIT/config", "a/.Git", "git~1", "a/.git ", "GIT~1./x", ".git::$INDEX_ALLOCATION", "b\\.git\\x")
    os.mkfifo(tmp_path / "a/pipe")
    (tmp_path / "link").symlink_to("nowhere")
    defuse(tmp_path)
    assert left(tmp_path) == kept | {"link"}


def test_pipes_that_git_would_wait_at_are_found_and_others_are_not(tmp_path: Path) -> None:
    put(tmp_path, "src/lib.py")
    os.mkfifo(tmp_path / "plain")
    os.mkfifo(tmp_path / "src/.gitattributes")
    assert stuck_on(tmp_path, {b"src"}) == ("src/.gitattributes",)
    assert stuck_on(tmp_path, set()) == ()
    assert stuck_on(tmp_path, None) == ("src/.gitattributes",)
    (tmp_path / "src/.git").symlink_to("..")
    assert set(stuck_on(tmp_path, None)) == {"plain", "src/.gitattributes"}
