"""The log of one child: a file that never grows beyond its cap, and holds the beginning and the end of a long story."""

import posix as os


class ChildOutput:
    """Takes what the child writes: the head as it comes; of what follows, the last bytes, when the child has ended.

    Where not all of it has room, a line between the two says so.
    """

    __slots__ = ("_cap", "_file", "_rest", "_tail", "capped", "problem", "size")

    def __init__(self, file: int, cap: int, tail: int) -> None:
        self._file = file
        self._cap = max(cap, 0)
        self._tail = min(max(tail, 0), self._cap)
        self._rest = bytearray()
        self.size = 0
        self.capped = False
        self.problem = ""

    def take(self, data: bytes) -> None:
        if self.problem:
            return
        room = max(self._cap - self._tail - self.size, 0)
        try:
            self._append(data[:room])
        except OSError as error:  # a full disk must not end the child: it ends the log
            self._give_up(error)
        self._keep(data[room:])

    def close(self) -> None:
        """Called once, after the last `take`."""
        if self.problem:
            return
        try:
            self._append(bytes(self._rest) if not self.capped else self._cut())
        except OSError as error:
            self._give_up(error)

    def _keep(self, data: bytes) -> None:
        self._rest += data
        if len(self._rest) > self._tail:
            self.capped = True
        if len(self._rest) > 2 * self._tail:  # not at every byte: each cut moves the rest
            del self._rest[: len(self._rest) - self._tail]

    def _cut(self) -> bytes:
        """What stands after the head when something is dropped."""
        self._shorten()
        notice = f"\n[becket: the output was capped at {self._cap} bytes, what stood here is dropped]\n".encode()
        room = self._cap - self.size
        if len(notice) > room:
            notice = b""
        last = bytes(self._rest[len(self._rest) - min(room - len(notice), len(self._rest)) :])
        return notice + last[_begun_bytes(last) :]

    def _shorten(self) -> None:
        """The head ends with a whole character."""
        start = max(self.size - 4, 0)
        self.size -= broken_bytes(os.pread(self._file, self.size - start, start))
        os.ftruncate(self._file, self.size)
        os.lseek(self._file, self.size, 0)

    def _append(self, data: bytes) -> None:
        while data:
            written = os.write(self._file, data)
            self.size += written
            data = data[written:]

    def _give_up(self, error: OSError) -> None:
        self.capped = True
        self.problem = f"the output could not be written: {error.strerror}"


def broken_bytes(tail: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character that the cut made incomplete."""
    for count, byte in enumerate(reversed(tail[-3:]), start=1):
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return count if count < needed else 0
        if byte < 0x80:
            break
    return 0


def _begun_bytes(text: bytes) -> int:
    """How many bytes at the beginning end a UTF-8 character that the cut took the first bytes of."""
    for count, byte in enumerate(text[:3]):
        if byte & 0xC0 != 0x80:
            return count
    return min(len(text), 3)
