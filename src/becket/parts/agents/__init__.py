"""Agents: called, contained, budgeted, never believed."""
