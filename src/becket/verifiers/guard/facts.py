"""One protected fact of a manifest: a section, a script, a target."""

from __future__ import annotations

from dataclasses import dataclass

from becket.contract.base import Json
from becket.contract.guard import GuardRule


@dataclass(frozen=True, slots=True)
class Fact:
    rule: GuardRule
    value: Json
    may_come: bool = False  # more of its kind is no loss: one more module to test


Facts = dict[str, Fact]
"""By the label that a refusal shows."""
