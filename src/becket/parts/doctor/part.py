"""`becket doctor`: finds what is wrong, and names the command that fixes it."""

from __future__ import annotations

from becket.kernel.contract.part import BEGIN, Part, Verb

PART = Part(
    name="doctor",
    needs=(
        "gates",
        "agents",
        "heal",
    ),
    verbs=(
        Verb(
            "doctor",
            "becket.parts.doctor.verbs:doctor",
            "Check machine, repository and configuration; say how to mend them.",
            BEGIN,
            20,
        ),
    ),
)
