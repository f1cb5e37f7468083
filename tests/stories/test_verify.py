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
from verify_tamperings import TAMPERINGS, rewrite, write_the_chain_anew

from becket.app.record.verify import Checked, verify_run
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.events import COVERS, EventKind, NewEvent
from becket.kernel.contract.store import RunFilter
from becket.testing.people import person
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
    assert seen == {*kinds, "approval", "handoff", "call", "spent"}
    tables = ("facts", "carried", "steps", "receipts", "artifact_refs", "effects", "approvals", "handoffs")
    for table in (*tables, "agent_calls", "spending"):
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
    assert "with 3 after it" in found.checks[-1].detail, "and two calls that never began were given back"
    for other in ("", "0" * 64, earlier[:12]):
        assert bad(copy.verify(other)) == ["kept head"]


@pytest.mark.parametrize(
    ("change", "finding"),
    [
        (
            "UPDATE agent_calls SET result = replace(result, '\"usd\":0.125', '\"usd\":0.025') WHERE iteration = 2",
            "call 2-act-mark-1-2-made: usd was 0.125, the row says 0.025",
        ),
        (
            "UPDATE agent_calls SET result = replace(result, '\"input_tokens\":10', '\"input_tokens\":1')",
            "call 3-act-mark-1-2-made: input_tokens was 10, the row says 1",
        ),
        (
            "UPDATE agent_calls SET result = replace(result, 'changed', 'crashed')",
            "call 2-act-mark-1-2-made: outcome was changed, the row says crashed",
        ),
        (
            "UPDATE agent_calls SET limits = replace(limits, '\"usd\":0.5', '\"usd\":5.0') WHERE iteration = 3",
            "call 3-act-mark-1-2-lost: limit of usd was 0.5, the row says 5",
        ),
        (
            "UPDATE agent_calls SET result = NULL, ended_at = NULL",
            "call 2-act-mark-1-2-made: outcome was changed, the row says not told",
        ),
        (
            "UPDATE spending SET amount = 0.025 WHERE kind = 'usd' AND key LIKE '%:2:act:mark:1:2:made'",
            "spent: usd is 0.65, the events add up to 0.75",
        ),
        (
            "UPDATE spending SET amount = 0.025 WHERE kind = 'usd' AND key LIKE '%:2:act:mark:1:2:made'",
            "call 2-act-mark-1-2-made: what the budgets count for it: it was changed",
        ),
        (
            "DELETE FROM spending WHERE kind = 'usd' AND key LIKE '%:2:act:mark:1:usd'",
            "spending run: it was changed",
        ),
    ],
)  # fmt: skip
def test_a_false_figure_is_named_with_what_was_sealed(change: str, finding: str, copy: Copy) -> None:
    """L23: what was spent is only known if nobody can lower it afterwards."""
    copy.sql(change)
    what, _, words = finding.partition(": ")
    details = [item.detail for item in copy.verify().checks if not item.ok and item.what.startswith(what)]
    assert [text for text in details if words in text], details


OF_CALLS = (EventKind.call_booked, EventKind.call_settled, EventKind.spent)


def as_before(*kinds: EventKind) -> Callable[[EventKind, dict[str, Any]], dict[str, Any] | None]:
    """A chain from before calls were told of: without those events, and without the word that they are."""
    return lambda kind, data: None if kind in kinds else {key: value for key, value in data.items() if key != COVERS}


def test_calls_from_before_the_events_told_of_them_are_said_to_be_unproven(copy: Copy) -> None:
    rewrite(copy, as_before(*OF_CALLS))
    found = copy.verify()
    assert bad(found) == []
    said = [item.detail for item in found.checks if item.what in ("calls", "spent", "spending")]
    assert said == ["4 calls are from before the events told of calls: nothing proves them"]
    copy.sql("DELETE FROM agent_calls")
    said = [item.detail for item in copy.verify().checks if item.what in ("calls", "spent", "spending")]
    assert said == ["is from before the events told of it: nothing proves it"]


def test_a_call_that_began_before_the_events_told_of_calls_is_proven_by_its_settlement(copy: Copy) -> None:
    rewrite(copy, as_before(EventKind.call_booked))
    found = copy.verify()
    assert bad(found) == []
    assert [item.what for item in found.checks if item.what.startswith(("call", "spent"))] == [
        *(f"call {name}" for name in ("2-act-mark-1-2-made", "3-act-mark-1-2-made")),
        *(f"call {name}" for name in ("3-act-mark-1-2-lost", "2-act-mark-1-2-lost")),
        "spent",
    ]
    copy.sql("UPDATE agent_calls SET result = replace(result, '\"usd\":0.125', '\"usd\":0.025')")
    assert bad(copy.verify()) == ["call 2-act-mark-1-2-made", "call 3-act-mark-1-2-made"]


def test_a_worker_of_an_older_release_moves_a_new_run_and_is_no_forger(copy: Copy) -> None:
    """Its claim does not say that it tells of calls, and it does not."""
    unclaimed = as_before(*OF_CALLS)
    rewrite(copy, lambda kind, data: data if kind is EventKind.run_created else unclaimed(kind, data))
    found = copy.verify()
    assert bad(found) == []
    assert [item.detail for item in found.checks if item.what == "calls"] == [
        "4 calls are from before the events told of calls: nothing proves them"
    ]


def test_a_journal_from_before_it_said_how_people_came_in_holds(copy: Copy) -> None:
    """Neither the chain nor a seal needs to know it."""
    left_out: set[EventKind] = set()

    def as_then(kind: EventKind, data: dict[str, Any]) -> dict[str, Any]:
        if "via" not in data:
            return data
        left_out.add(kind)
        return {key: value for key, value in data.items() if key not in ("role", "via")}

    rewrite(copy, as_then)
    assert left_out >= {EventKind.run_created, EventKind.approval_decided, EventKind.handoff_changed}
    assert bad(copy.verify()) == []


ODD = [
    (EventKind.call_booked, {"booked": None}), (EventKind.call_booked, {"limits": None}),
    (EventKind.call_booked, {"limits": [1]}), (EventKind.call_booked, {"call": 7}),
    (EventKind.call_settled, {"used": None}), (EventKind.call_settled, {"used": {"usd": "x"}}),
    (EventKind.call_settled, {"usage": None}), (EventKind.call_settled, {"usage": "none"}),
    (EventKind.call_settled, {"call": ["c"]}), (EventKind.spent, {"used": None}),
    (EventKind.spent, {"used": {"usd": 10**400}}), (EventKind.spent, {"key": 7}), (EventKind.run_claimed, {COVERS: 7}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "odd"), ODD)
def test_an_event_that_says_something_odd_is_named(kind: EventKind, odd: dict[str, Any], copy: Copy) -> None:
    """A chain written by whoever has the keys to it is a finding, never a crash of the one who checks."""
    rewrite(copy, lambda told, data: data | odd if told is kind else data)
    copy.sql("UPDATE agent_calls SET driver = 'other'")
    details = [item.detail for item in copy.verify().checks if not item.ok]
    assert [text for text in details if f"({kind}) does not say what its kind says" in text], details


@pytest.mark.parametrize("kind", OF_CALLS)
def test_a_chain_that_says_it_tells_of_calls_must(kind: EventKind, copy: Copy) -> None:
    rewrite(copy, lambda told, data: None if told is kind else data)
    assert bad(copy.verify())


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
        notes = [NewEvent(kind=EventKind.note, data={"text": str(number)}) for number in range(10_100)]
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
        assert [event.kind for event in await world.store.events(run.run_id)].count(EventKind.artifacts_dropped) == 1
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
            await self._world.store.hold(run_id, person("me"), on=self._times % 2 == 0)
            await self._world.store.hold(run_id, person("me"), on=self._times % 2 == 1)
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
