"""Runs of every kind, left alone: they must hold."""

from __future__ import annotations

import asyncio

from verify_stage import rich_story

from becket.app.record.verify import verify_run
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.run import RunStatus
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import RunFilter
from becket.testing.effects import RecordedEffect
from becket.testing.people import person
from becket.testing.world import World

SIMPLE = """
version: 1
loop_id: story
goal: A story is told.
trigger: [{{manual: {{}}}}]
max_iterations: 3
deadline: 1h
autonomy: propose
stop_conditions: [{stop}]
{more}
phases:
  act:
    objective: do
    actions: [{action}]
  verify:
    objective: look
    verifiers: [{{id: look, run: "true", in: scratch}}]
"""
WAITING = (
    '{id: ready, run: "test -e done && exit 0 || exit 3", in: scratch, raises: {"0": outside.ready, "3": outside.busy}}'
)
WAITS = "wait_conditions: {outside.busy: {wake: bell, poll: 30s, for: 10m, then: handoff}}"


def simple(action: str, stop: str = "look.pass", more: str = "") -> str:
    return SIMPLE.format(action=action, stop=stop, more=more)


async def completed(world: World) -> None:
    world.loop(simple('{id: say, run: "echo hi", in: scratch, outputs: {text: stdout}}'))
    assert (await world.run("story")).status is RunStatus.completed


async def retried_action(world: World) -> None:
    world.loop(simple('{id: flaky, run: "echo x >> n; test $(wc -l < n) -ge 3", in: scratch, retry: 2}'))
    assert (await world.run("story")).status is RunStatus.completed


async def two_iterations(world: World) -> None:
    world.loop(simple('{id: say, run: "echo x >> n; test $(wc -l < n) -ge 2", in: scratch}'))
    run = await world.run("story")
    assert (run.status, run.iteration) == (RunStatus.completed, 2)


async def failed(world: World) -> None:
    world.loop(simple('{id: bad, run: "exit 7", in: scratch, on_error: fail}'))
    assert (await world.run("story")).status is RunStatus.failed


async def handed_over(world: World) -> None:
    await rich_story(world)
    (handoff,) = await world.store.handoffs()
    await world.store.change_handoff(handoff.handoff_id, HandoffState.done, person("bob"), "mended \0")


async def expired_handoff(world: World) -> None:
    world.loop(simple('{id: bad, run: "exit 7", in: scratch}'))
    await world.run("story")
    await world.pass_time(40 * 86400)
    (handoff,) = await world.store.handoffs()
    assert handoff.state is HandoffState.expired


async def waiting(world: World) -> None:
    world.loop(simple(WAITING, "outside.ready", WAITS))
    assert (await world.run("story")).status is RunStatus.waiting


async def woken_by_the_clock_and_by_a_signal(world: World) -> None:
    world.loop(simple(WAITING, "outside.ready", WAITS))
    run = await world.run("story")
    await world.pass_time(31)
    (world.app.places.of_run(run.run_id) / "scratch" / "done").touch()
    await world.store.signal(run.run_id, "bell", {"n": 1}, "s1")
    await world.settle()
    assert (await world.store.get_run(run.run_id)).status is RunStatus.completed


async def a_signal_that_came_too_early(world: World) -> None:
    """It is kept, and the run that is about to wait does not sleep."""
    world.loop(simple(WAITING, "outside.ready", WAITS))
    run = await world.start("story")
    await world.store.signal(run.run_id, "bell", {}, "s1")
    await world.settle()
    run = await world.store.get_run(run.run_id)
    assert (run.status, run.iteration) == (RunStatus.waiting, 3)


async def migrated(world: World) -> None:
    world.loop(simple(WAITING, "outside.ready", WAITS))
    run = await world.run("story")
    world.loop(simple(WAITING.replace("test -e done", "true"), "outside.ready", WAITS))
    new = world.app.loops.get("story")
    await world.store.migrate(run.run_id, new.digest, new.text, person("me"))
    await world.store.signal(run.run_id, "bell", {}, "s1")
    await world.settle()
    assert (await world.store.get_run(run.run_id)).status is RunStatus.completed


async def cancelled_while_waiting(world: World) -> None:
    await waiting(world)
    (run,) = await world.store.list_runs(RunFilter())
    await world.store.ask_cancel(run.run_id, person("me"), "enough \0")


async def cancelled_at_work(world: World) -> None:
    world.loop(simple('{id: long, run: "sleep 60", in: scratch}'))
    run = await world.start("story")
    task = asyncio.create_task(world.settle())
    while not await world.store.live_children():
        await asyncio.sleep(0.01)
    await world.store.ask_cancel(run.run_id, person("me"), "enough")
    world.app.engine.interrupt(run.run_id)
    await task
    assert (await world.store.get_run(run.run_id)).status is RunStatus.cancelled


async def held_and_let_go(world: World) -> None:
    world.loop(simple('{id: say, run: "true", in: scratch}'))
    for on in (True, False):
        run = await world.start("story")
        await world.store.hold(run.run_id, person("me"), on=on)
        if not on:
            await world.settle()


async def held(world: World) -> None:
    world.loop(simple('{id: say, run: "true", in: scratch}'))
    await world.store.hold((await world.start("story")).run_id, person("me"), on=True)


async def dry_run(world: World) -> None:
    world.loop(simple("{id: post, uses: http.post, with: {url: https://example.invalid/}}"))
    assert (await world.run("story", dry_run=True)).status is RunStatus.completed_dry_run


async def refused_effect(world: World) -> None:
    world.write("becket.yaml", "version: 1\nautonomy: observe\n")
    world.outside(RecordedEffect("http.post", needs=Autonomy.propose))
    world.loop(simple("{id: post, uses: http.post, with: {url: https://example.invalid/}}"))
    assert (await world.run("story")).reason == "effect_refused"


async def a_notice_under_way_and_delivered_after_the_end(world: World) -> None:
    world.outside(RecordedEffect("http.post", trouble=[EffectFailed("down", retryable=True)]))
    told = "  notify:\n    objective: tell\n    actions: [{id: t, uses: http.post, with: {url: https://example.invalid/}}]\n"
    world.loop(simple('{id: say, run: "true", in: scratch}') + told)
    run = await world.run("story")
    assert not [item for item in await verify_run(world.app, run.run_id, False) if not item.ok], "it is still retrying"
    await world.pass_time(60)
    assert [event.kind for event in await world.store.events(run.run_id)][-1] is EventKind.effect_settled


ASKING = '{id: ask, uses: approval.ask, with: {question: "May it?", about: x}}'
ASKED = "wait_conditions: {approval.asked: {wake: approval, for: 1d}}\nhandoff_conditions: [approval.expired]"


async def an_approval_revoked(world: World) -> None:
    world.loop(simple(ASKING, "approval.approved", ASKED))
    run = await world.run("story")
    (asked,) = await world.store.approvals(run.run_id)
    await world.store.revoke_approval(asked.approval_id, person("ann"), "no")
    await world.settle()


async def an_approval_expired(world: World) -> None:
    world.loop(simple(ASKING.replace("about: x", "about: x, expires: 1m"), "approval.approved", ASKED))
    run = await world.run("story")
    await world.pass_time(61)
    assert (await world.store.get_run(run.run_id)).reason == "approval.expired"


async def a_question_nobody_answered(world: World) -> None:
    """It expires with the run."""
    world.loop(simple(ASKING, "approval.approved", ASKED))
    run = await world.run("story")
    await world.store.ask_cancel(run.run_id, person("me"), "")
    (asked,) = await world.store.approvals(run.run_id)
    assert asked.state == "expired"


async def parent_and_child(world: World) -> None:
    world.loop(simple('{id: say, run: "true", in: scratch}').replace("loop_id: story", "loop_id: child"))
    more = "wait_conditions: {children.pending: {wake: child, for: 1h}}"
    go = "{id: go, uses: run.start, with: {loop: child, subject: one}}, {id: g, uses: run.gather}"
    world.loop(simple(go, "children.completed", more))
    assert (await world.run("story")).status is RunStatus.completed
    assert len(await world.store.list_runs(RunFilter())) == 2


async def superseded(world: World) -> None:
    more = 'subject: "{start}"\nconcurrency: {group: "{repo}", on_busy: newest_waits}'
    world.loop(simple('{id: say, run: "true", in: scratch}', more=more))
    for _ in range(2):
        await world.start("story")
    await world.settle()


async def taken_over_by_another_process(world: World) -> None:
    """The first life claims the run and dies; the second one does it."""
    world.loop(simple('{id: say, run: "true", in: scratch}'))
    run = await world.start("story")
    await world._join()
    assert await world.store.claim(run.run_id, 1, world.app.worker_id, 30.0)
    await world.restart()
    await world.settle()
    assert (await world.store.get_run(run.run_id)).status is RunStatus.completed


STORIES = [
    completed, retried_action, two_iterations, failed, handed_over, expired_handoff, waiting,
    woken_by_the_clock_and_by_a_signal, a_signal_that_came_too_early, migrated, cancelled_while_waiting,
    cancelled_at_work, held, held_and_let_go, dry_run, refused_effect,
    a_notice_under_way_and_delivered_after_the_end, an_approval_revoked, an_approval_expired,
    a_question_nobody_answered, parent_and_child, superseded, taken_over_by_another_process,
]  # fmt: skip
