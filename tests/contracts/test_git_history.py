"""The Git port, what a checkout sees of the history: all that its commit reaches, and not one object more."""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from git_repos import commit, git, new_repository, write
from process_stage import KINDS

from becket.kernel.contract import crash
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.process import ChildSpec, SandboxKind
from becket.kernel.git import history
from becket.kernel.git.repository import discover
from becket.kernel.process import ContainedProcesses

ALL = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
Shape = Callable[[Path, Path], Path]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three commits on main, and beside them whatever else a store holds."""
    return with_secrets(with_history(new_repository(tmp_path / "home")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "run_1"


def with_history(home: Path) -> Path:
    for number in (2, 3, 4):
        commit(home, {"app.py": f"x = 1\ny = {number}\n"}, f"number {number}")
    return home


def with_secrets(home: Path) -> Path:
    git(home, "checkout", "--quiet", "-b", "colleague")
    commit(home, {"repair.py": "a colleague's unmerged repair\n"}, "unmerged")
    git(home, "tag", "-a", "secret", "-m", "a tag on it")
    git(home, "update-ref", "refs/becket/rescue/run_0", commit(home, {"left.py": "what a run left\n"}))
    git(home, "reset", "--quiet", "--hard", "HEAD~1")
    git(home, "checkout", "--quiet", "main")
    commit(home, {"app.py": "only a reflog knows this\n"})
    git(home, "reset", "--quiet", "--hard", "HEAD~1")
    write(home, {"app.py": "stashed\n"})
    git(home, "stash", "push", "--quiet")
    write(home, {"dangling": "a dangling blob\n"})
    git(home, "hash-object", "-w", "dangling")
    (home / "dangling").unlink()
    return home


def opened(home: Path, folder: Path, revision: str = "main") -> Workspace:
    return asyncio.run(discover(home).open_workspace(folder, revision))


def visible(tree: Path) -> set[str]:
    return set(git(tree, *ALL).split())


def reached(home: Path, *revisions: str) -> set[str]:
    return set(git(home, "rev-list", "--objects", "--no-object-names", *revisions).split())


def is_sound(workspace: Workspace) -> bool:
    """All of it is there, and what people do with a history works."""
    tree = workspace.tree
    assert git(tree, "fsck", "--full", "--strict") == ""
    assert sorted(git(tree, "log", "--all", "--format=%H").split()) == sorted(git(tree, "rev-list", "HEAD").split())
    assert git(tree, "blame", "-s", "app.py").count("\n") + 1 == len((tree / "app.py").read_text().splitlines())
    return git(tree, "status", "--porcelain") == ""


def test_only_what_the_commit_reaches_is_there(home: Path, folder: Path) -> None:
    git(home, "tag", "-a", "v1", "-m", "one", "main~2")
    workspace = opened(home, folder)
    assert visible(workspace.tree) == reached(home, "main", "v1")
    assert visible(workspace.tree) < visible(home)
    assert is_sound(workspace)
    assert "x = 1" in git(workspace.tree, "show", "HEAD~3:app.py")
    assert git(workspace.tree, "describe") == f"v1-2-g{git(home, 'rev-parse', '--short', 'main')}"
    assert git(workspace.tree, "for-each-ref", "--format=%(refname)").split() == ["refs/heads/main", "refs/tags/v1"]


def test_an_older_commit_sees_nothing_of_a_later_one(home: Path, folder: Path, tmp_path: Path) -> None:
    """Whichever was checked out first: a culprit search goes back, the next run forward."""
    for number, revision in enumerate(("main", "main~2", "main~1", "colleague", "main")):
        workspace = opened(home, folder if number % 2 else tmp_path / "other", revision)
        tags = ("secret",) if revision == "colleague" else ()
        assert visible(workspace.tree) == reached(home, revision, *tags)
        assert is_sound(workspace)


def packed(home: Path, base: Path) -> Path:
    git(home, "repack", "-adq")
    return home


def shallow(home: Path, base: Path) -> Path:
    git(base, "clone", "--quiet", "--depth=2", "--no-single-branch", home.as_uri(), "shallow")
    return base / "shallow"


def borrowing(home: Path, base: Path) -> Path:
    git(base, "clone", "--quiet", "--shared", str(home), "borrowing")
    return base / "borrowing"


def linked(home: Path, base: Path) -> Path:
    git(home, "worktree", "add", "--quiet", "--detach", str(base / "linked"), "main~1")
    return base / "linked"


def sha256(home: Path, base: Path) -> Path:
    return with_secrets(with_history(new_repository(base / "sha256", "--object-format=sha256")))


def bare(home: Path, base: Path) -> Path:
    git(base, "clone", "--quiet", "--mirror", str(home), "bare")
    return base / "bare"


@pytest.mark.parametrize("shape", [packed, shallow, borrowing, linked, sha256, bare])
def test_repositories_of_every_shape(home: Path, folder: Path, tmp_path: Path, shape: Shape) -> None:
    place = shape(home, tmp_path)
    workspace = opened(place, folder)
    assert visible(workspace.tree) == reached(place, "main")
    assert is_sound(workspace)


def test_a_partial_clone_gives_what_it_has(home: Path, folder: Path, tmp_path: Path) -> None:
    git(home, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "--quiet", "--filter=blob:none", home.as_uri(), "partial")
    partial = tmp_path / "partial"
    missing = reached(home, "main") - visible(partial)
    tree = opened(partial, folder).tree
    assert missing
    assert visible(tree) == reached(home, "main") - missing
    assert git(tree, "log", "--format=%s") == git(home, "log", "--format=%s", "main")


def test_a_history_that_is_deepened_is_seen_whole(home: Path, folder: Path, tmp_path: Path) -> None:
    place = shallow(home, tmp_path)
    assert len(git(opened(place, folder).tree, "log", "--format=%h").split()) == 2
    git(place, "fetch", "--quiet", "--unshallow")
    workspace = opened(place, folder)
    assert visible(workspace.tree) == reached(home, "main")
    assert is_sound(workspace)


@pytest.mark.parametrize("kind", KINDS)
def test_contained_programs_find_no_other_store(home: Path, folder: Path, kind: SandboxKind) -> None:
    secret = git(home, "rev-parse", "colleague")
    workspace = opened(home, folder)
    git(home, "tag", "-a", "later", "-m", "later")
    store = home / ".git" / "objects"
    layers = home / ".git" / "becket" / "history"
    script = f"""
        no() {{ if "$@"; then echo "it worked: $*"; exit 1; fi; }}
        git {shlex.join(ALL)} > seen
        git log -3 --format=%s && git show HEAD~3 > /dev/null && git blame app.py > /dev/null
        no git cat-file -p {secret}
        if test {kind.value} != none; then
            for place in {store} {layers} {folder}/git; do no ls $place; done
            no env GIT_ALTERNATE_OBJECT_DIRECTORIES={store} git cat-file -p {secret}
            no touch {workspace.objects}/pack/mine
            for pack in {workspace.objects}/pack/*; do no dd if=/dev/null of=$pack; done
        fi
    """
    spec = ChildSpec(
        argv=("sh", "-eu", "-c", script), tree=workspace.tree, output=folder / "log", timeout=60.0,
        readable=(workspace.objects,), hidden=(home / ".git", folder),
    )  # fmt: skip
    result = asyncio.run(ContainedProcesses(kind).run(spec))
    assert result.ok, (folder / "log").read_text()
    assert set((workspace.tree / "seen").read_text().split()) == reached(home, "main")


def test_a_candidate_sees_itself_and_its_base(home: Path, folder: Path, tmp_path: Path) -> None:
    repository = discover(home)
    base = opened(home, folder)
    write(base.tree, {"app.py": "repaired\n"})
    commit(base.tree, {"by_hand.py": "committed by the agent itself\n"})
    made = asyncio.run(repository.candidates().commit_work(base, "a repair", "candidate/run_1/1"))
    assert made is not None
    proof = asyncio.run(repository.open_workspace(tmp_path / "proof", made.sha))
    assert visible(proof.tree) == reached(home, made.sha)
    assert is_sound(proof)


def test_a_run_outlives_gc_and_the_removal_of_every_layer(home: Path, folder: Path) -> None:
    workspace = opened(home, folder)
    before = visible(workspace.tree)
    git(home, "reflog", "expire", "--expire=now", "--all")
    git(home, "gc", "--quiet", "--prune=now")
    shutil.rmtree(home / ".git" / "becket" / "history")
    assert visible(workspace.tree) == before
    assert is_sound(workspace)
    assert asyncio.run(discover(home).status(workspace)).clean
    assert is_sound(opened(home, folder))


def test_what_a_forced_push_took_away_is_gone_for_the_next_checkout(home: Path, folder: Path, tmp_path: Path) -> None:
    old = git(home, "rev-parse", "main")
    running = opened(home, folder)
    git(home, "reset", "--quiet", "--hard", "HEAD~2")
    commit(home, {"app.py": "x = 1\ny = rewritten\n"}, "rewritten")
    workspace = opened(home, tmp_path / "next")
    assert old not in visible(workspace.tree)
    assert visible(workspace.tree) == reached(home, "main")
    assert is_sound(workspace)
    assert visible(running.tree) == reached(home, old)


def test_tags_come_and_go(home: Path, folder: Path) -> None:
    assert git(opened(home, folder).tree, "tag") == ""
    git(home, "tag", "-a", "v1", "-m", "one", "main~1")
    git(home, "tag", "light", "main~1")
    workspace = opened(home, folder)
    assert git(workspace.tree, "tag").split() == ["light", "v1"]
    assert visible(workspace.tree) == reached(home, "main", "v1")
    assert is_sound(workspace)
    git(home, "tag", "-d", "v1")
    assert visible(opened(home, folder).tree) == reached(home, "main")


def test_a_long_history_stays_in_few_layers(home: Path, folder: Path) -> None:
    """Each commit adds one to the stack, until there are enough; what is out of use is removed."""
    repository = discover(home)
    for number in range(history.MOST_USED + history.MOST_UNUSED + 10):
        commit(home, {f"new{number}.py": f"{number}\n"})
        workspace = asyncio.run(repository.open_workspace(folder, "main"))
        assert len(list(workspace.objects.glob("pack/*.pack"))) <= history.MOST_STACKED
    assert visible(workspace.tree) == reached(home, "main")
    assert is_sound(workspace)
    layers = list((home / ".git" / "becket" / "history").iterdir())
    assert len(layers) <= history.MOST_USED + history.MOST_UNUSED + history.MOST_STACKED


def test_one_commit_costs_one_small_pack(home: Path, folder: Path) -> None:
    write(home, {f"many/{number}.txt": f"{number}\n" * 50 for number in range(300)})
    commit(home, {})
    first = opened(home, folder)
    [whole] = first.objects.glob("pack/*.pack")
    commit(home, {"app.py": "one line\n"})
    second = opened(home, folder)
    new = [file for file in second.objects.glob("pack/*.pack") if file.name != whole.name]
    assert [file.stat().st_size < 1000 for file in new] == [True]


def truncate(layer: Path) -> None:
    [pack] = layer.glob("*.pack")
    pack.chmod(0o644)
    os.truncate(pack, 20)


def rewrite(layer: Path) -> None:
    [pack] = layer.glob("*.pack")
    content = bytearray(pack.read_bytes())
    content[len(content) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(content)


def lose_index(layer: Path) -> None:
    next(layer.glob("*.idx")).unlink()


def lose_record(layer: Path) -> None:
    (layer / history.RECORD).write_text("")


@pytest.mark.parametrize("damage", [truncate, rewrite, lose_index, lose_record])
@pytest.mark.parametrize("later", [False, True])
def test_a_damaged_layer_is_made_anew_and_told(
    home: Path, folder: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], None], later: bool
) -> None:
    sha = opened(home, folder).sha
    [layer] = (home / ".git" / "becket" / "history").iterdir()
    if later:
        opened(home, folder, commit(home, {"later.py": "1\n"}))  # the damaged one is below its layer then
    damage(layer)
    with caplog.at_level(logging.WARNING, "becket.git"):
        workspace = opened(home, folder)
    assert [record.getMessage() for record in caplog.records if str(layer) in record.getMessage()]
    assert visible(workspace.tree) == reached(home, "main")
    assert is_sound(workspace)
    assert is_sound(opened(home, folder, sha))


def dated(folder: Path) -> dict[str, int]:
    return {pack.name: pack.stat().st_mtime_ns for pack in folder.glob("pack/*.pack")}


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_pack_that_git_only_gave_another_date_is_not_damaged(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture, form: str
) -> None:
    """Work that brings back an old file makes git date the pack that has it, which checkout and layer share."""
    home = with_history(new_repository(tmp_path / form, f"--object-format={form}"))
    repository, layers = discover(home), home / ".git" / "becket" / "history"
    for number in (1, 2):
        commit(home, {"app.py": f"broken {number}\n"})
        workspace = opened(home, folder)
        before, made = dated(workspace.objects), {layer.stat().st_ino for layer in layers.iterdir()}
        write(workspace.tree, {"app.py": "x = 1\ny = 3\n"})
        repair = asyncio.run(repository.candidates().commit_work(workspace, "a repair", f"candidate/run_{number}/1"))
        assert repair is not None
        assert dated(workspace.objects) != before
        assert is_sound(opened(home, folder, repair.sha))
        assert dated(opened(home, folder).objects) == before
        assert made < {layer.stat().st_ino for layer in layers.iterdir()}
    assert not caplog.records


_OPEN = """
import asyncio, sys
from pathlib import Path
from becket.kernel.git.repository import discover
asyncio.run(discover(Path(sys.argv[1])).open_workspace(Path(sys.argv[2]), "main"))
"""


@pytest.mark.parametrize("point", ["history.packed", "history.layered"])
@pytest.mark.parametrize("first", [True, False])
def test_a_kill_while_the_history_is_copied_loses_nothing(home: Path, folder: Path, point: str, first: bool) -> None:
    if not first:
        opened(home, folder)
        commit(home, {"app.py": "later\n"})
    killed = subprocess.run(
        [sys.executable, "-c", _OPEN, str(home), str(folder)],
        env={**os.environ, crash.ENV: point}, capture_output=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert asyncio.run(discover(home).find_workspace(folder)) is None
    workspace = opened(home, folder)
    assert visible(workspace.tree) == reached(home, "main")
    assert is_sound(workspace)


def test_what_a_kill_left_unfinished_is_removed_in_time(home: Path, folder: Path) -> None:
    unfinished = home / ".git" / "becket" / "history" / f"{history.NEW}left"
    fresh = unfinished.with_name(f"{history.NEW}fresh")
    for path in (unfinished, fresh):
        path.mkdir(parents=True)
        (path / "pack-1.pack").write_text("half")
    os.utime(unfinished, (1, 1))
    opened(home, folder)
    assert (unfinished.exists(), fresh.exists()) == (False, True)


def test_many_checkouts_at_once_share_one_copy(home: Path, tmp_path: Path) -> None:
    repository = discover(home)

    async def together() -> list[Workspace]:
        return await asyncio.gather(*(repository.open_workspace(tmp_path / f"{n}", "main") for n in range(6)))

    workspaces = asyncio.run(together())
    packs = [file.stat().st_ino for each in workspaces for file in each.objects.glob("pack/*.pack")]
    assert (len(packs), len(set(packs))) == (6, 1)
    assert all(visible(each.tree) == reached(home, "main") for each in workspaces)


def test_two_processes_at_once_do_not_meet(home: Path, tmp_path: Path) -> None:
    started = [
        subprocess.Popen([sys.executable, "-c", _OPEN, str(home), str(tmp_path / f"{n}")], stderr=subprocess.PIPE)
        for n in range(3)
    ]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], said
    for n in range(3):
        assert visible(tmp_path / f"{n}" / "tree") == reached(home, "main")
    assert len(list((home / ".git" / "becket" / "history").iterdir())) == 1


def test_one_checkout_that_is_given_up_takes_nothing_from_another(home: Path, tmp_path: Path) -> None:
    repository = discover(home)

    async def story() -> Workspace:
        first = asyncio.create_task(repository.open_workspace(tmp_path / "a", "main"))
        second = asyncio.create_task(repository.open_workspace(tmp_path / "b", "main"))
        while not repository.source.history.making:
            await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await second

    assert is_sound(asyncio.run(story()))
