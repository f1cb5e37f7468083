"""Receipts, and their verification: as `becket verify` does it, without running anything again."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from becket.app.compose import App
from becket.app.record.verify import Checked, Verified, verified
from becket.app.state import StateFolder
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.run import Run
from becket.parts.front.asked import Asked
from becket.parts.front.routes import Go, Page
from becket.parts.front.server import Front

MOST_KEPT = 100
MOST_SHOWN = 30
LONGEST_BODY = 60_000
BUSY = "another run is being verified; ask again in a moment"


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """`head` is the end of the chain as it was then. `bad` are the first checks that failed."""

    at: float
    head: str
    checks: int
    failed: int
    bad: tuple[Checked, ...]


_VERDICTS: WeakKeyDictionary[Front, dict[str, VerifyResult]] = WeakKeyDictionary()
_BUSY: WeakKeyDictionary[Front, asyncio.Lock] = WeakKeyDictionary()


def verdict_of(asked: Asked, run: Run) -> VerifyResult | None:
    """The last one; none where the run went on since."""
    found = _VERDICTS.get(asked.front, {}).get(run.run_id)
    return found if found is not None and found.head == run.head else None


async def receipt(asked: Asked) -> Page:
    run = await asked.app.store.get_run(await asked.run_id())
    found = [item for item in await asked.app.store.receipts(run.run_id) if item.digest == asked.params["digest"]]
    if not found:
        raise NotFound("this run has no such receipt")
    body = json.dumps(found[0].receipt.body, indent=2, ensure_ascii=False)
    data = {
        "run": run, "items": found[:MOST_SHOWN], "receipt": found[0].receipt, "digest": found[0].digest,
        "body": body[:LONGEST_BODY], "cut": len(body) > LONGEST_BODY, "verdict": verdict_of(asked, run),
    }  # fmt: skip
    return Page("receipt.html", data)


async def verify(asked: Asked) -> Go:
    """One at a time: it reads every file that the run refers to."""
    run_id = await asked.run_id()
    lock = _BUSY.setdefault(asked.front, asyncio.Lock())
    if lock.locked():
        raise UsageError(BUSY)
    async with lock:
        found = await asyncio.to_thread(_verified, asked.app.state, run_id)
        at = await asked.app.store.now()
    known = _VERDICTS.setdefault(asked.front, {})
    bad = tuple(one for one in found.checks if not one.ok)
    known.pop(run_id, None)
    known[run_id] = VerifyResult(at, found.head, len(found.checks), len(bad), bad[:MOST_SHOWN])
    while len(known) > MOST_KEPT:
        del known[next(iter(known))]
    await asked.front.feed.ring()
    digest = asked.form.get("receipt", "")
    known_digest = len(digest) == 64 and digest.isalnum() and digest.isascii()
    return Go(f"/runs/{run_id}/receipts/{digest}" if known_digest else f"/runs/{run_id}#check")


def _verified(state: StateFolder, run_id: str) -> Verified:
    """With a store of its own: what is read and hashed here keeps nobody waiting."""

    async def work() -> Verified:
        app = App.open(state, tolerant=True)
        try:
            return await verified(app, run_id, rerun=False)
        finally:
            await app.store.close()

    return asyncio.run(work())
