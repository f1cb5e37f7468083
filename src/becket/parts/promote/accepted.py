"""The ready repairs that people accepted, from the journal alone."""

from __future__ import annotations

from becket.app.proposals import proof_of
from becket.kernel.contract.errors import ActionFailed
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.proposal import AcceptedProposal, AskedChanges
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.store import Store

WAITED = "candidate.smoke_waits"


class JournalProposals:
    """The port's answer, from the journal alone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def accepted(self, run_id: str) -> AcceptedProposal:
        said = [one for one in await self._store.handoffs((HandoffState.accepted,), run_id) if one.reason in REASONS]
        if not said:
            raise ActionFailed(
                f"nobody accepted a ready repair of {run_id}; `becket proposals list` shows what there is",
                kind="not_accepted",
            )
        sha = str(said[0].evidence.get("candidate", ""))
        proof = await proof_of(self._store, run_id, sha)
        return AcceptedProposal(
            **await self._candidate(run_id, sha),
            proof=proof,
            by=said[0].taken_by or "",
            whole=await self._whole(run_id, sha),
        )

    async def changes(self, run_id: str) -> AskedChanges:
        said = [one for one in await self._store.handoffs((HandoffState.changing,), run_id) if one.reason in REASONS]
        if not said:
            raise ActionFailed(
                f"nobody asks for changes of a ready repair of {run_id} any more; `becket proposals list` shows what "
                "there is",
                kind="not_asked",
            )
        sha, base = (str(said[0].evidence.get(name, "")) for name in ("candidate", "base"))
        return AskedChanges(sha=sha, parent=base, text=said[0].note, by=said[0].taken_by or "")

    async def declined(self, base: str) -> tuple[str, ...]:
        said = [one for one in await self._store.handoffs((HandoffState.declined,)) if one.reason in REASONS]
        return tuple(str(one.evidence.get("candidate")) for one in said if one.evidence.get("base") == base)

    async def _whole(self, run_id: str, sha: str) -> bool:
        conditions = [item for step in await self._store.steps(run_id) for item in step.conditions]
        return not any(item.ref == WAITED and item.evidence.get("sha") == sha for item in conditions)

    async def _candidate(self, run_id: str, sha: str) -> dict[str, str]:
        for item in await self._store.conditions(run_id):
            if item.ref == "candidate.exists" and item.evidence.get("sha") == sha:
                return {key: str(item.evidence[key]) for key in ("sha", "parent", "tree", "kind")}
        raise ActionFailed(f"{run_id} does not say what its repair {sha[:12]} stands on", kind="not_proven")
