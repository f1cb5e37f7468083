"""Removal: whatever programs left goes, nothing outside does, and what stays is told."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from becket.kernel.contract.removal import remove

IN_A_WORLD_TO_READ = """
import logging, pathlib, sys
from becket.kernel.contract.removal import NotRemoved, remove, removed
logging.basicConfig()
folder = pathlib.Path(sys.argv[1])
try:
    remove(folder)
except NotRemoved as error:
    print(error)
assert not removed(folder)
"""


def deep(folder: Path, depth: int, name: str) -> None:
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = deeper
    os.mkfifo("pipe", dir_fd=here)
    os.close(here)


def test_a_folder_deeper_than_any_path_goes_with_all_that_is_odd(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / ".GIT/closed").mkdir(parents=True)
    (folder / ".GIT/closed/file").touch()
    (folder / "out").symlink_to(tmp_path)
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff\n")).touch()
    deep(folder, 60, "d" * 200)
    deep(folder / ".GIT", 450, "e")
    (folder / ".GIT/closed").chmod(0)
    (folder / ".GIT").chmod(0o444)
    remove(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_stays_is_told_with_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    held = folder / "held"
    held.mkdir(parents=True)
    (folder / "goes").touch()
    for number in range(5):
        (held / f"{number}").touch()
    held_as_it_is = ["--ro-bind", str(held), str(held)]
    program = [
        "bwrap",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        *held_as_it_is,
        sys.executable,
        "-c",
        IN_A_WORLD_TO_READ,
        str(folder),
    ]
    told = subprocess.run(program, capture_output=True, text=True, check=True)
    assert f"{folder} cannot be removed: " in told.stdout
    assert "(Read-only file system)" in told.stdout
    assert "more" in told.stdout
    assert "remove it by hand" in told.stderr
    assert [path.name for path in folder.iterdir()] == ["held"]
    assert len(list(held.iterdir())) == 5


def test_somebody_who_still_writes_is_outlasted(tmp_path: Path) -> None:
    folder = tmp_path / "busy"
    folder.mkdir()
    ended = threading.Event()

    def write() -> None:
        for number in range(200):
            try:
                (folder / f"{number % 7}").mkdir(exist_ok=True)
                (folder / f"{number % 7}/{number}").touch()
            except OSError:
                break
        ended.set()

    threading.Thread(target=write).start()
    remove(folder)
    ended.wait(30)
    assert not folder.exists()
