"""The watchdog's memory of services, the line to it, and the effect that orders a release."""

from becket.adapters.service.book import SqliteBook
from becket.adapters.service.effect import ReleaseEffect
from becket.adapters.service.line import LineFailed, NobodyListens, WatchdogLine, ask, listening_socket

__all__ = ["LineFailed", "NobodyListens", "ReleaseEffect", "SqliteBook", "WatchdogLine", "ask", "listening_socket"]
