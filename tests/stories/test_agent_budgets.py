"""Budgets of runs, loops, days and months, as a loop meets them: asked before each call, settled after it (L23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from becket.app.record.verify import verify_run
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import AgentOutcome, Limits, Usage
from becket.kernel.contract.base import Record
from becket.kernel.contract.calls import CallEnd, CallGrant, CallRequest
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import Run, RunStatus, Step, StepState
from becket.testing.crashes import Crashed, crashing
from becket.testing.world import World

LOOP = """
version: 1
loop_id: {loop}
goal: Something is bought.
trigger: [{{manual: {{}}}}]
inputs: {{n: {{type: string, optional: true, default: "0"}}}}
subject: "{loop}/{{n}}"
max_iterations: 2
deadline: 10h
stop_conditions: [look.pass]
budget: {budget}
phases:
  act:
    objective: buy
    actions: [{{id: buy, uses: test.buy, retry: 2, timeout: {timeout}}}]
  verify:
    objective: look
    verifiers: [{{id: look, run: "true", in: scratch}}]
"""
USED = Usage(seconds=60.0, turns=1, output_tokens=500, usd=2.0)


class Shop:
    """An action that calls once, and settles what an earlier life of it left open."""

    def __init__(self, world: World, **limits: Any) -> None:
        self.world = world
        self.limits = Limits(**{"seconds": 1800.0, **limits})
        self.grants: list[CallGrant] = []
        self.settled: list[str] = []
        self.made = 0
        self.after: Callable[[ActionContext, CallGrant], Any] | None = None
        world.action(ActionDef(name="test.buy", summary="buys", run=self.buy, outputs=("n",), calls_agent=True))

    async def buy(self, context: ActionContext, params: Record) -> Result:
        for call in await context.open_calls():
            usage = USED if (context.folder("calls") / "made").exists() else Usage()
            await context.end_call(call.grant, CallEnd(outcome=AgentOutcome.crashed, usage=usage))
            self.settled.append(call.call_id)
        wish = CallRequest(label="it", agent="fixer", driver="test", limits=self.limits)
        grant = await context.begin_call(wish)
        self.grants.append(grant)
        self.made += 1
        context.folder("calls").mkdir(parents=True, exist_ok=True)
        (context.folder("calls") / "made").touch()
        if self.after is not None:
            await self.after(context, grant)
        await context.end_call(
            grant, CallEnd(outcome=AgentOutcome.changed, reason="key=sk-ant-api03-" + "a" * 40, usage=USED)
        )
        return Result(outputs={"n": self.made})

    def loop(self, name: str = "shop", budget: str = "{agent_time: 9h}", timeout: str = "2h") -> None:
        self.world.loop(LOOP.format(loop=name, budget=budget, timeout=timeout))

    async def step(self, run: Run) -> Step:
        return next(step for step in await self.world.store.steps(run.run_id) if step.id == "buy")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(World(tmp_path))


def budgets(shop: Shop, text: str) -> None:
    shop.world.write("becket.yaml", f"version: 1\nautonomy: propose\nbudgets: {text}\n")


def test_within_its_budgets_a_call_is_recorded_and_settled(shop: Shop) -> None:
    shop.loop()
    run = asyncio.run(shop.world.run("shop"))
    assert run.status is RunStatus.completed
    assert shop.grants[0].limits == Limits(seconds=1800.0)
    (call,) = asyncio.run(shop.world.store.calls(run.run_id))
    assert (call.loop_id, call.phase, call.step_id, call.agent) == ("shop", "act", "buy", "fixer")
    assert call.end is not None
    assert call.end.usage == USED
    assert "sk-ant" not in call.end.reason, "L25: what a program said is kept without secrets"
    assert asyncio.run(shop.world.store.spent(run.run_id)) == {"agent_time": 60.0, "tokens": 500.0, "usd": 2.0}


@pytest.mark.parametrize(
    ("agent", "bound", "why"),
    [
        ("{driver: codex, model: local}", "{day: {usd: 4}}", "`budgets.day.usd` cannot be held, the price of 'local'"),
        ("{driver: codex, model: local}", "{loops: {shop: {month: {usd: 4}}}}", "`budgets.loops.shop.month.usd`"),
        ("{driver: acp, run: gemini --acp, model: local}", "{month: {usd: 4}}", "`budgets.month.usd`"),
        ("{driver: codex, model: local}", "{loops: {heal: {day: {usd: 4}}}, day: {tokens: 9000}}", ""),
        ("{driver: codex, model: gpt-5.4}", "{day: {usd: 4}}", ""),
        ("{driver: codex, model: ours}", "{day: {usd: 4}}", ""),
        ("{driver: codex}", "{day: {usd: 4}}", ""),
        ("{driver: claude, model: local}", "{day: {usd: 4}}", "`budgets.day.usd` cannot be held"),
        ("{driver: acp, run: claude-agent-acp, model: local}", "{day: {usd: 4}}", "`budgets.day.usd` cannot be held"),
        ("{driver: claude, model: local, limits: {usd: 1}}", "{}", "`agents.fixer.limits.usd` cannot be held"),
        ("{driver: claude, model: claude-opus-5}", "{day: {usd: 4}}", ""),
        ("{driver: claude}", "{day: {usd: 4}}", ""),
        ("{driver: command, run: x, model: local}", "{day: {usd: 4}}", ""),
    ],
)
def test_a_budget_in_money_that_nobody_could_hold_is_refused_before_the_call(
    shop: Shop, agent: str, bound: str, why: str
) -> None:
    """L21: of whichever driver. One whose model has a price, or that may yet tell its model, goes on: Claude Code tells
    its cost, but at its end only, and a call that is stopped has none.
    """
    prices = "{ours: {input: 0, output: 0}}"
    shop.world.write(
        "becket.yaml",
        f"version: 1\nsandbox: none\nagents: {{fixer: {agent}}}\nbudgets: {bound}\nprices: {prices}\n",
    )
    shop.loop()
    run = asyncio.run(shop.world.run("shop"))
    step = asyncio.run(shop.step(run))
    assert shop.made == (0 if why else 1)
    assert len(asyncio.run(shop.world.store.calls(run.run_id))) == shop.made
    if why:
        assert (step.state, step.error_kind, step.attempts) == (StepState.failed, "budget_unheld", 1)
        assert why in (step.error or "")
        assert "`prices: {local: {input: " in (step.error or "")


def test_a_spent_budget_of_today_hands_the_run_over_and_tomorrow_is_another_day(shop: Shop) -> None:
    """Not retried, not called: the step fails with the budget's name, and so does the run's handoff."""
    shop.loop()
    shop.loop("other")
    budgets(shop, "{day: {usd: 4}}")

    async def story() -> None:
        for loop in ("shop", "other"):
            assert (await shop.world.run(loop)).status is RunStatus.completed
        assert [grant.limits.usd for grant in shop.grants] == [4.0, 2.0]
        assert shop.grants[1].cut_by == ("the usd budget of today (2 usd)",)
        run = await shop.world.run("shop", inputs={"n": "2"})
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "budget_exhausted")
        assert run.detail == {"budget": "the usd budget of today", "used": 4.0, "limit": 4.0}
        step = await shop.step(run)
        assert (step.state, step.error_kind, step.attempts) == (StepState.failed, "budget_exhausted", 1)
        assert step.error == "the usd budget of today is used up (4 of 4)"
        assert shop.made == 2
        await shop.world.pass_time(86_400)
        assert (await shop.world.run("shop", inputs={"n": "3"})).status is RunStatus.completed

    asyncio.run(story())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{loops: {shop: {day: {tokens: 500}}}}", "the token budget of the loop shop for today"),
        ("{loops: {shop: {month: {agent_time: 1m}}}}", "the agent time budget of the loop shop for this month"),
        ("{month: {agent_time: 60.5s}}", "the agent time budget of this month"),
    ],
)
def test_a_budget_is_named_in_plain_words(text: str, name: str, shop: Shop) -> None:
    shop.loop()
    shop.loop("other")
    budgets(shop, text)

    async def story() -> None:
        await shop.world.run("shop")
        run = await shop.world.run("shop", inputs={"n": "2"})
        assert (run.reason, run.detail["budget"]) == ("budget_exhausted", name)
        other = await shop.world.run("other")
        assert other.status is (RunStatus.completed if "loop shop" in name else RunStatus.ready_for_handoff)

    asyncio.run(story())


def test_a_run_without_a_usd_left_is_not_begun_at_all(shop: Shop) -> None:
    shop.loop(budget="{usd: 0}")
    run = asyncio.run(shop.world.run("shop"))
    assert (run.reason, shop.made) == ("budget_exhausted", 0)


async def told_once_each(world: World, run: Run) -> bool:
    """Every call is booked once and settled once by the chain, and the chain and the rows agree."""
    events = await world.store.events(run.run_id)
    for kind in (EventKind.call_booked, EventKind.call_settled):
        told = [event.data["call"] for event in events if event.kind is kind]
        assert sorted(told) == sorted(call.call_id for call in await world.store.calls(run.run_id))
    return all(item.ok for item in await verify_run(world.app, run.run_id, rerun=False))


@pytest.mark.parametrize(
    ("point", "usd"),
    [
        ("store.begin_call.before_commit", 2.0),
        ("store.begin_call.after_commit", 2.0),
        ("money.call_booked", 2.0),
        ("money.call_made", 4.0),
        ("store.end_call.before_commit", 4.0),
        ("store.end_call.after_commit", 4.0),
        ("money.call_settled", 4.0),
    ],
)
def test_a_killed_call_stays_booked_until_the_next_life_settles_it(point: str, usd: float, shop: Shop) -> None:
    """The booking takes all of the run's budget, and the run goes on all the same once it is known what was used."""
    shop.loop(budget="{usd: 5}")

    async def story() -> None:
        run = await shop.world.start("shop")
        with crashing(point), pytest.raises(Crashed):
            await shop.world.settle()
        booked = (await shop.world.store.spent(run.run_id)).get("usd", 0.0)
        settled_before = point in ("store.end_call.after_commit", "money.call_settled")
        assert booked == (0.0 if point.startswith("store.begin_call.before") else 2.0 if settled_before else 5.0)
        await shop.world.restart()
        await shop.world.settle()
        assert (await shop.world.store.get_run(run.run_id)).status is RunStatus.completed
        assert (await shop.world.store.spent(run.run_id))["usd"] == usd
        assert all(call.end is not None for call in await shop.world.store.calls(run.run_id))
        assert len(shop.settled) == (0 if settled_before or booked == 0.0 else 1)
        assert await told_once_each(shop.world, run)

    asyncio.run(story())


def test_a_killed_call_that_nobody_settles_is_paid_in_full(shop: Shop) -> None:
    """What may have been used counts as used: the next life gets the rest, and here there is none."""
    shop.loop(budget="{usd: 5}")

    async def give_up(context: ActionContext, params: Record) -> Result:
        await context.begin_call(CallRequest(label="it", agent="fixer", driver="test", limits=shop.limits))
        return Result(outputs={"n": 1})

    shop.world.action(ActionDef(name="test.buy", summary="buys", run=give_up, outputs=("n",)))

    async def story() -> None:
        run = await shop.world.start("shop")
        with crashing("money.call_booked"), pytest.raises(Crashed):
            await shop.world.settle()
        await shop.world.restart()
        await shop.world.settle()
        run = await shop.world.store.get_run(run.run_id)
        assert run.detail == {"budget": "this run's usd budget", "used": 5.0, "limit": 5.0}
        assert await told_once_each(shop.world, run), "with its run over, it is seen that it never began"

    asyncio.run(story())


def test_a_run_that_was_taken_over_still_settles_what_it_used(shop: Shop) -> None:
    shop.loop()

    async def lose_the_claim(context: ActionContext, grant: CallGrant) -> None:
        shop.after = None
        await shop.world.store.give_back(context.run.run_id, context.run.epoch)

    shop.after = lose_the_claim

    async def story() -> None:
        run = await shop.world.run("shop")
        assert run.status is RunStatus.completed
        calls = await shop.world.store.calls(run.run_id)
        assert [call.end is not None for call in calls] == [True, True]
        assert shop.settled == []
        assert (await shop.world.store.spent())["usd"] == 4.0
        assert await told_once_each(shop.world, run)

    asyncio.run(story())


def test_a_call_gets_no_more_time_than_its_step_has(shop: Shop) -> None:
    shop.loop(timeout="10m")
    asyncio.run(shop.world.run("shop"))
    assert 540 < shop.grants[0].limits.seconds <= 600
    assert shop.grants[0].cut_by[0].startswith("the time that is left for this step (")


def test_two_calls_with_one_label_are_a_mistake_not_a_free_call(shop: Shop) -> None:
    shop.loop()

    async def again(context: ActionContext, grant: CallGrant) -> None:
        await context.begin_call(CallRequest(label="it", agent="fixer", driver="test", limits=shop.limits))

    shop.after = again

    async def story() -> None:
        step = await shop.step(await shop.world.run("shop"))
        assert (step.error_kind, step.attempts) == ("call_label", 1)

    asyncio.run(story())
