"""Do a run's proofs hang together? Verdicts name receipts that exist, crossings and proofs name parts that were shown.

The seals say that nobody changed a record; these checks say that the records support each other.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.run import Step

GATE, VERDICT, CROSSING, HOLDOUT, PROOF = "gate", "verdict", "crossing", "holdout", "proof"

Elsewhere = Callable[[str], Awaitable[tuple[StoredReceipt, ...] | None]]
"""The receipts of another run by its id; None if there is no such run any more."""


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """What one receipt of a proof is worth. Without trouble it holds."""

    digest: str
    kind: str
    about: str
    troubles: tuple[str, ...]


async def check_proofs(
    receipts: tuple[StoredReceipt, ...], steps: tuple[Step, ...], elsewhere: Elsewhere
) -> tuple[ProofFinding, ...]:
    book = _Book(receipts, steps, elsewhere)
    found = []
    for item in receipts:
        if item.receipt.kind == VERDICT:
            found.append(
                ProofFinding(item.digest, VERDICT, _about_verdict(item.receipt), await book.verdict(item.receipt))
            )
        elif item.receipt.kind == CROSSING:
            found.append(ProofFinding(item.digest, CROSSING, _about(item.receipt), tuple(book.crossing(item.receipt))))
        elif item.receipt.kind == HOLDOUT:
            found.append(ProofFinding(item.digest, HOLDOUT, _about(item.receipt), tuple(_holdout(item.receipt.body))))
        elif item.receipt.kind == PROOF:
            found.append(ProofFinding(item.digest, PROOF, _about(item.receipt), tuple(book.proof(item.receipt))))
    return tuple(found)


def _about_verdict(receipt: Receipt) -> str:
    body = receipt.body
    return f"{body.get('gate')} is {body.get('color')} at {str(body.get('commit'))[:12]}"


def _about(receipt: Receipt) -> str:
    return f"{receipt.body.get('says')}: {str(receipt.body.get('candidate'))[:12]}"


class _Book:
    """Everything a run's proofs may refer to."""

    def __init__(self, receipts: tuple[StoredReceipt, ...], steps: tuple[Step, ...], elsewhere: Elsewhere) -> None:
        self._gates = {item.digest: item.receipt for item in receipts if item.receipt.kind == GATE}
        self._verdicts = [item.receipt for item in receipts if item.receipt.kind == VERDICT]
        self._parts = {
            kind: {part_digest(item.receipt) for item in receipts if item.receipt.kind == kind}
            for kind in (CROSSING, HOLDOUT)
        }
        self._shown = {str(step.outputs.get("digest")) for step in steps if step.outputs.get("digest")}
        self._elsewhere = elsewhere

    async def verdict(self, receipt: Receipt) -> tuple[str, ...]:
        body = receipt.body
        named, reused = _mapping(body.get("steps")), _mapping(body.get("reused"))
        troubles = [] if named else ["it names no step"]
        for step, digest in named.items():
            if step in reused:
                troubles += await self._of_another(step, str(digest), str(reused[step]), body)
            else:
                troubles += self._own(step, str(digest), body, same_commit=True)
        return tuple(troubles)

    async def _of_another(self, step: str, digest: str, run_id: str, body: Mapping[str, Json]) -> list[str]:
        """A step that was proven before: by this run, or by one that still has the receipt."""
        if digest in self._gates:
            return list(self._own(step, digest, body, same_commit=False))
        others = await self._elsewhere(run_id)
        if others is None:
            return [f"{step}: {run_id}, which proved it, is gone"]
        known = {item.digest: item.receipt for item in others if item.receipt.kind == GATE}
        if digest not in known:
            return [f"{step}: {run_id} has no receipt {digest[:12]}"]
        about = (known[digest].body.get("gate"), known[digest].body.get("step"))
        if about != (body.get("gate"), step):
            return [f"{step}: its receipt is about {about[0]}/{about[1]}"]
        return list(_colored(step, known[digest], body))

    def _own(self, step: str, digest: str, body: Mapping[str, Json], *, same_commit: bool) -> Iterator[str]:
        gate = self._gates.get(digest)
        if gate is None:
            yield f"{step}: there is no receipt {digest[:12]}"
            return
        if same_commit and gate.body.get("commit") != body.get("commit"):
            yield f"{step}: its receipt is about {str(gate.body.get('commit'))[:12]}"
        yield from _colored(step, gate, body)

    def crossing(self, receipt: Receipt) -> Iterator[str]:
        body = receipt.body
        crossed, rows = body.get("says") == "crossed", body.get("crossings") or ()
        if crossed and not rows:
            yield "nothing crossed"
        for row in rows:
            step, parent, child = (str(row.get(key)) for key in ("step", "parent", "child"))
            for digest in (parent, child):
                if digest not in self._gates:
                    yield f"{step}: there is no receipt {digest[:12]}"
            if not self._was_red(parent, str(body.get("base"))):
                yield f"{step}: no verdict that is not green names {parent[:12]} of the parent"
            if crossed and child in self._gates and self._gates[child].body.get("color") != "green":
                yield f"{step}: it crossed, and its receipt is {self._gates[child].body.get('color')}"
            if crossed and row.get("against"):
                yield f"{step}: it crossed in spite of: {row['against'][0]}"

    def _was_red(self, digest: str, base: str) -> bool:
        return any(
            one.body.get("commit") == base
            and one.body.get("color") != "green"
            and digest in _mapping(one.body.get("steps")).values()
            for one in self._verdicts
        )

    def proof(self, receipt: Receipt) -> Iterator[str]:
        body = receipt.body
        proven = body.get("says") == "proven"
        gates, parts = _mapping(body.get("gates")), _mapping(body.get("parts"))
        if proven and not gates:
            yield "no gate has judged it"
        for gate, digest in gates.items():
            if not any(self._judged(one, gate, str(digest), body, proven) for one in self._verdicts):
                yield f"{gate}: no {'green ' if proven else ''}verdict {str(digest)[:12]} on this candidate"
        for name, digest in parts.items():
            if str(digest) not in self._shown:
                yield f"{name}: no step has shown {str(digest)[:12]}"
            elif name in self._parts and str(digest) not in self._parts[name]:
                yield f"{name}: no receipt has the digest {str(digest)[:12]}"
        if proven and body.get("against"):
            yield f"it is proven in spite of: {body['against'][0]}"

    def _judged(self, one: Receipt, gate: str, digest: str, body: Mapping[str, Json], proven: bool) -> bool:
        about = (one.body.get("gate"), one.body.get("verdict"), one.body.get("commit"))
        return about == (gate, digest, body.get("candidate")) and (not proven or one.body.get("color") == "green")


def _holdout(body: Mapping[str, Json]) -> Iterator[str]:
    """It passed only if checks were right on the oracle and on the candidate, and one of them failed in between."""
    rows = _mapping(body.get("checks"))
    if body.get("says") != "holdout_passed":
        return
    for name, row in rows.items():
        for place in ("oracle", "candidate"):
            ends = _mapping(row).get(place) or ("nothing",)
            if any(end != 0 for end in ends):
                yield f"{name}: it passed, and ended with {', '.join(map(str, ends))} on the {place}"
    if not any(end != 0 for row in rows.values() for end in _mapping(row).get("parent") or ()):
        yield "no check failed on the parent"


def part_digest(receipt: Receipt) -> str:
    """As a crossing and a hold-out make it themselves: of what was tried, not of what came out."""
    return digest_of({name: value for name, value in receipt.body.items() if name != "says"})


def _colored(step: str, gate: Receipt, body: Mapping[str, Json]) -> Iterator[str]:
    """A green verdict needs green steps; a red one may have another cause, such as files that a step changed."""
    if body.get("color") == "green" and gate.body.get("color") != "green":
        yield f"{step}: the verdict is green and its receipt is {gate.body.get('color')}"


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
