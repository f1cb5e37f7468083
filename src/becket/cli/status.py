"""`becket status` with its help and its complaints; the front desk goes straight to `glance` where it can."""

from __future__ import annotations

from becket.cli.glance import glance
from becket.cli.shape import AsJson


def status(as_json: AsJson = False) -> None:
    """Show what runs, what waits for whom, and what is wrong."""
    glance(as_json)
