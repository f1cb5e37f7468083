"""Promote: ref, index and files of a checked-out branch move together, or nothing moves and nobody loses anything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from git_repos import commit, git, planted_script
from promote_world import World, permit_for, request_for

from becket.kernel.contract.effect import EffectCall, door_mint
from becket.kernel.contract.errors import EffectRefused, GitFailed
from becket.kernel.contract.promote import NotPromoted, PromoteRequest, WhyNot
from becket.kernel.git.repository import discover
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.promote import promoter_of


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_ref_index_and_files_move_together(world: World) -> None:
    new = world.candidate({"app.py": "x = 2\n", "new/deep/file.py": "n\n", "data/one.txt": None})
    promoter = promoter_of(discover(world.home))
    request = request_for(world.old, new)
    answer = asyncio.run(promoter.promote(request, permit_for(request), world.log))
    world.landed(answer, new, world.home)
    assert (world.home / "new/deep/file.py").read_text() == "n\n"
    assert not (world.home / "data/one.txt").exists()


def test_both_reflogs_name_the_promotion(world: World) -> None:
    new = world.candidate()
    world.promote(new)
    for ref in ("HEAD", "main"):
        assert git(world.home, "log", "-1", "--walk-reflogs", "--format=%H %gs %gn", ref) == (
            f"{new} becket: promote run_1 Becket"
        )


@pytest.mark.parametrize(
    "request_",
    [
        {"old": "main"},
        {"new": "HEAD"},
        {"new": "a" * 41},
        {"old": "b" * 40, "new": "b" * 40},
        {"key": "two words"},
        {"proof": ""},
    ],
)
def test_a_request_holds_hashes_a_proof_and_a_key(request_: dict[str, str]) -> None:
    """L3: a name is never promoted. L8: nothing without a proof."""
    fields: dict[str, Any] = {"branch": "main", "old": "a" * 40, "new": "b" * 40, "proof": "p", "key": "k", **request_}
    with pytest.raises(ValueError, match="validation error"):
        PromoteRequest(**fields)


def test_a_branch_that_has_moved_stays(world: World) -> None:
    """L3: compare-and-swap; the answer tells where it is."""
    new = world.candidate()
    third = commit(world.home, {"other.py": "o\n"})
    before = world.seen()
    answer = world.refused(WhyNot.main_moved, world.promote(new), before)
    assert answer.main == third


def test_a_branch_that_does_not_exist_has_moved(world: World) -> None:
    new = world.candidate()
    git(world.home, "switch", "--quiet", "--orphan", "unborn")
    git(world.home, "branch", "--quiet", "--delete", "--force", "main")
    git(world.home, "symbolic-ref", "HEAD", "refs/heads/main")
    answer = world.promote(new)
    assert isinstance(answer, NotPromoted)
    assert (answer.reason, answer.main) == (WhyNot.main_moved, None)
    assert world.main() == ""


def test_only_a_fast_forward_is_made(world: World) -> None:
    new = world.candidate()
    third = commit(world.home, {"other.py": "o\n"})
    before = world.seen()
    world.refused(WhyNot.not_fast_forward, world.promote(new, old=third), before)


def test_a_commit_that_is_not_there_is_told_in_gits_words(world: World) -> None:
    before = world.seen()
    for sha in ("f" * 40, git(world.home, "rev-parse", "HEAD^{tree}")):
        with pytest.raises(GitFailed, match=sha[:12]):
            world.promote(sha)
    assert before.difference(world.seen()) == {}
    world.no_traces()


@pytest.mark.parametrize("kind", ["none", "another move", "another proof", "another effect"])
def test_nothing_moves_without_the_doors_permit(world: World, kind: str) -> None:
    new = world.candidate()
    request = request_for(world.old, new)
    permits: dict[str, Any] = {
        "none": None,
        "another move": permit_for(request_for(new, world.old)),
        "another proof": permit_for(request.model_copy(update={"proof": "else"})),
        "another effect": door_mint()("key", EffectCall(name="git.update_ref", target=request.ref)),
    }
    before = world.seen()
    with pytest.raises(EffectRefused, match="door"):
        asyncio.run(promoter_of(discover(world.home)).promote(request, permits[kind], world.log))
    assert before.difference(world.seen()) == {}


def test_no_hook_and_no_monitor_runs(world: World) -> None:
    new = world.candidate()
    marker = world.folder / "ran"
    script = planted_script(world.folder, marker)
    for hook in ("reference-transaction", "post-checkout", "post-index-change", "post-merge", "post-commit"):
        (world.common / "hooks").mkdir(exist_ok=True)
        (world.common / "hooks" / hook).symlink_to(script)
    git(world.home, "config", "core.fsmonitor", str(script))
    answer = world.promote(new)
    assert not marker.exists()
    git(world.home, "config", "--unset", "core.fsmonitor")
    world.landed(answer, new, world.home)


def test_git_variables_of_our_environment_do_not_leak(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """L1."""
    victim = World(world.folder / "victim")
    before = victim.seen()
    new = world.candidate()
    for name, value in {"DIR": ".git", "WORK_TREE": "", "INDEX_FILE": ".git/index"}.items():
        monkeypatch.setenv(f"GIT_{name}", str(victim.home / value))
    world.landed(world.promote(new), new, world.home)
    assert before.difference(victim.seen()) == {}


def _executable(home: Path) -> None:
    (home / "run.sh").chmod(0o755)
    (home / "app.py").write_text("x = 2\n")


def _links(home: Path) -> None:
    (home / "data/link").symlink_to("../app.py")
    (home / "app.py").unlink()
    (home / "app.py").symlink_to("./keep.txt")


def _folder_for_file(home: Path) -> None:
    (home / "keep.txt").unlink()
    (home / "keep.txt").mkdir()
    (home / "keep.txt/inside").write_text("i\n")


def _file_for_folder(home: Path) -> None:
    for name in ("one.txt", "two.txt"):
        (home / "data" / name).unlink()
    (home / "data").rmdir()
    (home / "data").write_text("now a file\n")


def _renamed(home: Path) -> None:
    git(home, "mv", "data/one.txt", "moved.txt")
    git(home, "mv", "app.py", "App.py")


def _odd_names(home: Path) -> None:
    for name in (b"a b", b"tab\there", b'"quoted"', b"line\nbreak", "ünï".encode(), b"-dash", b"\xff\xfe", b":(top)x"):
        (home / os.fsdecode(name)).write_text("odd\n")


def _many(home: Path) -> None:
    for number in range(700):
        (home / f"many/{number % 7}").mkdir(parents=True, exist_ok=True)
        (home / f"many/{number % 7}/{number}").write_text(f"{number}\n")


def _ignored_but_tracked(home: Path) -> None:
    (home / "settings.env").write_text("A=1\n")


@pytest.mark.parametrize(
    "change",
    [
        _executable,
        _links,
        _folder_for_file,
        _file_for_folder,
        _renamed,
        _odd_names,
        _many,
        _ignored_but_tracked,
    ],
)
def test_every_kind_of_change_arrives_and_can_be_taken_back(world: World, change: Callable[[Path], None]) -> None:
    with world.making() as made:
        change(world.home)
    world.landed(world.promote(made.sha), made.sha, world.home)
    with world.making() as back:
        git(world.home, "rm", "-r", "--quiet", ".")
        git(world.home, "checkout", world.old, "--", ".")
    world.landed(world.promote(back.sha, old=made.sha), back.sha, world.home)
    assert git(world.home, "rev-parse", "main^{tree}") == git(world.home, "rev-parse", f"{world.old}^{{tree}}")


def test_several_commits_arrive_at_once_and_a_merge_commit_too(world: World) -> None:
    with world.making() as made:
        for number in range(3):
            commit(world.home, {f"n{number}": "n\n"})
        git(world.home, "branch", "other", world.old)
        git(world.home, "merge", "--quiet", "--no-ff", "-m", "merge", "other~0")
    world.landed(world.promote(made.sha), made.sha, world.home)


def test_a_commit_that_changes_no_file_moves_the_ref_alone(world: World) -> None:
    with world.making() as made:
        pass
    world.landed(world.promote(made.sha), made.sha, world.home)


def test_untracked_empty_folders_give_way_and_others_keep_their_files(world: World) -> None:
    new = world.candidate({"fresh": "a file\n", "deep/er/file": "f\n", "data/one.txt": None, "data/two.txt": None})
    (world.home / "fresh/empty/inside").mkdir(parents=True)
    (world.home / "deep/er/empty").mkdir(parents=True)
    (world.home / "data/mine.env").write_text("mine\n")
    world.landed(world.promote(new), new, world.home)
    assert (world.home / "data/mine.env").read_text() == "mine\n"


def test_a_file_that_was_only_touched_is_not_dirty(world: World) -> None:
    new = world.candidate({"app.py": "x = 2\n", "data/one.txt": None})
    for name in ("app.py", "data/one.txt", "keep.txt"):
        text = (world.home / name).read_text()
        (world.home / name).unlink()
        (world.home / name).write_text(text)
    world.landed(world.promote(new), new, world.home)


def test_an_open_intent_of_another_process_is_busy(world: World) -> None:
    """L31: the lock is the operating system's, and ends with its holder."""
    new = world.candidate()

    async def held() -> Any:
        request = request_for(world.old, new)
        async with IntentFile(world.folder / "state").hold(1):
            return await promoter_of(discover(world.home)).promote(request, permit_for(request), world.log)

    before = world.seen()
    world.refused(WhyNot.main_busy, asyncio.run(held()), before)
    world.landed(world.promote(new), new, world.home)


def test_a_cancelled_promotion_comes_to_its_end_first(world: World) -> None:
    new = world.candidate()
    request = request_for(world.old, new)

    async def story() -> None:
        promoter = promoter_of(discover(world.home))
        task = asyncio.create_task(promoter.promote(request, permit_for(request), world.log))
        while world.log.read() is None:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(story())
    assert world.main() == new
    assert git(world.home, "status", "--porcelain") == ""
    world.no_traces()
