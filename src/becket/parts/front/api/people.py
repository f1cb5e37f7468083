"""What waits for people: approvals, handoffs, ready repairs."""

from __future__ import annotations

from becket.app import desk, proposals
from becket.app.record.shown import (
    ProposalShown,
    ProposedChange,
    QuestionShown,
    proposal_shown,
    proposed_change,
    question_shown,
)
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.handoff import UNSETTLED, Approval, Handoff, HandoffState
from becket.kernel.contract.run import Started
from becket.parts.front.api.asks import Accept, Approve, Decline, Nothing, OfRun, Remarked
from becket.parts.front.asked import Asked


async def list_approvals(asked: Asked, given: OfRun) -> tuple[Approval, ...]:
    store = asked.app.store
    if given.run is None:
        return await store.approvals(open_only=True)
    return await store.approvals((await store.get_run(given.run)).run_id)


async def show_approval(asked: Asked, given: Nothing) -> QuestionShown:
    return await question_shown(asked.app, asked.params["approval"])


async def approve(asked: Asked, given: Approve) -> Approval:
    return await desk.decide(asked.app, asked.caller(), asked.params["approval"], True, given.about, given.note)


async def deny(asked: Asked, given: Remarked) -> Approval:
    return await desk.decide(asked.app, asked.caller(), asked.params["approval"], False, None, given.note)


async def revoke_approval(asked: Asked, given: Remarked) -> Approval:
    return await desk.revoke(asked.app, asked.caller(), asked.params["approval"], given.note)


async def list_handoffs(asked: Asked, given: OfRun) -> tuple[Handoff, ...]:
    store = asked.app.store
    if given.run is None:
        return await store.handoffs(UNSETTLED)
    return await store.handoffs(run_id=(await store.get_run(given.run)).run_id)


async def show_handoff(asked: Asked, given: Nothing) -> Handoff:
    return await asked.app.store.get_handoff(asked.params["handoff"])


async def take_handoff(asked: Asked, given: Remarked) -> Handoff:
    return await _change(asked, HandoffState.taken, given)


async def settle_handoff(asked: Asked, given: Remarked) -> Handoff:
    return await _change(asked, HandoffState.done, given)


async def _change(asked: Asked, state: HandoffState, given: Remarked) -> Handoff:
    return await desk.change_handoff(asked.app, asked.caller(), asked.params["handoff"], state, given.note)


async def list_proposals(asked: Asked, given: Nothing) -> tuple[ProposalShown, ...]:
    return tuple(map(proposal_shown, await proposals.all_open(asked.app)))


async def show_proposal(asked: Asked, given: Nothing) -> ProposedChange:
    return await proposed_change(asked.app, asked.params["run"])


async def accept_proposal(asked: Asked, given: Accept) -> Started:
    one = await proposals.find(asked.app, asked.params["run"])
    if not one.sha.startswith(given.sha):
        raise UsageError(f"the ready repair is {one.sha[:12]} and not {given.sha[:12]}: look at it again")
    return (await proposals.accept(asked.app, asked.caller(), one.handoff.handoff_id, given.note))[1]


async def decline_proposal(asked: Asked, given: Decline) -> ProposalShown:
    return proposal_shown(await proposals.decline(asked.app, asked.caller(), asked.params["run"], given.why))
