"""Contract of the set-up port: what is built, for whom, and for how long it is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from git_repos import git
from process_stage import LANDLOCK_WORKS
from setup_stage import World, said, setup, these

from becket.kernel.contract import crash
from becket.kernel.contract.process import ChildRef, Network, SandboxKind
from becket.kernel.process import ContainedProcesses
from becket.parts.gates.ports.setup import SetupReady
from becket.parts.gates.setups import CachedSetups

MAKE = "mkdir -p deps && cp lock deps/made && echo built >&2"


HELD = SandboxKind.landlock
held = pytest.mark.skipif(not LANDLOCK_WORKS, reason="no landlock here to hold files")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_command_sees_only_the_key_files_of_the_commit(world: World) -> None:
    """The lock files are those of the tree being proven; no source is there that could be installed."""
    first = world.commit({"lock": "one\n", "sub/lock": "inner\n", "big/a.key": "a", "big/deep/b.key": "b"})
    world.commit({"lock": "two\n"})
    ready = world.ready(
        first, setup('seen="$(find . -type f | sort)"; echo "$seen" "$(cat lock)" > out', "lock", "sub/lock", "big/**")
    )
    assert (ready.folder / "out").read_text().split() == [
        "./big/a.key", "./big/deep/b.key", "./lock", "./sub/lock", "one",
    ]  # fmt: skip


def test_key_files_keep_their_bytes_and_their_permission_to_run(world: World) -> None:
    (world.home / "blob").write_bytes(b"\x00\xff\r\n")
    (world.home / "tool.sh").write_text("#!/bin/sh\ncp blob out\n")
    (world.home / "tool.sh").chmod(0o755)
    sha = world.commit({})
    ready = world.ready(sha, setup("./tool.sh", "blob", "tool.sh"))
    assert (ready.folder / "out").read_bytes() == b"\x00\xff\r\n"


def test_a_second_run_finds_what_is_trusted(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    built = world.ready(sha, setup(MAKE))
    assert (built.built, built.trusted, "built" in said(built)) == (True, False, True)
    assert world.trust(built.key)
    found = world.ready(sha, setup(MAKE), "run_2")
    assert (found.built, found.trusted, found.folder, found.key) == (False, True, built.folder, built.key)


def test_an_unproven_entry_that_steps_could_write_to_serves_only_the_run_that_made_it(world: World) -> None:
    """A new entry is quarantined until its tree is proven. The sandbox `none` keeps nothing read-only."""
    sha = world.commit({"lock": "one\n"})
    mine = world.ready(sha, setup(MAKE), "run_1")
    other = world.ready(sha, setup(MAKE), "run_2")
    assert other.built
    assert other.folder != mine.folder
    assert world.ready(sha, setup(MAKE), "run_1").folder == mine.folder
    assert world.trust(mine.key, "run_3") is False
    assert world.ready(sha, setup(MAKE), "run_3").built
    assert world.trust(mine.key, "run_2")
    assert world.ready(sha, setup(MAKE), "run_4").folder == other.folder


@held
def test_an_unproven_entry_that_no_step_could_write_to_is_shared_for_an_hour(tmp_path: Path) -> None:
    """Whoever tries red gates again and again waits for one build; one that came out broken does not last."""
    world = World(tmp_path, HELD)
    sha = world.commit({"lock": "one\n"})
    mine = world.ready(sha, setup(MAKE), "run_1")
    other = world.ready(sha, setup(MAKE), "run_2")
    assert (other.folder, other.built, other.trusted) == (mine.folder, False, False)
    assert world.trust(mine.key, "run_3") is False
    world.later = 3600.0
    assert world.ready(sha, setup(MAKE), "run_1").folder == mine.folder
    late = world.ready(sha, setup(MAKE), "run_4")
    assert (late.built, late.folder != mine.folder) == (True, True)
    assert world.trust(mine.key, "run_2"), "a tree was proven with it by a run that did not build it"
    assert world.ready(sha, setup(MAKE), "run_5").folder == mine.folder


@held
def test_once_shown_without_a_sandbox_an_unproven_entry_is_nobody_elses(tmp_path: Path) -> None:
    """What a step may have written to is not as it was built."""
    world = World(tmp_path, HELD)
    sha = world.commit({"lock": "one\n"})
    mine = world.ready(sha, setup(MAKE), "run_1")
    bare = World(tmp_path)
    assert bare.ready(sha, setup(MAKE), "run_2").built, "nor does it serve where it would not be read-only"
    assert world.ready(sha, setup(MAKE), "run_3").folder == mine.folder
    assert bare.ready(sha, setup(MAKE), "run_1").folder == mine.folder
    assert world.ready(sha, setup(MAKE), "run_4").built


@pytest.mark.parametrize("change", ["content", "name", "command", "network", "tool", "variable", "passed on"])
def test_whatever_could_change_the_result_changes_the_key(
    world: World, change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tool = tmp_path / "bin" / "maker"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nmkdir deps\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("INDEX", "one")
    before = after = setup("maker", "lock*").model_copy(update={"env": ("INDEX",)})
    sha = world.commit({"lock": "one\n", "app.py": "x = 2\n"})
    key = world.ready(sha, before).key
    same = world.commit({"app.py": "x = 3\n"})
    assert world.ready(same, before).key == key
    if change == "content":
        sha = world.commit({"lock": "two\n"})
    elif change == "name":
        sha = world.commit({"lock2": "one\n"})
    elif change == "command":
        after = setup("maker && true", "lock*")
    elif change == "variable":
        after = before.model_copy(update={"set": {"MODE": "new"}})
    elif change == "passed on":
        monkeypatch.setenv("INDEX", "two")
    elif change == "network":
        after = setup("maker", "lock*", network=Network.full)
    else:
        tool.write_text("#!/bin/sh\nmkdir deps deps/newer\n")
    assert world.ready(sha, after).key != key


@pytest.mark.parametrize("change", ["toolchain", "readable", "readable link"])
def test_another_toolchain_or_place_to_read_changes_the_key(
    world: World, change: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("jdk17", "jdk21"):
        (tmp_path / name / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk17"))
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    current, places = tmp_path / "current", [tmp_path / "current"]
    current.symlink_to("jdk17")
    processes = ContainedProcesses(SandboxKind.none, readable=lambda: tuple(places))
    world.setups = CachedSetups(world.state / "setups", world.git, processes)
    sha = world.commit({"lock": "one\n"})
    key = world.ready(sha, setup(MAKE)).key
    if change == "toolchain":
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk21"))
    elif change == "readable":
        places.append(tmp_path / "jdk21")
    else:
        current.unlink()
        current.symlink_to("jdk21")
    assert world.ready(sha, setup(MAKE)).key != key


@pytest.mark.parametrize("pattern", ["gone.lock", "locks/*.txt", "src/*.lock", "loc"])
def test_a_key_file_that_the_commit_lacks_is_an_error(world: World, pattern: str) -> None:
    sha = world.commit({"lock": "", "deep/locks/a.txt": ""})
    failed = world.failed(sha, setup(MAKE, "lock", pattern))
    assert f"`setup.key` names {pattern}" in failed.reason
    assert (failed.log, failed.exit_code, failed.environment) == (None, None, False)


def test_a_name_is_taken_as_it_is_before_it_is_taken_as_a_pattern(world: World) -> None:
    sha = world.commit({"app/[id]/lock": "x", "app/i/lock": "y"})
    ready = world.ready(sha, setup("find app -type f > seen", "app/[id]/lock"))
    assert (ready.folder / "seen").read_text() == "app/[id]/lock\n"


def test_a_link_is_no_key_file(world: World) -> None:
    (world.home / "lock").symlink_to("/etc/passwd")
    failed = world.failed(world.commit({}), setup(MAKE))
    assert "a symbolic link" in failed.reason


def test_a_failed_set_up_leaves_its_log_and_is_tried_anew(world: World) -> None:
    """L15: one log of its own. L13: an ordinary exit code may be the commit's fault."""
    sha = world.commit({"lock": "", "src/a.py": ""})
    once = setup("mkdir deps; echo no wheel >&2; exit 3")
    failed = world.failed(sha, once)
    assert (failed.exit_code, failed.environment, said(failed)) == (3, False, "no wheel\n")
    assert "exit code 3" in failed.reason
    assert "its key files (lock)" in failed.reason
    assert list(world.state.rglob("deps")) == []
    assert world.failed(sha, once).exit_code == 3
    assert len(world.entries()) == 1


@pytest.mark.parametrize(
    ("command", "timeout", "says"),
    [("no-such-program-anywhere", 60.0, "not found"), ("sleep 60", 0.2, "took longer than 200ms")],
)
def test_what_is_surely_the_machines_fault_says_so(world: World, command: str, timeout: float, says: str) -> None:
    """L13: a missing tool is never sent to the fixer."""
    failed = world.failed(world.commit({"lock": ""}), setup(command, timeout=timeout))
    assert failed.environment
    assert says in failed.reason


def test_a_disk_that_takes_nothing_is_the_machines_fault(world: World) -> None:
    sha = world.commit({"lock": ""})
    world.state.mkdir()
    (world.state / "setups").write_text("in the way")
    failed = world.failed(sha, setup(MAKE))
    assert failed.environment
    assert "cannot be kept" in failed.reason


def test_a_set_up_that_makes_nothing_has_failed(world: World) -> None:
    """A declared output whose maker ran and made nothing is a failure: it installed into a home that is gone."""
    failed = world.failed(world.commit({"lock": ""}), setup('touch "$HOME/package"'))
    assert "made nothing" in failed.reason


@pytest.mark.parametrize("command", ["pip install -e .", "pip install -q .[dev]", "python3 setup.py develop"])
def test_a_set_up_that_wants_the_project_itself_gets_a_hint(world: World, command: str) -> None:
    failed = world.failed(world.commit({"lock": ""}), setup(f"{command} 2>/dev/null || exit 1"))
    assert "PYTHONPATH=src" in failed.reason


def test_an_editable_install_of_the_tree_is_refused(world: World) -> None:
    told = json.dumps({"url": "file://$PWD/libs/x", "dir_info": {"editable": True}}).replace('"', '\\"')
    info = ".venv/lib/python3.11/site-packages/x-1.dist-info"
    run = f'mkdir -p {info} && echo "{told}" > {info}/direct_url.json'
    failed = world.failed(world.commit({"lock": ""}), setup(run))
    assert "installed libs/x as editable" in failed.reason


ODD = "deps/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    "content",
    ["mkfifo $D", "ln -s /dev/zero $D", "mkdir $D", "python3 -c 'print(\"[\" * 100000)' > $D", "echo '[1]' > $D"],
    ids=["pipe", "device", "folder", "nested", "other"],
)
def test_whatever_lies_in_the_place_of_what_pip_writes_is_passed_over(world: World, content: str) -> None:
    """A package of a lock file chooses it: a read of a pipe would last for ever."""
    made = f"D={ODD}/x.dist-info/direct_url.json; mkdir -p ${{D%/*}}; {content}"
    assert world.ready(world.commit({"lock": ""}), setup(made)).paths == ("deps",)


def test_two_calls_of_one_run_at_once_build_once(world: World) -> None:
    sha = world.commit({"lock": "one\n"})

    async def both() -> list[object]:
        first = world.asked(sha, setup(MAKE), "run_1")
        second = world.asked(sha, setup(MAKE), "run_1")
        return list(await asyncio.gather(first, second))

    answers = asyncio.run(both())
    assert all(isinstance(answer, SetupReady) for answer in answers)
    assert sorted(answer.built for answer in answers if isinstance(answer, SetupReady)) == [False, True]
    assert len(world.entries()) == 1


class Notes:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        self.told.append(f"started {argv[-1]}")

    async def ended(self, child: ChildRef) -> None:
        self.told.append("ended")


def test_the_journal_hears_of_the_child(world: World) -> None:
    """L26: a crash of ours leaves no unknown process behind."""
    notes = Notes()
    world.ensure(world.commit({"lock": ""}), setup("mkdir deps"), watcher=notes)
    assert notes.told == ["started mkdir deps", "ended"]


def test_a_cancelled_build_is_made_anew_elsewhere(world: World) -> None:
    sha = world.commit({"lock": ""})

    async def cancelled() -> None:
        running = asyncio.Event()

        class Rings(Notes):
            async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
                running.set()

        task = asyncio.create_task(world.asked(sha, setup("mkdir deps; test -e never || sleep 60"), watcher=Rings()))
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert len(world.entries()) == 1
    assert world.failed(sha, setup("mkdir deps; test -e never || sleep 60", timeout=0.2)).environment
    assert [name[-2:] for name in world.entries()] == ["-2"]


CRASHER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from process_stage import LANDLOCK_WORKS
from setup_stage import World, setup
World(Path(sys.argv[2])).ensure(sys.argv[3], setup("mkdir deps && cp lock deps/made"), "run_1")
"""


@pytest.mark.parametrize("point", ["setup.before_run", "setup.after_run", "setup.after_record"])
def test_a_crash_never_leaves_a_half_built_entry_in_use(world: World, tmp_path: Path, point: str) -> None:
    """L31: the lock dies with its owner; what was half built is removed and made anew."""
    sha = world.commit({"lock": "one\n"})
    command = [sys.executable, "-c", CRASHER, str(Path(__file__).parent), str(tmp_path), sha]
    ended = subprocess.run(command, env=os.environ | {crash.ENV: point}, check=False, capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    ready = world.ready(sha, setup("mkdir deps && cp lock deps/made"), "run_1")
    assert (ready.folder / "deps/made").read_text() == "one\n"
    assert ready.built is (point != "setup.after_record")
    assert len(world.entries()) == 1


def test_an_entry_that_lost_its_parts_is_made_anew(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    first = world.ready(sha, setup(MAKE))
    world.trust(first.key)
    (first.folder / "deps/made").unlink()
    (first.folder / "deps").rmdir()
    again = world.ready(sha, setup(MAKE))
    assert again.built
    assert world.entries() == [again.folder.parent.name]


def test_a_record_that_cannot_be_read_is_nobodys_entry(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    first = world.ready(sha, setup(MAKE))
    (first.folder.parent / "setup.json").write_text("{")
    assert world.ready(sha, setup(MAKE)).built


def test_a_sweep_keeps_the_last_used_and_those_in_use(tmp_path: Path) -> None:
    """L44: caches have a cap; nothing goes that a run still needs."""
    world = World(tmp_path, keep=2)
    folders = []
    for number in range(5):
        ready = world.ready(world.commit({"lock": f"{number}\n"}), setup(MAKE), f"run_{number}")
        world.trust(ready.key, f"run_{number}")
        os.utime(ready.folder.parent / "setup.json", (number, number))
        folders.append(ready.folder.parent.name)
    world.sweep("run_1")
    assert world.entries() == sorted([folders[1], folders[3], folders[4]])
    world.sweep()
    assert world.entries() == sorted([folders[3], folders[4]])
    assert len(list((world.state / "setups").glob("*.lock"))) == 2


def test_a_sweep_removes_what_was_never_proven_once_its_run_has_ended(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    world.ready(sha, setup("mkdir -p deps/inner && chmod 500 deps/inner deps"), "run_1")
    failed = world.failed(sha, setup("exit 1"), "run_1")
    world.sweep("run_1")
    assert len(world.entries()) == 2
    assert said(failed) == ""
    world.sweep("run_2")
    assert world.entries() == []
    assert list((world.state / "setups").iterdir()) == []


@held
def test_a_sweep_keeps_the_two_latest_that_were_never_proven_while_they_are_new(tmp_path: Path) -> None:
    """Whoever edits `setup:` and tries again makes another key each time: the disk does not fill."""
    world = World(tmp_path, HELD)
    names = []
    for number in range(4):
        ready = world.ready(world.commit({"lock": f"{number}\n"}), setup(MAKE), f"run_{number}")
        os.utime(ready.folder.parent / "setup.json", (number, number))
        names.append(ready.folder.parent.name)
    world.sweep("run_0")
    assert world.entries() == sorted([names[0], names[2], names[3]])
    world.later = 3600.0
    world.sweep()
    assert world.entries() == []


def test_a_sweep_takes_nothing_from_a_run_that_begins_meanwhile(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    ready = world.ready(sha, setup(MAKE))
    world.trust(ready.key)
    world.setups = CachedSetups(world.state / "setups", world.git, world.processes, keep=0)

    async def asked_too_early() -> tuple[str, ...]:
        await world.asked(sha, setup(MAKE), "run_2")
        return ()

    asyncio.run(world.setups.sweep(asked_too_early))
    assert world.entries() == [ready.folder.parent.name]
    world.sweep()
    assert world.entries() == []


def test_a_sweep_leaves_a_running_build_alone(world: World) -> None:
    sha = world.commit({"lock": "one\n"})

    async def sweep_meanwhile() -> object:
        class Sweeps(Notes):
            async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
                await world.setups.sweep(these())

        return await world.asked(sha, setup(MAKE), watcher=Sweeps())

    answer = asyncio.run(sweep_meanwhile())
    assert isinstance(answer, SetupReady)
    assert (answer.folder / "deps/made").exists()


def test_the_persons_repository_is_left_alone(world: World) -> None:
    sha = world.commit({"lock": "one\n"})
    world.provided(sha, world.ready(sha, setup(MAKE)))
    assert git(world.home, "status", "--porcelain") == ""
    assert not (world.home / "deps").exists()
