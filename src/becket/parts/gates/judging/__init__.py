"""Running gates: proof trees, steps, their keys, and the search for why a step is red."""
