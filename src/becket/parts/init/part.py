"""What `becket init` and `becket doctor` do: read a folder, propose a becket.yaml, say what is wrong and its cure."""

from __future__ import annotations

from becket.kernel.contract.part import BEGIN, Part, Verb

PART = Part(
    name="init",
    needs=(
        "gates",
        "doctor",
    ),
    verbs=(
        Verb(
            "init",
            "becket.parts.init.verbs:init",
            "Look at the repository, write a first becket.yaml and try it.",
            BEGIN,
            10,
        ),
    ),
)
