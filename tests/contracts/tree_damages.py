"""What a contained program may do to its tree, as small deeds that a seed combines. Nothing but the standard library:
the same file runs in the tree itself, as the program of a gate step: `python tree_damages.py SEED`.

Every link leads nowhere, and no deed leaves the tree: without a sandbox it is as harmless as within one.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

NOWHERE = "/nonexistent/becket"

Deed = Callable[[Path], None]

MANY = 3000
DEPTH = 60  # folders of 200 letters each: three times the longest path that the system takes


def git_removed(tree: Path) -> None:
    _gone(tree / ".git")


def git_made_a_file(tree: Path) -> None:
    _gone(tree / ".git")
    (tree / ".git").write_text(f"gitdir: {NOWHERE}\n")


def git_made_a_link(tree: Path) -> None:
    _gone(tree / ".git")
    (tree / ".git").symlink_to(NOWHERE)


def git_made_a_pipe(tree: Path) -> None:
    _gone(tree / ".git")
    os.mkfifo(tree / ".git")


def git_closed(tree: Path) -> None:
    if (tree / ".git").is_dir() and not (tree / ".git").is_symlink():
        for place, _, _ in os.walk(tree / ".git", topdown=False):
            Path(place).chmod(0)


def git_with_pipes(tree: Path) -> None:
    for name in ("HEAD", "config", "index", "becket-workspace", "packed-refs"):
        _gone(tree / ".git" / name)
        with contextlib.suppress(OSError):
            os.mkfifo(tree / ".git" / name)


def root_moved_down(tree: Path) -> None:
    down = tree / "down"
    down.mkdir(exist_ok=True)
    for path in list(tree.iterdir()):
        if path != down:
            path.rename(down / path.name)


def root_emptied(tree: Path) -> None:
    for path in list(tree.iterdir()):
        _gone(path)


def root_closed(tree: Path) -> None:
    tree.chmod(0)


def root_read_only(tree: Path) -> None:
    tree.chmod(stat.S_ISVTX | 0o555)


def folders_closed(tree: Path) -> None:
    for name in ("closed/inner/more", "cache/mod"):
        folder = tree / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_text("x")
        folder.chmod(0)
    for name in ("closed", "src"):
        if not (tree / name).is_symlink():
            (tree / name).chmod(0)


def many_files(tree: Path) -> None:
    folder = tree / "many"
    folder.mkdir(exist_ok=True)
    for number in range(MANY):
        (folder / f"{number}").touch()


def deep_path(tree: Path) -> None:
    here = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(DEPTH):
        name = "d" * 200
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, dir_fd=here)
        deeper = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(os.open("bottom", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def odd_names(tree: Path) -> None:
    for name in (b"a\nb", b"\xff\xfe", b" ", b"-rf", b"\x1b[2J", b"tab\t", b'"quoted"', b"\\", b"..."):
        Path(os.fsdecode(os.fsencode(tree) + b"/" + name)).write_text("odd")


def pipes(tree: Path) -> None:
    (tree / "lib").mkdir(exist_ok=True)
    for name in ("pipe", "lib/pipe", "report.xml"):
        _gone(tree / name)
        os.mkfifo(tree / name)


def pipes_that_git_reads(tree: Path) -> None:
    for name in (
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        "src/.gitignore",
        "fresh/.gitignore",
        "fresh/.gitattributes",
    ):
        (tree / name).parent.mkdir(exist_ok=True)
        _gone(tree / name)
        os.mkfifo(tree / name)
    (tree / "fresh/file").write_text("x")


def pipe_for_a_tracked_file(tree: Path) -> None:
    _gone(tree / "app.py")
    os.mkfifo(tree / "app.py")


def sockets(tree: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(tree)  # the name of a socket must be short
        try:
            made.bind("socket")
        finally:
            os.chdir(here)


def devices(tree: Path) -> None:
    with contextlib.suppress(OSError):  # few may
        os.mknod(tree / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))


def links(tree: Path) -> None:
    for name, target in (("loop", "loop"), ("a", "b"), ("b", "a"), ("out", NOWHERE)):
        _gone(tree / name)
        (tree / name).symlink_to(target)


def folder_made_a_link(tree: Path) -> None:
    _gone(tree / "src")
    (tree / "src").symlink_to(NOWHERE)


def hard_links(tree: Path) -> None:
    alternates = tree / ".git/objects/info/alternates"
    with contextlib.suppress(OSError):
        for pack in Path(alternates.read_text().strip(), "pack").iterdir():
            os.link(pack, tree / f"linked-{pack.name}")
    (tree / "one").write_text("one")
    os.link(tree / "one", tree / "two")


def upper_git(tree: Path) -> None:
    for name in (".GIT", "src/.Git", "git~1"):
        folder = tree / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config").write_text("[core]\n")


def nested_git(tree: Path) -> None:
    for name in ("src/.git", "vendor/.git"):
        folder = tree / name
        (folder / "objects").mkdir(parents=True, exist_ok=True)
        (folder / "refs").mkdir(exist_ok=True)
        (folder / "HEAD").write_text("ref: refs/heads/main\n")


def nested_git_of_pipes(tree: Path) -> None:
    for name in ("src/.git", "vendor/.git"):
        folder = tree / name
        _gone(folder)
        (folder / "objects").mkdir(parents=True)
        (folder / "refs").mkdir()
        for file in ("HEAD", "config", "commondir"):
            os.mkfifo(folder / file)


def nested_git_by_link_to_pipes(tree: Path) -> None:
    for name in ("trap", "linked", "told"):
        (tree / name).mkdir(exist_ok=True)
    for file in ("HEAD", "config"):
        os.mkfifo(tree / "trap" / file)
    (tree / "linked/.git").symlink_to("../trap")
    (tree / "told/.git").write_text("gitdir: ../trap\n")


def nested_git_file(tree: Path) -> None:
    (tree / "vendor2").mkdir(exist_ok=True)
    (tree / "vendor2/.git").write_text(f"gitdir: {NOWHERE}\n")
    (tree / "vendor2/file").write_text("x")


def tracked_changed(tree: Path) -> None:
    (tree / "app.py").write_text("changed = True\n")


def tracked_removed(tree: Path) -> None:
    _gone(tree / "src")


def writer_left_running(tree: Path) -> None:
    """For ten seconds at most, and not above a thousand files."""
    program = (
        "import pathlib, time\n"
        "for number in range(1000):\n"
        " try:\n"
        "  pathlib.Path('written').mkdir(exist_ok=True)\n"
        "  pathlib.Path('written', str(number)).touch()\n"
        " except OSError: pass\n"
        " time.sleep(0.01)\n"
    )
    subprocess.Popen([sys.executable, "-c", program], cwd=tree, start_new_session=True)


VOIDING = (root_moved_down, root_emptied, folder_made_a_link, pipe_for_a_tracked_file, tracked_changed, tracked_removed)
"""What the tree holds after these is not the commit any more, whatever the program's exit code says."""
DEEDS: dict[str, Deed] = {
    deed.__name__: deed
    for deed in (
        git_removed, git_made_a_file, git_made_a_link, git_made_a_pipe, git_closed, git_with_pipes, folders_closed,
        many_files, deep_path, odd_names, pipes, pipes_that_git_reads, sockets, devices, links, hard_links, upper_git,
        nested_git, nested_git_of_pipes, nested_git_by_link_to_pipes, nested_git_file, writer_left_running,
        *VOIDING, root_read_only, root_closed,
    )
}  # fmt: skip


def chosen(seed: int) -> list[str]:
    """Each alone by its number; above that two to four together."""
    names = list(DEEDS)
    if seed < len(names):
        return [names[seed]]
    picked = set(random.Random(seed).sample(names, 2 + seed % 3))
    return [name for name in names if name in picked]  # what closes the root comes last


def damage(tree: Path, names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(OSError):  # an earlier deed may be in the way
            DEEDS[name](tree)


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        path.chmod(0o700)
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    damage(Path.cwd(), chosen(int(sys.argv[1])))
