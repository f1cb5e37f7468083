"""What a commit says about itself: gates, guard and services count as base has them, never as the candidate does."""

from __future__ import annotations

from typing import Protocol

from becket.kernel.contract.config import Config


class Projects(Protocol):
    """becket.yaml, as committed and as it stands."""

    async def committed(self, sha: str) -> Config:
        """The file as committed in `sha`; of it only its `committed_keys` count.

        Raises ActionFailed (kind `not_configured`) where the commit has none or it does not load, with what to do.
        """
        ...

    def current(self) -> Config:
        """The working copy's: autonomy, people, agents and chat come from here."""
        ...
