"""Processes as /proc shows them, and signals that cannot hit a stranger who got the same pid."""

import _signal  # type: ignore[import-not-found]
import posix as os

LONGEST = 300
"""Bytes of a command line that are told."""


class SeenProcess:
    """One process at one moment. The pid and the start time together name it beyond doubt."""

    __slots__ = ("parent", "pid", "session", "started", "state")

    def __init__(self, pid: int, state: str, parent: int, session: int, started: int) -> None:
        self.pid = pid
        self.state = state
        self.parent = parent
        self.session = session
        self.started = started

    @property
    def alive(self) -> bool:
        return self.state not in "ZXx"


def look(pid: int) -> SeenProcess | None:
    """The process of that pid, or None."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return None
    try:
        text = os.read(file, 4096)
    except ProcessLookupError:
        return None
    finally:
        os.close(file)
    # The program's name is in parentheses and may itself hold spaces and parentheses.
    fields = text[text.rindex(b")") + 2 :].split()
    return SeenProcess(pid, fields[0].decode(), int(fields[1]), int(fields[3]), int(fields[19]))


def look_around() -> list[SeenProcess]:
    """Every process that is visible from here."""
    seen = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in seen if process is not None]


def descendants(root: int) -> list[SeenProcess]:
    """Everything alive below `root`, parents before children."""
    below: dict[int, list[SeenProcess]] = {}
    for process in look_around():
        below.setdefault(process.parent, []).append(process)
    found: list[SeenProcess] = []
    parents = [root]
    while parents:
        children = below.pop(parents.pop(), [])
        found += [child for child in children if child.alive]
        parents += [child.pid for child in children]
    return found


def at_work(root: int) -> str:
    """The command line of the process that all others below `root` wait for, as far as one can tell: the deepest one,
    and of several the youngest.
    """
    below = descendants(root)
    depth = {root: 0}
    for process in below:
        depth[process.pid] = depth.get(process.parent, 0) + 1
    for process in sorted(below, key=lambda one: (depth[one.pid], one.started), reverse=True):
        if words := _command_line(process.pid):
            return words
    return ""


def _command_line(pid: int) -> str:
    """In one line, and not the whole of a long one."""
    try:
        file = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return ""
    try:
        text = os.read(file, LONGEST).decode("utf-8", "replace")
    except (ProcessLookupError, PermissionError):
        return ""
    finally:
        os.close(file)
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())


def send(process: SeenProcess, signal_number: int) -> bool:
    """Signal exactly this process. False if it is gone, or another one has its pid."""
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        # The handle is bound now; if it were bound to a stranger, the start time would differ.
        now = look(process.pid)
        if now is None or now.started != process.started:
            return False
        _signal.pidfd_send_signal(handle, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(handle)
    return True
