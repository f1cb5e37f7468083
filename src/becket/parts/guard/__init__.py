"""The guard: checks what a change touches and what it newly can do, before it may be proven."""
