"""What only a person or an outside system can finish, and what a person decides."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from becket.kernel.contract.base import Json, Record


class HandoffState(StrEnum):
    open = "open"
    taken = "taken"
    accepted = "accepted"  # a ready repair that a person said yes to; a run takes it to its branch
    changing = "changing"  # a ready repair that a person wants otherwise; a run makes the next attempt
    done = "done"
    declined = "declined"  # a ready repair that a person said no to: an answer about its subject
    expired = "expired"


UNSETTLED = (HandoffState.open, HandoffState.taken, HandoffState.accepted, HandoffState.changing)
"""Somebody has still to do something."""


BY_ITSELF = "becket"
"""Who closes a handoff that nobody has to."""

SETTLED = "settled: "
"""What its note begins with then."""


class Handoff(Record):
    """Everything that could be done here is done; the named owner has the rest."""

    handoff_id: str
    run_id: str
    loop_id: str
    subject: str
    owner: str
    reason: str  # the condition that ended the run
    evidence: dict[str, Json] = Field(default_factory=dict)
    next_step: str
    state: HandoffState = HandoffState.open
    taken_by: str | None = None
    note: str = ""
    created_at: float
    expires_at: float | None = None
    updated_at: float


class ApprovalState(StrEnum):
    asked = "asked"
    approved = "approved"
    denied = "denied"
    revoked = "revoked"
    expired = "expired"
    used = "used"


EXPIRED = "approval.expired"
"""The kind of failure of using an approval that was given, and came too late."""


class Approval(Record):
    """A person's decision about one exact thing.

    `bound_to` is the SHA or the text's hash; a decision for another text does not count. `used` approvals cannot be
    used again.
    """

    approval_id: str
    run_id: str
    question: str
    bound_to: str
    role: str
    state: ApprovalState = ApprovalState.asked
    asked_at: float
    expires_at: float
    decided_by: str | None = None
    decided_role: str | None = None
    decided_at: float | None = None
    note: str = ""
    used_by: str | None = None  # the effect key or action that used it
