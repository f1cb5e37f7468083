"""Which sandbox this machine really has: each is tried, none is assumed."""

from __future__ import annotations

import errno
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from becket.adapters.process import words
from becket.adapters.process.keeper import landlock
from becket.adapters.process.sandboxes import Bare, Bubblewrap, Landlocked, Sandbox
from becket.contract.errors import UsageError
from becket.contract.process import Holds, Network, SandboxKind

Wanted = SandboxKind | Literal["auto"]
_BEST_FIRST = (SandboxKind.bwrap, SandboxKind.landlock, SandboxKind.none)
_PROBE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Offer:
    """One kind of sandbox on this machine: what it would hold, or why it cannot be used."""

    kind: SandboxKind
    holds: Holds | None
    reason: str = ""


class Unavailable(Exception):
    """The kind does not work here; the text says why and what to do."""


def available() -> list[Offer]:
    """Every kind, the best first, each tried just now. For `becket doctor`."""
    offers = []
    for kind in _BEST_FIRST:
        try:
            offers.append(Offer(kind, probe(kind).holds()))
        except Unavailable as reason:
            offers.append(Offer(kind, None, str(reason)))
    return offers


def pick(wanted: Wanted) -> Sandbox:
    """The sandbox asked for, or the best that works. A UsageError if the one asked for does not."""
    for kind in _BEST_FIRST if wanted == "auto" else (SandboxKind(wanted),):
        try:
            return probe(kind)
        except Unavailable as reason:
            if wanted != "auto":
                raise UsageError(words.UNAVAILABLE.format(kind=kind.value, reason=reason)) from None
    raise AssertionError("the kind `none` always works")


def probe(kind: SandboxKind) -> Sandbox:
    """Try one kind for real."""
    if kind is SandboxKind.bwrap:
        return _probe_bubblewrap()
    if kind is SandboxKind.landlock:
        return _probe_landlock()
    return Bare()


def _probe_bubblewrap() -> Bubblewrap:
    found = shutil.which("bwrap")
    if found is None:
        raise Unavailable(words.BWRAP_MISSING)
    program = Path(found).absolute()
    command = [str(program), *Bubblewrap.namespaces(Network.none)]
    command += ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "true"]
    try:
        answer = subprocess.run(
            command, check=False, capture_output=True, stdin=subprocess.DEVNULL, timeout=_PROBE_SECONDS, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(words.BWRAP_BROKEN.format(said=error)) from None
    if answer.returncode != 0:
        raise Unavailable(words.BWRAP_BROKEN.format(said=answer.stderr.decode("utf-8", "replace").strip()))
    return Bubblewrap(program)


def _probe_landlock() -> Landlocked:
    try:
        return Landlocked(landlock.abi())
    except OSError as error:
        off = error.errno == errno.EOPNOTSUPP
        raise Unavailable(words.LANDLOCK_DISABLED if off else words.LANDLOCK_ABSENT) from None
