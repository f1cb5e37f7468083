"""Checks what a run paid: each agent call in its event chain against its row, and the sum of all."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from becket.app.record.replay import Replay, ToldCall
from becket.kernel.contract.base import Json
from becket.kernel.contract.calls import AgentCall, SettledBy, folder_of
from becket.kernel.contract.events import row_name
from becket.kernel.contract.run import ENDED, Run

CALL, SPENDING = "call", "spending"
CLOSE = 1e-6
"""Sums of floats differ by their order; the amounts themselves are compared by their seals."""


@dataclass(frozen=True, slots=True)
class Payment:
    """One thing that was looked at: a call, what else was spent, or the sum."""

    what: str
    about: str
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class PaymentRows:
    """What the tables hold of a run's calls and spending; `seals` are of all rows as they stand."""

    run: Run
    calls: tuple[AgentCall, ...]
    seals: Mapping[str, str]
    spent: Mapping[str, float]


def check_payments(books: PaymentRows, told: Replay) -> Iterator[Payment]:
    calls = {call.call_id: call for call in books.calls}
    untold: list[str] = []
    for call_id in dict.fromkeys((*told.calls, *_keys(CALL, told.seals, books.seals))):
        if _untold(told, CALL, call_id):
            untold.append(call_id)
        else:
            yield _call(books, told, call_id, calls.get(call_id))
    others = [key for key in _keys(SPENDING, told.seals, books.seals) if key not in told.calls and key not in calls]
    for key in others:
        trouble = "" if _untold(told, SPENDING, key) else trouble_of(row_name(SPENDING, key), books.seals, told)
        if trouble:
            yield Payment(f"spending {key}", "booked beside the calls", trouble)
    if untold:
        noun = "call is" if len(untold) == 1 else "calls are"
        yield Payment("calls", f"{len(untold)} {noun} from before the events told of calls: nothing proves them")
    elif any(_untold(told, SPENDING, key) for key in others):
        yield Payment("spending", "is from before the events told of it: nothing proves it")
    elif told.amounts or books.spent:
        yield _sum(books.spent, told)


def _keys(kind: str, *seals: Mapping[str, str]) -> list[str]:
    names = dict.fromkeys(name for each in seals for name in each)
    return [name.split(" ", 1)[1] for name in names if name.startswith(f"{kind} ")]


def _untold(told: Replay, kind: str, key: str) -> bool:
    """No event tells of it, and none had to."""
    return kind not in told.covers and row_name(kind, key) not in told.seals


def trouble_of(name: str, seals: Mapping[str, str], told: Replay) -> str:
    """What is wrong with a row, or ""."""
    if name not in seals:
        return "it is gone"
    if name not in told.seals:
        return "no event tells of it"
    return "" if seals[name] == told.seals[name] else "it was changed"


def _call(books: PaymentRows, told: Replay, call_id: str, call: AgentCall | None) -> Payment:
    what = f"call {folder_of(books.run.run_id, call_id)}"
    said = told.calls.get(call_id)
    about = _about(call, books.run) if call is not None else "a call of an agent"
    trouble = trouble_of(row_name(CALL, call_id), books.seals, told)
    if trouble and call is not None and said is not None:
        trouble = "; ".join((trouble, *_changes(call, said)))
    booked = trouble_of(row_name(SPENDING, call_id), books.seals, told)
    return Payment(what, about, trouble or (f"what the budgets count for it: {booked}" if booked else ""))


def _about(call: AgentCall, run: Run) -> str:
    if call.end is None:
        over = run.status in ENDED
        return f"{call.agent}, {'nobody saw its end: its booking stands' if over else 'not settled yet'}"
    used = call.end.usage
    said = f"{call.agent}, {call.end.outcome.value}: {used.tokens} tokens, {used.usd:g} usd, {used.seconds:g} s"
    return f"{said}; what nothing tells of it counts as booked" if call.end.by is SettledBy.booking else said


def _changes(call: AgentCall, said: ToldCall) -> Iterator[str]:
    """What of the row is not what was sealed, in words, as far as the events say it themselves."""
    row = call.model_dump(mode="json")
    end: dict[str, Json] = row["end"] or {}
    for name in ("agent", "driver", "model"):
        yield from _change(name, row[name], said.booked.get(name, row[name]))
    for name, value in said.booked.get("limits", {}).items():
        yield from _change(f"limit of {name}", row["limits"].get(name), value)
    for name in ("outcome", "by"):
        yield from _change(name, end.get(name), said.settled.get(name))
    usage = end.get("usage") or {}
    for name, value in said.settled.get("usage", dict.fromkeys(usage)).items():
        yield from _change(name, usage.get(name), value)


def _change(name: str, now: Json, told: Json) -> Iterator[str]:
    if now != told:
        yield f"{name} was {_shown(told)}, the row says {_shown(now)}"


def _shown(value: Json) -> str:
    return "not told" if value is None else f"{value:.10g}" if isinstance(value, float) else str(value)


def _sum(spent: Mapping[str, float], told: Replay) -> Payment:
    sums: dict[str, float] = {}
    for amounts in told.amounts.values():
        for kind, amount in amounts.items():
            sums[kind] = sums.get(kind, 0.0) + amount
    wrong = [
        f"{kind} is {_shown(spent.get(kind, 0.0))}, the events add up to {_shown(sums.get(kind, 0.0))}"
        for kind in sorted({**sums, **spent})
        if not math.isclose(spent.get(kind, 0.0), sums.get(kind, 0.0), rel_tol=CLOSE, abs_tol=CLOSE)
    ]
    calls, others = len(told.calls), len(told.amounts.keys() - told.calls.keys())
    of = f"{calls} call{'' if calls == 1 else 's'}{f' and {others} uses without a call' if others else ''}"
    about = ", ".join(f"{_shown(amount)} {kind}" for kind, amount in sorted(sums.items()))
    return Payment("spent", f"{about or 'nothing'}: the sum of {of}", "; ".join(wrong))
