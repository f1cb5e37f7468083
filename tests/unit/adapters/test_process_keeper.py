"""The parts of a keeper that need no child."""

from __future__ import annotations

import os
import socket
from itertools import product
from pathlib import Path

import pytest

from becket.kernel.process.keeper import landlock
from becket.kernel.process.keeper.job import ChildReport, Job, Landlock, receive
from becket.kernel.process.keeper.output import ChildOutput, broken_bytes
from becket.kernel.process.keeper.processes import descendants, look


def written(path: Path, cap: int, *pieces: bytes, tail: int = 0) -> tuple[ChildOutput, bytes]:
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        output = ChildOutput(file, cap, tail)
        for piece in pieces:
            output.take(piece)
        output.close()
    finally:
        os.close(file)
    return output, path.read_bytes()


def test_output_never_exceeds_its_cap(tmp_path: Path) -> None:
    """Whatever the cap, the file is at most that long and every character of it is whole."""
    caps, tails = (0, 1, 5, 70, 71, 72, 73, 74, 75, 100, 150, 151, 152, 153), (0, 1, 2, 3, 50, 90)
    for cap, tail in product(caps, tails):
        output, data = written(tmp_path / "log", cap, "ä€😀x".encode() * 7, "ä€😀x".encode() * 30, tail=tail)
        assert output.capped, (cap, tail)
        assert len(data) == output.size <= cap, (cap, tail)
        data.decode()


def test_output_below_its_cap_is_untouched(tmp_path: Path) -> None:
    for tail in range(5):
        output, data = written(tmp_path / "log", 4, b"\xff\x00", b"\xc3\xe2", tail=tail)
        assert (output.capped, data) == (False, b"\xff\x00\xc3\xe2")


def test_output_beyond_its_cap_keeps_its_beginning_and_its_end_and_says_so(tmp_path: Path) -> None:
    _, data = written(tmp_path / "log", 200, b"x" * 150, *[b"y" * 50] * 9, b"z" * 20, tail=100)
    notice = b"\n[becket: the output was capped at 200 bytes, what stood here is dropped]\n"
    assert data == b"x" * 100 + notice + b"y" * (80 - len(notice)) + b"z" * 20


def test_output_on_a_full_disk_ends_the_log_not_the_child() -> None:
    file = os.open("/dev/full", os.O_RDWR)
    try:
        output = ChildOutput(file, 100, 10)
        output.take(b"x")
        output.take(b"y")
    finally:
        os.close(file)
    assert output.capped
    assert "No space left" in output.problem


@pytest.mark.parametrize(
    ("tail", "broken"),
    [
        (b"", 0),
        (b"abc", 0),
        ("aä".encode(), 0),
        ("aä".encode()[:-1], 1),
        ("a€".encode()[:-1], 2),
        ("a😀".encode()[:-1], 3),
        (b"\x80\x80\x80\x80", 0),  # no character at all: binary stays as it is
    ],
)
def test_broken_bytes(tail: bytes, broken: int) -> None:
    assert broken_bytes(tail) == broken


def test_job_travels_whole() -> None:
    """Every field arrives as it was, names that are no UTF-8 included."""
    near, far = socket.socketpair()
    with near, far:
        lock = Landlock([("/usr", "read")], True, 7, [443])
        job = Job(["a", "b\udcff"], {"K": "v" * 50_000}, "/tree", 1.5, 2.0, 10, lock, [("127.0.0.1", 3128)])
        near.sendall(job.encode())
        got = receive(far.fileno())
    assert got is not None
    assert (got.argv, got.env, got.tree) == (job.argv, job.env, job.tree)
    assert (got.timeout, got.grace, got.cap) == (1.5, 2.0, 10)
    assert got.landlock is not None
    assert (got.landlock.rules, got.landlock.deny_tcp, got.landlock.version) == ([("/usr", "read")], True, 7)
    assert (got.landlock.ports, got.doors) == ([443], [("127.0.0.1", 3128)])


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x09half"])
def test_no_job_without_becket(sent: bytes) -> None:
    """If Becket dies before or while it sends the job, there is none."""
    near, far = socket.socketpair()
    with far:
        with near:
            near.sendall(sent)
        assert receive(far.fileno()) is None


@pytest.mark.parametrize("message", ["", "cannot run x: No such file or directory"])
def test_report_travels_whole(message: str) -> None:
    report = ChildReport("exited", -9, 2, 17, True, message)
    got = ChildReport.decode(report.encode())
    assert got is not None
    assert got.encode() == report.encode()


@pytest.mark.parametrize(
    "data", [b"", b"exited 0 0 0 0", b"exited x 0 0 0 \n", b"exited 0 0\n", b"exited 0 0 0 0 \nmore\n"]
)
def test_what_is_no_report_is_refused(data: bytes) -> None:
    assert ChildReport.decode(data) is None


def test_landlock_asks_for_what_the_version_knows() -> None:
    """A right of a newer version would make the kernel refuse the whole ruleset."""
    assert landlock.handled(1) == (1 << 13) - 1
    assert landlock.handled(2) == (1 << 14) - 1
    assert landlock.handled(3) == (1 << 15) - 1
    assert landlock.handled(5) == (1 << 16) - 1
    for version in range(1, 9):
        for mode in (landlock.READ, landlock.WRITE, landlock.DEVICE):
            assert landlock.granted(mode, version) & ~landlock.handled(version) == 0


def test_landlock_lets_nobody_make_a_device() -> None:
    """A block device made in the tree would be a way to the whole disk."""
    assert landlock.granted(landlock.WRITE, 7) & (1 << 6 | 1 << 11) == 0


def test_look_at_ourselves() -> None:
    seen = look(os.getpid())
    assert seen is not None
    assert (seen.pid, seen.parent, seen.session, seen.alive) == (os.getpid(), os.getppid(), os.getsid(0), True)
    assert look(2**22 + 1) is None


def test_descendants_are_found() -> None:
    assert os.getpid() in [process.pid for process in descendants(os.getppid())]
