"""`becket demo`: a bug in a running service is healed, without a key and without a network."""

from __future__ import annotations

from becket.kernel.contract.part import BEGIN, Part, Verb

PART = Part(
    name="demo",
    needs=("services",),
    verbs=(
        Verb(
            "demo",
            "becket.parts.demo.verbs:demo",
            "Watch a bug in a running service be healed: no key, no network.",
            BEGIN,
            30,
        ),
    ),
)
