"""Landlock through its three system calls: what the kernel offers, and how to confine this very process."""

import ctypes
import os
import stat

from . import seccomp
from .kernel import drop_capabilities, gain_no_privileges

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_RULE_PATH_BENEATH, _RULE_NET_PORT = 1, 2

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_DEVICES = 1 << 6 | 1 << 11
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV

_BIND_TCP, _CONNECT_TCP = 1 << 0, 1 << 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1 << 0, 1 << 1

READ, WRITE, DEVICE = "read", "write", "device"

FIRST_TO_HOLD_TRUNCATE = 3
FIRST_TO_HOLD_TCP = 4
FIRST_TO_HOLD_SIGNALS = 6


_libc = ctypes.CDLL(None, use_errno=True)


class _RulesetAttr(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneathAttr(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


class _NetPortAttr(ctypes.Structure):
    _fields_ = (("allowed", ctypes.c_uint64), ("port", ctypes.c_uint64))


def abi() -> int:
    """The version of landlock this kernel runs; an OSError if it runs none."""
    return _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))


def _call(number: int, *arguments: object) -> int:
    """A system call that libc has no wrapper for; -1 and errno become an OSError."""
    result: int = _libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def handled(version: int) -> int:
    """Every file access that this version can deny."""
    access = _EXECUTE | _WRITE_FILE | _READ_FILE | _READ_DIR | _MAKE_AND_REMOVE
    if version >= 2:
        access |= _REFER
    if version >= FIRST_TO_HOLD_TRUNCATE:
        access |= _TRUNCATE
    if version >= 5:
        access |= _IOCTL_DEV
    return access


def granted(mode: str, version: int) -> int:
    """What one of our modes means in this version."""
    wanted = {
        READ: _EXECUTE | _READ_FILE | _READ_DIR,
        WRITE: handled(version) & ~(_IOCTL_DEV | _MAKE_DEVICES),
        DEVICE: _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV,
    }[mode]
    return wanted & handled(version)


def restrict(rules: list[tuple[str, str]], deny_tcp: bool, version: int, ports: list[int] | tuple[()] = ()) -> None:
    """Confine this process and all it starts to `rules`, pairs of path and mode. There is no way back.

    `ports` stay open to connect to, on whatever host: landlock knows no addresses.
    """
    attr = _RulesetAttr(handled(version), 0, 0)
    size = 8
    if version >= FIRST_TO_HOLD_TCP:
        size = 16
        attr.net = (_BIND_TCP | _CONNECT_TCP) if deny_tcp else 0
    if version >= FIRST_TO_HOLD_SIGNALS:
        size = 24
        attr.scoped = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS
    ruleset = _call(_CREATE_RULESET, ctypes.byref(attr), ctypes.c_size_t(size), ctypes.c_uint32(0))
    for path, mode in rules:
        _allow(ruleset, path, granted(mode, version))
    for port in ports if attr.net else ():
        _add(ruleset, _RULE_NET_PORT, _NetPortAttr(_CONNECT_TCP, port))
    filtered = attr.net and seccomp.known()
    gain_no_privileges()
    _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)
    if filtered:
        seccomp.only_plain_tcp()
    drop_capabilities()


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return  # it went away, or we may not reach it ourselves: nothing to allow
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            access &= _OF_A_FILE
        _add(ruleset, _RULE_PATH_BENEATH, _PathBeneathAttr(access, place))
    finally:
        os.close(place)


def _add(ruleset: int, kind: int, rule: ctypes.Structure) -> None:
    _call(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(kind), ctypes.byref(rule), ctypes.c_uint32(0))
