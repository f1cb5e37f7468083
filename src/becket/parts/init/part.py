"""`becket init`: detects a repository's build tools and proposes its first becket.yaml."""

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
