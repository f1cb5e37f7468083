"""The heal loop: from a red commit to a proven, running main."""

from __future__ import annotations

from becket.kernel.contract.part import Part

PART = Part(
    name="heal",
    needs=(
        "gates",
        "guard",
        "agents",
    ),
    actions=(
        "becket.parts.heal.actions.cross:ACTIONS",
        "becket.parts.heal.actions.fix:ACTIONS",
        "becket.parts.heal.actions.heal:ACTIONS",
        "becket.parts.heal.actions.holdout:ACTIONS",
        "becket.parts.heal.actions.prove:ACTIONS",
    ),
    loops={"heal": "becket.parts.heal"},
)
