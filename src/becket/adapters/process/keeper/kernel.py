"""The few calls of the kernel that Python has no function for."""

import posix as os
from _ctypes import call_function, dlopen, dlsym

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_SIGKILL = 9

_PRCTL = dlsym(dlopen(None, 0), "prctl")  # type: ignore[arg-type]  # None is this very program, libc included


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
