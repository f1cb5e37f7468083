"""Signed events from outside: each delivery becomes one event, and whoever cannot sign learns nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from api_stage import LOOPS

from becket.kernel.contract.store import RunFilter
from becket.kernel.contract.tables import TableStore, Transaction
from becket.parts.front import hooks
from becket.parts.front.hooks import FRESH, event_id_of, signature
from becket.parts.front.safety import HEARD_PER_MINUTE, REFUSALS_NOTED
from becket.parts.front.tables import AUDIT, DELIVERIES
from front_stage import FrontStage, make_front

SECRET = "a-secret-of-the-hook-7f3a"  # of this test
CONFIG = f"web: {{hooks: {{ci: {{secret: {SECRET}, event: ci.failed}}}}}}\n"


class Sender:
    def __init__(self, folder: Path) -> None:
        self.front: FrontStage = make_front(folder, CONFIG)
        self.front.world.loop(LOOPS[0])
        self.front.world.commit()
        self.client = self.front.client()

    async def send(
        self, body: bytes = b'{"job": 7}', delivery: str = "d-1", hook: str = "ci", *, secret: str = SECRET,
        at: float | None = None, **headers: str,
    ) -> httpx.Response:  # fmt: skip
        told = str(int(time.time() if at is None else at))
        own = {
            "content-type": "application/json", "x-becket-timestamp": told, "x-becket-delivery": delivery,
            "x-becket-signature": signature(secret, told, delivery, body),
        }  # fmt: skip
        return await self.client.post(f"/hooks/{hook}", content=body, headers={**own, **headers})

    async def rows(self, table: sa.Table) -> list[Mapping[str, Any]]:
        def read(tx: Transaction) -> list[Mapping[str, Any]]:
            return [dict(row) for row in tx.conn.execute(sa.select(table)).mappings()]

        return await self.front.world.app.port(TableStore).read(read)

    async def runs(self) -> int:
        return len(await self.front.world.store.list_runs(RunFilter()))


@pytest.fixture
def sender(tmp_path: Path) -> Sender:
    return Sender(tmp_path)


def test_a_signed_delivery_becomes_one_event_however_often_it_comes(sender: Sender) -> None:
    async def story() -> None:
        first = await sender.send()
        assert (first.status_code, first.json()) == (200, {"event_id": event_id_of("ci", "d-1"), "again": False})
        again = await asyncio.gather(*(sender.send() for _ in range(4)))
        assert {(one.status_code, one.json()["event_id"]) for one in again} == {(200, event_id_of("ci", "d-1"))}
        assert await sender.runs() == 1
        (run,) = await sender.front.world.store.list_runs(RunFilter())
        assert run.by == "hook:ci"
        assert len(await sender.rows(DELIVERIES)) == 1

    asyncio.run(story())


def test_a_kill_between_the_event_and_its_row_loses_nothing_and_starts_nothing_twice(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    async def story() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(hooks, "_keep", killed)
            with pytest.raises(KeyboardInterrupt):
                await sender.send()
        assert (await sender.runs(), await sender.rows(DELIVERIES)) == (1, [])
        assert (await sender.send()).json()["again"] is False
        assert (await sender.runs(), len(await sender.rows(DELIVERIES))) == (1, 1)

    asyncio.run(story())


def test_an_unknown_hook_and_a_wrong_signature_look_the_same(sender: Sender) -> None:
    async def story() -> None:
        refused = [
            await sender.send(hook="nothing"),
            await sender.send(secret="another secret of sixteen"),  # not one
            await sender.send(**{"x-becket-delivery": "d-2"}),
            await sender.send(**{"x-becket-timestamp": str(int(time.time()) - 1)}),
            await sender.send(**{"x-becket-signature": ""}),
            await sender.send(delivery="not/a.name"),
            await sender.client.post("/hooks/ci", json={}),
        ]
        assert {(one.status_code, one.text) for one in refused} == {(401, refused[0].text)}
        assert await sender.runs() == 0

    asyncio.run(story())


def test_what_is_old_or_from_the_future_is_refused(sender: Sender) -> None:
    async def story() -> None:
        for off in (-FRESH - 5, FRESH + 5):
            answer = await sender.send(at=time.time() + off)
            assert answer.status_code == 401
            assert "300 s" in answer.json()["detail"]
        assert (await sender.send(at=time.time() - FRESH + 30)).status_code == 200

    asyncio.run(story())


def test_a_body_that_is_no_event_is_said(sender: Sender) -> None:
    async def story() -> None:
        for body, status in ((b"[]", 422), (b"{", 422), (b"", 422), (b'{"a": NaN}', 422), (b" " * 300_000, 413)):
            assert (await sender.send(body, delivery="d-3")).status_code == status, body[:9]
        assert (await sender.send(**{"content-type": "text/plain"})).status_code == 415
        assert await sender.rows(DELIVERIES) == []

    asyncio.run(story())


def test_a_secret_in_an_event_is_taken_out_and_the_event_counts(sender: Sender) -> None:
    async def story() -> None:
        body = json.dumps({"said": f"the key is {SECRET}"}).encode()
        assert (await sender.send(body)).status_code == 200
        (run,) = await sender.front.world.store.list_runs(RunFilter())
        assert SECRET not in run.model_dump_json()

    asyncio.run(story())


def test_a_flood_is_told_to_wait_and_does_not_fill_the_audit(sender: Sender) -> None:
    async def story() -> None:
        codes = [(await sender.send(delivery="same")).status_code for _ in range(HEARD_PER_MINUTE + 1)]
        assert (codes.count(200), codes[-1]) == (HEARD_PER_MINUTE, 429)
        for _ in range(REFUSALS_NOTED + 5):
            await sender.send(hook="nothing")
        noted = await sender.rows(AUDIT)
        assert len(noted) == REFUSALS_NOTED
        assert {one["via"] for one in noted} == {"hook"}

    asyncio.run(story())
