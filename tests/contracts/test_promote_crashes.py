"""Promote and kill -9: of us, of our gits, of both, at every named point; then recover, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_repos import commit, git
from promote_world import CHANGE, World, consistent, filtered, persons_work, prepared

from becket.kernel.contract.promote import NotPromoted, Promoted, WhyNot
from becket.testing.crashes import Nursery, every_point

LOCKED = [
    "promote.after_index_lock",
    "promote.after_prepare",
    "promote.before_checkout",
    "promote.after_checkout",
    "promote.after_index",
    "promote.after_commit",
]
MOVED = ["promote.after_commit", "promote.before_clear"]
FORWARD = ["promote.after_intent", *LOCKED, "promote.before_clear"]
UNDO = ["promote.mid_undo", "promote.before_old_index"]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("promote_lives:life", paths=[Path(__file__).parent]) as nursery:
        yield nursery


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def killed(nursery: Nursery, world: World, new: str, at: str, *, together: bool = False) -> None:
    arguments = {"with_git_at": at} if together else {"crash_at": at}
    life = nursery.live(world.folder, do="promote", old=world.old, new=new, **arguments)
    assert life.killed, life


def test_every_point_of_the_recipe_has_its_place_in_the_matrix() -> None:
    of_the_action = {"promote.after_effect"}  # the heal loop's matrix has it
    assert {name for name in every_point() if name.startswith("promote.")} - of_the_action == {*FORWARD, *UNDO}


@pytest.mark.parametrize("point", FORWARD)
def test_killed_at_any_point_main_is_old_or_new_and_the_tree_is_the_same(
    nursery: Nursery, world: World, point: str
) -> None:
    """L7: whatever happens, nothing of the person's is lost."""
    new = prepared(world)
    before = world.seen()
    killed(nursery, world, new, point)
    answer = world.recover()
    consistent(world)
    persons_work(world)
    if point in MOVED:
        assert isinstance(answer, Promoted)
        assert world.main() == new
    else:
        assert isinstance(answer, NotPromoted)
        assert answer.reason is WhyNot.failed
        assert before.difference(world.seen()) == {}
    assert world.recover() is None
    again = world.promote(new)
    assert isinstance(again, Promoted) if point not in MOVED else isinstance(again, NotPromoted)
    assert world.main() == new
    consistent(world)
    persons_work(world)


@pytest.mark.parametrize("point", LOCKED)
def test_killed_together_with_the_git_that_holds_the_ref(nursery: Nursery, world: World, point: str) -> None:
    """Nobody is left to remove the ref's locks; recovery removes exactly those the intent tells of."""
    new = prepared(world)
    killed(nursery, world, new, point, together=True)
    left = {path.name for path in world.locks()}
    answer = world.recover()
    persons_work(world)
    if point == "promote.after_prepare":
        assert {path.name for path in world.locks()} == {"main.lock", "HEAD.lock"}, "unknown to the intent: not ours"
        refused = world.promote(new)
        assert isinstance(refused, NotPromoted)
        assert refused.reason is WhyNot.ref_locked
        for path in world.locks():
            path.unlink()
    elif point not in ("promote.after_index_lock", *MOVED):
        assert left == {"main.lock", "HEAD.lock", "index.lock"}
    consistent(world)
    assert (world.main() == new) == (point in MOVED) == isinstance(answer, Promoted)
    if point not in MOVED:
        assert isinstance(world.promote(new), Promoted)
        consistent(world)


@pytest.mark.parametrize("point", UNDO)
@pytest.mark.parametrize("first", ["promote.after_checkout", "promote.after_index"])
def test_recovery_may_be_killed_too(nursery: Nursery, world: World, first: str, point: str) -> None:
    new = prepared(world)
    before = world.seen()
    killed(nursery, world, new, first)
    assert nursery.live(world.folder, crash_at=point, do="recover").killed
    assert nursery.live(world.folder, crash_at=f"{point}@1", do="recover").killed
    assert isinstance(world.recover(), NotPromoted)
    assert before.difference(world.seen()) == {}
    consistent(world)


def test_the_next_promotion_recovers_by_itself(nursery: Nursery, world: World) -> None:
    new = prepared(world)
    killed(nursery, world, new, "promote.after_index")
    assert isinstance(world.promote(new), Promoted)
    consistent(world)


def test_a_promotion_that_had_landed_is_told_once_more(nursery: Nursery, world: World) -> None:
    new = prepared(world)
    killed(nursery, world, new, "promote.after_commit")
    assert isinstance(world.promote(new), Promoted)
    consistent(world)


def test_nowhere_checked_out(nursery: Nursery, world: World) -> None:
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--create", "side")
    before = world.seen()
    for point in ("promote.after_index_lock", "promote.after_prepare"):
        killed(nursery, world, new, point)
        world.refused(WhyNot.failed, world.recover(), before)
    killed(nursery, world, new, "promote.after_commit")
    assert isinstance(world.recover(), Promoted)
    assert (world.main(), world.locks()) == (new, [])


def test_a_linked_tree(nursery: Nursery, world: World) -> None:
    new = world.candidate(CHANGE)
    git(world.home, "switch", "--quiet", "--create", "side")
    tree = world.folder / "linked"
    git(world.home, "worktree", "add", "--quiet", str(tree), "main")
    before = world.seen(tree)
    killed(nursery, world, new, "promote.after_index", together=True)
    world.refused(WhyNot.failed, world.recover(), before)
    killed(nursery, world, new, "promote.after_checkout")
    shutil.rmtree(tree)
    git(world.home, "worktree", "prune")
    assert isinstance(world.recover(), NotPromoted)
    world.no_traces()


def test_a_sparse_tree_with_marks_is_put_back_as_it_was(nursery: Nursery, world: World) -> None:
    new = world.candidate({**CHANGE, "in/file": "i\n"})
    git(world.home, "sparse-checkout", "set", "in")
    git(world.home, "update-index", "--assume-unchanged", "app.py")
    before = world.seen()
    for point in ("promote.after_checkout", "promote.after_index"):
        killed(nursery, world, new, point)
        world.refused(WhyNot.failed, world.recover(), before)


@pytest.mark.parametrize("point", ["promote.after_checkout", "promote.after_index"])
def test_attributes_go_back_before_the_files_they_decide_about(nursery: Nursery, world: World, point: str) -> None:
    world.change({".gitattributes": "*.txt text eol=crlf\n", "z/.gitattributes": "*.txt text eol=lf\n"})
    world.change({"z/file.txt": "z\n", "!sorts before attributes.txt": "!\n"})
    world.commit("attributes")
    git(world.home, "rm", "--quiet", "--cached", "-r", ".")
    git(world.home, "reset", "--quiet", "--hard")
    world.old = world.main()
    new = world.candidate(
        {
            ".gitattributes": "*.txt text eol=lf\n",
            "z/.gitattributes": "*.txt text eol=crlf\n",
            "!sorts before attributes.txt": "!!\n",
            "data/one.txt": "1\n1\n",
            "data/two.txt": None,
            "z/file.txt": "zz\n",
        }
    )
    git(world.home, "rm", "--quiet", "--cached", "-r", ".")
    git(world.home, "reset", "--quiet", "--hard")
    before = world.seen()
    assert (before.files["data/one.txt"][1], before.files["z/file.txt"][1]) == (b"one\r\n", b"z\n")
    killed(nursery, world, new, point)
    assert (world.home / "data/one.txt").read_bytes() == b"1\n1\n"
    world.refused(WhyNot.failed, world.recover(), before)
    assert world.status() == set()


# What a person does between the kill and the recovery.


def test_an_edit_on_top_of_the_new_file_is_kept_and_named(nursery: Nursery, world: World) -> None:
    new = prepared(world)
    killed(nursery, world, new, "promote.after_index")
    world.change({"app.py": "x = 2\nmy own line\n", "added/deep/file": "my own\n"})
    answer = world.recover()
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, set(answer.paths)) == (WhyNot.main_dirty, {"app.py", "added/deep/file"})
    assert (world.home / "app.py").read_text() == "x = 2\nmy own line\n"
    assert (world.home / "added/deep/file").read_text() == "my own\n"
    assert (world.home / "data/one.txt").read_text() == "one\n"
    assert not (world.home / "new.env").exists()
    assert world.main() == world.old
    assert git(world.home, "diff", "--cached", "--name-only") == "added/mine"
    world.no_traces()
    persons_work(world)


@pytest.mark.parametrize("share", [0, 0.5])
def test_a_file_that_git_had_only_begun_is_put_back(nursery: Nursery, world: World, share: float) -> None:
    new = prepared(world)
    before = world.seen()
    killed(nursery, world, new, "promote.after_checkout")
    for name in ("app.py", "added/deep/file"):
        whole = (world.home / name).read_bytes()
        (world.home / name).write_bytes(whole[: int(len(whole) * share)])
    (world.home / "data/two.txt").unlink()
    assert isinstance(world.recover(), NotPromoted)
    assert before.difference(world.seen()) == {}
    consistent(world)


def test_somebody_removed_our_lock_and_committed(nursery: Nursery, world: World) -> None:
    new = prepared(world)
    killed(nursery, world, new, "promote.after_checkout")
    (world.common / "index.lock").unlink()
    git(world.home, "commit", "--quiet", "-m", "mine")
    theirs = world.main()
    answer = world.recover()
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.main) == (WhyNot.main_moved, theirs)
    assert world.main() == theirs
    assert world.status() == {" M keep.txt"}
    world.no_traces()


def test_somebody_removed_our_lock_and_committed_what_lay_there(nursery: Nursery, world: World) -> None:
    """The new files are theirs now: taking them back would undo their commit."""
    new = prepared(world)
    killed(nursery, world, new, "promote.after_index")
    (world.common / "index.lock").unlink()
    git(world.home, "commit", "--quiet", "--all", "-m", "whatever is there")
    before = world.seen()
    answer = world.recover()
    assert isinstance(answer, NotPromoted)
    assert answer.reason is WhyNot.main_moved
    assert before.difference(world.seen()) == {}
    world.no_traces()


def test_somebody_staged_on_our_index(nursery: Nursery, world: World) -> None:
    """Our entries go back one by one; theirs stay."""
    new = prepared(world)
    killed(nursery, world, new, "promote.after_index")
    (world.common / "index.lock").unlink()
    world.change({"keep.txt": "staged\n"})
    git(world.home, "add", "keep.txt")
    assert isinstance(world.recover(), NotPromoted)
    assert world.status() == {"M  keep.txt", "A  added/mine"}
    assert (world.home / "app.py").read_text() == "x = 1\n"
    world.no_traces()


def test_somebody_went_on_from_the_new_commit(nursery: Nursery, world: World) -> None:
    new = prepared(world)
    killed(nursery, world, new, "promote.after_commit")
    (world.common / "index.lock").unlink()
    theirs = commit(world.home, {"more": "m\n"})
    assert isinstance(world.recover(), Promoted)
    assert world.main() == theirs
    world.no_traces()


@pytest.mark.parametrize("name", ["index.lock", "refs/heads/main.lock", "HEAD.lock"])
def test_a_lock_in_place_of_ours_is_foreign(nursery: Nursery, world: World, name: str) -> None:
    """An inode number is given to the next file; the mark knows better."""
    new = prepared(world)
    killed(nursery, world, new, "promote.after_index", together=True)
    (world.common / name).unlink()
    (world.common / name).write_text("")
    answer = world.recover()
    assert isinstance(answer, NotPromoted)
    assert (world.common / name).exists()
    assert (answer.reason is WhyNot.main_busy) == (name == "index.lock")
    (world.common / name).unlink()
    world.recover()
    consistent(world)


def test_a_git_that_outlives_us_is_waited_for(nursery: Nursery, world: World) -> None:
    """L19: recovery begins only when nothing of the killed life writes any more."""
    waiting, go_on = world.folder / "waiting", world.folder / "go-on"
    os.mkfifo(waiting)
    os.mkfifo(go_on)
    new = filtered(world, f"echo here > '{waiting}'; read line < '{go_on}'; cat")
    before = world.seen()
    pid = nursery.begin(world.folder, do="promote", old=world.old, new=new)
    assert waiting.read_text() == "here\n"
    os.kill(pid, signal.SIGKILL)
    assert nursery.end().killed
    answers: list[object] = []
    recovering = threading.Thread(target=lambda: answers.append(world.recover()))
    recovering.start()
    recovering.join(1)
    assert recovering.is_alive(), "recovery did not wait"
    go_on.write_text("go\n")
    assert waiting.read_text() == "here\n"
    go_on.write_text("go\n")
    recovering.join(120)
    (answer,) = answers
    assert isinstance(answer, NotPromoted)
    world.refused(WhyNot.failed, answer, before)
