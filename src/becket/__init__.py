"""Becket runs closed engineering loops over a repository: agents claim, Becket proves."""

__version__ = "0.1.0"
