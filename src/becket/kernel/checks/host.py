"""What this machine says about itself, read from the kernel: the usual answers for DoctorFacts."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
from pathlib import Path

from becket.kernel.checks.facts import InotifyFacts, LockFact

_PROC = Path("/proc")
_BLIND = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "fuse.sshfs", "fuse.osxfs", "fuse.grpcfuse", "vboxsf"}
)
_MOST_PROCESSES = 2_000


def read_lock(path: Path) -> LockFact | None:
    """A lock or pid file: a bare number, or the JSON of a ChildRef. None if there is no such file."""
    try:
        text = path.read_text(errors="replace")[:4096]
    except FileNotFoundError:
        return None
    except OSError:
        return LockFact(path, None)
    with contextlib.suppress(ValueError):
        data = json.loads(text)
        if isinstance(data, dict) and isinstance(data.get("pid"), int):
            return LockFact(path, data["pid"], data.get("started"), data.get("boot"))
    number = re.match(r"\s*(\d{1,9})\b", text)
    return LockFact(path, int(number[1]) if number else None)


def process_alive(lock: LockFact) -> bool:
    """Is the very process that wrote the file still there? A zombie is not."""
    if lock.pid is None:
        return False
    if lock.boot is not None and lock.boot != _read(_PROC / "sys/kernel/random/boot_id"):
        return False
    # The program's name may hold spaces and brackets; the state follows the last bracket.
    fields = (_read(_PROC / str(lock.pid) / "stat") or "").rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return False
    return lock.started is None or lock.started == int(fields[19])


def disk_free(path: Path) -> int:
    """Bytes that a normal user may still write below the path, which need not exist yet."""
    return shutil.disk_usage(_existing(path)).free


def write_problem(folder: Path) -> str | None:
    """Try it: create and remove a file, in the folder or in the parent that would get it. None: it works."""
    probe = _existing(folder) / f".becket-probe-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        return error.strerror or str(error)
    probe.unlink()
    return None


def inotify(folder: Path) -> InotifyFacts:
    """The limits, what this user's processes use of them, and whether a watch can be made at all."""
    limits = _PROC / "sys/fs/inotify"
    watches, instances = _used()
    return InotifyFacts(
        works=_can_watch(),
        max_watches=_number(limits / "max_user_watches"),
        max_instances=_number(limits / "max_user_instances"),
        used_watches=watches,
        used_instances=instances,
        blind_mount=_blind_mount(folder),
    )


def _can_watch() -> bool:
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        descriptor = libc.inotify_init1(os.O_CLOEXEC)
    except (OSError, AttributeError):
        return False
    if descriptor < 0:
        return False
    os.close(descriptor)
    return True


def _used() -> tuple[int | None, int | None]:
    """Watches and instances of this user's processes; unreadable ones are not ours."""
    watches = instances = 0
    try:
        processes = [entry for entry in _PROC.iterdir() if entry.name.isdigit()][:_MOST_PROCESSES]
    except OSError:
        return None, None
    for process in processes:
        with contextlib.suppress(OSError):
            if process.stat().st_uid != os.getuid():
                continue
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError):
                    if "inotify" in str(descriptor.readlink()):
                        instances += 1
                        watches += (_read(process / "fdinfo" / descriptor.name) or "").count("inotify wd:")
    return watches, instances


def _blind_mount(folder: Path) -> str | None:
    place = os.path.realpath(folder)
    best, kind = "", ""
    for line in (_read(_PROC / "self/mounts") or "").splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), parts[1])
        if len(mount) >= len(best) and (place == mount or place.startswith(mount.rstrip("/") + "/")):
            best, kind = mount, parts[2]
    return kind if kind in _BLIND else None


def _existing(path: Path) -> Path:
    return next((place for place in (path, *path.parents) if os.path.lexists(place)), Path("/"))


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _read(path)
    return int(text) if text and text.isdigit() else None
