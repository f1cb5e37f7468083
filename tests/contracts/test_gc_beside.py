"""What a ref of ours names is whole, whatever the person's `git gc` removes, and whenever it does so."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from gc_beside import GcBeside
from git_repos import commit, git, new_repository, write
from promote_world import permit_for, request_for

from becket.kernel.contract.candidate import CommitMade
from becket.kernel.contract.crash import ENV
from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.promote import Promoted
from becket.kernel.git import quarantine
from becket.kernel.git.repository import GitRepository, discover
from becket.parts.promote.adapters.intent import IntentFile
from becket.parts.promote.adapters.promote import promoter_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return new_repository(tmp_path / "home")


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Workspace:
    return asyncio.run(discover(home).open_workspace(tmp_path / "run_1", "main"))


def is_whole(home: Path) -> None:
    git(home, "fsck", "--full", "--strict", "--no-dangling")
    git(home, "gc", "--quiet", "--prune=now")
    git(home, "fsck", "--full", "--strict", "--no-dangling")


def left_over(home: Path) -> list[str]:
    """What no later command would remove."""
    kept = (home / ".git/objects/pack").glob("*.keep")
    return sorted(path.name for path in (*kept, *(home / ".git/becket/objects").glob("*")))


async def made_of(repository: GitRepository, workspace: Workspace, number: int) -> CommitMade:
    write(workspace.tree, {"app.py": f"x = {number}\n", f"new/{number}/file.py": f"y = {number}\n"})
    made = await repository.candidates().commit_work(workspace, "Mend it", f"candidate/run_{number}/1")
    assert made is not None
    return made


async def all_of_it(repository: GitRepository, workspace: Workspace, state: Path) -> None:
    """A candidate, its crossing, the same carried over and undone, what was left, and the promotion."""
    candidates, folder = repository.candidates(), state / "index"
    made = await made_of(repository, workspace, 1)
    await candidates.with_side_of(made.sha, made.parent, lambda path: "new" in path, "Cross", "crossing/run_1")
    other = str(await repository.resolve("refs/heads/other"))
    assert isinstance(await candidates.carry_over(made.sha, other, folder, "Mend it", "candidate/1/o"), CommitMade)
    assert isinstance(await candidates.undo(made.sha, made.sha, folder, "Undo it", "candidate/1/u"), CommitMade)
    assert await repository.rescue(workspace, "run_1", "becket: what is left") is not None
    request = request_for(made.parent, made.sha)
    done = await promoter_of(repository).promote(request, permit_for(request), IntentFile(state / "promotion"))
    assert isinstance(done, Promoted), done


def test_a_gc_around_every_git_command_takes_nothing_from_a_candidate(
    home: Path, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        beside = GcBeside(home, tmp_path, patch, seed=7)
        asyncio.run(made_of(discover(home), workspace, 1))
    assert beside.rounds >= 8
    assert beside.failures == ""
    is_whole(home)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_gc_around_every_git_command_breaks_no_ref_and_stops_no_work(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    git(home, "switch", "--quiet", "-c", "other")
    commit(home, {"other.py": "o = 1\n"})
    git(home, "switch", "--quiet", "main")
    repository = discover(home)
    workspace = asyncio.run(repository.open_workspace(tmp_path / "run_1", "main"))
    with monkeypatch.context() as patch:
        beside = GcBeside(home, tmp_path, patch, seed)
        asyncio.run(all_of_it(repository, workspace, tmp_path))
    assert beside.rounds > 50
    assert beside.failures == ""
    assert len(git(home, "for-each-ref", "refs/becket").splitlines()) == 5
    assert git(home, "status", "--porcelain") == ""
    is_whole(home)
    assert left_over(home) == []


@pytest.mark.slow
def test_a_real_gc_in_a_loop_breaks_nothing(home: Path, workspace: Workspace) -> None:
    """By luck alone, where the others choose the moment."""
    stop, rounds = threading.Event(), []

    def tidy_up() -> None:
        while not stop.is_set():
            rounds.append(git(home, "prune", "--expire=now"))
            rounds.append(git(home, "repack", "-a", "-d", "-q"))
            rounds.append(git(home, "gc", "--quiet", "--prune=now"))

    async def many() -> None:
        repository = discover(home)
        for number in range(40):
            await made_of(repository, workspace, number)

    beside = threading.Thread(target=tidy_up)
    beside.start()
    try:
        asyncio.run(many())
    finally:
        stop.set()
        beside.join()
    assert len(rounds) >= 9
    assert len(git(home, "for-each-ref", "refs/becket").splitlines()) == 40
    is_whole(home)


_LIFE = """
import asyncio, sys
from pathlib import Path
from becket.kernel.git.repository import discover
home, folder = Path(sys.argv[1]), Path(sys.argv[2])
async def life():
    git = discover(home)
    workspace = await git.find_workspace(folder)
    await git.candidates().commit_work(workspace, "Mend it", "candidate/run_1/1")
    await git.rescue(workspace, "run_1", "left")
asyncio.run(life())
"""


@pytest.mark.parametrize("point", ["objects.packed", "objects.brought", "objects.named@2"])
def test_a_kill_leaves_no_broken_ref_and_nothing_for_ever(
    home: Path, workspace: Workspace, tmp_path: Path, point: str
) -> None:
    write(workspace.tree, {"app.py": "x = 2\n", "new.py": "n = 1\n"})
    command = [sys.executable, "-c", _LIFE, str(home), str(tmp_path / "run_1")]
    killed = subprocess.run(command, env=os.environ | {ENV: point}, check=False)
    assert killed.returncode == -signal.SIGKILL
    is_whole(home)
    again = subprocess.run(command, check=False)
    assert again.returncode == 0
    is_whole(home)
    assert git(home, "show", "refs/becket/candidate/run_1/1:new.py") == "n = 1"
    assert git(home, "show", "refs/becket/rescue/run_1:new.py") == "n = 1"
    assert left_over(home) != []
    for path in (*(home / ".git/objects/pack").glob("*.keep"), *(home / ".git/becket/objects").glob("*")):
        os.utime(path, (1, 1))
    asyncio.run(discover(home).candidates().tidy())
    assert left_over(home) == []


def test_a_candidate_holds_its_base_when_a_person_has_rewritten_the_branch(home: Path, tmp_path: Path) -> None:
    """No ref reaches the base any more: a gc that is under way will take it, whatever we name from now on."""
    base = commit(home, {"app.py": "x = 5\n"})
    repository = discover(home)
    workspace = asyncio.run(repository.open_workspace(tmp_path / "ws", base))
    git(home, "reset", "--quiet", "--hard", "HEAD~1")
    git(home, "reflog", "expire", "--expire=now", "--all")
    asyncio.run(made_of(repository, workspace, 1))
    (home / ".git/objects" / base[:2] / base[2:]).unlink()
    is_whole(home)


def test_a_candidate_whose_base_is_gone_is_refused_in_words(home: Path, tmp_path: Path) -> None:
    base = commit(home, {"app.py": "x = 5\n"})
    workspace = asyncio.run(discover(home).open_workspace(tmp_path / "ws", base))
    git(home, "reset", "--quiet", "--hard", "HEAD~1")
    git(home, "reflog", "expire", "--expire=now", "--all")
    git(home, "gc", "--quiet", "--prune=now")
    with pytest.raises(GitFailed, match="was it pruned"):
        asyncio.run(made_of(discover(home), workspace, 1))
    assert git(home, "for-each-ref", "refs/becket") == ""
    is_whole(home)


def test_a_broken_branch_of_the_person_stops_no_candidate(home: Path, workspace: Workspace) -> None:
    write(home, {".git/refs/heads/broken": "1" * 40 + "\n"})
    asyncio.run(made_of(discover(home), workspace, 1))
    (home / ".git/refs/heads/broken").unlink()
    is_whole(home)


@pytest.mark.slow
def test_many_packs_of_ours_become_one(home: Path, workspace: Workspace) -> None:
    """Else a person's git would begin to tidy up in the middle of their work."""

    async def many() -> None:
        repository = discover(home)
        for number in range(quarantine.MOST_PACKS + 1):
            await made_of(repository, workspace, number)
        assert len(list((home / ".git/objects/pack").glob("*.pack"))) == quarantine.MOST_PACKS + 1
        await repository.candidates().tidy()

    asyncio.run(many())
    assert len(list((home / ".git/objects/pack").glob("*.pack"))) == 1
    is_whole(home)


def test_broken_refs_of_ours_are_found_and_removed_and_no_other(home: Path, workspace: Workspace) -> None:
    candidates = discover(home).candidates()
    good, bad = (asyncio.run(made_of(discover(home), workspace, number)) for number in (1, 2))
    write(home, {".git/refs/heads/broken": "1" * 40 + "\n", ".git/refs/becket/rescue/gone": "2" * 40 + "\n"})
    for pack in list((home / ".git/objects/pack").glob("*.pack")):
        pack.rename(home / ".git/away.pack")
        pack.with_suffix(".idx").unlink()
        content = (home / ".git/away.pack").read_bytes()
        subprocess.run(["git", "unpack-objects", "-q"], cwd=home, input=content, check=True)
    assert asyncio.run(candidates.missing(bad.sha)) is None
    (home / ".git/objects" / bad.tree[:2] / bad.tree[2:]).unlink()
    broken = asyncio.run(candidates.broken())
    assert [(item.ref, item.sha) for item in broken] == [
        ("refs/becket/candidate/run_2/1", bad.sha), ("refs/becket/rescue/gone", "2" * 40)
    ]  # fmt: skip
    assert bad.tree in broken[0].missing
    assert asyncio.run(candidates.missing(good.sha)) is None
    assert asyncio.run(candidates.rescued()) == ()
    assert asyncio.run(candidates.mend()) == broken
    assert asyncio.run(candidates.mend()) == ()
    assert (home / ".git/refs/heads/broken").exists()
    (home / ".git/refs/heads/broken").unlink()
    assert git(home, "for-each-ref", "--format=%(refname)", "refs/becket") == "refs/becket/candidate/run_1/1"
    is_whole(home)
