"""Public fakes and helpers for people who write loops, actions and adapters."""
