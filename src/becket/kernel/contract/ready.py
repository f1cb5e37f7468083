"""The words for a ready repair. For the quick verbs too: standard library only."""

from __future__ import annotations

REASONS = ("repair_ready", "proposed")
"""Why a run that left one ended; older journals have the second word."""

SAID_NO = "declined"
"""How the note of a declined ready repair begins; what it is, its state says."""

ACCEPT = "accept"
"""The input of a loop that takes one to its branch: the run that left it."""

CHANGES = "changes"
"""The input of a loop that makes another one, as a person asked: the run that left it."""
