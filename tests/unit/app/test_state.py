"""The locks of a repository: one owner, gone with it, and nobody is disturbed by a look."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from becket.app.state import Lock, holder

HOLD = """
import sys
from pathlib import Path
from becket.app.state import Lock
print(Lock(Path(sys.argv[1])).acquire() and "held", flush=True)
sys.stdin.read()
"""


def holding(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lock until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_one_holds_it_and_everybody_sees_who(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    assert holder(path) is None
    with Lock(path) as lock:
        assert lock.acquire()
        assert holder(path) == os.getpid()
        assert not Lock(path).acquire()
        assert holder(path) == os.getpid(), "neither a look nor a vain try ends it"
        assert path.read_text() == str(os.getpid())
    assert holder(path) is None
    assert path.read_text() == ""
    assert Lock(path).acquire()


def test_a_lock_ends_with_its_owner_and_what_stands_in_the_file_does_not_count(tmp_path: Path) -> None:
    """L31: a killed owner leaves its name and no lock; L26: no process is taken for the owner by an old name."""
    path = tmp_path / "a.lock"
    process = holding(path)
    try:
        assert holder(path) == process.pid
        assert not Lock(path).acquire()
        path.write_text("1")
        assert holder(path) == process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    path.write_text(str(process.pid))
    assert holder(path) is None
    with Lock(path) as lock:
        assert lock.acquire()
        assert holder(path) == os.getpid()


def test_a_child_does_not_inherit_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    lock = Lock(path)
    assert lock.acquire()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        lock.release()
        assert holder(path) is None
        child.communicate(b"\n")


def test_looking_never_keeps_a_lock_from_being_taken(tmp_path: Path) -> None:
    """`becket status` in a loop must not make a daemon believe that another one runs."""
    path = tmp_path / "a.lock"
    path.touch()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            assert holder(path) in (None, os.getpid())

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(2000):
            lock = Lock(path)
            assert lock.acquire()
            lock.release()
    finally:
        over.set()
        for looker in lookers:
            looker.join()
