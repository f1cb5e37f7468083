"""The store's crash points: one before and one after the commit of every transaction that other rows depend on."""

from __future__ import annotations

from becket.kernel.contract.crash import CrashPoint

_WHY = {
    "start_run": "a request is answered by exactly one run",
    "claim": "the claim, its lease and its event are one",
    "record": "a step is in the journal or is done again",
    "next_iteration": "the iteration and what it carries are one",
    "wait": "a run sleeps with its wake-up rows or not at all",
    "end": "the end, its handoff and the parent's signal are one",
    "signal": "a signal and the wake-up are one",
    "wake_due": "a due run is woken once",
    "requeue_lost": "a lost run is queued and its old holder fenced at once",
    "ask_cancel": "a cancelled run is told or ended",
    "intend": "no effect leaves without its intent",
    "attempt": "an attempt is counted before it is made",
    "settle": "the outside acted; the row may not know it yet",
    "ask_approval": "a question is asked once",
    "decide_approval": "the answer and the signal are one",
    "use_approval": "an approval is spent once",
    "fire": "the cursor and the runs it starts are one",
    "reserve": "money is booked before the call",
    "begin_call": "no agent is called without its row and its booking",
    "end_call": "how a call ended and what it used are one",
    "child_started": "no process of ours is unknown",
    "child_ended": "a process that is gone may still be remembered, never the reverse",
    "refer": "content on disk that no row refers to is an orphan, never the reverse",
    "followed": "what follows a run is started before the run counts as followed",
    "drop_cursors": "a start that was held back is forgotten only once it was made",
    "join": "whoever was the engine before is dead from here on",
    "leave": "a worker that stops gives back what it had",
}

BEFORE = {name: CrashPoint(f"store.{name}.before_commit", why) for name, why in _WHY.items()}
AFTER = {name: CrashPoint(f"store.{name}.after_commit", why) for name, why in _WHY.items()}


def before_commit(name: str) -> None:
    if point := BEFORE.get(name):
        point()


def after_commit(name: str) -> None:
    if point := AFTER.get(name):
        point()
