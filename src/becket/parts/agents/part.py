"""Coding agents: called in a sandbox within budgets, judged by what they changed and never by what they say."""

from __future__ import annotations

from becket.kernel.contract.part import LOOPS, Part, Verb

PART = Part(
    name="agents",
    needs=("gates",),
    actions=(
        "becket.parts.agents.actions.agent:ACTIONS",
        "becket.parts.agents.once.actions:ACTIONS",
    ),
    loops={"once": "becket.parts.agents.once"},
    ports="becket.parts.agents.provides:ports",
    sections={"prices": "becket.parts.agents.section:PRICES"},
    secrets="becket.parts.agents.secrets:agent_secrets",
    checks={"agents": "becket.parts.agents.checks:agents"},
    verbs=(
        Verb(
            "agent",
            "becket.parts.agents.verbs.agent:agent",
            "Call an agent, watch it, talk to it, and see what agents used.",
            LOOPS,
            100,
        ),
    ),
)
