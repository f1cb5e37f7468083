"""Cheats that are put together rather than listed: a power, a way to get at it, and a place for it, by a seed.

Start reading at `generate.py`. What is made here is only ever run in scratch trees, and reaches for nothing real.
"""
