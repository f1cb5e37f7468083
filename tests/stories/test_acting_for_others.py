"""A chat, a page or a forge acts for somebody else: the rights are theirs, and the journal says who and from where."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from becket.app import desk
from becket.app.keyboard import at_keyboard
from becket.app.record.verify import verify_run
from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import ApprovalState
from becket.kernel.contract.run import Run, RunStatus
from becket.parts.agents.desk import say
from becket.parts.agents.messages import MAIL
from becket.testing.people import person
from becket.testing.world import World

LOOP = """
version: 1
loop_id: ask
goal: People decide.
trigger:
  - manual: {}
  - event: {name: ci.failed}
subject: "{start}"
max_iterations: 3
deadline: 7d
stop_conditions: [approval.approved, fine.pass]
handoff_conditions: [approval.denied, approval.revoked]
wait_conditions:
  approval.asked: {wake: approval, for: 3d}
phases:
  decide:
    objective: Ask.
    actions:
      - {id: may, uses: approval.ask, with: {question: "May I?", about: it}}
  verify:
    objective: Nothing to doubt.
    verifiers:
      - {id: fine, run: "true", in: scratch}
"""
MEMBER = "version: 1\npeople: {nobody: {role: owner, os_user: nobody-here}}\n"
ADA = person("ada", "approver", Via.chat)
EVE = person("eve", "member", Via.page)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Whoever owns this process may decide nothing."""
    world = World(tmp_path)
    world.write("becket.yaml", MEMBER)
    world.loop(LOOP)
    world.commit()
    assert at_keyboard(world.app.config).role == "member"
    return world


async def asked(world: World, by: Caller = ADA) -> Run:
    started = await desk.start(world.app, by, desk.RunRequest(loop_id="ask"))
    assert started.run is not None
    await world.settle()
    return started.run


async def told(world: World, run: Run, kind: EventKind) -> dict[str, Json]:
    (data,) = [event.data for event in await world.store.events(run.run_id) if event.kind is kind]
    return {name: data.get(name) for name in ("by", "role", "via")}


def test_the_rights_are_those_of_whoever_asks(world: World) -> None:
    async def story() -> None:
        run = await asked(world)
        (approval,) = await world.store.approvals(run.run_id)
        for wish in (
            desk.decide(world.app, EVE, approval.approval_id, True, None, ""),
            desk.decide(world.app, at_keyboard(world.app.config), approval.approval_id, True, None, ""),
            desk.revoke(world.app, EVE, approval.approval_id, ""),
        ):
            with pytest.raises(UsageError, match="needs the role approver"):
                await wish
        decided = await desk.decide(world.app, ADA, approval.approval_id, True, None, "")
        assert (decided.state, decided.decided_by, decided.decided_role) == (ApprovalState.approved, "ada", "approver")
        await world.settle()
        end = await world.store.get_run(run.run_id)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert await told(world, run, EventKind.run_created) == ADA.told()
        assert await told(world, run, EventKind.approval_decided) == ADA.told()
        assert all(item.ok for item in await verify_run(world.app, run.run_id, False))

    asyncio.run(story())


def test_every_wish_is_kept_with_its_way_in(world: World) -> None:
    async def story() -> None:
        run = await asked(world, EVE)
        await desk.hold(world.app, ADA, run.run_id, True)
        await desk.hold(world.app, EVE, run.run_id, False)
        (brake,) = await desk.pause(world.app, EVE, "ask", True, "lunch")
        assert (brake.by, brake.role, brake.via) == ("eve", "member", Via.page)
        world.loop(LOOP.replace("objective: Ask.", "objective: Ask a person."))
        await desk.migrate(world.app, ADA, run.run_id)
        ended = await desk.cancel(world.app, EVE, run.run_id, "enough")
        assert ended.detail == {"by": "eve", "note": "enough"}
        for kind, by in (
            (EventKind.run_created, EVE), (EventKind.run_held, ADA), (EventKind.run_unheld, EVE),
            (EventKind.run_migrated, ADA), (EventKind.cancel_asked, EVE),
        ):  # fmt: skip
            assert await told(world, run, kind) == by.told()
        delivery = await say(world.app, ADA, (other := await asked(world)).run_id, "mind the tests")
        (letter,) = (world.app.places.of_run(other.run_id) / MAIL).iterdir()
        assert (delivery.agent, letter.name.partition("-")[2]) == (None, "ada@chat.txt")
        again = (await desk.retry(world.app, ADA, run.run_id)).run
        assert again is not None
        assert await told(world, again, EventKind.run_created) == ADA.told()

    asyncio.run(story())


def test_what_an_event_starts_names_whoever_posted_it_and_a_machine_is_nobody(world: World) -> None:
    async def story() -> None:
        _, (started,) = await desk.post_event(world.app, ADA, "ci.failed", {})
        (own,) = await world.app.triggers.post("ci.failed", {}, "e2")
        assert started.run is not None
        assert own.run is not None
        assert (started.run.trigger, started.run.by, own.run.by) == ("event", "ada", "becket")
        assert await told(world, started.run, EventKind.run_created) == ADA.told()
        assert await told(world, own.run, EventKind.run_created) == {"by": "becket", "role": None, "via": "becket"}

    asyncio.run(story())
