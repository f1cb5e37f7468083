"""Hold-out checks: who writes them, what one is in each language, how they run. `actions/holdout.py` is the action."""
