"""Promotion: moves main to exactly the proven commit; ready repairs, and the remote."""

from __future__ import annotations

from becket.kernel.contract.part import PEOPLE, Part, Verb

PART = Part(
    name="promote",
    actions=(
        "becket.parts.promote.actions.promote:ACTIONS",
        "becket.parts.promote.actions.remote:ACTIONS",
    ),
    sections={"remote": "becket.parts.promote.section:REMOTE"},
    checks={"remote": "becket.parts.promote.checks:remote"},
    effects="becket.parts.promote.provides:effects",
    ports="becket.parts.promote.provides:ports",
    recover="becket.parts.promote.provides:recover",
    residents=("becket.parts.promote.remote_desk:watch_remote",),
    verbs=(
        Verb(
            "proposals",
            "becket.parts.promote.verbs.proposals:proposals",
            "List, show, accept, change or decline ready repairs.",
            PEOPLE,
            190,
        ),
    ),
)
