"""`becket verify`: an untouched run of every kind holds, and no single change to what it left behind goes unseen."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from verify_stage import Copy, bad, ready, rich_story
from verify_stories import STORIES, simple, waiting
from verify_tamperings import TAMPERINGS, write_the_chain_anew

from becket.app.verify import Checked, verify_run
from becket.contract.errors import UsageError
from becket.contract.events import Kind, NewEvent
from becket.contract.store import RunFilter
from becket.testing.world import World


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    world = ready(World(tmp_path_factory.mktemp("original"), store="sqlite"))

    async def story() -> str:
        run_id = await rich_story(world)
        await world.store.close()
        return run_id

    return Copy(world.root, asyncio.run(story()))


@pytest.fixture
def copy(original: Copy, tmp_path: Path) -> Copy:
    shutil.copytree(original.root, tmp_path / "repo", symlinks=True)
    return Copy(tmp_path / "repo", original.run_id)


def test_the_copy_holds_and_every_kind_of_row_was_looked_at(copy: Copy) -> None:
    found = copy.verify()
    assert bad(found) == []
    seen = {item.what.split()[0] for item in found.checks}
    kinds = {"events", "status", "run", "spec", "steps", "conditions", "receipt", "artifact", "effect"}
    assert seen == {*kinds, "approval", "handoff"}
    for table in ("facts", "carried", "steps", "receipts", "artifact_refs", "effects", "approvals", "handoffs"):
        assert copy.all(f"SELECT * FROM {table}"), f"the story leaves nothing in {table}, so tampering proves nothing"


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_is_found(name: str, copy: Copy) -> None:
    """L22: a report is believed only as far as the records behind it hold."""
    tamper, what = TAMPERINGS[name]
    if callable(tamper):
        tamper(copy)
    else:
        copy.sql(*([tamper] if isinstance(tamper, str) else tamper))
    found = copy.verify()
    assert [item for item in bad(found) if item.startswith(what)], f"{name}: found only {bad(found)}"
    assert not found.ok


def test_a_chain_written_anew_is_found_only_by_a_head_that_was_kept_elsewhere(copy: Copy) -> None:
    kept = copy.verify().head
    assert bad(copy.verify(kept)) == []
    write_the_chain_anew(copy)
    assert copy.verify().ok, "this is the limit that the documentation tells of"
    assert bad(copy.verify(kept)) == ["kept head"]


def test_a_kept_head_stays_good_while_the_run_goes_on_and_no_other_is(copy: Copy) -> None:
    earlier = copy.one("SELECT digest FROM events WHERE kind = 'run.ended'")["digest"]
    found = copy.verify(f" {earlier.upper()}\n")
    assert found.ok, "a person took the handoff since: that is no forgery"
    assert "with 1 after it" in found.checks[-1].detail
    for other in ("", "0" * 64, earlier[:12]):
        assert bad(copy.verify(other)) == ["kept head"]


def test_no_command_out_of_a_tampered_record_is_run_again(copy: Copy, tmp_path: Path) -> None:
    """L24: what the tables say is not a command until the chain says the same."""
    decoy = tmp_path / "decoy"
    copy.sql("UPDATE receipts SET receipt = replace(receipt, 'echo hello', :evil)", evil=f"touch {decoy}")
    found = copy.verify(rerun=True)
    assert "again" in bad(found)
    assert not decoy.exists()


@pytest.mark.parametrize("tell", STORIES, ids=lambda story: story.__name__)
def test_an_untouched_run_holds(tell: Callable[[World], Any], tmp_path: Path) -> None:
    world = ready(World(tmp_path, store="sqlite"))

    async def story() -> list[tuple[str, Checked]]:
        await tell(world)
        runs = await world.store.list_runs(RunFilter())
        assert runs
        checked = [(run.loop_id, item) for run in runs for item in await verify_run(world.app, run.run_id, False)]
        await world.store.close()
        return checked

    assert [item for item in asyncio.run(story()) if not item[1].ok] == []


def test_the_commands_are_repeated_and_their_exit_codes_compared(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.loop(simple('{id: say, run: "grep -q becket README.md && exit 3 || exit 0", raises: {"*": it.seen}}'))

    async def story() -> tuple[list[str], list[str]]:
        run = await world.run("story")
        held = await verify_run(world.app, run.run_id, True)
        unchanged = [item.what.split()[0] for item in held if item.ok]
        return unchanged, [item.detail for item in held if not item.ok]

    unchanged, changed = asyncio.run(story())
    assert unchanged.count("again") == 2
    assert changed == []


def test_a_chain_longer_than_a_page_is_read_to_its_end(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.loop(simple('{id: say, run: "true", in: scratch}'))

    async def story() -> str:
        run = await world.run("story")
        notes = [NewEvent(kind=Kind.note, data={"text": str(number)}) for number in range(10_100)]
        await world.store.append(run.run_id, None, notes)
        assert not [item for item in await verify_run(world.app, run.run_id, False) if not item.ok]
        await world.store.close()
        return run.run_id

    copy = Copy(world.root, asyncio.run(story()))
    copy.sql("UPDATE events SET data = '{}' WHERE seq = 10050")
    assert bad(copy.verify()) == ["events"]


def test_what_retention_dropped_is_said_and_is_no_damage(tmp_path: Path) -> None:
    """L44: evidence is never deleted silently."""
    world = World(tmp_path, store="sqlite")
    world.loop(simple('{id: say, run: "echo hi", in: scratch}'))

    async def story() -> tuple[str, list[Checked]]:
        run = await world.run("story")
        await world.store.followed(run.run_id)
        for _ in range(2):  # once more finds nothing to drop, and says nothing
            world.app.artifacts.remove(await world.store.forget(0.0, world.clock() + 1))
        assert world.app.artifacts.digests() == frozenset()
        assert [event.kind for event in await world.store.events(run.run_id)].count(Kind.artifacts_dropped) == 1
        return run.run_id, list(await verify_run(world.app, run.run_id, False))

    _, checks = asyncio.run(story())
    assert [item for item in checks if not item.ok] == []
    assert [item.detail for item in checks if item.what == "retention"] == ["2 artifacts dropped by retention"]


class Restless:
    """A store in whose run something happens whenever its receipts are read, so many times."""

    def __init__(self, world: World, times: int) -> None:
        self._world, self._times = world, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world.store, name)

    async def receipts(self, run_id: str) -> Any:
        found = await self._world.store.receipts(run_id)
        if self._times > 0:
            self._times -= 1
            await self._world.store.hold(run_id, "me", on=self._times % 2 == 0)
            await self._world.store.hold(run_id, "me", on=self._times % 2 == 1)
        return found


def test_a_run_that_moves_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    world = World(tmp_path)

    async def story() -> None:
        await waiting(world)
        (run,) = await world.store.list_runs(RunFilter())
        world.app.store = Restless(world, 3)  # type: ignore[assignment]
        assert [item for item in await verify_run(world.app, run.run_id, False) if not item.ok] == []
        world.app.store = Restless(world, 10_000)  # type: ignore[assignment]
        with pytest.raises(UsageError, match="changes while it is read"):
            await verify_run(world.app, run.run_id, False)

    asyncio.run(story())
