"""Read models of runs and of the repository's state, rendered from records."""
