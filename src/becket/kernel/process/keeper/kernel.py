"""The few calls of the kernel that Python has no function for."""

import posix as os
import sys
from _ctypes import call_function, dlopen, dlsym

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITY_VERSION_3 = 0x20080522
_SIGKILL = 9

_LIBC = dlopen(None, 0)  # type: ignore[arg-type]  # None is this very program, libc included
_PRCTL = dlsym(_LIBC, "prctl")


def _prctl(option: int, value: int) -> None:
    if call_function(_PRCTL, (option, value, 0, 0, 0)) != 0:
        raise OSError(f"the kernel refused prctl {option}")


def adopt_orphans() -> None:
    """Every process that a descendant leaves behind becomes our child instead of init's."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_tracing() -> None:
    """Nobody of the same user may trace this process, so a child cannot make its keeper lie. An exec resets it."""
    _prctl(_PR_SET_DUMPABLE, 0)


def die_with(parent: int) -> None:
    """Die by SIGKILL when `parent` does."""
    _prctl(_PR_SET_PDEATHSIG, _SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def gain_no_privileges() -> None:
    """No later exec gives more rights than we have; landlock demands it of ordinary users."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """Root without its powers: a confined root could otherwise make a disk device, or load a module, and walk out."""
    for capability in range(64):
        if call_function(_PRCTL, (_PR_CAPBSET_DROP, capability, 0, 0, 0)) != 0:
            break  # beyond the last one, or an ordinary user who has none to drop
    header = _CAPABILITY_VERSION_3.to_bytes(4, sys.byteorder) + bytes(4)
    if call_function(dlsym(_LIBC, "capset"), (header, bytes(24))) != 0:
        raise OSError("the kernel refused capset")
