"""A small model of claims, leases, heartbeats, take-overs and cancelling: two workers, two runs, every interleaving.

Time is counted in ticks and leases are kept as what is left of them, so the states are finite. A claim that a worker
believes in is either the run's newest one or stale: epochs never come back, so their numbers need not be kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

LEASE = 2
"""Ticks that a claim holds without a heartbeat."""
WORKERS = RUNS = (0, 1)
FAULTS = frozenset({"claim_lost", "refuse", "die", "stall", "kill"})


class Rule(StrEnum):
    """How a heartbeat knows what to renew and what was lost."""

    by_claim = "by_claim"  # exactly what is at work, each by the epoch of its claim: the rule of the product
    by_mark = "by_mark"  # rows that name the worker; a requeued row is marked as lost by its worker until it is told
    by_name = "by_name"  # rows that name the worker; what was lost is known by epoch
    no_epoch = "no_epoch"  # what is at work, without looking whether the claim is still the same


class Task(StrEnum):
    """What a worker has of a run: a walk, or a claim being given back; under the newest claim or a stale one."""

    none = "none"
    walk = "walk"
    stale_walk = "stale walk"
    give = "give"
    stale_give = "stale give"


VALID = (Task.walk, Task.give)
WALKS = (Task.walk, Task.stale_walk)
STALE = {Task.walk: Task.stale_walk, Task.give: Task.stale_give}


class Row(NamedTuple):
    """What the journal has of a run; `alone` and `expired` are the observer's, in ticks."""

    status: str = "queued"
    worker: int | None = None
    lease: int = 0
    cancel: bool = False
    mark: int | None = None  # lost_by, under the rule of that name
    alone: int = 0  # at work by the row, with nobody at work on it although a worker is up
    expired: int = 0  # at work by the row, with its lease run out


Tasks: TypeAlias = tuple[tuple[Task, Task], tuple[Task, Task]]
Step: TypeAlias = tuple[str, int, int]


class State(NamedTuple):
    rows: tuple[Row, Row] = (Row(), Row())
    tasks: Tasks = ((Task.none, Task.none), (Task.none, Task.none))  # by worker, then by run
    workers: tuple[str, str] = ("up", "up")
    faults: int = 0  # how many may still happen

    def row(self, run: int, **changes: object) -> State:
        rows = list(self.rows)
        rows[run] = rows[run]._replace(**changes)
        return self._replace(rows=(rows[0], rows[1]))

    def task(self, worker: int, run: int, task: Task) -> State:
        tasks = [list(of_worker) for of_worker in self.tasks]
        tasks[worker][run] = task
        return self._replace(tasks=((tasks[0][0], tasks[0][1]), (tasks[1][0], tasks[1][1])))

    def worker(self, worker: int, condition: str) -> State:
        workers = list(self.workers)
        workers[worker] = condition
        return self._replace(workers=(workers[0], workers[1]), faults=self.faults - 1)

    def somebody_at_work(self, run: int) -> bool:
        return any(self.workers[w] == "up" and self.tasks[w][run] in VALID for w in WORKERS)


def _fence(state: State, run: int) -> State:
    for worker in WORKERS:
        task = state.tasks[worker][run]
        state = state.task(worker, run, STALE.get(task, task))
    return state


def _requeue(state: State, run: int, rule: Rule) -> State:
    mark = state.rows[run].worker if rule is Rule.by_mark else None
    free = {"status": "queued", "worker": None, "lease": 0, "mark": mark, "alone": 0, "expired": 0}
    return _fence(state, run).row(run, **free)


def _end(state: State, run: int) -> State:
    return _fence(state, run).row(run, status="ended", worker=None, lease=0, mark=None, alone=0, expired=0)


def claim(state: State, worker: int, run: int) -> State:
    return state.row(run, status="running", worker=worker, lease=LEASE).task(worker, run, Task.walk)


def beat(state: State, worker: int, rule: Rule) -> State:
    for run in RUNS:
        row, task = state.rows[run], state.tasks[worker][run]
        if row.status == "running" and _renews(rule, row, task, worker):
            state = state.row(run, lease=LEASE, expired=0)
        if _tells_lost(rule, row, task, worker):
            state = state.task(worker, run, Task.none).row(run, mark=None)
    return state


def _renews(rule: Rule, row: Row, task: Task, worker: int) -> bool:
    if rule in (Rule.by_mark, Rule.by_name):
        return row.worker == worker
    return task is Task.walk or (rule is Rule.no_epoch and task in WALKS)


def _tells_lost(rule: Rule, row: Row, task: Task, worker: int) -> bool:
    if rule is Rule.by_mark:
        return row.mark == worker
    return rule is not Rule.no_epoch and task is Task.stale_walk


def look(state: State, worker: int, rule: Rule) -> State:
    """What a dispatcher does whenever it looks: beat, take over what expired, give back what it has no task for."""
    state = beat(state, worker, rule)
    for run in RUNS:
        if state.rows[run].status == "running" and not state.rows[run].lease:
            state = _requeue(state, run, rule)
    if rule is Rule.by_claim:
        for run in RUNS:
            row = state.rows[run]
            if row.status == "running" and row.worker == worker and state.tasks[worker][run] is Task.none:
                state = _requeue(state, run, rule)
    return state


def tick(state: State, first: int, rule: Rule) -> State:
    """Every worker that is up looks, and then time passes."""
    for worker in (first, 1 - first):
        if state.workers[worker] == "up":
            state = look(state, worker, rule)
    for run in RUNS:
        row = state.rows[run]
        if row.status == "running":
            lease = max(row.lease - 1, 0)
            expired = 0 if lease else min(row.expired + 1, LEASE + 2)
            alone = 0 if state.somebody_at_work(run) else min(row.alone + ("up" in state.workers), 2 * LEASE + 1)
            state = state.row(run, lease=lease, expired=expired, alone=alone)
    return state


def wake(state: State, worker: int) -> State:
    state = state.worker(worker, "up")._replace(faults=state.faults)
    for run in RUNS:
        if state.somebody_at_work(run):
            state = state.row(run, alone=0)
    return state


def cancel(state: State, run: int, rule: Rule) -> State:
    row = state.rows[run]
    if row.status == "running" and not row.lease and rule is Rule.by_claim:
        return _end(state, run)
    return _end(state, run) if row.status == "queued" else state.row(run, cancel=True)


def steps(state: State, rule: Rule, only: Collection[str] = FAULTS) -> Iterator[tuple[Step, State]]:
    """Everything that can happen next; of the faults only those."""
    return (item for item in _steps(state, rule) if item[0][0] not in FAULTS or item[0][0] in only)


def _steps(state: State, rule: Rule) -> Iterator[tuple[Step, State]]:
    yield ("tick", 0, 0), tick(state, 0, rule)
    if state.workers == ("up", "up"):
        yield ("tick", 1, 0), tick(state, 1, rule)
    for run in RUNS:
        if state.rows[run].status != "ended" and not state.rows[run].cancel:
            yield ("cancel", 0, run), cancel(state, run, rule)
    for worker in WORKERS:
        if state.workers[worker] == "up":
            yield ("beat", worker, 0), beat(state, worker, rule)
            for run in RUNS:
                yield from _of_task(state, worker, run, rule)
        if state.workers[worker] == "slow":
            yield ("wake", worker, 0), wake(state, worker)
        elif state.workers[worker] == "up" and state.faults:
            yield ("stall", worker, 0), state.worker(worker, "slow")
            gone = state.worker(worker, "gone").task(worker, 0, Task.none).task(worker, 1, Task.none)
            yield ("kill", worker, 0), gone


def _of_task(state: State, worker: int, run: int, rule: Rule) -> Iterator[tuple[Step, State]]:
    task, row = state.tasks[worker][run], state.rows[run]
    faulty = state._replace(faults=state.faults - 1)
    gone = state.task(worker, run, Task.none)
    if task is Task.none:
        if row.status == "queued":
            yield ("claim", worker, run), claim(state, worker, run)
            if state.faults:  # committed, and the answer never came
                yield ("claim_lost", worker, run), claim(faulty, worker, run).task(worker, run, Task.none)
        return
    if task in WALKS:
        yield ("finish", worker, run), _end(gone, run) if task is Task.walk else gone
        if state.faults:  # the store refuses a write: give the claim back
            yield ("refuse", worker, run), faulty.task(worker, run, Task.give if task in VALID else Task.stale_give)
    else:
        yield ("give", worker, run), _requeue(gone, run, rule) if task is Task.give else gone
    if state.faults:  # the task dies, however that comes
        yield ("die", worker, run), faulty.task(worker, run, Task.none)


def trouble(state: State) -> str:
    """What must never be; empty if all is well."""
    for run in RUNS:
        row = state.rows[run]
        holders = [worker for worker in WORKERS if state.tasks[worker][run] in VALID]
        if len(holders) > 1 or (holders and (row.status != "running" or row.worker not in holders)):
            return f"workers {holders} may write to run {run}, which is {row.status} by {row.worker}"
        if row.alone > 2 * LEASE:
            return f"run {run} counts as at work and nobody has been at work on it for two lease times"
    return ""


def alarmed(row: Row) -> bool:
    """What the second process sees, by the row alone."""
    return row.status == "running" and row.expired > LEASE


@dataclass(frozen=True)
class Found:
    """What the explorer came to: all states and, of the first bad one, the shortest way to it."""

    states: int
    trouble: str = ""
    trace: tuple[Step, ...] = ()


def explore(rule: Rule, faults: int, only: Collection[str] = FAULTS) -> Found:
    """Breadth first, so that the way to the first trouble is a shortest one."""
    begin = State(faults=faults)
    came: dict[State, tuple[State, Step] | None] = {begin: None}
    waiting = deque([begin])
    while waiting:
        state = waiting.popleft()
        if said := trouble(state):
            return Found(len(came), said, _trace(came, state))
        for step, after in steps(state, rule, only):
            if after not in came:
                came[after] = (state, step)
                waiting.append(after)
    return Found(len(came))


def _trace(came: dict[State, tuple[State, Step] | None], state: State) -> tuple[Step, ...]:
    trace: list[Step] = []
    while (before := came[state]) is not None:
        state, step = before
        trace.append(step)
    return tuple(reversed(trace))


def never_ends(rule: Rule, faults: int) -> Found:
    """Is there a state with a cancelled run from which, with no further fault, that run cannot end?"""
    begin = State(faults=faults)
    came: dict[State, tuple[State, Step] | None] = {begin: None}
    before: dict[State, list[State]] = {}
    waiting = deque([begin])
    while waiting:
        state = waiting.popleft()
        for step, after in steps(state, rule):
            if step[0] not in FAULTS:
                before.setdefault(after, []).append(state)
            if after not in came:
                came[after] = (state, step)
                waiting.append(after)
    for run in RUNS:
        ends = _backward((state for state in came if state.rows[run].status == "ended"), before)
        for state in came:  # in the order found: shortest way first
            if state.rows[run].cancel and state not in ends and state.workers != ("gone", "gone"):
                return Found(len(came), f"run {run} was cancelled and cannot end", _trace(came, state))
    return Found(len(came))


def _backward(goal: Iterator[State], before: dict[State, list[State]]) -> set[State]:
    reach = set(goal)
    waiting = deque(reach)
    while waiting:
        for state in before.get(waiting.popleft(), ()):
            if state not in reach:
                reach.add(state)
                waiting.append(state)
    return reach
