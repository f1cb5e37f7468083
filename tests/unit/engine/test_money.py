"""What a call is granted: pure figures first, then calls of many runs at once against one journal."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from becket.kernel.contract.agent import AgentOutcome, CallFiles, Limits, Usage
from becket.kernel.contract.calls import (
    CALLS,
    KINDS,
    BudgetSpent,
    CallEnd,
    CallGrant,
    CallRequest,
    SettledBy,
    amounts_used,
    booking,
    folder_of,
)
from becket.kernel.contract.config import Budgets
from becket.kernel.contract.errors import ActionFailed, StoreUnavailable
from becket.kernel.contract.run import NewRun, Run, Subject
from becket.kernel.contract.spec import Budget, Phase
from becket.kernel.contract.store import SpendLimit, Store
from becket.kernel.engine.money import (
    RACES,
    CallingStep,
    allow,
    begin,
    day_of,
    end,
    left_open,
    month_of,
    settle_left_open,
    surely_spent,
)
from becket.kernel.store import open_memory

HOUR = 3600.0
NOON = 1_793_448_000.0


@pytest.fixture
def zone() -> Iterator[Any]:
    before = os.environ.get("TZ")

    def use(name: str) -> None:
        os.environ["TZ"] = name
        time.tzset()

    yield use
    os.environ.pop("TZ") if before is None else os.environ.update(TZ=before)
    time.tzset()


def wish(share: float = 1.0, label: str = "a", **limits: Any) -> CallRequest:
    return CallRequest(
        label=label, agent="fixer", driver="codex", limits=Limits(**{"seconds": 600.0, **limits}), share=share
    )


def limit(kind: str, most: float, name: str = "it") -> SpendLimit:
    return SpendLimit(name=name, kind=kind, most=most)


def test_without_budgets_a_call_gets_what_it_wished() -> None:
    asked = wish(turns=5, tokens=70, usd=0.333333333)
    assert allow(asked, [], HOUR) == (asked.limits, ())


def test_of_all_budgets_of_a_kind_the_one_that_leaves_least_counts() -> None:
    left = [(limit("usd", 5.0, "the day"), 1.0), (limit("usd", 9.0, "the month"), 8.25), (limit("tokens", 99), 9.0)]
    granted, cut_by = allow(wish(usd=2.0, tokens=80), left, HOUR)
    assert granted == Limits(seconds=600.0, tokens=80, usd=0.75)
    assert cut_by == ("the month (0.75 usd)",)


def test_a_kind_with_a_budget_is_limited_even_if_nobody_wished_a_limit() -> None:
    granted, cut_by = allow(wish(), [(limit("tokens", 1000), 1.0), (limit("agent_time", 90.0), 0.0)], HOUR)
    assert granted == Limits(seconds=90.0, tokens=999)
    assert cut_by == ("it (999 tokens)", "it (1m30s)")


def test_calls_at_once_share_what_is_left() -> None:
    left = [(limit("usd", 1.0), 0.1), (limit("tokens", 10), 0.0), (limit("agent_time", 2.0), 0.0)]
    granted, _ = allow(wish(share=1 / 3), left, HOUR)
    assert granted == Limits(seconds=1.0, tokens=3, usd=0.3), "never so little that nothing can be done with it"


@pytest.mark.parametrize(
    ("kind", "most", "spent", "granted"),
    [
        ("usd", 0.3, 0.1, 0.2),
        ("usd", 0.3, 0.1 + 0.2, None),
        ("usd", 1.0, 0.9999995, None),
        ("usd", 1.0, 0.999998, 0.000002),
        ("usd", 0.0, 0.0, None),
        ("usd", 1.0, 3.0, None),
        ("tokens", 10, 9.0, 1),
        ("tokens", 10, 10.0, None),
        ("agent_time", 60.0, 59.0, 1.0),
        ("agent_time", 60.0, 59.001, None),
    ],
)
def test_the_last_crumbs_of_a_budget_are_nothing(kind: str, most: float, spent: float, granted: float | None) -> None:
    left = [(limit(kind, most, "the last of it"), spent)]
    if granted is None:
        with pytest.raises(BudgetSpent, match="the last of it is used up") as caught:
            allow(wish(), left, HOUR)
        assert (caught.value.used, caught.value.most) == (spent, most)
    else:
        assert booking(allow(wish(), left, HOUR)[0])[kind] == granted


def test_no_call_outlives_the_time_that_its_step_has() -> None:
    granted, cut_by = allow(wish(), [(limit("agent_time", 500.0), 0.0)], 100.00061)
    assert (granted.seconds, cut_by) == (100.0, ("the time that is left for this step (1m40s)",))
    assert allow(wish(), [], -3.0)[0].seconds == 1.0
    assert allow(wish(seconds=0.25), [], -3.0)[0].seconds == 0.25


def test_days_and_months_begin_by_the_clock_on_the_wall(zone: Any) -> None:
    zone("UTC")
    assert (NOON - day_of(NOON), NOON - month_of(NOON)) == (12 * HOUR, 30 * 24 * HOUR + 12 * HOUR)
    zone("Asia/Kolkata")
    assert NOON - day_of(NOON) == 17.5 * HOUR
    zone("Europe/Berlin")
    first_of_april = 1_774_994_400.0  # 2026-04-01 00:00; the clocks went forward on March 29
    assert month_of(first_of_april) == day_of(first_of_april) == first_of_april
    assert first_of_april - 1 - month_of(first_of_april - 1) == 31 * 24 * HOUR - HOUR - 1
    zone("Atlantic/Azores")
    repeated = 1_792_891_800.0  # 2026-10-25 00:30, the second time
    assert repeated - day_of(repeated) == 1.5 * HOUR


class Clock:
    at = NOON

    def __call__(self) -> float:
        return self.at


@dataclass
class Hesitant:
    """The journal as many processes see it: between any two questions, somebody else may get a word in."""

    store: Store

    def __getattr__(self, name: str) -> Any:
        asked = getattr(self.store, name)

        async def later(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            return await asked(*args, **kwargs)

        return later


@dataclass
class Call:
    run: Run
    grant: CallGrant
    at: float
    used: dict[str, float] | None = None  # None while it is open

    def counts(self, kind: str) -> float:
        return (booking(self.grant.limits) if self.used is None else self.used).get(kind, 0.0)

    def over(self, kind: str) -> float:
        return max(0.0, self.counts(kind) - booking(self.grant.limits).get(kind, 0.0))


@dataclass
class House:
    """Runs of two loops, the budgets that bind them, and what the calls are known to have used."""

    budget: Budget
    budgets: Budgets
    clock: Clock = field(default_factory=Clock)
    calls: list[Call] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    labels: int = 0

    def __post_init__(self) -> None:
        self.store = open_memory(self.clock)

    async def open(self) -> None:
        for number in range(3):
            loop = "heal" if number else "task"
            subject = Subject(name=f"s{number}", fields={})
            new = NewRun(
                run_id=f"run_{number}", loop_id=loop, spec_digest="d", spec_text="t", subject=subject, deadline=1e9
            )
            await self.store.start_run(new)
            self.runs.append(await self._claimed(f"run_{number}"))

    async def _claimed(self, run_id: str) -> Run:
        claim = await self.store.claim(run_id, (await self.store.get_run(run_id)).segment, "w", 30.0)
        assert claim is not None
        return claim.run

    def caller(self, number: int) -> CallingStep:
        return CallingStep(self.runs[number], Phase.act, "fix", 1, 10 * HOUR, self.budget, self.budgets)

    async def begin(self, number: int, share: float, limits: dict[str, Any]) -> None:
        self.labels += 1
        asked = wish(share, f"c{self.labels}", **limits)
        try:
            grant = await begin(Hesitant(self.store), self.caller(number), asked)
        except BudgetSpent:
            return
        for kind, most in booking(asked.limits).items():
            assert booking(grant.limits)[kind] <= most
        self.calls.append(Call(self.runs[number], grant, self.clock()))

    async def end(self, call: Call, part: float) -> None:
        limits = call.grant.limits
        usage = Usage(
            seconds=limits.seconds * part,
            output_tokens=int((limits.tokens or 1000) * part),
            usd=(1.0 if limits.usd is None else limits.usd) * part,
        )
        await end(self.store, call.grant, CallEnd(outcome=AgentOutcome.changed, usage=usage))
        call.used = amounts_used(usage, limits)

    async def kill(self, number: int) -> None:
        """Whoever moved the run is dead; the next life finds the calls whose end nobody saw."""
        run = self.runs[number]
        await self.store.give_back(run.run_id, run.epoch)
        self.runs[number] = await self._claimed(run.run_id)
        mine = [call.grant.call_id for call in self.calls if call.used is None and call.run.run_id == run.run_id]
        assert [call.call_id for call in await left_open(self.store, self.caller(number))] == mine

    async def check(self) -> None:
        for number in range(len(self.runs)):
            for one in self.caller(number).limits(self.clock()):
                mine = [call for call in self.calls if self._counts(call, one)]
                booked = (await self.store.spent(one.run_id, one.loop_id, one.since)).get(one.kind, 0.0)
                assert booked == pytest.approx(sum(call.counts(one.kind) for call in mine), abs=1e-9)
                assert booked <= one.most + sum(call.over(one.kind) for call in mine) + 1e-6, one.name

    def _counts(self, call: Call, one: SpendLimit) -> bool:
        return (
            one.run_id in (None, call.run.run_id) and one.loop_id in (None, call.run.loop_id) and call.at >= one.since
        )


amounts = {
    "agent_time": st.sampled_from([0, 1.5, 60, 900.125, 3000]),
    "tokens": st.sampled_from([0, 1, 10, 999, 5000]),
    "usd": st.sampled_from([0, 0.000001, 0.001, 0.3, 2.5]),
}
some_budget = st.fixed_dictionaries({}, optional=amounts)
periods = st.fixed_dictionaries({"day": some_budget}, optional={"month": some_budget})
some_budgets = st.builds(
    lambda all_loops, loop: Budgets.model_validate({**all_loops, "loops": {"heal": loop}}), periods, periods
)
some_limits = st.fixed_dictionaries(
    {"seconds": st.floats(1, 2000)}, optional={"tokens": st.integers(0, 5000), "usd": st.floats(0, 10)}
)
a_begin = st.tuples(st.integers(0, 2), st.sampled_from([1.0, 0.5, 1 / 3, 0.1]), some_limits)
at_once = st.tuples(st.just("at once"), st.lists(a_begin, min_size=2, max_size=4))
deeds = st.one_of(
    at_once,
    st.tuples(st.just("end"), st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.3, 0.99, 1.0, 1.5]))),
    st.tuples(st.just("kill"), st.integers(0, 2)),
    st.tuples(st.just("wait"), st.sampled_from([HOUR, 13 * HOUR])),
)


@settings(max_examples=50, deadline=None)
@given(some_budget.map(Budget.model_validate), some_budgets, at_once, st.lists(deeds, max_size=8))
def test_whatever_happens_no_budget_is_passed_but_by_what_calls_overshot(
    budget: Budget, budgets: Budgets, first: tuple[str, Any], story: list[tuple[str, Any]]
) -> None:
    """L23: many runs, calls at once, kills, midnight: what is booked fits, and settled sums are what was used."""

    async def play() -> None:
        runtime = House(budget, budgets)
        await runtime.open()
        for deed, what in (first, *story):
            open_calls = [call for call in runtime.calls if call.used is None]
            match deed:
                case "at once":
                    await asyncio.gather(*(runtime.begin(*each) for each in what))
                case "end" if open_calls:
                    await runtime.end(open_calls[what[0] % len(open_calls)], what[1])
                case "kill":
                    await runtime.kill(what)
                case "wait":
                    runtime.clock.at += what
            await runtime.check()
        for call in [call for call in runtime.calls if call.used is None]:
            await runtime.end(call, 0.5)
        await runtime.check()
        wholly = {kind: sum(call.counts(kind) for call in runtime.calls) for kind in KINDS}
        spent = await runtime.store.spent()
        assert {kind: spent.get(kind, 0.0) for kind in KINDS} == pytest.approx(wholly)
        await runtime.store.close()

    asyncio.run(play())


def test_calls_at_once_that_want_all_do_not_share_it() -> None:
    """Everybody sees the same room; one gets it, the others hear which budget is spent."""

    async def story() -> None:
        runtime = House(Budget(), Budgets.model_validate({"day": {"usd": 2.0}}))
        await runtime.open()
        asked = [begin(Hesitant(runtime.store), runtime.caller(number), wish()) for number in (0, 1, 2)]
        won = await asyncio.gather(*asked, return_exceptions=True)
        assert sorted(type(one).__name__ for one in won) == ["BudgetSpent", "BudgetSpent", "CallGrant"]
        assert {str(one) for one in won if isinstance(one, Exception)} == {
            "the usd budget of today is used up (2 of 2)"
        }
        assert await runtime.store.spent() == {"usd": 2.0, "agent_time": 600.0}

    asyncio.run(story())


class Crowded(Hesitant):
    """Somebody else is always quicker: right before each booking, one more token is gone."""

    def __getattr__(self, name: str) -> Any:
        asked = super().__getattr__(name)

        async def late(*args: Any, **kwargs: Any) -> Any:
            await self.store.reserve(f"theirs {time.perf_counter_ns()}", "run_1", 1, {"tokens": 1.0}, ())
            return await asked(*args, **kwargs)

        return late if name == "begin_call" else asked


def test_a_race_that_is_lost_again_and_again_is_given_up_for_now() -> None:
    async def story() -> None:
        runtime = House(Budget(), Budgets.model_validate({"month": {"tokens": 100}}))
        await runtime.open()
        with pytest.raises(ActionFailed, match="the token budget of this month") as caught:
            await begin(Crowded(runtime.store), runtime.caller(0), wish())
        assert (caught.value.kind, caught.value.retryable) == ("budget_contended", True)
        assert await runtime.store.spent() == {"tokens": float(RACES)}
        assert await runtime.store.calls() == ()

    asyncio.run(story())


def test_what_nobody_saw_the_end_of_stays_booked_and_is_not_surely_spent() -> None:
    async def story() -> None:
        runtime = House(Budget(usd=1.0), Budgets())
        await runtime.open()
        first = await begin(runtime.store, runtime.caller(1), wish(usd=0.25, label="first"))
        await end(runtime.store, first, CallEnd(outcome=AgentOutcome.changed, usage=Usage(seconds=5.0, usd=0.5)))
        lost = await begin(runtime.store, runtime.caller(1), wish(label="lost"))
        assert await left_open(runtime.store, runtime.caller(1)) == (), "its own calls are not an earlier life's"
        assert (await runtime.store.calls("run_1"))[1].end.over == ("usd: 0.5 of 0.25",)  # type: ignore[union-attr]
        with pytest.raises(BudgetSpent, match="this run's usd budget"):
            await begin(runtime.store, runtime.caller(1), wish(label="next"))
        assert await surely_spent(runtime.store, "run_1") == {"usd": 0.5, "agent_time": 5.0, "tokens": 0.0}
        runtime.calls = [Call(runtime.runs[1], lost, NOON)]
        await runtime.kill(1)
        (found,) = await left_open(runtime.store, runtime.caller(1))
        await end(runtime.store, found.grant, CallEnd(outcome=AgentOutcome.crashed))
        assert (await begin(runtime.store, runtime.caller(1), wish(label="next"))).limits.usd == 0.5

    asyncio.run(story())


def test_a_call_that_tells_nonsense_is_booked_and_shown_at_all_it_might_have_used() -> None:
    """L21: with one NaN in the sums, no budget would ever be passed again."""

    async def story() -> None:
        runtime = House(Budget(usd=1.0), Budgets())
        await runtime.open()
        grant = await begin(runtime.store, runtime.caller(1), wish(usd=0.25))
        said = Usage(seconds=math.inf, output_tokens=5, usd=math.nan)
        await end(runtime.store, grant, CallEnd(outcome=AgentOutcome.changed, usage=said))
        assert await runtime.store.spent() == {"agent_time": 600.0, "tokens": 5.0, "usd": 0.25}
        (call,) = await runtime.store.calls()
        assert call.end is not None
        assert call.end.usage == Usage(seconds=600.0, output_tokens=5, usd=0.25)
        assert call.end.by is SettledBy.booking

    asyncio.run(story())


class Silent:
    """Agents whose files tell nothing."""

    def get(self, name: str) -> Any:
        return self

    def used(self, files: CallFiles) -> Usage | None:
        return None


def nobody() -> Any:
    raise ActionFailed("nothing is configured behind Agents", kind="no_port")


@pytest.mark.parametrize("agents", [Silent, nobody])
def test_what_nothing_tells_of_stays_booked_once_the_folder_of_its_run_is_gone(agents: Any, tmp_path: Path) -> None:
    """L23: without its folder a call that was made looks like one that never began, which costs nothing."""

    async def story() -> None:
        runtime = House(Budget(usd=1.0), Budgets())
        await runtime.open()
        grant = await begin(runtime.store, runtime.caller(1), wish(usd=0.25, tokens=70))
        folder = tmp_path / CALLS / folder_of("run_1", grant.call_id)
        folder.mkdir(parents=True)
        booked = await runtime.store.spent()
        await settle_left_open(runtime.store, agents, tmp_path, "run_1")
        folder.rmdir()
        await settle_left_open(runtime.store, agents, tmp_path, "run_1")
        assert await runtime.store.spent() == booked == {"agent_time": 600.0, "tokens": 70.0, "usd": 0.25}
        (call,) = await runtime.store.calls()
        assert call.end is not None
        assert (call.end.outcome, call.end.by, call.end.over) == (AgentOutcome.cancelled, SettledBy.booking, ())
        assert (call.end.usage.seconds, call.end.usage.tokens, call.end.usage.usd) == (600.0, 70, 0.25)

    asyncio.run(story())


class FullFirst(Hesitant):
    """A journal on a disk that has no room for the first two settlements."""

    refused = 0

    def __getattr__(self, name: str) -> Any:
        asked = super().__getattr__(name)

        async def late(*args: Any, **kwargs: Any) -> Any:
            if self.refused < 2:
                self.refused += 1
                raise StoreUnavailable("the disk is full")
            return await asked(*args, **kwargs)

        return late if name == "end_call" else asked


def test_what_a_call_used_is_settled_as_soon_as_there_is_room() -> None:
    """L23: given up at once, all that was booked would count as used, and the agent would be paid a second time."""

    async def story() -> None:
        runtime = House(Budget(usd=1.0), Budgets())
        await runtime.open()
        grant = await begin(runtime.store, runtime.caller(1), wish())
        full = FullFirst(runtime.store)
        await end(full, grant, CallEnd(outcome=AgentOutcome.changed, usage=Usage(seconds=5.0, usd=0.5)))
        assert (full.refused, await runtime.store.spent()) == (2, {"agent_time": 5.0, "tokens": 0.0, "usd": 0.5})

    asyncio.run(story())
