"""A proof's records must support each other, even where nobody touched a seal (L22)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from becket.app.record.proofs import check_proofs, part_digest
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Step, StepState
from becket.kernel.contract.spec import Phase

BASE, CANDIDATE = "a" * 40, "b" * 40


def gate(commit: str, color: str) -> Receipt:
    return Receipt(kind="gate", body={"gate": "fast", "step": "unit", "commit": commit, "color": color})


RED, GREEN = gate(BASE, "red"), gate(CANDIDATE, "green")


def verdict(commit: str, color: str, steps: dict[str, str], **more: Any) -> Receipt:
    body = {"of": "x", "gate": "fast", "commit": commit, "color": color, "steps": steps, "verdict": f"v-{color}"}
    return Receipt(kind="verdict", body=body | more)


def crossing(says: str = "crossed", **more: Any) -> Receipt:
    row = {"step": "unit", "parent": RED.digest, "child": GREEN.digest, "against": []} | more
    return Receipt(kind="crossing", body={"base": BASE, "candidate": CANDIDATE, "crossings": [row], "says": says})


def held_out(says: str = "holdout_passed", **more: Any) -> Receipt:
    row = {"digest": "d", "oracle": [0, 0], "parent": [1], "candidate": [0, 0]} | more
    return Receipt(kind="holdout", body={"candidate": CANDIDATE, "checks": {"check_1.py": row}, "says": says})


def proof(**more: Any) -> Receipt:
    parts = {"crossing": part_digest(crossing()), "holdout": part_digest(held_out()), "guard": "g"}
    body = {"candidate": CANDIDATE, "gates": {"fast": "v-green"}, "parts": parts, "says": "proven", "against": []}
    return Receipt(kind="proof", body=body | more)


BEFORE, AFTER = verdict(BASE, "red", {"unit": RED.digest}), verdict(CANDIDATE, "green", {"unit": GREEN.digest})
WHOLE = {
    "red": RED,
    "green": GREEN,
    "before": BEFORE,
    "crossing": crossing(),
    "held_out": held_out(),
    "after": AFTER,
    "proof": proof(),
}


def found(
    receipts: dict[str, Receipt], elsewhere: dict[str, tuple[Receipt, ...]] | None = None
) -> dict[str, list[str]]:
    """What is wrong, by the kind of receipt."""

    async def other(run_id: str) -> tuple[StoredReceipt, ...] | None:
        known = (elsewhere or {}).get(run_id)
        return None if known is None else tuple(map(stored, known))

    shown = [part_digest(crossing()), part_digest(held_out()), "g"]
    steps = tuple(
        Step(
            run_id="run_1", iteration=1, phase=Phase.verify, id=f"s{number}", state=StepState.done,
            outputs={"digest": digest}, started_at=0, ended_at=0,
        )
        for number, digest in enumerate(shown)
    )  # fmt: skip
    findings = asyncio.run(check_proofs(tuple(map(stored, receipts.values())), steps, other))
    return {item.kind: list(item.troubles) for item in findings if item.troubles}


def stored(receipt: Receipt) -> StoredReceipt:
    return StoredReceipt(
        digest=receipt.digest, receipt=receipt, run_id="run_1", iteration=1, phase="verify", action_id="x",
        started_at=0, ended_at=0,
    )  # fmt: skip


def test_a_whole_proof_holds_and_every_kind_was_looked_at() -> None:
    assert found(WHOLE) == {}


def without(name: str) -> dict[str, Receipt]:
    return {key: value for key, value in WHOLE.items() if key != name}


TROUBLES: dict[str, tuple[dict[str, Receipt], str, str]] = {
    "a step's receipt is gone": (without("green"), "verdict", "there is no receipt"),
    "the child's receipt is gone": (without("green"), "crossing", "there is no receipt"),
    "a verdict without steps": (WHOLE | {"after": verdict(CANDIDATE, "green", {})}, "verdict", "names no step"),
    "a green verdict of a red step": (
        WHOLE | {"after": verdict(BASE, "green", {"unit": RED.digest})}, "verdict", "is green and its receipt is red",
    ),
    "a receipt about another commit": (
        WHOLE | {"after": verdict("c" * 40, "green", {"unit": GREEN.digest})}, "verdict", "its receipt is about",
    ),
    "the parent was never red": (without("before"), "crossing", "no verdict that is not green"),
    "crossed with a red child": (
        WHOLE | {"crossing": crossing(child=RED.digest)}, "crossing", "crossed, and its receipt is red",
    ),
    "crossed in spite of an objection": (
        WHOLE | {"crossing": crossing(against=["test_a is gone"])}, "crossing", "in spite of: test_a is gone",
    ),
    "nothing crossed": (
        WHOLE | {"crossing": Receipt(kind="crossing", body={"says": "crossed", "crossings": []})}, "crossing",
        "nothing crossed",
    ),
    "a proof of nothing": (WHOLE | {"proof": proof(gates={})}, "proof", "no gate has judged it"),
    "a proof without its verdict": (without("after"), "proof", "no green verdict"),
    "a proof by a verdict on another commit": (WHOLE | {"proof": proof(candidate=BASE)}, "proof", "no green verdict"),
    "a part that nobody has shown": (WHOLE | {"proof": proof(parts={"guard": "x"})}, "proof", "no step has shown x"),
    "a crossing that is gone": (without("crossing"), "proof", "no receipt has the digest"),
    "a hold-out that is gone": (without("held_out"), "proof", "no receipt has the digest"),
    "a check that fails on the candidate": (
        WHOLE | {"held_out": held_out(candidate=[0, 1])}, "holdout", "check_1.py: it passed, and ended with 0, 1",
    ),
    "a check that never met the candidate": (
        WHOLE | {"held_out": held_out(candidate=[])}, "holdout", "ended with nothing on the candidate",
    ),
    "a check that was wrong before": (
        WHOLE | {"held_out": held_out(oracle=["timeout"])}, "holdout", "ended with timeout on the oracle",
    ),
    "checks that say nothing": (
        WHOLE | {"held_out": held_out(parent=[0])}, "holdout", "no check failed on the parent",
    ),
    "proven in spite of an objection": (WHOLE | {"proof": proof(against=["lost a test"])}, "proof", "lost a test"),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLES)
def test_an_incoherent_proof_is_found(name: str) -> None:
    receipts, kind, said = TROUBLES[name]
    assert [text for text in found(receipts)[kind] if said in text], found(receipts)


def test_a_step_that_another_run_proved_is_looked_up_there() -> None:
    reused = without("green") | {"after": verdict(CANDIDATE, "green", {"unit": GREEN.digest}, reused={"unit": "run_0"})}
    assert "verdict" not in found(reused, {"run_0": (GREEN,)})
    assert found(reused)["verdict"] == ["unit: run_0, which proved it, is gone"]
    other = Receipt(kind="gate", body=GREEN.body | {"step": "lint"})
    swapped = reused | {"after": verdict(CANDIDATE, "green", {"unit": other.digest}, reused={"unit": "run_0"})}
    assert found(swapped, {"run_0": (other,)})["verdict"] == ["unit: its receipt is about fast/lint"]
    assert found(reused, {"run_0": (RED,)})["verdict"] == [f"unit: run_0 has no receipt {GREEN.digest[:12]}"]


def test_a_red_verdict_may_have_another_cause_than_its_step() -> None:
    """L17: a step that changed tracked files is red although it ended well."""
    spoiled = gate(BASE, "green")
    assert found({"gate": spoiled, "verdict": verdict(BASE, "red", {"unit": spoiled.digest})}) == {}
