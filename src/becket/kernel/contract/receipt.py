"""Receipts: content-addressed proofs that only the runtime makes."""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.base import Json, Record, digest_of

SETUP = "setup"
"""The kind of a receipt for a set-up that was built, or that failed."""


class Receipt(Record):
    """What was run, on what, and how it ended. Its name is the digest of everything but the times.

    Two runs of the same command on the same tree that end alike have the same receipt.
    """

    kind: str  # command | git | http | verifier ...
    command: tuple[str, ...] = ()
    tree: str | None = None  # git tree or commit the command ran on
    environment: str | None = None  # digest of what else could change the result
    exit_code: int | None = None
    log: str | None = None  # artifact digest
    body: dict[str, Json] = Field(default_factory=dict)

    @property
    def digest(self) -> str:
        return digest_of(self.model_dump(mode="json"))


class StoredReceipt(Record):
    digest: str
    receipt: Receipt
    run_id: str
    iteration: int
    phase: str
    action_id: str
    started_at: float
    ended_at: float
