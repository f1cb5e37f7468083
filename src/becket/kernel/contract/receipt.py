"""Receipts: content-addressed proofs that only the runtime makes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.base import Json, Record, digest_of
from becket.kernel.contract.run import Run

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


@dataclass(frozen=True, slots=True)
class Repeated:
    """`now` is None where the command did not end by itself, or could not be repeated; `trouble` then says why."""

    item: StoredReceipt
    now: int | None
    trouble: str = ""

    @property
    def same(self) -> bool:
        return not self.trouble and self.now == self.item.receipt.exit_code


class Repetition(Protocol):
    """Runs the commands of receipts once more, in fresh checkouts; `becket verify --rerun`."""

    async def repeat(self, run: Run, receipts: tuple[StoredReceipt, ...]) -> list[Repeated]:
        """In their order. A receipt that several steps have is repeated once for each."""
        ...

    def left_out(self, receipts: Iterable[StoredReceipt]) -> int:
        """How many cannot be repeated as they were: runs of chosen tests, whose receipts hold the whole command."""
        ...
