"""Public fakes and helpers for people who write loops, actions and adapters."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.testing.model import ScriptedModel as ScriptedModel

__all__ = ["ScriptedModel"]


def __getattr__(name: str) -> object:
    """Loaded when asked for: most users of this package need no HTTP server."""
    if name in __all__:
        from becket.testing import model

        return getattr(model, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
