"""How a run stands, in one of a few words that cannot be confused. Whatever shows a run to people asks here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from becket.kernel.contract.run import Run, RunStatus


class StateWord(StrEnum):
    working = "working"
    waits_for_you = "waits for you"
    waits_for_machine = "waits for the machine"
    proven = "proven"
    done = "done"  # it ended as it should, and proves nothing of its branch
    handed_over = "handed over"
    failed = "failed"
    cancelled = "cancelled"

    @property
    def tone(self) -> str:
        """The class of its pill; what it says stands in the word."""
        return _TONES.get(self, "plain")

    @property
    def statuses(self) -> tuple[RunStatus, ...]:
        """Every status that a run of this word may have."""
        return _STATUSES[self]


_TONES = {
    StateWord.working: "plain working",
    StateWord.waits_for_you: "unsure",
    StateWord.proven: "good",
    StateWord.handed_over: "unsure",
    StateWord.failed: "bad",
}
_STATUSES = {
    StateWord.working: (RunStatus.running,),
    StateWord.waits_for_you: (RunStatus.queued, RunStatus.waiting),
    StateWord.waits_for_machine: (RunStatus.queued, RunStatus.waiting, RunStatus.running),
    StateWord.proven: (RunStatus.completed,),
    StateWord.done: (RunStatus.completed, RunStatus.completed_dry_run, RunStatus.ready_for_handoff),
    StateWord.handed_over: (RunStatus.ready_for_handoff,),
    StateWord.failed: (RunStatus.failed,),
    StateWord.cancelled: (RunStatus.cancelled,),
}
_PLAIN = {
    RunStatus.running: StateWord.working,
    RunStatus.completed: StateWord.proven,
    RunStatus.completed_dry_run: StateWord.done,
    RunStatus.ready_for_handoff: StateWord.handed_over,
    RunStatus.failed: StateWord.failed,
    RunStatus.cancelled: StateWord.cancelled,
}
_PEOPLES = ("main_dirty",)
"""What only a person takes out of the way, besides questions."""


def state_word(run: Run, *, alone: bool = False, settled: bool = False) -> StateWord:
    """`alone`: nobody is at work on it, whatever its row says. `settled`: its handoffs are nobody's any more."""
    return word_of(run.status, run.waiting_on, held=run.held, alone=alone, proven=is_proven(run), settled=settled)


def word_of(
    status: str,
    waits_for: Iterable[str] = (),
    *,
    held: bool = False,
    alone: bool = False,
    proven: bool = False,
    settled: bool = False,
) -> StateWord:
    """By what its row says; for those who have no `Run`."""
    if status in (RunStatus.queued, RunStatus.waiting):
        mine = held or any(waits_for_a_person(name) for name in waits_for)
        return StateWord.waits_for_you if mine else StateWord.waits_for_machine
    instead = {
        RunStatus.running: alone and StateWord.waits_for_machine,
        RunStatus.completed: not proven and StateWord.done,
        RunStatus.ready_for_handoff: settled and StateWord.done,
    }
    return instead.get(RunStatus(status)) or _PLAIN[RunStatus(status)]


def waits_for_a_person(condition: str) -> bool:
    """A question is raised as `<what>.asked`, whatever loop asks it."""
    return condition.endswith(".asked") or condition in _PEOPLES


def is_proven(run: Run) -> bool:
    """It says what it proved of its branch, and did not just find that the branch had moved on."""
    found = run.detail.get("main_proven")
    return run.status is RunStatus.completed and isinstance(found, dict) and not found.get("instead_of")
