"""Promotion: moves main to exactly the proven commit; ready repairs, and the remote."""
