"""Promote in repositories of every shape: sparse, shallow, filtered, with submodules, split indexes, other hashes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from git_repos import git
from promote_world import World

from becket.kernel.contract.promote import NotPromoted, Promoted, WhyNot


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize("options", [("--cone",), ("--no-cone",), ("--cone", "--sparse-index")])
def test_a_sparse_tree_stays_sparse(world: World, options: tuple[str, ...]) -> None:
    new = world.candidate(
        {"data/one.txt": "1\n", "data/new.txt": "n\n", "data/two.txt": None, "in/file": "i\n", "app.py": "x = 2\n"}
    )
    pattern = ("in",) if "--cone" in options else ("/in/", "/app.py", "/.gitignore")
    git(world.home, "sparse-checkout", "set", *options, *pattern)
    assert not (world.home / "data").exists()
    world.landed(world.promote(new), new, world.home)
    assert not (world.home / "data").exists()
    assert (world.home / "in/file").exists()
    git(world.home, "sparse-checkout", "disable")
    assert git(world.home, "status", "--porcelain") == ""
    assert (world.home / "data/one.txt").read_text() == "1\n"


@pytest.mark.parametrize("name", ["data/one.txt", "data/new.txt"])
def test_a_persons_file_outside_of_a_sparse_tree_is_work_too(world: World, name: str) -> None:
    new = world.candidate({"data/one.txt": "1\n", "data/new.txt": "n\n"})
    git(world.home, "sparse-checkout", "set", "in")
    (world.home / "data").mkdir()
    (world.home / name).write_text("mine\n")
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.paths) == (WhyNot.main_dirty, (name,))
    assert (world.home / name).read_text() == "mine\n"
    assert world.main() == world.old


def test_a_shallow_clone(world: World) -> None:
    world.commit("another")
    git(world.folder, "clone", "--quiet", "--depth=1", f"file://{world.home}", "shallow")
    world.home = world.folder / "shallow"
    world.old = world.main()
    new = world.candidate()
    world.landed(world.promote(new), new, world.home)
    assert git(world.home, "rev-parse", "--is-shallow-repository") == "true"


def test_a_shallow_clone_that_cannot_see_the_way(world: World) -> None:
    """The commits between lie beyond the cut: what cannot be shown to be a fast-forward is none."""
    git(world.folder, "clone", "--quiet", "--depth=1", f"file://{world.home}", "shallow")
    world.commit("between")
    last = world.commit("last")
    world.home = world.folder / "shallow"
    git(world.home, "fetch", "--quiet", "--depth=1", "origin", "main")
    world.refused(WhyNot.not_fast_forward, world.promote(last), world.seen())


def test_a_sha256_repository(tmp_path: Path) -> None:
    world = World(tmp_path, "--object-format=sha256")
    new = world.candidate({"app.py": "x = 2\n", "data/one.txt": None, "added": "a\n"})
    assert len(new) == 64
    world.landed(world.promote(new), new, world.home)


@pytest.mark.parametrize("version", ["split", "untracked", "v4"])
def test_an_index_of_another_kind(world: World, version: str) -> None:
    new = world.candidate({"app.py": "x = 2\n", "data/one.txt": None, "added/file": "a\n"})
    option = {"split": "--split-index", "untracked": "--untracked-cache", "v4": "--index-version=4"}[version]
    git(world.home, "config", "splitIndex.sharedIndexExpire", "now")
    git(world.home, "update-index", option)
    git(world.home, "status")
    world.landed(world.promote(new), new, world.home)
    (world.home / "added/mine").write_text("m\n")
    assert git(world.home, "status", "--porcelain") == "?? added/mine"


def test_a_tree_without_an_index_is_not_filled_behind_its_owners_back(world: World) -> None:
    new = world.candidate()
    git(world.folder, "clone", "--quiet", "--no-checkout", str(world.home), "empty")
    world.home = world.folder / "empty"
    git(world.home, "fetch", "--quiet", "origin", new)
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert answer.reason is WhyNot.main_dirty
    assert [path.name for path in world.home.iterdir()] == [".git"]
    assert world.main() == world.old
    world.no_traces()


def test_an_index_that_is_a_link_is_refused(world: World) -> None:
    new = world.candidate()
    (world.common / "index").rename(world.common / "real-index")
    (world.common / "index").symlink_to("real-index")
    world.refused(WhyNot.unsupported, world.promote(new), world.seen())


def test_an_unchanged_submodule_is_left_alone_whatever_is_in_it(world: World) -> None:
    library = World(world.folder / "library")
    git(world.home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.home), "lib")
    world.old = world.commit("with a submodule")
    new = world.candidate()
    git(world.home, "config", "submodule.recurse", "true")
    (world.home / "lib/app.py").write_text("mine\n")
    git(world.home / "lib", "commit", "--quiet", "--all", "-m", "mine", "--author=A <a@b>")
    (world.home / "lib/app.py").write_text("and more\n")
    assert isinstance(world.promote(new), Promoted)
    assert git(world.home, "status", "--porcelain") == "M lib"
    assert (world.home / "lib/app.py").read_text() == "and more\n"


def test_a_moved_submodule_is_refused(world: World) -> None:
    library = World(world.folder / "library")
    git(world.home, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library.home), "lib")
    world.old = world.commit("with a submodule")
    with world.making() as made:
        git(world.home / "lib", "checkout", "--quiet", "HEAD~1")
    git(world.home / "lib", "checkout", "--quiet", "main")
    answer = world.refused(WhyNot.unsupported, world.promote(made.sha), world.seen())
    assert answer.paths == ("lib",)


def test_line_ends_are_written_as_the_person_has_them(world: World) -> None:
    new = world.candidate({"data/one.txt": "1\n2\n", "data/new.txt": "n\n"})
    git(world.home, "config", "core.autocrlf", "true")
    git(world.home, "rm", "--quiet", "--cached", "-r", ".")
    git(world.home, "reset", "--quiet", "--hard")
    assert (world.home / "data/one.txt").read_bytes() == b"one\r\n"
    world.landed(world.promote(new), new, world.home)
    assert (world.home / "data/one.txt").read_bytes() == b"1\r\n2\r\n"
    assert (world.home / "data/new.txt").read_bytes() == b"n\r\n"


def test_an_edit_under_converted_line_ends_is_seen(world: World) -> None:
    new = world.candidate({"data/one.txt": "1\n"})
    git(world.home, "config", "core.autocrlf", "true")
    (world.home / "data/one.txt").write_bytes(b"mine\r\n")
    answer = world.refused(WhyNot.main_dirty, world.promote(new), world.seen())
    assert answer.paths == ("data/one.txt",)


def test_a_file_whose_filter_has_no_way_back_is_clean_as_long_as_nobody_touches_it(world: World) -> None:
    """Its bytes never hash to its blob again; git goes by the stat, and so do we."""
    world.change({".gitattributes": "*.up filter=up\n", "a.up": "old\n"})
    world.old = world.commit("one-way filter")
    new = world.candidate({"a.up": "new\n"})
    git(world.home, "config", "filter.up.smudge", "tr a-z A-Z")
    (world.home / "a.up").write_text("OLD\n")
    hour_ago = time.time() - 3600
    os.utime(world.home / "a.up", (hour_ago, hour_ago))
    git(world.home, "-c", "filter.up.clean=tr A-Z a-z", "update-index", "--refresh", "a.up")
    assert git(world.home, "status", "--porcelain") == ""
    assert isinstance(world.promote(new), Promoted)
    assert (world.home / "a.up").read_text() == "NEW\n"


def test_filters_run_and_a_filtered_file_is_clean(world: World) -> None:
    git(world.home, "config", "filter.shout.clean", "tr A-Z a-z")
    git(world.home, "config", "filter.shout.smudge", "tr a-z A-Z")
    world.change({".gitattributes": "*.loud filter=shout\n", "a.loud": "HELLO\n"})
    world.old = world.commit("filtered")
    new = world.candidate({"a.loud": "GOODBYE\n", "b.loud": "NEW\n"})
    git(world.home, "rm", "--quiet", "--cached", "-r", ".")
    git(world.home, "reset", "--quiet", "--hard")
    assert (world.home / "a.loud").read_text() == "HELLO\n"
    world.landed(world.promote(new), new, world.home)
    assert (world.home / "a.loud").read_text() == "GOODBYE\n"
    assert (world.home / "b.loud").read_text() == "NEW\n"
    assert git(world.home, "cat-file", "-p", f"{new}:b.loud") == "new"


def test_attributes_that_arrive_with_their_files_count_for_them(world: World) -> None:
    with world.making() as made:
        world.change({".gitattributes": "*.txt text eol=crlf\n", "data/new.txt": "n\r\n", "data/one.txt": "1\r\n"})
    world.landed(world.promote(made.sha), made.sha, world.home)
    assert (world.home / "data/new.txt").read_bytes() == b"n\r\n"
    assert git(world.home, "cat-file", "-p", f"{made.sha}:data/new.txt") == "n"


def test_no_trust_in_modes_where_git_has_none(world: World) -> None:
    git(world.home, "config", "core.fileMode", "false")
    new = world.candidate()
    (world.home / "app.py").chmod(0o755)
    world.landed(world.promote(new), new, world.home)
