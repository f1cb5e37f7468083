"""The Git port, watching: every move of a branch arrives, and with it always the last value."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write
from watchfiles._rust_notify import RustNotify

from becket.kernel.contract.git import RefMoved
from becket.kernel.git.program import GitPlace
from becket.kernel.git.refs import Refs
from becket.kernel.git.repository import GitRepository, discover
from becket.kernel.git.watch import FolderEvents, notifier, watch

PATIENCE, POLL = 60.0, 300.0  # far apart: what arrives was brought by an event


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


class Watched:
    """Moves as they arrive, in the background of a test."""

    def __init__(self, moves: AsyncIterator[RefMoved]) -> None:
        self._queue: asyncio.Queue[RefMoved] = asyncio.Queue()
        self._moves = moves
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for move in self._moves:
            self._queue.put_nowait(move)

    async def next(self) -> RefMoved:
        return await asyncio.wait_for(self._queue.get(), PATIENCE)

    async def until(self, new: str | None) -> list[RefMoved]:
        moves = [await self.next()]
        while moves[-1].new != new:
            moves.append(await self.next())
        return moves

    @property
    def quiet(self) -> bool:
        return self._queue.empty()


@asynccontextmanager
async def watching(repository: GitRepository, branches: Sequence[str], poll: float = POLL) -> AsyncIterator[Watched]:
    watched = Watched(repository.watch(branches, poll))
    try:
        yield watched
    finally:
        watched.task.cancel()
        await asyncio.gather(watched.task, return_exceptions=True)


async def at_shell(folder: Path, *command: str) -> str:
    return await asyncio.to_thread(git, folder, *command)


async def committed(folder: Path, text: str) -> str:
    return await asyncio.to_thread(commit, folder, {"app.py": text})


def story(home: Path, branches: Sequence[str], tell: Callable[[Watched], Awaitable[None]]) -> GitRepository:
    repository = discover(home)

    async def run() -> None:
        async with watching(repository, branches) as watched:
            await tell(watched)

    asyncio.run(run())
    return repository


def test_the_first_value_and_every_commit_are_told(home: Path) -> None:
    first = git(home, "rev-parse", "HEAD")

    async def tell(watched: Watched) -> None:
        assert await watched.next() == RefMoved(branch="main", old=None, new=first)
        known = first
        for number in range(5):
            new = await committed(home, f"{number}")
            assert await watched.next() == RefMoved(branch="main", old=known, new=new)
            known = new

    assert story(home, ["main"], tell).degraded is None


def test_a_branch_comes_and_goes_loose_and_packed(home: Path) -> None:
    sha = git(home, "rev-parse", "HEAD")
    git(home, "branch", "old")
    git(home, "pack-refs", "--all")

    async def tell(watched: Watched) -> None:
        assert (await watched.next()).branch == "old"
        await at_shell(home, "branch", "feature/a/b")
        assert await watched.next() == RefMoved(branch="feature/a/b", old=None, new=sha)
        other = await at_shell(home, "commit-tree", "HEAD^{tree}", "-m", "other")
        for old, new in ((sha, other), (other, sha)):  # in folders that were not there at the start
            await at_shell(home, "update-ref", "refs/heads/feature/a/b", new)
            assert await watched.next() == RefMoved(branch="feature/a/b", old=old, new=new)
        await at_shell(home, "branch", "-D", "old")  # only a line in packed-refs
        assert await watched.next() == RefMoved(branch="old", old=sha, new=None)
        await at_shell(home, "branch", "-D", "feature/a/b")  # its folders go with it
        assert await watched.next() == RefMoved(branch="feature/a/b", old=sha, new=None)
        await at_shell(home, "branch", "feature/a/b")
        assert await watched.next() == RefMoved(branch="feature/a/b", old=None, new=sha)

    story(home, ["feature/a/b", "old"], tell)


def test_packing_refs_is_no_move_and_the_next_commit_is_one(home: Path) -> None:
    git(home, "branch", "team/x")

    async def tell(watched: Watched) -> None:
        known = {(await watched.next()).branch, (await watched.next()).branch}
        assert known == {"main", "team/x"}
        for number in range(3):
            await at_shell(home, "pack-refs", "--all", "--prune")
            new = await committed(home, f"{number}")
            assert (await watched.next()).new == new
            await at_shell(home, "update-ref", "refs/heads/team/x", new)
            move = await watched.next()
            assert (move.branch, move.new) == ("team/x", new)
        assert watched.quiet

    story(home, ["main", "team/x"], tell)


def test_a_refs_folder_that_is_replaced_stays_watched(home: Path) -> None:
    async def tell(watched: Watched) -> None:
        sha = (await watched.next()).new
        heads = home / ".git/refs/heads"
        for round_ in range(3):
            heads.rename(home / f".git/refs/aside{round_}")
            assert (await watched.next()).new is None
            heads.mkdir()
            (heads / "main").write_text(f"{sha}\n")
            assert (await watched.next()).new == sha

    story(home, ["main"], tell)


def test_a_refs_folder_replaced_in_one_blink_stays_watched(home: Path) -> None:
    """The same folders by name, so that only the event can tell that they are others."""
    first, second = git(home, "rev-parse", "HEAD"), commit(home, {"app.py": "2"})
    git(home, "branch", "side")  # not checked out: moving that would touch HEAD.lock as well
    heads = home / ".git/refs/heads"

    async def tell(watched: Watched) -> None:
        await watched.until(second)
        for round_ in range(3):
            heads.rename(home / f".git/refs/aside{round_}")
            heads.mkdir()
            (heads / "main").write_text(f"{second}\n")
            (heads / "side").write_text(f"{first}\n")
            await watched.until(first)
            await at_shell(home, "update-ref", "refs/heads/side", second)  # touches nothing but that folder
            await watched.until(second)

    story(home, ["side"], tell)


def test_of_many_quick_moves_the_last_always_arrives(home: Path) -> None:
    first = git(home, "rev-parse", "HEAD")
    shas = [commit(home, {"app.py": f"{number}"}) for number in range(4)]
    git(home, "update-ref", "refs/heads/main", first)

    async def tell(watched: Watched) -> None:
        await watched.until(first)
        for _ in range(15):
            for sha in shas[:3]:  # as git does it, but faster than git can be started
                lock = home / ".git/refs/heads/main.lock"
                lock.write_text(f"{sha}\n")
                lock.rename(home / ".git/refs/heads/main")
            await at_shell(home, "update-ref", "refs/heads/main", shas[3])
            moves = await watched.until(shas[3])
            assert all(move.old != move.new for move in moves)
            await at_shell(home, "update-ref", "refs/heads/main", first)
            await watched.until(first)
        assert watched.quiet

    story(home, ["main"], tell)


def test_a_linked_worktree_sees_moves_made_in_the_main_one(home: Path, tmp_path: Path) -> None:
    git(home, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "linked"))

    async def tell(watched: Watched) -> None:
        await watched.next()
        new = await committed(home, "2")
        assert (await watched.next()).new == new

    story(tmp_path / "linked", ["main"], tell)


def test_an_unborn_branch_is_silent_until_its_first_commit(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")

    async def tell(watched: Watched) -> None:
        await asyncio.sleep(0)
        new = await committed(tmp_path, "1")
        assert await watched.next() == RefMoved(branch="main", old=None, new=new)

    story(tmp_path, ["main"], tell)


def test_a_repository_without_ref_files_is_watched_by_its_tables(home: Path) -> None:
    """Stands in for reftable: a new table list is the event, git gives the value."""
    write(home / ".git", {"reftable/tables.list": "1"})

    async def tell(watched: Watched) -> None:
        await watched.next()
        new = await committed(home, "2")
        write(home / ".git", {"reftable/tables.list": "2"})
        assert (await watched.next()).new == new

    story(home, ["main"], tell)


def test_the_poll_finds_what_no_event_told(home: Path) -> None:
    """The folders watched never change; only reading the value can find the move."""
    refs = Refs(GitPlace(home / ".git", home), home / ".git")
    first = git(home, "rev-parse", "HEAD")

    class Deaf(FolderEvents):
        async def wait(self, seconds: float) -> None:
            assert seconds == 0.05
            await asyncio.sleep(seconds)

    async def run() -> None:
        watched = Watched(watch(refs, ["main"], 0.05, lambda reason: None, Deaf()))
        assert (await watched.next()).new == first
        new = await committed(home, "2")
        assert (await watched.next()).new == new
        watched.task.cancel()

    asyncio.run(run())


def test_without_file_events_it_polls_says_why_and_recovers(home: Path) -> None:
    refs = Refs(GitPlace(home / ".git", home), home / ".git")
    reasons: list[str | None] = []
    waits: list[float] = []
    limit_reached = True

    def limited(folders: list[str]) -> RustNotify:
        if limit_reached:
            raise OSError("OS file watch limit reached")
        return notifier(folders)

    class Counted(FolderEvents):
        async def wait(self, seconds: float) -> None:
            waits.append(seconds)
            await super().wait(min(seconds, 0.01) if limit_reached else seconds)

    async def run() -> None:
        nonlocal limit_reached
        watched = Watched(watch(refs, ["main"], POLL, reasons.append, Counted(limited)))
        await watched.next()
        polled = await committed(home, "2")
        assert (await watched.next()).new == polled
        assert set(waits) == {2.0}
        assert all(reason is not None and "limit reached" in reason for reason in reasons)
        limit_reached = False
        async with asyncio.timeout(PATIENCE):
            while reasons[-1] is not None:
                await asyncio.sleep(0.001)
        told = await committed(home, "3")
        assert (await watched.next()).new == told
        watched.task.cancel()

    asyncio.run(run())
    assert waits[-1] == POLL


def test_a_ref_that_cannot_be_read_is_not_told_as_deleted(home: Path) -> None:
    repository = discover(home)

    async def run() -> None:
        async with watching(repository, ["main"], poll=0.02) as watched:
            first = await watched.next()
            (home / ".git/refs/heads/main").write_text("")
            while repository.degraded is None:
                await asyncio.sleep(0.01)
            assert watched.quiet
            (home / ".git/refs/heads/main").write_text(f"{first.new}\n")
            new = await committed(home, "2")
            assert await watched.next() == RefMoved(branch="main", old=first.new, new=new)
        assert repository.degraded is None

    asyncio.run(run())


@pytest.mark.parametrize("bad", ["../../etc", "a..b", "x y", "-f\0", "broken", "not/there/yet"])
def test_a_branch_that_cannot_be_read_hides_no_move_of_another(home: Path, bad: str) -> None:
    """L44: one loop's slip must not stop the commits of every loop."""
    (home / ".git/refs/heads/broken").write_text("no hash\n")

    async def story() -> None:
        async with watching(discover(home), [bad, "main"], poll=0.1) as watched:
            await watched.until(await at_shell(home, "rev-parse", "main"))
            moved = await asyncio.to_thread(commit, home, {"next": "1"})
            assert (await watched.until(moved))[-1].branch == "main"

    asyncio.run(story())


@pytest.mark.parametrize("ending", ["cancelled", "cancelled twice", "closed", "dropped"])
def test_no_thread_is_left_behind(home: Path, ending: str) -> None:
    repository = discover(home)

    def threads() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name.startswith("becket-ref-watch")]

    async def run() -> None:
        moves = repository.watch(["main"])
        if ending.startswith("cancelled"):
            watched = Watched(moves)
            await watched.next()
            while not threads():
                await asyncio.sleep(0.001)
            watched.task.cancel()
            if ending == "cancelled":
                await asyncio.gather(watched.task, return_exceptions=True)
            return  # else asyncio.run cancels once more what has not ended
        async for _ in moves:
            break
        if ending == "closed":
            await moves.aclose()  # type: ignore[attr-defined]

    for _ in range(3):
        asyncio.run(run())
        for thread in threads():
            thread.join(60)
        assert threads() == []


_WATCH = """
import asyncio, sys
from pathlib import Path
from becket.kernel.git.repository import discover
async def main():
    repository = discover(Path(sys.argv[1]))
    async for move in repository.watch(["main"]):
        print(move.new, repository.degraded)
        return
asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["max_inotify_instances", "max_inotify_watches"])
def test_the_kernels_real_limits_degrade_to_polling(home: Path, limit: str) -> None:
    """In a user namespace of its own, where the limit can be set to nothing."""
    command = f'echo 0 > /proc/sys/user/{limit}; exec "$@"'
    ended = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", command, "sh", sys.executable, "-c", _WATCH, str(home)],
        capture_output=True,
        text=True,
        check=True,
    )
    sha, reason = ended.stdout.strip().split(" ", 1)
    assert sha == git(home, "rev-parse", "HEAD")
    assert "polled every 2 s" in reason
