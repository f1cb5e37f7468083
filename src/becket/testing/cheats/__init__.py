"""Scripted agents that really misbehave, and others that do honest work, played through the heal loop.

from becket.testing.cheats import CASES, run_cases
assert run_cases(CASES).ok
"""

from becket.testing.cheats.book import CASES, find
from becket.testing.cheats.case import By, Case, Caught, Kind
from becket.testing.cheats.deeds_generated import generated_cases
from becket.testing.cheats.play import End, Played
from becket.testing.cheats.runner import HONEST_BAR, PLAIN_BAR, Figures, run_cases, sandbox_holds

__all__ = [
    "CASES",
    "HONEST_BAR",
    "PLAIN_BAR",
    "By",
    "Case",
    "Caught",
    "End",
    "Figures",
    "Kind",
    "Played",
    "find",
    "generated_cases",
    "run_cases",
    "sandbox_holds",
]
