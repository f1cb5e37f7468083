"""Notices to people on this machine: a line on a stream, a line in a file."""

from becket.adapters.notify.console import ConsoleNotice
from becket.adapters.notify.file import FileNotice

__all__ = ["ConsoleNotice", "FileNotice"]
