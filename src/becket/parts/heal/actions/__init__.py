"""What loops do with it."""
