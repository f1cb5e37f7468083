"""The probes of the machine, on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from becket.kernel.checks import host
from becket.kernel.checks.facts import LockFact


def stat_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


@pytest.mark.parametrize(
    ("text", "pid"), [("123", 123), (" 77 \nmore", 77), ('{"pid": 5}', 5), ("", None), ("x1", None), ("[1]", None)]
)
def test_pid_files_of_every_shape_are_read(tmp_path: Path, text: str, pid: int | None) -> None:
    (tmp_path / "lock").write_text(text)
    lock = host.read_lock(tmp_path / "lock")
    assert lock is not None
    assert lock.pid == pid


def test_a_lock_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert host.read_lock(tmp_path / "lock") is None


def test_a_pid_is_not_taken_for_a_later_process_of_the_same_number(tmp_path: Path) -> None:
    """L26: pid and start time and boot, not the pid alone."""
    me, started = os.getpid(), stat_of(os.getpid())
    path = tmp_path / "lock"
    path.write_text(json.dumps({"pid": me, "started": started, "boot": boot()}))
    lock = host.read_lock(path)
    assert lock == LockFact(path, me, started, boot())
    assert host.process_alive(lock)
    assert host.process_alive(LockFact(path, me))
    assert not host.process_alive(LockFact(path, me, started + 1, boot()))
    assert not host.process_alive(LockFact(path, me, started, "another boot"))
    assert not host.process_alive(LockFact(path, None))


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    try:
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not host.process_alive(LockFact(Path("x"), child.pid))
    finally:
        child.wait()


def test_disk_and_write_probes_work_for_folders_that_do_not_exist_yet(tmp_path: Path) -> None:
    missing = tmp_path / "a" / "b"
    assert host.disk_free(missing) == pytest.approx(host.disk_free(tmp_path), rel=0.2)
    assert host.write_problem(missing) is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_says_why(tmp_path: Path) -> None:
    assert host.write_problem(Path("/proc/becket"))
    (tmp_path / "file").write_text("")
    assert host.write_problem(tmp_path / "file" / "state") == "Not a directory"


def test_inotify_facts_are_numbers_of_this_machine(tmp_path: Path) -> None:
    facts = host.inotify(tmp_path)
    limits = Path("/proc/sys/fs/inotify/max_user_watches")
    assert facts.max_watches == (int(limits.read_text()) if limits.exists() else None)
    assert facts.used_instances is None or facts.used_instances >= 0
    assert isinstance(facts.works, bool)
