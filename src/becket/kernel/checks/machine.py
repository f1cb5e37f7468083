"""Checks of the machine: Python, git, disk, state folder, socket, inotify."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator

from becket.kernel.checks import words
from becket.kernel.checks.facts import Diagnosis, Exam, InotifyFacts, Level

DISK_WARN = 1_000_000_000
DISK_ERROR = 200_000_000
LONGEST_SOCKET = 107  # sun_path holds 108 bytes with its closing zero
FEW_WATCHES = 8_192
FEW_INSTANCES = 64
NEARLY_USED = 0.9
_BY_CAUSE = {
    os.strerror(errno.EROFS): words.DISK_READONLY_MEND,
    os.strerror(errno.ENOSPC): words.DISK_MEND,
    os.strerror(errno.EDQUOT): words.DISK_MEND,
}
"""What helps where the disk is the cause, and not the owner of a folder."""


def python_version(exam: Exam) -> Iterator[Diagnosis]:
    have, need = exam.facts.python_version[:3], exam.facts.python_minimum
    if have < need:
        what = words.PYTHON_OLD.format(have=_dotted(have), need=_dotted(need))
        yield Diagnosis(name="python", level=Level.error, what=what, mend=words.PYTHON_MEND.format(need=_dotted(need)))
    else:
        yield Diagnosis(name="python", level=Level.ok, what=words.PYTHON_OK.format(have=_dotted(have)))


def git_version(exam: Exam) -> Iterator[Diagnosis]:
    text, need = exam.facts.git_version, exam.facts.git_minimum
    if text is None:
        yield Diagnosis(name="git", level=Level.error, what=words.GIT_NONE, mend=words.install("git"))
        return
    match = re.search(r"\d+(?:\.\d+)+", text)
    if match is None:
        what = words.GIT_UNKNOWN.format(text=text.strip()[:80], need=_dotted(need))
        yield Diagnosis(name="git", level=Level.warn, what=what, mend="git --version")
        return
    have = tuple(int(part) for part in match[0].split("."))
    if have < need:
        what = words.GIT_OLD.format(have=match[0], need=_dotted(need))
        yield Diagnosis(name="git", level=Level.error, what=what, mend=words.install("git"))
    else:
        yield Diagnosis(name="git", level=Level.ok, what=words.GIT_OK.format(have=match[0]))


def repository(exam: Exam) -> Iterator[Diagnosis]:
    root = exam.facts.root
    if root is None:
        yield Diagnosis(name="repository", level=Level.error, what=words.NO_REPOSITORY, mend=words.NO_REPOSITORY_MEND)
    else:
        yield Diagnosis(name="repository", level=Level.ok, what=words.REPOSITORY_OK.format(root=root))


def state_folder(exam: Exam) -> Iterator[Diagnosis]:
    state = exam.facts.state
    if state is None:
        return
    if why := exam.facts.write_problem(state):
        mend = _BY_CAUSE.get(why, words.STATE_MEND).format(path=shlex.quote(str(state)))
        what = words.STATE_READONLY.format(why=why)
        yield Diagnosis(name="state", level=Level.error, what=what, mend=mend, where=str(state))
    else:
        yield Diagnosis(name="state", level=Level.ok, what=words.STATE_OK, where=str(state))


def disk(exam: Exam) -> Iterator[Diagnosis]:
    place = exam.facts.state or exam.facts.root
    if place is None:
        return
    free = exam.facts.disk_free(place)
    level = Level.error if free < DISK_ERROR else Level.warn if free < DISK_WARN else Level.ok
    what = (words.DISK_OK if level is Level.ok else words.DISK_LOW).format(free=f"{free / 1e9:.2f}")
    mend = None if level is Level.ok else words.DISK_MEND.format(path=shlex.quote(str(place)))
    yield Diagnosis(name="disk", level=level, what=what, mend=mend, where=str(place))


def socket_path(exam: Exam) -> Iterator[Diagnosis]:
    path = exam.facts.socket
    if path is None:
        return
    size = len(os.fsencode(path))
    if size > LONGEST_SOCKET:
        what = words.SOCKET_LONG.format(size=size, most=LONGEST_SOCKET)
        mend = words.SOCKET_MEND.format(spare=size - LONGEST_SOCKET)
        yield Diagnosis(name="socket", level=Level.error, what=what, mend=mend, where=str(path))
    else:
        yield Diagnosis(name="socket", level=Level.ok, what=words.SOCKET_OK.format(size=size))


def inotify(exam: Exam) -> Iterator[Diagnosis]:
    """Never an error: without file events the slow poll still finds every commit."""
    facts = exam.facts.inotify()
    found = list(_inotify_problems(facts))
    yield from found or [Diagnosis(name="inotify", level=Level.ok, what=words.INOTIFY_OK)]


def _inotify_problems(facts: InotifyFacts) -> Iterator[Diagnosis]:
    if not facts.works:
        used_up = facts.max_instances is not None and (facts.used_instances or 0) >= facts.max_instances
        mend = _sysctl("max_user_instances", 512) if used_up else words.INOTIFY_NONE_MEND
        yield Diagnosis(name="inotify", level=Level.warn, what=words.INOTIFY_NONE, mend=mend)
    if facts.blind_mount:
        what = words.INOTIFY_BLIND.format(kind=facts.blind_mount)
        yield Diagnosis(name="inotify", level=Level.warn, what=what, mend=words.INOTIFY_BLIND_MEND)
    for key, most, used, few, better in (
        ("max_user_watches", facts.max_watches, facts.used_watches, FEW_WATCHES, 524_288),
        ("max_user_instances", facts.max_instances, facts.used_instances, FEW_INSTANCES, 512),
    ):
        if most is None:
            continue
        if most < few:
            what = words.INOTIFY_FEW.format(key=key, most=most, few=few)
        elif used is not None and used >= NEARLY_USED * most:
            what = words.INOTIFY_USED.format(key=key, used=used, most=most)
        else:
            continue
        yield Diagnosis(
            name="inotify",
            level=Level.warn,
            what=what,
            mend=_sysctl(key, max(better, 2 * most)),
            where=f"/proc/sys/fs/inotify/{key}",
        )


def _sysctl(key: str, value: int) -> str:
    return f"sudo sysctl -w fs.inotify.{key}={value}"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
