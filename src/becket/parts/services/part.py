"""Services: released, supervised and rolled back by the watchdog."""

from __future__ import annotations

from becket.kernel.contract.part import OPERATIONS, Part, Verb

PART = Part(
    name="services",
    needs=("guard",),
    actions=("becket.parts.services.actions:ACTIONS",),
    sections={"services": "becket.parts.services.section:SERVICES"},
    effects="becket.parts.services.provides:effects",
    ports="becket.parts.services.provides:ports",
    watched="becket.parts.services.services:Services",
    verbs=(
        Verb(
            "service",
            "becket.parts.services.verbs:service",
            "Start, stop, watch and build the services of becket.yaml.",
            OPERATIONS,
            290,
        ),
    ),
)
