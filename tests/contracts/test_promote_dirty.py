"""Promote and a person's unfinished work (L6): elsewhere it stays; in the way it is named, and nothing moves."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repos import git
from promote_world import World

from becket.kernel.contract.promote import Promoted, WhyNot

Work = Callable[[Path], object]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def write(home: Path, name: str, text: str = "mine\n") -> None:
    (home / name).parent.mkdir(parents=True, exist_ok=True)
    (home / name).write_text(text)


def staged(home: Path, name: str, text: str = "mine\n") -> None:
    write(home, name, text)
    git(home, "add", "--force", name)


def everything_at_once(home: Path) -> None:
    write(home, "keep.txt")
    staged(home, "data/one.txt", "staged\n")
    write(home, "data/one.txt", "and edited\n")
    (home / "data/two.txt").unlink()
    git(home, "rm", "--quiet", "--cached", "run.sh")
    staged(home, "brand new", "new\n")
    write(home, "announced")
    git(home, "add", "--intent-to-add", "announced")
    write(home, "untracked/file")
    write(home, "local.env")
    write(home, "ignored/file")


ELSEWHERE: dict[str, Work] = {
    "modified": lambda home: write(home, "keep.txt"),
    "staged": lambda home: staged(home, "keep.txt"),
    "staged new": lambda home: staged(home, "fresh"),
    "deleted": lambda home: (home / "keep.txt").unlink(),
    "staged deletion": lambda home: git(home, "rm", "--quiet", "data/one.txt"),
    "mode": lambda home: (home / "keep.txt").chmod(0o755),
    "announced": lambda home: (write(home, "n"), git(home, "add", "-N", "n")),
    "untracked": lambda home: write(home, "un/tracked"),
    "ignored": lambda home: write(home, "local.env"),
    "assume-unchanged": lambda home: (
        (git(home, "update-index", "--assume-unchanged", "keep.txt"), write(home, "keep.txt"))
    ),
    "skip-worktree": lambda home: ((git(home, "update-index", "--skip-worktree", "keep.txt"), write(home, "keep.txt"))),
    "everything": everything_at_once,
}


@pytest.mark.parametrize("work", ELSEWHERE.values(), ids=ELSEWHERE)
def test_work_elsewhere_is_left_exactly_as_it_was(world: World, work: Work) -> None:
    new = world.candidate({"app.py": "x = 2\n", "added/file": "a\n"})
    work(world.home)
    before = world.seen()
    answer = world.promote(new)
    assert isinstance(answer, Promoted), answer
    assert world.main() == new
    after = world.seen()
    new_files = {"app.py", "added/file"}
    assert {name: it for name, it in after.files.items() if name not in new_files} == {
        name: it for name, it in before.files.items() if name not in new_files
    }
    assert entries(after.index) - entries(before.index) == {
        line for line in entries(after.index) if line.endswith(("\tapp.py", "\tadded/file"))
    }
    assert not git(world.home, "diff", "--name-only", "HEAD", "--", *new_files)
    world.no_traces()


def entries(index: str) -> set[str]:
    return set(index.split("\0"))


def hidden(home: Path, mark: str) -> None:
    git(home, "update-index", f"--{mark}", "app.py")
    write(home, "app.py")


def marked_after_the_edit(home: Path) -> None:
    write(home, "app.py")
    git(home, "update-index", "--assume-unchanged", "app.py")


def same_size_same_time(home: Path) -> None:
    """An edit that leaves no trace in the file's stat."""
    found = (home / "app.py").stat()
    (home / "app.py").write_text("x = 7\n")
    os.utime(home / "app.py", ns=(found.st_atime_ns, found.st_mtime_ns))
    git(home, "config", "core.trustctime", "false")


def swapped_for_link(home: Path) -> None:
    (home / "app.py").rename(home / "elsewhere")
    (home / "app.py").symlink_to("elsewhere")


def folder_swapped_for_link(home: Path) -> None:
    (home / "data").rename(home.parent / "outside")
    (home / "data").symlink_to(home.parent / "outside")


ON_THE_PATH: dict[str, tuple[Work, set[str]]] = {
    "modified": (lambda home: write(home, "app.py"), {"app.py"}),
    "modified to the same as the new": (lambda home: write(home, "app.py", "x = 2\n"), {"app.py"}),
    "staged": (lambda home: staged(home, "app.py"), {"app.py"}),
    "staged the same as the new": (lambda home: staged(home, "app.py", "x = 2\n"), {"app.py"}),
    "staged and taken back": (
        lambda home: (staged(home, "app.py"), write(home, "app.py", "x = 1\n")),
        {"app.py"},
    ),
    "deleted": (lambda home: (home / "app.py").unlink(), {"app.py"}),
    "deleted and to be deleted": (lambda home: (home / "data/two.txt").unlink(), {"data/two.txt"}),
    "modified and to be deleted": (lambda home: write(home, "data/two.txt"), {"data/two.txt"}),
    "staged deletion": (lambda home: git(home, "rm", "--quiet", "--cached", "app.py"), {"app.py"}),
    "mode": (lambda home: (home / "app.py").chmod(0o755), {"app.py"}),
    "swapped for a link": (swapped_for_link, {"app.py"}),
    "folder swapped for a link": (folder_swapped_for_link, {"data/two.txt"}),
    "assume-unchanged": (lambda home: hidden(home, "assume-unchanged"), {"app.py"}),
    "assume-unchanged after the edit": (marked_after_the_edit, {"app.py"}),
    "skip-worktree": (lambda home: hidden(home, "skip-worktree"), {"app.py"}),
    "skip-worktree, deleted": (
        lambda home: (git(home, "update-index", "--skip-worktree", "app.py"), (home / "app.py").unlink()),
        {"app.py"},
    ),
    "same size, same time": (same_size_same_time, {"app.py"}),
    "untracked": (lambda home: write(home, "added/file"), {"added/file"}),
    "untracked, the same as the new": (lambda home: write(home, "added/file", "a\n"), {"added/file"}),
    "staged new": (lambda home: staged(home, "added/file"), {"added/file"}),
    "announced": (
        lambda home: (write(home, "added/file"), git(home, "add", "-N", "added/file")),
        {"added/file"},
    ),
    "ignored": (lambda home: write(home, "new.env"), {"new.env"}),
    "ignored file in a folder's place": (lambda home: write(home, "box.env"), {"box.env"}),
    "file in a folder's place": (lambda home: write(home, "added"), {"added"}),
    "link in a folder's place": (lambda home: (home / "added").symlink_to("data"), {"added"}),
    "dangling link": (lambda home: (home / "new.env").symlink_to("nowhere"), {"new.env"}),
    "folder of ignored files in a file's place": (lambda home: write(home, "new.env/mine.env"), {"new.env/mine.env"}),
    "ignored folder in a file's place": (lambda home: write(home, "plain/ignored/x"), {"plain/ignored/x"}),
    "repository in a file's place": (lambda home: git(home, "init", "--quiet", "plain"), {"plain"}),
    "ignored file in a folder that becomes a file": (lambda home: write(home, "box/mine.env"), {"box/mine.env"}),
    "several": (lambda home: (write(home, "app.py"), write(home, "new.env")), {"app.py", "new.env"}),
}


@pytest.mark.parametrize(("work", "paths"), ON_THE_PATH.values(), ids=ON_THE_PATH)
def test_work_on_the_path_is_named_and_nothing_moves(world: World, work: Work, paths: set[str]) -> None:
    """L6: `main_dirty` is its own result. Ignored files are work too: a `.env` has no second copy."""
    world.change({"box/inside": "b\n"})
    world.old = world.commit("a folder")
    new = world.candidate(
        {
            "app.py": "x = 2\n",
            "data/two.txt": None,
            "added/file": "a\n",
            "new.env": "A=1\n",
            "box.env/file": "b\n",
            "plain": "p\n",
            "box/inside": None,
        }
    )
    with world.making() as made:
        git(world.home, "reset", "--quiet", "--hard", new)
        (world.home / "box").write_text("a file now\n")
    work(world.home)
    before = world.seen()
    answer = world.refused(WhyNot.main_dirty, world.promote(made.sha), before)
    assert {next((it for it in paths if path.startswith(f"{it}/")), path) for path in answer.paths} == paths
    assert all(path in answer.message for path in answer.paths)


def test_what_is_told_is_bounded_and_what_is_returned_is_not(world: World) -> None:
    names = [f"f{number:02}" for number in range(30)]
    new = world.candidate(dict.fromkeys(names, "new\n"))
    for name in names:
        write(world.home, name)
    answer = world.refused(WhyNot.main_dirty, world.promote(new), world.seen())
    assert answer.paths == tuple(names)
    assert "and 25 more" in answer.message


@pytest.mark.parametrize("mark", ["assume-unchanged", "skip-worktree"])
def test_a_marked_file_without_work_moves_and_keeps_its_mark(world: World, mark: str) -> None:
    """Git refuses it by its stale stat, or forgets the mark; the person set it for a reason."""
    new = world.candidate({"app.py": "x = 2\n", "data/one.txt": None})
    git(world.home, "update-index", f"--{mark}", "app.py", "data/one.txt", "keep.txt")
    for name in ("app.py", "data/one.txt"):
        text = (world.home / name).read_bytes()
        (world.home / name).unlink()
        (world.home / name).write_bytes(text)
    write(world.home, "keep.txt")
    assert isinstance(world.promote(new), Promoted)
    tag = "h" if mark == "assume-unchanged" else "S"
    assert git(world.home, "ls-files", "-v", "app.py", "keep.txt") == f"{tag} app.py\n{tag} keep.txt"
    assert (world.home / "app.py").read_text() == "x = 2\n"
    assert (world.home / "keep.txt").read_text() == "mine\n"
    assert not (world.home / "data/one.txt").exists()


def test_names_that_differ_by_case_collide_only_where_git_says_so(world: World) -> None:
    new = world.candidate({"README": "r\n", "docs/Guide": "g\n"})
    write(world.home, "readme")
    write(world.home, "DOCS/x")
    git(world.home, "config", "core.ignorecase", "true")
    answer = world.refused(WhyNot.main_dirty, world.promote(new), world.seen())
    assert answer.paths == ("readme",)
    git(world.home, "config", "core.ignorecase", "false")
    assert isinstance(world.promote(new), Promoted)
    assert (world.home / "readme").read_text() == "mine\n"


def test_a_rename_by_case_alone_is_no_collision(world: World) -> None:
    git(world.home, "config", "core.ignorecase", "true")
    with world.making() as made:
        git(world.home, "mv", "keep.txt", "KEEP.txt")
    world.landed(world.promote(made.sha), made.sha, world.home)


def test_once_the_work_is_out_of_the_way_it_goes_through(world: World) -> None:
    """L6: the candidate is kept and retried."""
    new = world.candidate({"app.py": "x = 2\n", "new.env": "A=1\n"})
    write(world.home, "app.py")
    write(world.home, "new.env")
    world.refused(WhyNot.main_dirty, world.promote(new), world.seen())
    git(world.home, "stash", "--all", "--quiet")
    world.landed(world.promote(new), new, world.home)
