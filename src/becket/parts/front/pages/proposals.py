"""Ready repairs: which there are, why each may be believed, and its diff, of which people can say something."""

from __future__ import annotations

from becket.app.proposals import Proposal, by_hand, elsewhere, lines, listed, standing, taken_by
from becket.app.record.belief import Belief, read_belief
from becket.app.record.patch import Patch
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.handoff import UNSETTLED, HandoffState
from becket.kernel.contract.ready import ACCEPT, CHANGES
from becket.parts.front.asked import Asked
from becket.parts.front.comments import comments
from becket.parts.front.routes import Page

MOST = 100
MOST_KEPT = 20
_KNOWN: dict[tuple[str, str, str], tuple[Patch | None, Belief]] = {}


async def proposals(asked: Asked) -> Page:
    return Page("proposals.html", {"found": await listed(asked.app, MOST), "most": MOST})


async def proposal(asked: Asked) -> Page:
    """One that is settled is shown, too, without what could be decided about it."""
    app = asked.app
    one = await standing(app, await asked.run_id())
    is_open, is_changing = one.handoff.state in UNSETTLED, one.handoff.state is HandoffState.changing
    at_work = await taken_by(app, one, CHANGES if is_changing else ACCEPT) if is_open else None
    patch, belief = await _lasting(asked, one)
    data = {
        "one": one, "item": one.handoff, "patch": patch, "belief": belief, "is_open": is_open,
        "is_changing": is_changing, "at_work": at_work.run.run_id if at_work and at_work.run else "",
        "comments": await asked.tables.read(comments, one.run.run_id), "at": asked.query.get("comment", "")[:500],
        "note": asked.query.get("note", "")[:2000],
        "may_decide": asked.who.may("approver"), "elsewhere": "" if one.held else elsewhere(one),
        "by_hand": by_hand(one),
    }  # fmt: skip
    return Page("proposal.html", data)


async def _lasting(asked: Asked, one: Proposal) -> tuple[Patch | None, Belief]:
    """What never changes any more is read once. A commit that git has forgotten has no diff."""
    key = (str(asked.app.state.folder), one.run.run_id, one.sha)
    if key not in _KNOWN:
        try:
            patch = await lines(asked.app, one)
        except BecketError:
            patch = None
        belief = await read_belief(asked.app, one.run.run_id, one.sha)
        while len(_KNOWN) >= MOST_KEPT:
            _KNOWN.pop(next(iter(_KNOWN)))
        _KNOWN[key] = (patch, belief)
    return _KNOWN[key]
