"""`becket status` with its help and its complaints; the front desk goes straight to `show_status` where it can."""

from __future__ import annotations

from becket.cli.shape import AsJson
from becket.cli.status_screen import show_status


def status(as_json: AsJson = False) -> None:
    """Show what runs, what waits for whom, and what is wrong."""
    show_status(as_json)
