"""Small stories to tell: records as the journal would hold them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

from rich.console import Console, RenderableType

from becket.app.record.story import Story
from becket.kernel.contract.base import Json
from becket.kernel.contract.condition import Condition
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Run, RunStatus, Step, StepState, Subject
from becket.kernel.contract.spec import LoopSpec, Phase

BEGAN = 1_700_000_000.0
LOG = "3fa2c91a" + "0" * 56

SPEC = LoopSpec.model_validate(
    {
        "version": 1,
        "loop_id": "heal",
        "goal": "The head of main is green.",
        "trigger": [{"manual": {}}],
        "max_iterations": 2,
        "deadline": "1h",
        "stop_conditions": ["good.pass"],
        "wait_conditions": {"main_dirty": {"wake": "worktree_changed", "for": "1d"}},
        "phases": {
            "discover": {
                "objective": "Know whether it is green.",
                "actions": [{"id": "base", "uses": "git.read_base"}, {"id": "tests", "run": "make test"}],
            },
            "act": {
                "objective": "One smallest change.",
                "actions": [{"id": "fix", "run": "./fix", "when": "base.red"}],
                "persist_outputs": ["fix.patch"],
            },
            "verify": {"objective": "See it.", "verifiers": [{"id": "good", "run": "make test"}]},
        },
    }
)


def run(**changed: Any) -> Run:
    known: dict[str, Any] = {
        "run_id": "run_1", "loop_id": "heal", "subject": Subject(name="main@" + "a" * 40), "status": RunStatus.running,
        "segment": 1, "epoch": 1, "iteration": 1, "counted": 1, "spec_digest": "s", "inputs": {}, "trigger": "manual",
        "group": None, "dry_run": False, "held": False, "cancel_asked": False, "autonomy": None, "parent": None,
        "retry_of": None, "chain": 0, "reason": "", "detail": {}, "waiting_on": (), "waits_since": {},
        "wall_used": 0.0, "worker": None, "by": "ann", "created_at": BEGAN, "updated_at": BEGAN,
        "deadline_at": BEGAN + 3600, "ended_at": None, "event_count": 0, "head": "",
    }  # fmt: skip
    return Run(**known | changed)


def step(phase: str, id_: str, seconds: float = 0.5, state: StepState = StepState.done, **changed: Any) -> Step:
    known: dict[str, Any] = {"run_id": "run_1", "iteration": 1, "started_at": BEGAN, "ended_at": BEGAN + seconds}
    return Step(phase=Phase(phase), id=id_, state=state, **known | changed)


def condition(ref: str, **evidence: Json) -> Condition:
    object_, _, name = ref.rpartition(".")
    return Condition(object=object_ or "run", name=name, evidence=evidence)


def verifier(id_: str, says: str, **evidence: Json) -> Step:
    raised = [condition(f"{id_}.{says}", **evidence)]
    good = says == "pass"
    if not good:
        raised.append(condition("verifier_failed", **evidence))
    return step(
        "verify", id_, 1.25, StepState.done if good else StepState.failed, outputs={"says": says},
        conditions=tuple(raised), error_kind="" if good else says, error="" if good else str(evidence.get("said", "")),
    )  # fmt: skip


def decision(outcome: str, reason: str) -> Step:
    return step("decide", "@decision", 0.0, outputs={"outcome": outcome, "reason": reason, "detail": {}})


def receipt(action_id: str, exit_code: int) -> StoredReceipt:
    made = Receipt(kind="command", command=("sh",), exit_code=exit_code, log=LOG)
    return StoredReceipt(
        digest=made.digest, receipt=made, run_id="run_1", iteration=1, phase="discover", action_id=action_id,
        started_at=BEGAN, ended_at=BEGAN + 2,
    )  # fmt: skip


RED = receipt("tests", 1)
TESTS = step(
    "discover", "tests", 2.0, conditions=(condition("base.red", exit_code=1, by="tests"),), receipts=(RED.digest,)
)


def story(*steps: Step, **changed: Any) -> Story:
    """A story of these steps; the conditions are those the steps raised."""
    raised = tuple(item for one in steps for item in one.conditions)
    whole = Story(run=run(), spec=SPEC, now=BEGAN + 3, steps=steps, conditions=raised, receipts=(RED,))
    return replace(whole, **changed)


def text_of(renderable: RenderableType, width: int = 78) -> str:
    out = io.StringIO()
    Console(file=out, width=width, no_color=True, highlight=False, markup=False, emoji=False).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())
