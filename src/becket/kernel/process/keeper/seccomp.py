"""A filter of system calls that closes the ways around landlock's rules of TCP, which see no more than `connect`.

Multipath TCP, fast-open sends and io_uring would pass them; UDP and the rest of the network they do not know.
"""

import ctypes
import os

_LOAD, _IS, _HAS_BIT, _AND, _RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _REFUSE = 0x7FFF_0000, 0x0005_0000 | 13  # EACCES, as landlock says
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

# What the kernel calls the machine, and its numbers of socket, sendto, sendmsg, sendmmsg.
_MACHINES = {
    "x86_64": (0xC000_003E, 41, 44, 46, 307),
    "aarch64": (0xC000_00B7, 198, 206, 211, 269),
}
_IO_URING_SETUP = 425
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _TYPE_MASK = 1, 0xF
_ANY, _TCP = 0, 6
_FAST_OPEN = 0x2000_0000


_Step = tuple[int, int, str, str]


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("yes", ctypes.c_uint8), ("no", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("code", ctypes.POINTER(_Instruction)))


def known() -> bool:
    """Whether the filter can be written for this machine, and its kernel takes one."""
    return os.uname().machine in _MACHINES and os.access("/proc/sys/kernel/seccomp", os.F_OK)


def only_plain_tcp() -> None:
    """From here on this process and all it starts make no socket but of TCP, unix and netlink. No way back."""
    program = _assemble(_steps(*_MACHINES[os.uname().machine]))
    code = (_Instruction * len(program))(*program)
    libc = ctypes.CDLL(None, use_errno=True)
    asked = _Program(len(program), code)
    if libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(asked), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel refused the filter of system calls")


def _steps(arch: int, socket: int, sendto: int, sendmsg: int, sendmmsg: int) -> "list[str | _Step]":
    """The filter: a name marks the step after it, and a test says where to go if it holds, and if not."""
    return [
        (_LOAD, _ARCH_AT, "", ""),
        (_IS, arch, "", "refuse"),  # another machine's numbers (32 bit) would mean other calls
        (_LOAD, _NUMBER_AT, "", ""),
        (_HAS_BIT, 0x4000_0000, "refuse", ""),  # the same for x32
        (_IS, _IO_URING_SETUP, "refuse", ""),
        (_IS, socket, "socket", ""),
        (_IS, sendto, "flags at 3", ""),
        (_IS, sendmsg, "flags at 2", ""),
        (_IS, sendmmsg, "flags at 3", "allow"),
        "flags at 2",
        (_LOAD, _ARGUMENTS_AT + 8 * 2, "", ""),
        (_HAS_BIT, _FAST_OPEN, "refuse", "allow"),
        "flags at 3",
        (_LOAD, _ARGUMENTS_AT + 8 * 3, "", ""),
        (_HAS_BIT, _FAST_OPEN, "refuse", "allow"),
        "socket",
        (_LOAD, _ARGUMENTS_AT, "", ""),
        (_IS, _UNIX, "allow", ""),
        (_IS, _NETLINK, "allow", ""),
        (_IS, _INET, "internet", ""),
        (_IS, _INET6, "internet", "refuse"),
        "internet",
        (_LOAD, _ARGUMENTS_AT + 8, "", ""),
        (_AND, _TYPE_MASK, "", ""),
        (_IS, _STREAM, "", "refuse"),
        (_LOAD, _ARGUMENTS_AT + 8 * 2, "", ""),
        (_IS, _ANY, "allow", ""),
        (_IS, _TCP, "allow", "refuse"),
        "allow",
        (_RETURN, _ALLOW, "", ""),
        "refuse",
        (_RETURN, _REFUSE, "", ""),
    ]


def _assemble(steps: "list[str | _Step]") -> list[_Instruction]:
    """Names become distances; no name is the next step."""
    real: list[_Step] = []
    places: dict[str, int] = {}
    for step in steps:
        if isinstance(step, str):
            places[step] = len(real)
        else:
            real.append(step)

    def distance(here: int, name: str) -> int:
        return places[name] - here - 1 if name else 0

    return [
        _Instruction(code, distance(here, yes), distance(here, no), value)
        for here, (code, value, yes, no) in enumerate(real)
    ]
