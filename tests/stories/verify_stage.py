"""A run that leaves a row in every table, and a copy of it on disk to be tampered with."""

from __future__ import annotations

import asyncio
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from becket.app.compose import App
from becket.app.record.verify import Verified, verified
from becket.app.state import find_state
from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.agent import AgentOutcome, Limits, PriceSource, Usage
from becket.kernel.contract.base import Record
from becket.kernel.contract.calls import CallEnd, CallRequest
from becket.kernel.contract.condition import Condition, ConditionGroup, Lifetime
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.run import RunStatus
from becket.kernel.store import open_sqlite
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket.testing.world import World

RICH = """
version: 1
loop_id: rich
goal: Leave a row in every table.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 1h
autonomy: propose
subject: "{who}@{sha}"
inputs: {who: {type: string}}
stop_conditions: [look.pass]
wait_conditions: {answer.asked: {wake: approval, for: 1d}}
phases:
  discover:
    objective: read
    actions: [{id: say, run: "echo hello", in: scratch, outputs: {text: stdout}}]
    persist_outputs: [say.text]
  plan:
    objective: ask
    actions:
      - id: ask
        uses: approval.ask
        with: {question: "May it?", about: "{say.text}", of: answer, keep: run}
        when: not answer.approved
  act:
    objective: do
    actions:
      - {id: mark, uses: test.mark, when: answer.approved}
      - {id: post, uses: http.post, with: {url: https://example.invalid/, body: {a: 1}}, when: answer.approved}
  verify:
    objective: look
    verifiers: [{id: look, run: "echo not yet; exit 1", in: scratch, when: answer.approved}]
"""


async def pay(context: ActionContext) -> None:
    """A call that is settled, one whose end nobody sees, and something that was used without a call."""
    limits = Limits(seconds=60.0, turns=9, tokens=900, usd=0.5)
    lost, made = [
        await context.begin_call(CallRequest(label=label, agent="fixer", driver="test", model="m", limits=limits))
        for label in ("lost", "made")
    ]
    assert lost.call_id != made.call_id
    usage = Usage(seconds=7.5, turns=2, input_tokens=10, output_tokens=5, usd=0.125, priced=PriceSource.table)
    await context.end_call(made, CallEnd(outcome=AgentOutcome.changed, reason="done \0", usage=usage))
    await context.spend("usd", 0.25)


async def mark(context: ActionContext, params: Record) -> Result:
    """Something of every kind, in values that JSON flattens."""
    await pay(context)
    await context.keep(f"mark {context.run.iteration}".encode(), "mark/of.txt")
    evidence = {"numbered": {10: "ten", 9: "nine"}, "pair": (1, 2), "broken": "half \ud800 \0"}
    return Result(
        outputs={"numbers": {10: 1, 9: 2}, "where": Path("somewhere")},
        conditions=(Condition(object="it", name="marked", life=Lifetime.run, evidence=evidence),),
        facts={"proven": "main@1"},
        note="nothing \0 to see",
    )


def ready(world: World) -> World:
    raises = (ConditionGroup(object="it", names=("marked",), life=Lifetime.run),)
    outputs, facts = ("numbers", "where"), ("proven",)
    world.action(ActionDef(name="test.mark", summary="marks", run=mark, raises=raises, outputs=outputs, facts=facts))
    world.outside(RecordedEffect("http.post"))
    return world


async def rich_story(world: World) -> str:
    """Asked, approved, at work over two counted iterations, handed to a person who took it."""
    world.loop(RICH)
    run = await world.run("rich", inputs={"who": "main"})
    (asked,) = await world.store.approvals(run.run_id)
    await world.store.decide_approval(asked.approval_id, True, person("ann"), asked.bound_to, "go on")
    await world.settle()
    run = await world.store.get_run(run.run_id)
    assert (run.status, run.counted, run.iteration) == (RunStatus.ready_for_handoff, 2, 3)
    (handoff,) = await world.store.handoffs(run_id=run.run_id)
    await world.store.change_handoff(handoff.handoff_id, HandoffState.taken, person("bob"), "mine")
    return run.run_id


@dataclass(frozen=True, slots=True)
class Copy:
    """A finished run on disk, to be tampered with."""

    root: Path
    run_id: str

    @property
    def state(self) -> Path:
        return self.root / ".git" / "becket"

    def sql(self, *statements: str, **params: Any) -> None:
        with sqlite3.connect(self.state / "becket.db") as journal:
            for statement in statements:
                assert journal.execute(statement, params).rowcount, f"nothing was changed by {statement}"
        journal.close()

    def all(self, query: str, **params: Any) -> list[dict[str, Any]]:
        with sqlite3.connect(self.state / "becket.db") as journal:
            journal.row_factory = sqlite3.Row
            rows = [dict(row) for row in journal.execute(query, params)]
        journal.close()
        return rows

    def one(self, query: str, **params: Any) -> dict[str, Any]:
        (row,) = self.all(query, **params)
        return row

    def verify(self, head: str | None = None, *, rerun: bool = False) -> Verified:
        async def look() -> Verified:
            state = find_state(self.root)
            store = open_sqlite(state.database)
            try:
                return await verified(App(state, store), self.run_id, rerun, head)
            finally:
                await store.close()

        return asyncio.run(look())


def bad(found: Verified) -> list[str]:
    return [item.what for item in found.checks if not item.ok]
