"""What it means to trust every class of change, in so many words. For the quick verbs: standard library only."""

from __future__ import annotations

from collections.abc import Mapping

ALL_TRUSTED = "guard.promote is powerful: the tests alone decide; nobody looks at what a change can do"


def trust_of(settings: Mapping[str, object]) -> str:
    """The words, where becket.yaml as a mapping says so; else nothing."""
    guard = settings.get("guard")
    return trust_words(guard.get("promote")) if isinstance(guard, dict) else ""


def trust_words(promote: object) -> str:
    return ALL_TRUSTED if promote == "powerful" else ""
