"""What Becket tells a keeper, and what the keeper tells Becket: the two messages of their socket."""

import marshal
import posix as os

LENGTH_BYTES = 4
STARTED = b"+"
"""Sent when the child's program is about to run. Without a report after it, the program ran and its end is unknown."""


class Landlock:
    """The confinement of one child: pairs of path and mode, and whether TCP is denied but for `ports`."""

    __slots__ = ("deny_tcp", "ports", "rules", "version")

    def __init__(
        self, rules: list[tuple[str, str]], deny_tcp: bool, version: int, ports: list[int] | None = None
    ) -> None:
        self.rules = rules
        self.deny_tcp = deny_tcp
        self.version = version
        self.ports = ports or []


class Job:
    """One child to run. Sent once; until it arrives, nothing of the child runs.

    At most `cap` bytes of its output are kept; `tail` of them are the last ones.
    `doors` are the places, host and port, at which Becket wants to answer in the child's network.
    """

    __slots__ = ("argv", "cap", "doors", "env", "grace", "landlock", "tail", "timeout", "tree")

    def __init__(
        self,
        argv: list[str],
        env: dict[str, str],
        tree: str,
        timeout: float,
        grace: float,
        cap: int,
        landlock: Landlock | None = None,
        doors: list[tuple[str, int]] | None = None,
        tail: int = 0,
    ) -> None:
        self.argv = argv
        self.env = env
        self.tree = tree
        self.timeout = timeout
        self.grace = grace
        self.cap = cap
        self.tail = tail
        self.landlock = landlock
        self.doors = doors or []

    def encode(self) -> bytes:
        lock = self.landlock
        confined = None if lock is None else (lock.rules, lock.deny_tcp, lock.version, lock.ports)
        limits = (self.timeout, self.grace, self.cap, self.tail)
        body = marshal.dumps((self.argv, self.env, self.tree, limits, confined, self.doors), 4)
        return len(body).to_bytes(LENGTH_BYTES, "big") + body


def receive(control: int) -> Job | None:
    """Wait for the job; None if Becket went away before it sent one."""
    head = _exactly(control, LENGTH_BYTES)
    body = _exactly(control, int.from_bytes(head, "big")) if head else None
    if not body:
        return None
    # Only Becket holds the other end, so the bytes are trusted; to import json would cost as much as all the rest.
    argv, env, tree, (timeout, grace, cap, tail), confined, doors = marshal.loads(body)  # noqa: S302
    return Job(argv, env, tree, timeout, grace, cap, None if confined is None else Landlock(*confined), doors, tail)


def _exactly(control: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        piece = os.read(control, size - len(data))
        if not piece:
            return None
        data += piece
    return data


class ChildReport:
    """How the child ended, in one line of text. Becket checks each field: it trusts no keeper."""

    __slots__ = ("capped", "code", "end", "left", "message", "size")

    def __init__(self, end: str, code: int | None, left: int, size: int, capped: bool, message: str = "") -> None:
        self.end = end
        self.code = code
        self.left = left
        self.size = size
        self.capped = capped
        self.message = message

    def encode(self) -> bytes:
        code = "-" if self.code is None else str(self.code)
        line = f"{self.end} {code} {self.left} {self.size} {int(self.capped)} {self.message}\n"
        return line.encode("utf-8", "surrogateescape")

    @classmethod
    def decode(cls, data: bytes) -> "ChildReport | None":
        """None for anything but one whole report."""
        line, newline, rest = data.decode("utf-8", "replace").partition("\n")
        fields = line.split(" ", 5)
        if not newline or rest or len(fields) != 6:
            return None
        end, code, left, size, capped, message = fields
        try:
            return cls(end, None if code == "-" else int(code), int(left), int(size), capped == "1", message)
        except ValueError:
            return None
