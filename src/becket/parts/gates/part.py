"""Gates: runs the test steps of becket.yaml on exact commits, judges and caches the results; set-ups, reports."""

from __future__ import annotations

from becket.kernel.contract.part import BEGIN, OPERATIONS, Chore, Part, Verb

PART = Part(
    name="gates",
    actions=(
        "becket.parts.gates.actions.culprit:ACTIONS",
        "becket.parts.gates.actions.ever_green:ACTIONS",
        "becket.parts.gates.actions.gate:ACTIONS",
        "becket.parts.gates.actions.trial:ACTIONS",
    ),
    loops={"trial": "becket.parts.gates.trial_loop"},
    sections={"gates": "becket.parts.gates.section:GATES", "setup": "becket.parts.gates.section:SET_UP"},
    checks={"gates": "becket.parts.gates.checks:gates", "tools": "becket.parts.gates.checks:tools"},
    ports="becket.parts.gates.provides:ports",
    chores=(Chore("becket.parts.gates.provides:sweep_setups", 3600.0),),
    verbs=(
        Verb("gates", "becket.parts.gates.verbs.gates:gates", "List the gates' steps, and try them once.", BEGIN, 40),
        Verb(
            "shell",
            "becket.parts.gates.verbs.shell:shell",
            "Open a shell on a clean tree of a commit, as a gate's step would see it.",
            BEGIN,
            50,
        ),
        Verb(
            "worktree",
            "becket.parts.gates.verbs.worktree:worktree",
            "Make or reset the test tree `.worktrees/base`.",
            OPERATIONS,
            310,
        ),
    ),
)
