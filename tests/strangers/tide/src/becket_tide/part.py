"""What it brings. Nothing is imported before it is needed."""

from __future__ import annotations

from becket.kernel.contract.part import LOOPS, Chore, Part, Verb

PART = Part(
    name="tide",
    needs=("notify",),
    sections={"tide": "becket_tide.section:TideConfig"},
    actions=("becket_tide.actions:ACTIONS",),
    verifiers=("becket_tide.actions:VERIFIERS",),
    loops={"tide": "becket_tide"},
    effects="becket_tide.outside:effects",
    ports="becket_tide.outside:ports",
    residents=("becket_tide.outside:keep_watch",),
    chores=(Chore("becket_tide.outside:write_down", 3600.0),),
    checks={"tide": "becket_tide.checks:tide"},
    verbs=(Verb("tide", "becket_tide.verbs:tide", "Say how high the tide is.", LOOPS),),
    tables="becket_tide.marks:TABLES",
    secrets="becket_tide.section:secrets",
    evidence="becket_tide.marks:evidence",
)
