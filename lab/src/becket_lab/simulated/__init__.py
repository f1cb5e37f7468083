"""A modelled outside for the real engine: git, gates, agents and people in simulated time, for ten thousand events."""
