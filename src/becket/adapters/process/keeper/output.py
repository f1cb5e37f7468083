"""The log of one child: a file that never grows beyond its cap and always ends with a whole character."""

import posix as os


class Output:
    """Takes what the child writes. Beyond the cap, bytes are dropped and the last line of the file says so."""

    __slots__ = ("_cap", "_file", "capped", "problem", "size")

    def __init__(self, file: int, cap: int) -> None:
        self._file = file
        self._cap = max(cap, 0)
        self.size = 0
        self.capped = False
        self.problem = ""

    def take(self, data: bytes) -> None:
        if self.capped:
            return
        room = self._cap - self.size
        try:
            self._append(data[:room])
            if len(data) > room:
                self._end_at_cap()
        except OSError as error:  # a full disk must not end the child: it ends the log
            self.capped = True
            self.problem = f"the output could not be written: {error.strerror}"

    def _append(self, data: bytes) -> None:
        while data:
            written = os.write(self._file, data)
            self.size += written
            data = data[written:]

    def _end_at_cap(self) -> None:
        self.capped = True
        notice = f"\n[becket: the output was capped at {self._cap} bytes, the rest is dropped]\n".encode()
        if len(notice) > self._cap:
            notice = b""
        keep = self._cap - len(notice)
        start = max(keep - 4, 0)
        keep -= broken_bytes(os.pread(self._file, keep - start, start))
        os.ftruncate(self._file, keep)
        os.pwrite(self._file, notice, keep)
        self.size = keep + len(notice)


def broken_bytes(tail: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character that the cut made incomplete."""
    for count, byte in enumerate(reversed(tail[-3:]), start=1):
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return count if count < needed else 0
        if byte < 0x80:
            break
    return 0
