"""A ready repair: a proven commit that a person may take, and the yes of whoever did."""

from __future__ import annotations

from typing import Protocol

from becket.kernel.contract.base import Record


class AcceptedProposal(Record):
    """A ready repair that a person with the role said yes to. `proof` is the digest it was proven under; without
    `whole` its services waited for the yes, so that it is proven once more.
    """

    sha: str
    parent: str
    tree: str
    kind: str
    proof: str
    by: str
    whole: bool = True


class AskedChanges(Record):
    """A ready repair of which a person wants changes, and their words."""

    sha: str
    parent: str
    text: str
    by: str


class Proposals(Protocol):
    """What people said about ready repairs."""

    async def accepted(self, run_id: str) -> AcceptedProposal:
        """By the run that left it. Raises ActionFailed where nobody accepted it, or no proof of it is on record."""
        ...

    async def changes(self, run_id: str) -> AskedChanges:
        """By the run that left it. Raises ActionFailed where nobody asks for changes of it, or not any more."""
        ...

    async def declined(self, base: str) -> tuple[str, ...]:
        """The commits that were offered as repairs of this one, and that a person said no to."""
        ...
