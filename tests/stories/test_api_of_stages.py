"""The API over a real supervisor's service, and over a ready repair of the heal loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, HealStage
from service_stage import ServiceStage

from becket.app.compose import App
from becket.kernel.contract.tables import TableStore
from becket.parts.front.accounts import make_key
from becket.parts.front.api import machine
from becket.parts.front.kept import Address
from becket.parts.front.server import Front
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World
from front_stage import PORT, FrontStage


def test_a_service_is_started_looked_at_started_anew_and_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(stage: ServiceStage) -> None:
        app = App.open(stage.state)
        front = FrontStage(World(tmp_path / "unused"), Front(app, Address("127.0.0.1", PORT)))
        secret = await app.port(TableStore).write(make_key, "token", "", 3600.0, "approver", "a test")
        client = front.client(authorization=f"Bearer {secret}")
        async with stage.supervised():
            for verb in ("start", "restart", "stop"):
                answer = await client.post(f"/api/v1/services/main/{verb}")
                assert answer.json()["outcome"]["ending"] in ("done", "kept"), answer.text
            assert (await client.get("/api/v1/services/main")).json()["state"] == "down"
            monkeypatch.setattr(machine, "WAITS", -1.0)
            assert (await client.post("/api/v1/services/main/start")).json()["outcome"] is None
            await stage.until(lambda: stage.serving() is not None)
            assert (await client.post("/api/v1/services/none/start")).status_code == 404
        await front.close()
        await app.store.close()

    with ServiceStage(tmp_path) as stage:
        stage.commit()
        asyncio.run(story(stage))


def test_a_ready_repair_is_shown_and_accepted_as_it_was_seen_by_whoever_may(tmp_path: Path) -> None:
    acts = [Act(writes("calc.py", GOOD))] * 2
    stage = HealStage(tmp_path, ScriptedAgent(acts), config=CONFIG, autonomy="propose")
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())

    async def story() -> None:
        front = FrontStage(stage.world, Front(stage.world.app, Address("127.0.0.1", PORT)))
        member, approver = await front.token("member"), await front.token("approver")
        (listed,) = (await member.get("/api/v1/proposals")).json()
        assert listed["run_id"] == run.run_id
        path = f"/api/v1/proposals/{run.run_id}"
        shown = (await member.get(path)).json()
        assert shown.items() >= listed.items()
        assert "calc.py" in shown["diff"]
        assert len(shown["proof"]) == 64
        assert (await member.post(f"{path}/accept", json={"sha": listed["sha"]})).status_code == 403
        assert (await member.post(f"{path}/decline")).status_code == 403
        stale = await approver.post(f"{path}/accept", json={"sha": "0" * 40})
        assert stale.status_code == 409
        assert (await approver.post(f"{path}/accept", json={"sha": listed["sha"]})).json()["created"]
        declined = await approver.post(f"{path}/decline", json={"why": "late"})
        assert declined.status_code == 409
        await stage.world.settle()
        assert stage.main() == listed["sha"]
        (item,) = await stage.world.store.handoffs((), run.run_id)
        assert item.taken_by is not None
        await front.close()

    asyncio.run(story())


def test_a_ready_repair_is_declined(tmp_path: Path) -> None:
    acts = [Act(writes("calc.py", GOOD))] * 2
    stage = HealStage(tmp_path, ScriptedAgent(acts), config=CONFIG, autonomy="propose")
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())

    async def story() -> None:
        front = FrontStage(stage.world, Front(stage.world.app, Address("127.0.0.1", PORT)))
        approver = await front.token("approver")
        said = await approver.post(f"/api/v1/proposals/{run.run_id}/decline", json={"why": "not so"})
        assert said.json()["run_id"] == run.run_id
        (item,) = await stage.world.store.handoffs((), run.run_id)
        assert (item.state.value, "not so" in item.note) == ("declined", True)
        await front.close()

    asyncio.run(story())
