"""Named crash points: where a kill -9 is worth a test.

A point is declared once, at import, and called at the line it names. Outside tests a call costs one attribute
look-up. `BECKET_CRASH_AT=name` or `name@3` kills the process at the (third) hit; `becket.testing` can install a
hook of its own instead.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

ENV = "BECKET_CRASH_AT"

_points: dict[str, CrashPoint] = {}
_hook: Callable[[str], None] | None = None


class CrashPoint:
    """Call it at the line where a crash must lose nothing."""

    __slots__ = ("name", "why")

    def __init__(self, name: str, why: str) -> None:
        if name in _points:
            raise ValueError(f"crash point {name!r} is declared twice")
        self.name = name
        self.why = why
        _points[name] = self

    def __call__(self) -> None:
        if _hook is not None:
            _hook(self.name)


def points() -> dict[str, CrashPoint]:
    """Every point declared by the modules imported so far."""
    return dict(_points)


def install(hook: Callable[[str], None] | None) -> None:
    """Replace what a hit does; None makes every point silent again."""
    global _hook  # noqa: PLW0603  # one hook per process is the point
    _hook = hook


class KillAt:
    """Kill this process, by its own id, at the nth hit of one point."""

    def __init__(self, spec: str) -> None:
        name, _, nth = spec.partition("@")
        self.name, self.left = name, int(nth or 1)

    def __call__(self, name: str) -> None:
        if name == self.name:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


if _spec := os.environ.get(ENV):
    install(KillAt(_spec))
