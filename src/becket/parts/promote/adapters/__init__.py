"""The outside of it."""
