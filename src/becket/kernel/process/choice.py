"""Which sandbox this machine really has: each is tried, none is assumed."""

from __future__ import annotations

import errno
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from becket.kernel.contract.errors import ActionFailed, UsageError
from becket.kernel.contract.process import Holds, Network, SandboxKind
from becket.kernel.process import words
from becket.kernel.process.keeper import landlock
from becket.kernel.process.sandboxes import BubblewrapSandbox, LandlockSandbox, NoSandbox, Sandbox

SandboxChoice = SandboxKind | Literal["auto"]
_BEST_FIRST = (SandboxKind.bwrap, SandboxKind.landlock, SandboxKind.none)
PATIENCE = (5.0, 20.0)
"""Seconds for one probe and for the next: a busy machine is slow, and no sandbox is given up for that. Together they
stay below a claim's lease.
"""
_PAUSE = 0.5
_NO_PROGRAM = frozenset({errno.ENOENT, errno.EACCES, errno.ENOEXEC, errno.ELOOP, errno.ENOTDIR})
"""What the kernel says of the program itself; everything else tells of the moment."""


@dataclass(frozen=True, slots=True)
class SandboxOffer:
    """One kind of sandbox on this machine: what it would hold, or why it cannot be used."""

    kind: SandboxKind
    holds: Holds | None
    reason: str = ""


class SandboxUnavailable(Exception):
    """The kind does not work here; the text says why and what to do."""


class SandboxUndecided(ActionFailed):
    """The kind was tried and gave no answer. That is no reason to go on with a weaker one."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="environment")


def available() -> list[SandboxOffer]:
    """Every kind, the best first, each tried just now. For `becket doctor`."""
    offers = []
    for kind in _BEST_FIRST:
        try:
            offers.append(SandboxOffer(kind, probe(kind).holds()))
        except (SandboxUnavailable, SandboxUndecided) as reason:
            offers.append(SandboxOffer(kind, None, str(reason)))
    return offers


def pick(wanted: SandboxChoice) -> Sandbox:
    """The sandbox asked for, or the best that works. A UsageError if the one asked for does not; Undecided if a better
    one than those that work did not answer.
    """
    for kind in _BEST_FIRST if wanted == "auto" else (SandboxKind(wanted),):
        try:
            return probe(kind)
        except SandboxUnavailable as reason:
            if wanted != "auto":
                raise UsageError(words.UNAVAILABLE.format(kind=kind.value, reason=reason)) from None
    raise AssertionError("the kind `none` always works")


def probe(kind: SandboxKind) -> Sandbox:
    """Try one kind for real."""
    if kind is SandboxKind.bwrap:
        return _probe_bubblewrap()
    if kind is SandboxKind.landlock:
        return _probe_landlock()
    return NoSandbox()


def _probe_bubblewrap() -> BubblewrapSandbox:
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailable(words.BWRAP_MISSING)
    program = Path(found).absolute()
    command = [str(program), *BubblewrapSandbox.namespaces(Network.none)]
    command += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    answer = answer_of(command)
    if answer.returncode != 0:
        raise SandboxUnavailable(words.BWRAP_BROKEN.format(said=answer.stderr.decode("utf-8", "replace").strip()))
    return BubblewrapSandbox(program)


def answer_of(command: list[str], patience: tuple[float, ...] = PATIENCE) -> subprocess.CompletedProcess[bytes]:
    """Only what the program says, or that it cannot be run, is an answer; slowness and a full process table are not."""
    trouble: Exception | None = None
    for seconds in patience:
        try:
            return subprocess.run(
                command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=seconds, cwd="/"
            )
        except subprocess.TimeoutExpired as error:
            trouble = error
        except OSError as error:
            if error.errno in _NO_PROGRAM:
                raise SandboxUnavailable(words.BWRAP_BROKEN.format(said=error)) from None
            trouble = error
            time.sleep(_PAUSE)
    raise SandboxUndecided(words.BWRAP_SILENT.format(times=len(patience), why=trouble))


def _probe_landlock() -> LandlockSandbox:
    try:
        return LandlockSandbox(landlock.abi())
    except OSError as error:
        off = error.errno == errno.EOPNOTSUPP
        raise SandboxUnavailable(words.LANDLOCK_DISABLED if off else words.LANDLOCK_ABSENT) from None
