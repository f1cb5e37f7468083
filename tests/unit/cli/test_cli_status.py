"""`becket status` reads the journal's file by itself: it must read what the store would say."""

from __future__ import annotations

import asyncio
import io
import sqlite3
import subprocess
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tales import text_of

from becket.app.desk import RunRequest, start
from becket.app.neighbours import driver_lock
from becket.app.record import status
from becket.app.record.overview import overview
from becket.app.record.quota import QuotaNow
from becket.app.record.status import AlertNow, AutonomyNow, Snapshot, SpentNow, take
from becket.app.record.story import Story, read_story
from becket.app.state import Lock, find_state
from becket.cli.plain import Paint, clock
from becket.cli.status_screen import spent_words, status_lines
from becket.cli.story import render_story as story_told
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.store import open_sqlite
from becket.kernel.store.damage import read_only
from becket.kernel.store.quick import QuickJournal
from becket.kernel.store.tables import metadata
from becket.testing.agent import Act, ScriptedAgent
from becket.testing.clock import ManualClock
from becket.testing.people import person
from becket.testing.world import World

PLAIN = Paint(io.StringIO())


def lines(snapshot: Snapshot) -> str:
    return "\n".join(status_lines(snapshot, PLAIN))


COLUMNS: Mapping[str, tuple[str, ...]] = {
    "runs": (
        "number", "run_id", "loop_id", "subject", "status", "iteration", "held", "waiting_on", "waits_since",
        "worker", "lease_until", "ended_at", "created_at", "updated_at", "reason", "detail",
    ),
    "facts": ("number", "fact", "subject_key", "run_id", "at"),
    "events": ("run_id", "seq", "at", "kind"),
    "steps": ("number", "run_id", "iteration", "phase", "id", "conditions"),
    "wakeups": ("run_id", "wake", "due", "expires"),
    "handoffs": (
        "handoff_id", "run_id", "loop_id", "subject", "owner", "reason", "next_step", "state", "taken_by",
        "created_at", "evidence",
    ),
    "approvals": ("approval_id", "run_id", "question", "bound_to", "role", "state", "asked_at", "expires_at"),
    "controls": ("scope", "set_by", "role", "via", "note", "at"),
    "cursors": ("name", "due_at"),
    "alerts": ("key", "text", "state", "count", "first_at"),
    "workers": ("pid", "beat_at", "dead"),
    "agent_calls": ("number", "run_id", "iteration", "step_id", "agent", "began_at", "result"),
}  # fmt: skip
"""Everything that a snapshot asks the database for."""


@pytest.mark.parametrize("table", COLUMNS)
def test_status_asks_only_for_columns_that_the_store_has(table: str) -> None:
    assert set(COLUMNS[table]) <= set(metadata.tables[table].columns.keys())


def test_status_says_which_columns_it_reads(tmp_path: Path) -> None:
    """SQLite itself tells what is read; without this the test above would prove nothing."""
    state = find_state(_bare(tmp_path)).make()
    asyncio.run(open_sqlite(state.database).close())
    seen: set[tuple[str, str]] = set()

    def look(action: int, table: str | None, column: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and column:
            seen.add((str(table), column))
        return sqlite3.SQLITE_OK

    with closing(read_only(state.database)) as conn:
        conn.set_authorizer(look)
        status._read(QuickJournal(conn), status.outline(state, {}, 0.0), state)
    assert {table for table, _ in seen} >= {"runs", "handoffs", "approvals", "controls", "cursors", "alerts"}
    assert {(table, column) for table, column in seen if column not in COLUMNS[table]} == set()


CALLING = """\
version: 1
sandbox: none
agents: {a: {driver: command, run: "echo hi"}}
"""


def test_todays_calls_of_agents_are_counted_as_the_store_counts_them(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.write("becket.yaml", CALLING)
    sha = world.commit()

    async def play() -> Snapshot:
        await world.run("once", inputs={"agent": "a", "brief": "say hi", "base": sha})
        return await overview(world.app)

    full = asyncio.run(play())
    quick = take(world.state, full.now)
    assert quick.spent == full.spent
    assert quick.spent is not None
    assert (quick.spent.calls, quick.spent.open, quick.spent.unpriced) == (1, 0, 1)
    assert "today 1 call, " in lines(quick)
    assert take(world.state, full.now + 2 * 86_400).spent is None


def test_calls_that_nobody_has_given_figures_of_are_told_in_the_same_words_before_and_after_their_end() -> None:
    assert spent_words(SpentNow(1, 1, 0.0, 0, 0.0, 0)).endswith("tokens and money not told")
    assert spent_words(SpentNow(2, 1, 3.0, 0, 0.0, 1)).endswith("tokens and money not told")
    assert spent_words(SpentNow(2, 1, 3.0, 0, 0.0, 0)).endswith("0 tokens, $0.0000"), "somebody said so"
    assert spent_words(SpentNow(1, 0, 3.0, 9, 0.5, 0)).endswith("9 tokens, $0.5000")


def test_trials_are_no_work_and_what_is_settled_is_nobodys(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    gates = "version: 1\nsandbox: {use: none, without: [files, processes, network]}\n"
    gates += 'gates: {fast: [{name: word, run: "grep good word.txt"}]}\n'
    sha = world.commit({"becket.yaml": gates, "word.txt": "bad\n"})

    async def counts() -> dict[str, int]:
        full = await overview(world.app)
        assert take(world.state, full.now).counts == full.counts
        return full.counts

    async def story() -> None:
        tried = await world.run("trial", inputs={"at": sha})
        assert tried.detail["gates_tried"] == {"green": [], "red": ["fast/word"]}
        assert await counts() == {}
        run = await world.run("heal")
        assert await counts() == {"ready_for_handoff": 1}
        (handoff,) = await world.store.handoffs((), run.run_id)
        await world.store.change_handoff(handoff.handoff_id, HandoffState.done, person("ada"), "")
        assert await counts() == {"settled": 1}

    asyncio.run(story())


def test_a_run_that_nobody_is_at_work_on_does_not_look_like_one_at_work(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.write("becket.yaml", CALLING)
    sha = world.commit()

    async def play() -> tuple[Snapshot, Snapshot]:
        run = (
            await start(
                world.app, person("ann"), RunRequest(loop_id="once", inputs={"agent": "a", "brief": "b", "base": sha})
            )
        ).run
        assert run is not None
        assert await world.store.claim(run.run_id, 1, "lost", 30.0) is not None
        with Lock(driver_lock(world.state, "lost")) as lock:
            assert lock.acquire()
            fresh = await overview(world.app)
            assert take(world.state, fresh.now).running == fresh.running
        world.clock.advance(5.0)
        gone = await overview(world.app)
        assert take(world.state, gone.now).running == gone.running
        assert gone.running[0].nobody_since == fresh.now, "a worker whose lock is free is dead, whatever its lease says"
        world.clock.advance(40.0)
        return fresh, await overview(world.app)

    fresh, late = asyncio.run(play())
    assert fresh.running[0].nobody_since is None
    quick = take(world.state, late.now)
    assert quick.running == late.running
    assert "nobody has been at work on it for 15.0s; go on with it: becket runs" in lines(quick)


def test_a_run_without_quota_says_whose_and_when_it_looks_again(tmp_path: Path) -> None:
    """L23: not only when it gives up. Of two agents without quota, it waits for the one that has some first."""
    later = Act(hint=AgentOutcome.quota_wait, error="usage limit", until=ManualClock()() + 7_200)
    sooner = Act(hint=AgentOutcome.quota_wait, error="usage limit", until=ManualClock()() + 3_600)
    agents = {"a": ScriptedAgent([later]), "b": ScriptedAgent([sooner])}
    world = World(tmp_path, store="sqlite", agents=agents)
    one = "driver: command, run: 'true'"
    world.write("becket.yaml", f"version: 1\nsandbox: none\nagents: {{a: {{{one}, fallback: [b]}}, b: {{{one}}}}}\n")
    sha = world.commit()

    async def play() -> tuple[Snapshot, Story]:
        run = await world.run("once", inputs={"agent": "a", "brief": "say hi", "base": sha})
        assert run.waiting_on == ("agent.quota_wait",)
        return await overview(world.app), await read_story(world.app, run.run_id)

    full, story = asyncio.run(play())
    quick = take(world.state, full.now)
    (waiting,), (port,) = quick.waiting, full.waiting
    assert waiting.quota == port.quota == QuotaNow("b", sooner.until)
    assert waiting.looks_at == sooner.until
    assert waiting.until is not None
    shown, gives_up = clock(sooner.until or 0.0, full.now), clock(waiting.until, full.now)
    assert f"for the quota of the agent b, back {shown}, since" in lines(quick)
    assert f", gives up {gives_up}" in lines(quick)
    assert f"for the quota of the agent b, back {shown}, since" in lines(full)
    assert f"for the quota of the agent b, back {shown}, at most" in text_of(story_told(story), 120)


def test_a_quota_of_which_nobody_said_when_it_is_back_is_looked_at_again(tmp_path: Path) -> None:
    """Our guess is not told as the vendor's word."""
    untold = Act(hint=AgentOutcome.quota_wait, error="429")
    world = World(tmp_path, store="sqlite", agents={"a": ScriptedAgent([untold])})
    world.write("becket.yaml", "version: 1\nsandbox: none\nagents: {a: {driver: command, run: 'true'}}\n")
    sha = world.commit()
    asyncio.run(world.run("once", inputs={"agent": "a", "brief": "say hi", "base": sha}))
    quick = take(world.state, world.clock())
    (waiting,) = quick.waiting
    assert waiting.quota == QuotaNow("a", None)
    assert waiting.looks_at == pytest.approx(world.clock() + 300, abs=5)
    assert f"for the quota of the agent a, looks again {clock(waiting.looks_at, quick.now)}, since" in lines(quick)


ASKING = """\
version: 1
loop_id: ask
goal: A person decides.
trigger:
  - manual: {}
max_iterations: 2
deadline: 7d
stop_conditions: [approval.approved, fine.pass]
wait_conditions:
  approval.asked: {wake: approval, for: 3d}
phases:
  decide:
    objective: Ask.
    actions:
      - {id: ask, uses: approval.ask, with: {question: "May I?", about: "it"}}
  verify:
    objective: Look.
    verifiers:
      - {id: fine, run: "true", in: scratch}
"""

GIVING_UP = """\
version: 1
loop_id: give_up
goal: It cannot be done.
trigger:
  - manual: {}
max_iterations: 1
deadline: 7d
stop_conditions: [fine.pass]
phases:
  verify:
    objective: Look.
    verifiers:
      - {id: fine, run: "false", in: scratch}
"""


def test_the_quick_snapshot_is_the_one_that_the_store_gives(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.write(".becket/loops/ask.yaml", ASKING)
    world.write(".becket/loops/give_up.yaml", GIVING_UP)
    world.commit({"a": "a"})

    async def play() -> Snapshot:
        waits = await world.run("ask")
        await world.run("give_up")
        await world.store.set_control("loop:ask", True, person("ann"), "lunch")
        await world.store.hold(waits.run_id, person("ann"), True)
        await world.store.raise_alert("start:x", "x was not started", {})
        return await overview(world.app)

    full = asyncio.run(play())
    quick = take(world.state, full.now)
    # The Store port does not tell what wakes a run and until when; the file does.
    (waiting,) = quick.waiting
    assert waiting.wakes_on == ("approval",)
    assert waiting.until is not None
    cut = replace(quick, waiting=(replace(waiting, wakes_on=(), until=None),))
    assert cut == full
    assert quick.counts == {"ready_for_handoff": 1, "waiting": 1}
    text = lines(quick)
    (approval,), (handoff,) = quick.approvals, quick.handoffs
    for part in (
        "May I?", f"becket approve {approval.approval_id}", f"becket handoffs take {handoff.handoff_id}", "paused",
        "x was not started", "ask by ann (lunch): becket pause ask --off", f"becket hold {waiting.run_id} --off",
    ):  # fmt: skip
        assert part in text


LOST = """\
version: 1
loop_id: lost
goal: What the base is.
trigger:
  - manual: {}
max_iterations: 4
deadline: 7d
stop_conditions: [fine.pass]
phases:
  discover:
    objective: Look.
    actions:
      - {id: base, uses: git.read_base, with: {branch: gone}}
  verify:
    objective: Look.
    verifiers:
      - {id: fine, run: "false", in: scratch}
"""


def test_a_handoff_tells_what_failed_and_not_only_that_nothing_came_of_it(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.write(".becket/loops/lost.yaml", LOST)
    world.commit({"a": "a"})

    async def play() -> Snapshot:
        await world.run("lost")
        return await overview(world.app)

    full = asyncio.run(play())
    (handoff,) = full.handoffs
    assert handoff.reason == "no_progress"
    assert take(world.state, full.now).handoffs == full.handoffs
    assert "discover.base: gone has no commit here" in lines(full)


def test_an_engine_that_lives_and_records_nothing_is_told_of(tmp_path: Path) -> None:
    """A limit on the size of files, a quota, a bad disk: the daemon tries again and again, and only its log knows."""
    world = World(tmp_path, store="sqlite")

    async def joined() -> float:
        now = await world.store.now()
        await world.store.join(world.app.worker("daemon", now), alone=True)
        return now

    now = asyncio.run(joined())
    assert take(world.state, now + 60).unwritable == "", "nobody is the engine"
    with Lock(world.state.make().engine_lock) as lock:
        assert lock.acquire()
        assert take(world.state, now + 10).unwritable == ""
        assert "could record nothing for 60 s" in lines(take(world.state, now + 60))


def test_a_repository_without_becket_says_what_to_do(tmp_path: Path) -> None:
    state = find_state(_bare(tmp_path / "other"))
    text = lines(take(state))
    assert "becket init" in text
    assert "becket run LOOP" in text
    assert not state.folder.exists()


def test_a_broken_becket_yaml_is_told_and_hides_nothing_else(tmp_path: Path) -> None:
    root = _bare(tmp_path)
    (root / "becket.yaml").write_text("a: [\n")
    assert "becket doctor" in lines(take(find_state(root)))


@pytest.mark.parametrize(
    ("config", "configured", "allowed", "lacks"),
    [
        ("autonomy: observe", "observe", "observe", ""),
        ("branch: main", "propose", "propose", ""),
        ("autonomy: merge\nsandbox: none", "merge", "propose", "files and network and processes"),
        ("autonomy: merge\nsandbox: landlock", "merge", "propose", "network and processes"),
        ("autonomy: release\nsandbox: {use: landlock, without: [network, processes]}", "release", "release", ""),
    ],
)
def test_autonomy_is_shown_with_what_caps_it(
    tmp_path: Path, config: str, configured: str, allowed: str, lacks: str
) -> None:
    """L18"""
    root = _bare(tmp_path)
    (root / "becket.yaml").write_text(f"version: 1\n{config}\n")
    snapshot = take(find_state(root))
    assert snapshot.autonomy == AutonomyNow(configured, allowed, lacks and f"no sandbox here holds {lacks}")
    assert f"autonomy    {allowed}" in lines(snapshot)


def test_an_alert_about_a_mended_becket_yaml_is_gone_without_a_daemon_too(tmp_path: Path) -> None:
    state = find_state(_bare(tmp_path)).make()

    async def write() -> None:
        store = open_sqlite(state.database)
        await store.raise_alert("config", "becket.yaml does not load", {})
        await store.raise_alert("start:x", "x was not started.", {})
        await store.close()

    asyncio.run(write())
    state.config.write_text("a: [\n")
    assert {alert.key for alert in take(state).alerts} == {"config", "start:x"}
    assert "x was not started, since " in lines(take(state))
    assert "observe (becket.yaml does not load)" in lines(take(state))
    state.config.write_text("version: 1\n")
    assert {alert.key for alert in take(state).alerts} == {"start:x"}


def test_alarms_of_the_watchdog_are_shown_even_without_a_journal(tmp_path: Path) -> None:
    state = find_state(_bare(tmp_path)).make()

    async def alarm() -> None:
        store = open_sqlite(state.watchdog_database)
        await store.raise_alert("daemon", "the daemon is silent", {})
        await store.close()

    asyncio.run(alarm())
    (alert,) = take(state).alerts
    assert (alert.source, alert.text) == ("watchdog", "the daemon is silent")


def test_a_file_that_is_no_journal_is_an_error_with_advice(tmp_path: Path) -> None:
    state = find_state(_bare(tmp_path)).make()
    state.database.write_text("this is not a database, and long enough to be sure of it " * 40)
    with pytest.raises(StoreUnavailable, match="becket store check"):
        take(state)


def test_alerts_are_red_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    snapshot = Snapshot(
        root="/r", configured=True, autonomy=None, daemon=None, engine=None, watchdog=None, wanted=True,
        now=time.time(), alerts=(AlertNow("k", "it is silent", 2, time.time(), "watchdog"),),
    )  # fmt: skip
    text = "\n".join(status_lines(snapshot, Paint(Terminal())))
    assert "\x1b[31;1m  ! it is silent (2 times)" in text
    assert "although it should be up" in text


@pytest.mark.parametrize(
    ("guard", "told_so"), [("guard: {promote: powerful}", True), ("guard: {promote: ordinary}", False), ("", False)]
)
def test_status_tells_that_the_tests_alone_decide(tmp_path: Path, guard: str, told_so: bool) -> None:
    root = _bare(tmp_path)
    (root / "becket.yaml").write_text(f"version: 1\n{guard}\n")
    text = "\n".join(status_lines(take(find_state(root)), Paint()))
    said = "guard.promote is powerful: the tests alone decide; nobody looks at what a change can do"
    assert (said in text) is told_so


def test_status_of_postgres_goes_through_the_store(tmp_path: Path) -> None:
    """The file says `database:`; the local file must not be believed."""
    root = _bare(tmp_path)
    (root / "becket.yaml").write_text('version: 1\ndatabase: "postgresql://nobody@127.0.0.1:1/none"\n')
    with pytest.raises(StoreUnavailable):
        take(find_state(root))


def _bare(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", "."], cwd=root, check=True)
    return root
