"""A loop that smokes and releases: engine, door, socket and supervisor together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from service_stage import ServiceStage

from becket.kernel.contract.effect import EffectCall, Origin
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.spec import Autonomy
from becket.kernel.engine.door import Door, Patience
from becket.parts.services.actions import ACTIONS
from becket.parts.services.effect import ReleaseEffect
from becket.parts.services.ports import ReleaseState
from becket.testing.world import World

LOOP = """
version: 1
loop_id: ship
goal: A commit serves.
trigger: [{manual: {}}]
subject: "{branch}@{sha}"
max_iterations: 1
deadline: 1h
autonomy: release
stop_conditions: [candidate.smoke_ok, release_settled, fine.pass]
handoff_conditions: [candidate.smoke_failed, release_rolled_back, release_failed]
phases:
  discover:
    objective: Know the commit.
    actions: [{id: base, uses: git.read_base, with: {branch: main}}]
  verify:
    objective: It answers.
    actions: [{id: smoke, uses: service.smoke, with: {sha: "{base.sha}"}}]
    verifiers: [{id: fine, run: "true", in: scratch}]
  decide:
    objective: It serves.
    actions:
      - {id: ship, uses: service.release, with: {sha: "{base.sha}", proof: "a test"}, when: candidate.smoke_ok}
    persist_outputs: [ship.released]
"""


class Ship:
    """A repository with a service, and an engine over it."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder)
        if "service.release" not in self.world.app.registry.actions:
            self.world.action(*ACTIONS)
        self.stage = ServiceStage(folder)
        self.world.loop(LOOP)

    async def run(self) -> Run:
        return await self.world.run("ship")

    async def evidence(self, run: Run, ref: str) -> dict[str, object]:
        conditions = await self.world.store.conditions(run.run_id)
        return next(one.evidence for one in conditions if one.ref == ref)


def test_a_loop_smokes_and_releases_and_a_bad_commit_ends_at_a_person(tmp_path: Path) -> None:
    """L8: the effect carries the exact commit and its proof; a rolled back release is never `completed`."""
    ship = Ship(tmp_path)
    with ship.stage as stage:
        good = stage.commit()

        async def story() -> None:
            async with stage.supervised():
                run = await ship.run()
                assert run.status is RunStatus.completed, run.reason
                assert stage.serving() == good
                assert stage.of(good).proof == "a test"
                stage.commit(dies_at=0.1)
                run = await ship.run()
                assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "release_rolled_back")
                assert stage.serving() == good
                stage.commit(dies_at=0, in_smoke=True)
                run = await ship.run()
                assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "candidate.smoke_failed")

        asyncio.run(story())
        assert stage.states() == [ReleaseState.kept, ReleaseState.rolled_back]


def test_without_a_watchdog_the_order_fails_with_what_to_do(tmp_path: Path) -> None:
    ship = Ship(tmp_path)
    payload = {"service": "main", "sha": "0" * 40, "proof": ""}
    call = EffectCall(name="service.release", target="main", payload=payload)

    async def story() -> None:
        adapter = ReleaseEffect(ship.stage.state.watchdog_socket)
        door = Door(
            ship.world.store, {adapter.name: adapter}, ship.world.app.redactor, {}, patience=Patience(delays=(0.0,))
        )
        with pytest.raises(EffectFailed, match="becket up"):
            await door.perform(call, Origin(run_id="alarm:x"), None, Autonomy.release, dry_run=False)

    asyncio.run(story())


@pytest.mark.parametrize(("autonomy", "why"), [("merge", "autonomy is merge"), ("release", "nothing to release")])
def test_nothing_to_release_is_said_as_such(tmp_path: Path, autonomy: str, why: str) -> None:
    ship = Ship(tmp_path)
    with ship.stage as stage:
        stage.commit()
        text = (stage.root / "becket.yaml").read_text().replace("autonomy: release", f"autonomy: {autonomy}")
        ship.world.commit({"becket.yaml": text if autonomy == "merge" else text.split("services:")[0]})

        async def story() -> None:
            run = await ship.run()
            assert run.status is RunStatus.completed, run.reason
            claim = (await ship.evidence(run, "release_settled"))["why"]
            assert why in str(claim)

        asyncio.run(story())
        assert stage.book.services() == ()
