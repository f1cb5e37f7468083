"""What loops do, shared by all of them; one file per theme, registered by entry point."""
