"""The Store port over a database: every method is one function of this package, run as one transaction."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from becket.kernel.contract.store import Leap
from becket.kernel.contract.tables import Transaction
from becket.kernel.store import (
    calls,
    claiming,
    effects,
    ending,
    leaping,
    looking,
    money,
    moving,
    operations,
    people,
    raised,
    records,
    retention,
    runs,
    sealing,
    waking,
)
from becket.kernel.store.brought import of_a_part
from becket.kernel.store.database import Database
from becket.kernel.store.tx import Tx

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Tx, P], T]
Method = Callable[Concatenate["Journal", P], Coroutine[Any, Any, T]]


def _read(work: Work[P, T]) -> Method[P, T]:
    async def method(self: Journal, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.read(work, *args, **kwargs)

    return method


def _write(work: Work[P, T]) -> Method[P, T]:
    async def method(self: Journal, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.write(work, *args, **kwargs)

    return method


class Journal:
    """Implements becket.kernel.contract.store.Store; what each method promises is said there.

    `effects` and `calls` are modules up to the line that makes them methods.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def read(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.read(of_a_part(work, *args, **kwargs))

    async def write(self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._db.write(of_a_part(work, *args, **kwargs))

    start_run = _write(runs.start_run)
    claim = _write(claiming.claim)
    record = _write(moving.record)
    next_iteration = _write(moving.next_iteration)
    wait = _write(moving.wait)
    end = _write(ending.end)
    signal = _write(waking.signal)
    wake_due = _write(waking.wake_due)
    next_due = _read(waking.next_due)
    startable = _read(claiming.startable)
    requeue_lost = _write(claiming.requeue_lost)
    give_back = _write(claiming.give_back)
    ask_cancel = _write(claiming.ask_cancel)
    at_work = _read(claiming.at_work)
    hold = _write(runs.hold)
    migrate = _write(runs.migrate)
    get_run = _read(runs.get_run)
    list_runs = _read(looking.list_runs)
    newest_of_loops = _read(looking.newest_of_loops)
    tally = _read(looking.tally)
    unsettled = _read(looking.unsettled)
    count_runs = _read(runs.count_runs)
    unfollowed = _read(ending.unfollowed)
    followed = _write(ending.followed)

    append = _write(records.append)
    events = _read(records.events_of)
    heads = _read(records.heads)
    steps = _read(records.steps_of)
    conditions = _read(raised.of_run)
    carried = _read(records.carried_of)
    receipts = _read(records.receipts_of)
    artifacts = _read(records.artifacts_of)
    seals = _read(sealing.of_run)
    refer = _write(records.refer)
    spec_text = _read(records.spec_text)
    has_fact = _read(records.has_fact)
    recorded_by = _read(records.recorded_by)
    child_started = _write(records.child_started)
    child_ended = _write(records.child_ended)
    live_children = _read(records.live_children)
    forget = _write(retention.forget)
    referred = _read(retention.referred)

    intend = _write(effects.intend)
    attempt = _write(effects.attempt)
    settle = _write(effects.settle)
    get_effect = _read(effects.get_effect)
    due_effects = _read(effects.due_effects)
    count_effects = _read(effects.count_effects)
    effects = _read(effects.list_effects)

    ask_approval = _write(people.ask_approval)
    decide_approval = _write(people.decide_approval)
    revoke_approval = _write(people.revoke_approval)
    use_approval = _write(people.use_approval)
    get_approval = _read(people.get_approval)
    approvals = _read(people.list_approvals)
    handoffs = _read(people.list_handoffs)
    get_handoff = _read(people.get_handoff)
    change_handoff = _write(people.change_handoff)
    set_control = _write(people.set_control)
    controls = _read(people.list_controls)

    now = _read(operations.now)
    join = _write(operations.join)
    attend = _write(operations.attend)
    beat = _write(operations.beat)
    leave = _write(operations.leave)
    workers = _read(operations.list_workers)
    cursors = _read(operations.list_cursors)
    fire = _write(operations.fire)
    drop_cursors = _write(operations.drop_cursors)
    reserve = _write(money.reserve)
    settle_spend = _write(money.settle_spend)
    begin_call = _write(calls.begin_call)
    end_call = _write(calls.end_call)
    calls = _read(calls.list_calls)
    spent = _read(money.spent)
    raise_alert = _write(operations.raise_alert)
    alert_told = _write(operations.alert_told)
    close_alert = _write(operations.close_alert)
    alerts = _read(operations.list_alerts)

    async def work_time(self) -> float:
        return self._db.steady.at_work()

    async def adopt_leap(self) -> Leap | None:
        await self.now()
        self._db.steady.hold()
        leap = self._db.steady.leap()
        if leap is not None:
            await self._db.write(leaping.adopt_leap, leap)
            self._db.steady.adopt()
        return leap

    async def version_changed(self) -> bool:
        return await self._db.version_changed()

    async def faults(self, whole: bool = False) -> tuple[str, ...]:
        return await self._db.faults(whole)

    async def close(self) -> None:
        await self._db.close()
