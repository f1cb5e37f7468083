"""Scripted agents that really misbehave, and others that do honest work, played through the heal loop.

from becket_lab.cheats import CASES, run_cases
assert run_cases(CASES).ok
"""

from becket_lab.cheats.book import CASES, find
from becket_lab.cheats.case import By, Case, Caught, Kind
from becket_lab.cheats.deeds_generated import generated_cases
from becket_lab.cheats.play import End, Played
from becket_lab.cheats.runner import HONEST_BAR, PLAIN_BAR, Figures, run_cases, sandbox_holds

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
