"""Another process holds the journal's write lock for longer than SQLite waits."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from cli_stage import wait_for
from damage_world import Shop

from becket.kernel.contract.errors import StoreBusy
from becket.kernel.store import open_sqlite

pytestmark = pytest.mark.slow


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")


def test_what_an_agent_made_under_a_lock_is_used(tmp_path: Path) -> None:
    """Good work is neither thrown away nor paid for twice, and nobody is blamed."""
    shop = Shop(tmp_path)
    shop.becket("run", "heal")
    shop.break_it()
    shop.hold()
    heal = shop.start("run", "heal")
    wait_for(lambda: shop.agent_waits)
    with write_lock(shop.paths.database):
        shop.release()
        time.sleep(14)  # the agent is over long before; what it made waits for the journal
    answer = shop.end(heal)
    assert answer.code == 0, answer.out + answer.err
    assert len(shop.promoted()) == 1
    with closing(sqlite3.connect(shop.paths.database)) as raw:
        calls = raw.execute("SELECT step_id, json_extract(result, '$.outcome') FROM agent_calls").fetchall()
        claims = raw.execute("SELECT epoch FROM runs ORDER BY number DESC LIMIT 1").fetchone()
    assert calls == [("fix", "changed"), ("holdout", "changed")]
    assert claims == (1,)
    assert "rescue" not in shop.git("for-each-ref")


def test_a_writer_that_waits_for_a_lock_holds_up_nobody_else(tmp_path: Path) -> None:
    """Heartbeats, services and people are answered meanwhile; and nothing was written when it gives up."""
    path = tmp_path / "journal.db"

    async def story() -> int:
        store, rounds = open_sqlite(path), 0
        writing = asyncio.create_task(store.raise_alert("a", "text", {}))
        while not writing.done():
            await asyncio.sleep(0.1)
            rounds += 1
        with pytest.raises(StoreBusy, match="locked"):
            writing.result()
        assert await store.alerts() == ()
        await store.close()
        return rounds

    asyncio.run(open_sqlite(path).close())
    with write_lock(path):
        assert asyncio.run(story()) > 10
