"""What the kernel itself brings: actions and verifiers that need no part."""

from __future__ import annotations

from becket.kernel.contract.part import Part

PART = Part(
    name="kernel",
    actions=(
        "becket.kernel.actions.approval:ACTIONS", "becket.kernel.actions.candidate:ACTIONS",
        "becket.kernel.actions.git:ACTIONS", "becket.kernel.actions.runs:ACTIONS",
    ),
    verifiers=("becket.kernel.verifiers.git:VERIFIERS", "becket.kernel.verifiers.record:VERIFIERS"),
)  # fmt: skip
