"""A model server for tests: it speaks four vendors' wires, plays a script, and refuses what the real ones refuse."""

from becket.testing.model.exchange import WireName
from becket.testing.model.scripted import Request, ScriptedModel
from becket.testing.model.steps import (
    Call,
    Cut,
    Delay,
    Edit,
    Hang,
    Loop,
    Refuse,
    Say,
    Shell,
    Status,
    Step,
    Think,
    Together,
    Tokens,
    Truncate,
    Write,
)

__all__ = [
    "Call",
    "Cut",
    "Delay",
    "Edit",
    "Hang",
    "Loop",
    "Refuse",
    "Request",
    "Say",
    "ScriptedModel",
    "Shell",
    "Status",
    "Step",
    "Think",
    "Together",
    "Tokens",
    "Truncate",
    "WireName",
    "Write",
]
