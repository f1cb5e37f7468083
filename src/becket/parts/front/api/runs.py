"""Runs: what there is, what they left, and what may be asked of them."""

from __future__ import annotations

from becket.app import desk
from becket.app.record.report.collect import read_report
from becket.app.record.report.model import Report
from becket.app.record.shown import LogExcerpt, WholeRun, step_log, whole_run
from becket.app.record.story import read_story
from becket.app.record.verify import verified
from becket.kernel.contract.base import Record
from becket.kernel.contract.events import Event
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import Run, RunStatus, Started, Step
from becket.kernel.contract.store import RunFilter
from becket.parts.agents import desk as agents
from becket.parts.front.api.asks import (
    AgentMessage,
    EventsWanted,
    LogWanted,
    NewRunWanted,
    Nothing,
    Reason,
    RunsWanted,
    StepsWanted,
    VerifyWanted,
)
from becket.parts.front.asked import Asked


class RunsFound(Record):
    """The newest first. `next` is the cursor of the next page; null: this is the last one."""

    runs: tuple[Run, ...]
    next: str | None


class CheckShown(Record):
    ok: bool
    what: str
    detail: str


class VerifiedRun(Record):
    """`head` is the digest of the run's last event: kept elsewhere, it proves later that nobody wrote all anew."""

    run_id: str
    ok: bool
    checks: tuple[CheckShown, ...]
    head: str


async def list_runs(asked: Asked, given: RunsWanted) -> RunsFound:
    where = RunFilter(
        loop_id=given.loop, subject=given.subject, since=given.since, before=given.cursor, limit=given.limit + 1,
        statuses=tuple(map(RunStatus, filter(None, given.status.split(",")))),
    )  # fmt: skip
    found = await asked.app.store.list_runs(where)
    runs = found[: given.limit]
    return RunsFound(runs=runs, next=runs[-1].run_id if len(found) > given.limit else None)


async def start_run(asked: Asked, given: NewRunWanted) -> Started:
    return await desk.start(asked.app, asked.caller(), desk.RunRequest(**dict(given)))


async def show_run(asked: Asked, given: Nothing) -> WholeRun:
    return whole_run(await read_story(asked.app, asked.params["run"]))


async def report_run(asked: Asked, given: Nothing) -> Report:
    return await read_report(asked.app, asked.params["run"])


async def list_events(asked: Asked, given: EventsWanted) -> tuple[Event, ...]:
    return await asked.app.store.events(await asked.run_id(), given.after, given.limit)


async def list_steps(asked: Asked, given: StepsWanted) -> tuple[Step, ...]:
    return await asked.app.store.steps(await asked.run_id(), given.iteration)


async def list_receipts(asked: Asked, given: Nothing) -> tuple[StoredReceipt, ...]:
    return await asked.app.store.receipts(await asked.run_id())


async def read_log(asked: Asked, given: LogWanted) -> LogExcerpt:
    return await step_log(asked.app, asked.params["run"], asked.params["step"], given.bytes)


async def verify_run(asked: Asked, given: VerifyWanted) -> VerifiedRun:
    """Nothing is repeated: that is for whoever sits at the machine."""
    found = await verified(asked.app, asked.params["run"], False, given.head)
    checks = tuple(CheckShown(ok=one.ok, what=one.what, detail=one.detail) for one in found.checks)
    return VerifiedRun(run_id=found.run_id, ok=found.ok, checks=checks, head=found.head)


async def cancel_run(asked: Asked, given: Reason) -> Run:
    return await desk.cancel(asked.app, asked.caller(), asked.params["run"], given.reason)


async def retry_run(asked: Asked, given: Nothing) -> Started:
    return await desk.retry(asked.app, asked.caller(), asked.params["run"])


async def hold_run(asked: Asked, given: Nothing) -> Run:
    return await desk.hold(asked.app, asked.caller(), asked.params["run"], True)


async def release_run(asked: Asked, given: Nothing) -> Run:
    return await desk.hold(asked.app, asked.caller(), asked.params["run"], False)


async def drop_run(asked: Asked, given: Nothing) -> Run:
    return await desk.drop(asked.app, asked.caller(), asked.params["run"])


async def migrate_run(asked: Asked, given: Nothing) -> Run:
    return await desk.migrate(asked.app, asked.caller(), asked.params["run"])


async def tell_agent(asked: Asked, given: AgentMessage) -> agents.MessageDelivery:
    return await agents.say(asked.app, asked.caller(), asked.params["run"], given.text)
