"""Promotion: main moves to exactly the proven commit; ready repairs, and the remote."""
