"""Contract of the process port: however a child ends, nothing that it started is alive afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from process_stage import KINDS, Ground, sleeping, unique_sleep, wait_until

from becket.kernel.contract.process import ChildEnd, ChildRef, SandboxKind
from becket.kernel.process import ContainedProcesses
from becket.kernel.process.identity import boot_id, mark, reference
from becket.kernel.process.scratch import Scratch

DAEMON = """
import asyncio, os, sys
from pathlib import Path
from becket.kernel.process import ContainedProcesses
from becket.kernel.contract.process import ChildSpec, SandboxKind

class Watcher:
    async def started(self, child, argv):
        print(child.model_dump_json(), flush=True)
        if sys.argv[4] == "die-in-started":
            os.kill(os.getpid(), 9)
    async def ended(self, child):
        pass

kind, tree, script = sys.argv[1:4]
spec = ChildSpec(argv=("sh", "-c", script), tree=Path(tree), output=Path(tree).parent / "daemon.log")
processes = ContainedProcesses(SandboxKind(kind), scratch=Path(tree).parent)
asyncio.run(processes.run(spec, Watcher()))
"""
DAEMONISE = (
    "import os, sys\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        os.execvpe('sleep', ['sleep', sys.argv[1]], {'PATH': os.environ['PATH']})\n"
    "    os._exit(0)\n"
    "os.wait()\n"
)


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    return Ground(ContainedProcesses(request.param, grace=0.3), tmp_path)


@pytest.fixture
def nap() -> Iterator[str]:
    """A duration only this test sleeps; whoever still sleeps it in the end is a failure, and is ended."""
    duration = unique_sleep()
    yield duration
    left = sleeping(duration)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


@pytest.mark.parametrize("kind", KINDS)
def test_timeout_asks_first(kind: SandboxKind, tmp_path: Path) -> None:
    """At the timeout everything gets TERM, and may clean up; nobody waits for the rest of the grace."""
    ground = Ground(ContainedProcesses(kind, grace=50.0), tmp_path)
    result = ground.shell_that_times_out("trap 'echo cleaned > cleaned; exit 4' TERM; sleep 60 & touch ready; wait")
    assert (result.end, result.exit_code) == (ChildEnd.timeout, 4)
    assert (ground.tree / "cleaned").exists()
    assert 0.2 < result.seconds < 50


def test_timeout_of_a_deaf_child(ground: Ground, nap: str) -> None:
    """A child that ignores TERM is killed after the grace, with all it started."""
    result = ground.shell_that_times_out(f"trap '' TERM; sleep {nap} & touch ready; while :; do sleep 0.05; done")
    assert (result.end, result.exit_code) == (ChildEnd.timeout, -9)
    assert result.seconds > 0.5
    assert sleeping(nap) == []


def test_timeout_tells_what_was_at_work(ground: Ground, nap: str) -> None:
    """The command that everything above it waited for, not the shell that was started."""
    result = ground.shell_that_times_out(f"sh -c 'touch ready; sleep {nap}; true'; true")
    assert (result.end, result.message) == (ChildEnd.timeout, f"sleep {nap}")


def test_timeout_reaches_other_sessions(ground: Ground, nap: str) -> None:
    """A child in a session of its own dies with the rest (L19, L27)."""
    result = ground.shell(f"setsid sleep {nap} & setsid -w sleep {nap}", timeout=0.3)
    assert result.end is ChildEnd.timeout
    assert sleeping(nap) == []


@pytest.mark.parametrize("how", ["background", "setsid", "daemon"])
def test_nothing_outlives_the_child(ground: Ground, nap: str, how: str) -> None:
    """What the child leaves behind is killed and counted, and holds nobody up by the open log (L19, L26).

    The daemon forks twice, leaves its session and carries no variable of ours.
    """
    started = {
        "background": f"sleep {nap} & echo main is done",
        "setsid": f"setsid sleep {nap} & echo main is done",
        "daemon": f'"$PYTHON" -I -c "$SCRIPT" {nap}; echo main is done',
    }[how]
    result = ground.shell(started, env={"PYTHON": sys.executable, "SCRIPT": DAEMONISE})
    assert (result.end, result.exit_code, result.left_running) == (ChildEnd.exited, 0, 1), ground.said
    assert ground.said == "main is done\n"
    assert sleeping(nap) == []
    assert result.seconds < 60, "they would sleep for 300"


def test_helper_that_ends_by_itself_is_not_left_running(ground: Ground) -> None:
    """A process that ends a moment after the child is no leftover."""
    tries = (ground.shell("sleep 0.05 & exit 0") for _ in range(5))  # on a busy machine a moment may be long
    assert (0, 0) in ((result.exit_code, result.left_running) for result in tries)


def test_leftovers_in_numbers(ground: Ground, nap: str) -> None:
    """Each leftover counts, children of leftovers too."""
    started = f"for i in 1 2 3; do setsid sh -c 'sleep {nap} & touch '$i'; wait' & done"
    result = ground.shell(f"{started}; until [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.01; done")
    assert (result.exit_code, result.left_running) == (0, 6)
    assert sleeping(nap) == []


def test_cancellation_kills_first(ground: Ground, nap: str) -> None:
    """When CancelledError leaves, nothing of the child is alive; a second cancellation changes nothing."""

    async def cancelled() -> None:
        task = asyncio.create_task(ground.processes.run(ground.spec("sh", "-c", f"setsid sleep {nap} & sleep {nap}")))
        while len(sleeping(nap)) < 2:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sleeping(nap) == []

    asyncio.run(cancelled())


def _daemon(ground: Ground, script: str, mode: str) -> tuple[subprocess.Popen[str], ChildRef]:
    """Another Becket process, and the child that it told its watcher about."""
    command = [sys.executable, "-c", DAEMON, ground.processes.kind.value, str(ground.tree), script, mode]
    daemon = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert daemon.stdout is not None
    return daemon, ChildRef.model_validate_json(daemon.stdout.readline())


def test_becket_dies_before_the_release(ground: Ground) -> None:
    """A crash between spawn and release leaves a child that never runs its program."""
    daemon, child = _daemon(ground, "touch ran", "die-in-started")
    with daemon:
        assert daemon.wait(timeout=60) == -signal.SIGKILL
    wait_until("the keeper ended by itself", lambda: not Path(f"/proc/{child.pid}").exists())
    assert not (ground.tree / "ran").exists()


def test_becket_dies_while_the_child_runs(ground: Ground, nap: str) -> None:
    """A kill -9 of Becket takes everything with it, sessions of their own included (L19)."""
    daemon, child = _daemon(ground, f"setsid sleep {nap} & sleep {nap}", "run")
    with daemon:
        wait_until("the child runs", lambda: len(sleeping(nap)) == 2)
        daemon.kill()
        daemon.wait(timeout=60)
    wait_until("everything ended by itself", lambda: sleeping(nap) == [])
    wait_until("the keeper ended by itself", lambda: not Path(f"/proc/{child.pid}").exists())


def test_sweep_removes_abandoned_folders(ground: Ground) -> None:
    """The private folders that a crash left are removed at the next boot; those of a live Becket are not (L44)."""
    daemon, _ = _daemon(ground, "touch ran", "die-in-started")
    with daemon:
        daemon.wait(timeout=60)
    in_use = Scratch(ground.base)
    hour_ago = time.time() - 3600
    for folder in ground.base.glob("becket-child-*"):
        os.utime(folder, (hour_ago, hour_ago))
    assert len(list(ground.base.glob("becket-child-*"))) == 2
    ContainedProcesses(ground.processes.kind, scratch=ground.base).sweep([])
    assert list(ground.base.glob("becket-child-*")) == [in_use.folder]
    assert in_use.remove_if_empty()


def test_child_that_kills_its_keeper(ground: Ground, nap: str) -> None:
    """Where a sandbox lets a child kill its keeper, what it started is still found by its mark and killed."""
    result = ground.shell(f"setsid sleep {nap} & kill -9 $PPID; sleep 1; exit 9")
    if ground.processes.kind is SandboxKind.none:
        assert (result.end, result.exit_code) == (ChildEnd.killed, -9)
        assert "keeper" in result.message
    elif result.end is ChildEnd.exited:
        assert result.exit_code in (1, 9)  # the sandbox refused the signal, or swallowed it
    assert result.left_running >= 1
    assert sleeping(nap) == []


@pytest.fixture
def sleeper(nap: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", nap], start_new_session=True) as process:
        yield process
        process.kill()


def test_sweep_kills_what_it_is_told(ground: Ground, sleeper: subprocess.Popen[bytes]) -> None:
    """A child of an earlier Becket that is still alive is killed and named (L26)."""
    ref = reference(sleeper.pid)
    assert ground.processes.sweep([ref]) == [ref]
    assert sleeper.wait(timeout=60) == -signal.SIGKILL
    assert ground.processes.sweep([ref]) == []


@pytest.mark.parametrize("changed", [{"started": 1}, {"boot": "another"}])
def test_sweep_spares_a_stranger(ground: Ground, sleeper: subprocess.Popen[bytes], changed: dict[str, object]) -> None:
    """A reused pid, or a pid of another boot, is never signalled (L26)."""
    ref = reference(sleeper.pid).model_copy(update=changed)
    assert ground.processes.sweep([ref]) == []
    assert sleeper.poll() is None


def test_sweep_finds_orphans_by_their_mark(ground: Ground, nap: str) -> None:
    """What a dead child left behind is found by the mark in its environment; a foreign mark is not."""
    dead = ChildRef(pid=2**22 + 1, started=5, boot=boot_id())
    other = ChildRef(pid=2**22 + 1, started=6, boot=boot_id())
    with subprocess.Popen(["sleep", nap], env=os.environ | {"BECKET_CHILD": mark(dead)}) as orphan:
        assert ground.processes.sweep([other]) == []
        assert orphan.poll() is None
        assert ground.processes.sweep([other, dead]) == [dead]
        assert orphan.wait(timeout=60) == -signal.SIGKILL


def test_sweep_takes_the_session(ground: Ground, nap: str) -> None:
    """Members of a found child's session go with it, though they carry no mark."""
    script = f"sleep {nap} & sleep {nap}"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as leader:
        wait_until("both sleep", lambda: len(sleeping(nap)) == 2)
        ref = reference(leader.pid)
        assert ground.processes.sweep([ref]) == [ref]
        assert sleeping(nap) == []


def test_reference_names_the_process(ground: Ground) -> None:
    """The start time is the one of /proc, the boot is this one."""
    ref = reference(os.getpid())
    stat = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert (ref.pid, ref.started) == (os.getpid(), int(stat[19]))
    assert json.loads(ref.model_dump_json())["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
