"""The guard: what a change newly can do, and what it must not touch."""
