"""Why a ready repair may be believed: what the run that left it proved of exactly this commit."""

from __future__ import annotations

from dataclasses import dataclass

from becket.app.compose import App
from becket.app.record.report import model as report_model
from becket.app.record.report.collect import read_report


@dataclass(frozen=True, slots=True)
class Belief:
    guard: report_model.GuardFacts | None
    crossing: report_model.CrossingFacts | None
    gates: tuple[report_model.GateFacts, ...]
    holdout: report_model.HoldoutFacts | None
    proof: report_model.ProofFacts | None


async def read_belief(app: App, run_id: str, sha: str) -> Belief:
    """What is said of other commits counts for nothing. Raises NotFound."""
    report = await read_report(app, run_id)
    gates = {one.gate: one for one in report.gates if one.commit == sha}
    return Belief(
        guard=next((one for one in reversed(report.guards) if one.candidate == sha), None),
        crossing=next((one for one in reversed(report.crossings) if one.candidate == sha), None),
        gates=tuple(gates.values()),
        holdout=next((one for one in reversed(report.holdouts) if one.candidate == sha), None),
        proof=next((one for one in reversed(report.proofs) if one.candidate == sha), None),
    )
