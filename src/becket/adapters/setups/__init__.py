"""Set-ups kept in the state folder, each built in the place where it stays."""

from becket.adapters.setups.cached import CachedSetups

__all__ = ["CachedSetups"]
