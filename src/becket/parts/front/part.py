"""The front: pages, decisions, an API and an ingress, served by a process of its own."""

from __future__ import annotations

from becket.kernel.contract.part import OPERATIONS, PEOPLE, Part, Verb

PART = Part(
    name="front",
    needs=("services", "agents"),
    sections={"web": "becket.parts.front.section:WebConfig"},
    tables="becket.parts.front.tables:TABLES",
    watched="becket.parts.front.kept:KeptFront",
    checks={"web": "becket.parts.front.checks:web"},
    greeting="becket.parts.front.kept:greeting",
    secrets="becket.parts.front.section:secrets",
    verbs=(
        Verb("open", "becket.parts.front.verbs:open_page", "Open the page, logged in.", PEOPLE, 130),
        Verb(
            "user",
            "becket.parts.front.verbs:user",
            "Add, list and remove who may log in.",
            PEOPLE,
            230,
        ),
        Verb("token", "becket.parts.front.verbs:token", "Make, list and revoke tokens for the API.", OPERATIONS, 310),
        Verb(
            "mcp",
            "becket.parts.front.verbs:mcp",
            "Serve the Model Context Protocol on standard input and output, for an editor or an agent.",
            OPERATIONS,
            320,
        ),
        Verb("front", "becket.parts.front.verbs:front", "Be the process that serves the page."),
    ),
)
