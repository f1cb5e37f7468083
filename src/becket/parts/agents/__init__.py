"""Coding agents: called in a sandbox within budgets, judged by what they changed and never by what they say."""
