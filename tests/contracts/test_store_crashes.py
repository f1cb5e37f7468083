"""Contract of the store: a kill -9 before a commit leaves nothing, after it leaves everything (SQLite, real kills)."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from store_worlds import (
    START,
    agent_call,
    asleep,
    claimed,
    contents,
    new_run,
    question,
    recorded,
    started,
    wait_for,
    worker,
)

from becket.kernel.contract import crash
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.calls import CallEnd
from becket.kernel.contract.effect import EffectCall, EffectState, Origin
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.run import Move
from becket.kernel.contract.spec import EffectClass
from becket.kernel.contract.store import ArtifactRef, Carried, Claim, Cursor, End, Store
from becket.kernel.store import open_sqlite, points
from becket.testing.people import person

LATER = START + 1000.0
CALL = EffectCall(name="http.post", target="https://x")
OTHER_CHILD = ChildRef(pid=2, started=2, boot="b")


async def prepare(store: Store) -> Claim:
    """A journal in which every operation below has something to do."""
    claim = await claimed(store, "run_work", group="g", deadline=1e6)
    await started(store, "run_next", group="g", deadline=1e6)
    await started(store, "run_queued", deadline=1e6)
    await asleep(store, await claimed(store, "run_asleep", deadline=1e6), wait_for("go", START + 500))
    await store.intend("k", Origin(run_id="run_work"), 1, CALL, "d", EffectClass.keyed, EffectState.intended, START)
    await store.ask_approval("run_work", 1, question(run_id="run_work", expires_at=LATER * 2))
    await store.ask_approval("run_work", 1, question("apr_2", run_id="run_work", bound_to="b", expires_at=LATER * 2))
    await store.decide_approval("apr_2", True, person("ann"), "b", "")
    await store.child_started("run_work", 1, OTHER_CHILD, ["sh"])
    await store.begin_call(agent_call("call_open", "run_work"), 1, {"usd": 2.0}, ())
    await store.fire(None, Cursor(name="held:1", value="1"), [])
    await started(store, "run_over")
    await store.ask_cancel("run_over", person("ann"), "")
    return claim


def operations(store: Store, claim: Claim) -> dict[str, Callable[[], Awaitable[Any]]]:
    run_id, epoch = claim.run.run_id, claim.run.epoch
    origin, intended = Origin(run_id=run_id), EffectState.intended
    artifact = ArtifactRef(
        digest="d" * 64, name="log", size=1, run_id=run_id, iteration=1, phase="act", action_id="a"
    )  # fmt: skip
    return {
        "start_run": lambda: store.start_run(new_run("run_new", group="g", on_busy="newest_waits", origin_key="o")),
        "claim": lambda: store.claim("run_queued", 1, "w2", 30),
        "record": lambda: store.record(run_id, epoch, recorded(claim)),
        "next_iteration": lambda: store.next_iteration(run_id, epoch, Carried(last="x"), True),
        "wait": lambda: store.wait(run_id, epoch, [wait_for("x", LATER + 5)], {}, Carried()),
        "end": lambda: store.end(run_id, epoch, End(move=Move.complete, reason="done")),
        "signal": lambda: store.signal("run_asleep", "go", {}, "s"),
        "wake_due": store.wake_due,
        "requeue_lost": store.requeue_lost,
        "ask_cancel": lambda: store.ask_cancel("run_asleep", person("ann"), ""),
        "intend": lambda: store.intend("k2", origin, epoch, CALL, "d", EffectClass.keyed, intended, LATER),
        "attempt": lambda: store.attempt("k", epoch, LATER),
        "settle": lambda: store.settle("k", epoch, EffectState.done, {}, ""),
        "ask_approval": lambda: store.ask_approval(run_id, epoch, question("apr_3", run_id=run_id, bound_to="c")),
        "decide_approval": lambda: store.decide_approval("apr_1", True, person("ann"), None, ""),
        "use_approval": lambda: store.use_approval("apr_2", run_id, epoch, "b", "e"),
        "fire": lambda: store.fire(None, Cursor(name="c", value="1"), [new_run("run_new")]),
        "reserve": lambda: store.reserve("k", run_id, epoch, {"usd": 1.0}, ()),
        "begin_call": lambda: store.begin_call(agent_call("call_new", run_id), epoch, {"usd": 1.0}, ()),
        "end_call": lambda: store.end_call("call_open", CallEnd(outcome=AgentOutcome.changed), {"usd": 0.5}),
        "child_started": lambda: store.child_started(run_id, epoch, ChildRef(pid=1, started=1, boot="b"), ["sh"]),
        "child_ended": lambda: store.child_ended(OTHER_CHILD),
        "refer": lambda: store.refer(artifact, epoch),
        "followed": lambda: store.followed("run_over"),
        "drop_cursors": lambda: store.drop_cursors(["held:1"]),
        "join": lambda: store.join(worker("w9"), alone=True),
        "leave": lambda: store.leave("w1"),
    }


async def _prepared(path: Path) -> Claim:
    store = open_sqlite(path, lambda: START)
    claim = await prepare(store)
    await store.close()
    return claim


async def _do(path: Path, claim: Claim, name: str) -> None:
    store = open_sqlite(path, lambda: LATER)
    await operations(store, claim)[name]()
    await store.close()


async def _look(path: Path) -> dict[str, Any]:
    store = open_sqlite(path, lambda: LATER)
    seen = await contents(store)
    await store.close()
    return seen


class Killed:
    """A process that has imported everything already and forks a victim for every request."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def at(self, point: str, path: Path, claim: Claim, name: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\t".join((point, str(path), name, claim.model_dump_json())) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def stop(self) -> None:
        self._process.communicate()


@pytest.fixture(scope="module")
def killed() -> Iterator[Killed]:
    process = Killed()
    yield process
    process.stop()


def test_every_point_has_its_operation(tmp_path: Path) -> None:
    claim = asyncio.run(_prepared(tmp_path / "j.db"))
    store = open_sqlite(tmp_path / "j.db")
    assert set(operations(store, claim)) == set(points.BEFORE) == set(points.AFTER)
    assert {point.name for point in (*points.BEFORE.values(), *points.AFTER.values())} <= set(crash.points())
    asyncio.run(store.close())


@pytest.mark.parametrize("name", sorted(points.BEFORE))
def test_a_kill_before_the_commit_leaves_nothing_and_after_it_everything(
    name: str, tmp_path: Path, killed: Killed
) -> None:
    claim = asyncio.run(_prepared(tmp_path / "prepared.db"))
    for copy in ("done", "before", "after"):
        shutil.copy(tmp_path / "prepared.db", tmp_path / f"{copy}.db")
    untouched = asyncio.run(_look(tmp_path / "prepared.db"))
    asyncio.run(_do(tmp_path / "done.db", claim, name))
    whole = asyncio.run(_look(tmp_path / "done.db"))
    assert whole != untouched, "the operation writes something"
    assert killed.at(f"store.{name}.before_commit", tmp_path / "before.db", claim, name) == "killed"
    assert asyncio.run(_look(tmp_path / "before.db")) == untouched
    assert killed.at(f"store.{name}.after_commit", tmp_path / "after.db", claim, name) == "killed"
    assert asyncio.run(_look(tmp_path / "after.db")) == whole


def _serve() -> None:
    for line in sys.stdin:
        point, path, name, claim = line.rstrip("\n").split("\t")
        victim = os.fork()
        if victim == 0:
            crash.install(crash.KillAt(point))
            asyncio.run(_do(Path(path), Claim.model_validate_json(claim), name))
            os._exit(0)
        _, status = os.waitpid(victim, 0)
        print("killed" if os.WIFSIGNALED(status) else "lived", flush=True)


if __name__ == "__main__":
    _serve()
