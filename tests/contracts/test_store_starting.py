"""Contract of the store: how runs start, are found, held, paused and moved to a new spec."""

from __future__ import annotations

import pytest
from store_worlds import (
    START,
    ManualClock,
    asleep,
    claim_again,
    claimed,
    contents,
    every_store,
    new_run,
    note,
    started,
    wait_for,
)

from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.run import Autonomy, Move, RunStatus
from becket.kernel.contract.store import End, RunFilter, Store
from becket.testing.people import person


@every_store
async def test_a_new_run_is_queued_with_its_spec_and_its_first_event(store: Store, clock: ManualClock) -> None:
    done = await store.start_run(
        new_run(
            "run_a", subject="main@1", inputs={"n": 1}, trigger="commit", group="repo:main", chain=2, by=person("ann"),
            parent="run_p", retry_of="run_r", autonomy=Autonomy.observe, dry_run=True,
        )
    )  # fmt: skip
    assert done.created
    assert done.run == await store.get_run("run_a")
    run = await store.get_run("run_a")
    assert (run.status, run.segment, run.epoch, run.iteration, run.counted) == (RunStatus.queued, 1, 0, 1, 1)
    assert (run.subject.name, run.subject.fields, run.inputs) == ("main@1", {"branch": "main"}, {"n": 1})
    assert (run.trigger, run.group, run.chain, run.by) == ("commit", "repo:main", 2, "ann")
    assert (run.parent, run.retry_of, run.autonomy, run.dry_run) == ("run_p", "run_r", Autonomy.observe, True)
    assert (run.created_at, run.deadline_at, run.ended_at) == (START, START + 3600, None)
    assert await store.spec_text("spec-1") == "loop_id: heal"
    [event] = await store.events("run_a")
    assert (event.seq, event.kind, event.data["by"]) == (1, EventKind.run_created, "ann")
    assert (run.event_count, run.head) == (1, event.digest)


@every_store
async def test_the_same_origin_key_gives_the_same_run_for_ever(store: Store, clock: ManualClock) -> None:
    """L35: a redelivered event starts nothing, not even after the run ended."""
    claim = await claimed(store, "run_a", subject="one", origin_key="event-7")
    again = await store.start_run(new_run(subject="two", origin_key="event-7"))
    assert (again.created, again.run and again.run.run_id) == (False, "run_a")
    await store.end("run_a", claim.run.epoch, End(move=Move.complete, reason="done"))
    again = await store.start_run(new_run(subject="one", origin_key="event-7"))
    assert (again.created, again.run and again.run.run_id) == (False, "run_a")
    assert sum((await store.count_runs()).values()) == 1


@every_store
async def test_a_key_answered_by_another_keys_run_keeps_that_answer(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", subject="one", origin_key="event-7")
    assert (await store.start_run(new_run(subject="one", origin_key="event-8"))).created is False
    await store.end("run_a", claim.run.epoch, End(move=Move.complete, reason="done"))
    late = await store.start_run(new_run(subject="one", origin_key="event-8"))
    assert (late.created, late.run and late.run.run_id) == (False, "run_a")


@every_store
async def test_an_open_run_of_the_same_loop_and_subject_answers(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", subject="one")
    again = await store.start_run(new_run(subject="one"))
    assert (again.created, again.run and again.run.run_id) == (False, "run_a")
    assert (await store.start_run(new_run(subject="one", loop_id="task"))).created
    await store.end("run_a", claim.run.epoch, End(move=Move.complete, reason="done"))
    assert (await store.start_run(new_run(subject="one"))).created


@every_store
async def test_a_dry_run_does_not_answer_for_a_real_one(store: Store, clock: ManualClock) -> None:
    await started(store, subject="one", dry_run=True)
    assert (await store.start_run(new_run("run_real", subject="one"))).created
    again = await store.start_run(new_run(subject="one"))
    assert again.run is not None
    assert again.run.run_id == "run_real"


@every_store
async def test_with_unique_subject_a_completed_run_answers_but_no_other_end(store: Store, clock: ManualClock) -> None:
    for move, answers in ((Move.fail, False), (Move.complete_dry_run, False), (Move.complete, True)):
        claim = await claimed(store, subject="one")
        await store.end(claim.run.run_id, claim.run.epoch, End(move=move, reason="x"))
        again = await store.start_run(new_run(subject="one", unique_subject=True))
        assert again.created is not answers
        assert again.run is not None
        if again.created:
            await store.ask_cancel(again.run.run_id, person("ann"), "")
        else:
            assert again.run.run_id == claim.run.run_id


@every_store
async def test_drop_starts_nothing_while_the_group_has_an_open_run(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a", group="g")
    before = await contents(store)
    for _ in range(2):
        dropped = await store.start_run(new_run(group="g", on_busy="drop"))
        assert (dropped.run, dropped.created) == (None, False)
        assert "run_a is running" in dropped.dropped
    assert await contents(store) == before
    await asleep(store, claim, wait_for("x", START + 10))
    assert "waiting" in (await store.start_run(new_run(group="g", on_busy="drop"))).dropped
    assert (await store.start_run(new_run(group="other", on_busy="drop"))).created
    await store.ask_cancel("run_a", person("ann"), "")
    assert (await store.start_run(new_run(group="g", on_busy="drop"))).created


@every_store
async def test_newest_waits_supersedes_the_queued_runs_of_the_group(store: Store, clock: ManualClock) -> None:
    """L2: the newest commit is taken; what waited behind the one at work is cancelled, what works is not touched."""
    claim = await claimed(store, "run_work", group="g")
    await started(store, "run_old", group="g", on_busy="newest_waits")
    await started(store, "run_else", group="h")
    done = await store.start_run(new_run("run_new", group="g", on_busy="newest_waits"))
    assert done.superseded == ("run_old",)
    old = await store.get_run("run_old")
    assert (old.status, old.reason, old.detail) == (RunStatus.cancelled, "superseded", {"by_run": "run_new"})
    assert (await store.events("run_old"))[-1].kind is EventKind.run_ended
    assert (await store.get_run("run_work")).status is RunStatus.running
    assert await store.end("run_work", claim.run.epoch, End(move=Move.complete, reason="done")) == ("run_new",)


@every_store
async def test_queued_runs_of_a_group_come_in_the_order_they_were_started(store: Store, clock: ManualClock) -> None:
    """Ids and the clock may say otherwise: order is the order of writing."""
    for run_id in ("run_c", "run_a", "run_b"):
        await started(store, run_id, group="g")
    await started(store, "run_free")
    assert await store.startable() == (("run_c", 1), ("run_free", 1))
    assert await store.claim("run_a", 1, "w", 30) is None
    claim = await claim_again(store, "run_c")
    assert await store.startable() == (("run_free", 1),)
    assert await store.end("run_c", claim.run.epoch, End(move=Move.complete, reason="x")) == ("run_a", "run_b")
    assert await store.startable() == (("run_a", 1), ("run_free", 1))
    assert await store.startable(1) == (("run_a", 1),)


@every_store
async def test_a_blocked_group_does_not_hide_what_could_start(store: Store, clock: ManualClock) -> None:
    await claimed(store, group="g")
    for _ in range(5):
        await started(store, group="g")
    await started(store, "run_free")
    assert await store.startable(3) == (("run_free", 1),)


@every_store
async def test_a_held_run_is_not_started_and_lets_the_next_one_pass(store: Store, clock: ManualClock) -> None:
    await started(store, "run_a", group="g")
    await started(store, "run_b", group="g")
    assert (await store.hold("run_a", person("ann"), True)).held
    assert (await store.hold("run_a", person("ann"), True)).held
    assert await store.startable() == (("run_b", 1),)
    assert await store.claim("run_a", 1, "w", 30) is None
    assert (await store.hold("run_a", person("bob"), False)).held is False
    assert await store.startable() == (("run_a", 1),)
    held = [(event.kind, event.data["by"]) for event in (await store.events("run_a"))[1:]]
    assert held == [(EventKind.run_held, "ann"), (EventKind.run_unheld, "bob")]


@every_store
async def test_an_ended_run_cannot_be_held(store: Store, clock: ManualClock) -> None:
    run_id = await started(store)
    await store.ask_cancel(run_id, person("ann"), "")
    with pytest.raises(UsageError, match="only an open run"):
        await store.hold(run_id, person("ann"), True)


@every_store
async def test_controls_pause_everything_or_one_loop(store: Store, clock: ManualClock) -> None:
    await started(store, "run_heal", group="g")
    await started(store, "run_task", loop_id="task", group="g")
    [control] = await store.set_control("loop:heal", True, person("ann"), "night")
    assert (control.scope, control.by, control.note, control.at) == ("loop:heal", "ann", "night", START)
    assert await store.claim("run_heal", 1, "w", 30) is None
    assert await store.startable() == (("run_task", 1),), "a paused run does not block its group"
    await store.set_control("all", True, person("ann"), "")
    assert await store.startable() == ()
    assert await store.claim("run_task", 1, "w", 30) is None
    await store.set_control("all", False, person("ann"), "")
    twice = await store.set_control("loop:heal", True, person("bob"), "twice")
    assert [control.scope for control in twice] == ["loop:heal"]
    assert await store.set_control("loop:heal", False, person("ann"), "") == await store.controls() == ()
    assert await store.claim("run_heal", 1, "w", 30) is not None
    with pytest.raises(UsageError, match="scope"):
        await store.set_control("heal", True, person("ann"), "")


@every_store
async def test_only_a_waiting_run_moves_to_a_new_spec(store: Store, clock: ManualClock) -> None:
    claim = await claimed(store, "run_a")
    with pytest.raises(UsageError, match="only a waiting run"):
        await store.migrate("run_a", "spec-2", "new", person("ann"))
    await asleep(store, claim, wait_for("go", START + 10))
    assert (await store.migrate("run_a", "spec-2", "new", person("ann"))).spec_digest == "spec-2"
    await store.signal("run_a", "go", {}, "s")
    assert (await claim_again(store, "run_a")).spec_text == "new"
    moved = next(event for event in await store.events("run_a") if event.kind is EventKind.run_migrated)
    assert moved.data == {"from": "spec-1", "to": "spec-2", **person("ann").told()}
    with pytest.raises(UsageError, match="only a waiting run"):
        await store.migrate("run_a", "spec-1", "x", person("ann"))


@every_store
async def test_a_run_is_found_by_an_unambiguous_prefix(store: Store, clock: ManualClock) -> None:
    for run_id in ("run_ab", "run_ac", "run_ab%"):
        await started(store, run_id)
    assert (await store.get_run("run_ab")).run_id == "run_ab", "an exact id is never ambiguous"
    assert (await store.get_run("run_ac")).run_id == "run_ac"
    with pytest.raises(NotFound, match=r"several runs begin with 'run_a'.*give more"):
        await store.get_run("run_a")
    for unknown in ("run_%", "nothing", "", "run_x"):
        with pytest.raises(NotFound, match="becket runs list"):
            await store.get_run(unknown)
    ann = person("ann")
    for write in (store.hold("no", ann, True), store.ask_cancel("no", ann, ""), store.signal("no", "a", {}, "s")):
        with pytest.raises(NotFound):
            await write


@every_store
async def test_runs_are_listed_by_filter(store: Store, clock: ManualClock) -> None:
    await started(store, "run_1", subject="a", parent="run_p")
    clock.forward(10)
    await started(store, "run_2", loop_id="task", subject="b", group="g")
    clock.forward(10)
    await claimed(store, "run_3", subject="c")

    async def ids(**where: object) -> list[str]:
        return [run.run_id for run in await store.list_runs(RunFilter.model_validate(where))]

    assert await ids() == ["run_3", "run_2", "run_1"]
    assert await ids(oldest_first=True, limit=2) == ["run_1", "run_2"]
    assert await ids(loop_id="heal") == ["run_3", "run_1"]
    assert await ids(statuses=(RunStatus.running, RunStatus.failed)) == ["run_3"]
    assert await ids(subject="b") == ["run_2"]
    assert await ids(parent="run_p") == ["run_1"]
    assert await ids(group="g") == ["run_2"]
    assert await ids(since=START + 10) == ["run_3", "run_2"]
    counted = await store.count_runs()
    assert (counted[RunStatus.queued], counted[RunStatus.running], counted[RunStatus.failed]) == (2, 1, 0)


@every_store
async def test_texts_of_any_kind_and_length_are_kept(store: Store, clock: ManualClock) -> None:
    """NUL, half a surrogate pair and very long subjects come from file names and logs."""
    subject = "é" * 5000 + "\0\udcff"
    run_id = await started(store, subject=subject, origin_key=subject, inputs={"odd\0": "\udcff", "deep": {"2": 1}})
    assert (await store.start_run(new_run(subject=subject))).created is False
    assert (await store.start_run(new_run(subject=subject + "!"))).created
    run = await store.get_run(run_id)
    assert run.subject.name == "é" * 5000 + "\ufffd?"
    assert run.inputs == {"odd\0": "?", "deep": {"2": 1}}
    await store.append(run_id, None, [note("\0\udcff")])
    assert (await store.events(run_id))[-1].data == {"text": "\0?"}
    assert await store.signal(run_id, "x", {"odd": "\0"}, subject) == "kept"
    assert await store.signal(run_id, "x", {"odd": "\0"}, subject) == "duplicate"
