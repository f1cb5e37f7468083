"""Of which agent a run waits for the quota. Only the standard library: `becket status` reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from becket.kernel.contract.calls import AgentCall
    from becket.kernel.store.quick import QuickJournal

QUOTA = "agent.quota_wait"
"""The condition that a run waits on."""

_OUTCOME = "quota_wait"


@dataclass(frozen=True, slots=True)
class QuotaNow:
    """`back`: when there is quota again, as far as anybody says."""

    agent: str
    back: float | None


@dataclass(frozen=True, slots=True)
class _Ended:
    step: tuple[int, str]
    agent: str
    outcome: str
    until: float | None


def read_quota(journal: QuickJournal, run_id: str) -> QuotaNow | None:
    """From the journal's file."""
    results = [(row, json.loads(row["result"])) for row in journal.ended_calls(run_id)]
    return _first_back(
        [_Ended((row["iteration"], row["step_id"]), row["agent"], end["outcome"], end["until"]) for row, end in results]
    )


def quota_of(calls: Iterable[AgentCall]) -> QuotaNow | None:
    """From the calls of a run, in any order."""
    return _first_back(
        [
            _Ended((call.iteration, call.step_id), call.agent, call.end.outcome.value, call.end.until)
            for call in sorted(calls, key=lambda call: call.began_at)
            if call.end is not None
        ]
    )


def _first_back(ended: list[_Ended]) -> QuotaNow | None:
    """Of those that the last step asked in vain, the one that has quota again first: the run waits for that."""
    asked = [call for call in ended if call.step == ended[-1].step and call.outcome == _OUTCOME]
    return min((QuotaNow(call.agent, call.until) for call in asked), key=lambda quota: quota.back or 0.0, default=None)
