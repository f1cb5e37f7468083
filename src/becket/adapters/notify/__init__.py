"""Notices to people: the console, a file, a program of theirs."""

from becket.adapters.notify.command import CommandNotice
from becket.adapters.notify.console import ConsoleNotice
from becket.adapters.notify.file import FileNotice

__all__ = ["CommandNotice", "ConsoleNotice", "FileNotice"]
