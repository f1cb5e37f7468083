"""The outside world: one folder per port, strangers to each other."""
