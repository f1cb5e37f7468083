"""The guard: checks what a change touches and what it newly can do, before it may be proven."""

from __future__ import annotations

from becket.kernel.contract.part import BEGIN, LOOPS, Part, Verb

PART = Part(
    name="guard",
    needs=("gates",),
    actions=("becket.parts.guard.actions.guard:ACTIONS",),
    sections={"test_side": "becket.parts.guard.section:TEST_SIDE", "guard": "becket.parts.guard.section:GUARD"},
    checks={"trust": "becket.parts.guard.checks:trust", "patterns": "becket.parts.guard.checks:patterns"},
    verbs=(
        Verb(
            "tests",
            "becket.parts.guard.verbs.tests:list_tests",
            "List the files that count as tests, each with the reason.",
            BEGIN,
            60,
        ),
        Verb(
            "guard",
            "becket.parts.guard.verbs.guard:guard",
            "Say what a change newly can do, and what it would have to prove.",
            LOOPS,
            130,
        ),
    ),
)
