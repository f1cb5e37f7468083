"""Set-ups kept in the state folder, each built in the place where it stays."""

from becket.parts.gates.setups.cached import CachedSetups

__all__ = ["CachedSetups"]
