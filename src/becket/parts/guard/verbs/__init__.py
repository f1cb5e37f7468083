"""What the command line does with it."""
