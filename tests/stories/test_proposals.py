"""A ready repair: a person takes it with one command, and only what is proven ever reaches the branch."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

import pytest
from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.app.account import _end
from becket.app.desk import RunRequest, change_handoff, retry, start
from becket.app.keyboard import at_keyboard
from becket.app.proposals import accept, all_open, decline, find
from becket.app.record.report.collect import read_report
from becket.app.record.settling import branch_moved, settle
from becket.kernel.contract.caller import Via
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.git import RefMoved
from becket.kernel.contract.handoff import HandoffState
from becket.kernel.contract.promote import PROMOTE
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.engine.triggers import declined_about
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.people import person

ADA = person("ada", "approver", Via.chat)
"""Not whoever owns the process: she asks from elsewhere."""
ORDINARY = GOOD + "\n\nHOST = 'elsewhere.example'\n"
POWERFUL = "import os\n" + GOOD.replace("left + right", "left + right + len(os.environ.get('X', ''))")
NOT_ME = "people: {ada: {role: owner, os_user: nobody-here}}\n"


def proposed(folder: Path, repair: str = GOOD, config: str = CONFIG) -> tuple[HealStage, Run]:
    """A stage with one ready repair."""
    acts = [Act(writes("calc.py", repair))] * 2
    stage = HealStage(folder, ScriptedAgent(acts), config=config, autonomy="propose")
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert "candidate" in run.detail, (run.reason, run.detail)
    return stage, run


async def taken(stage: HealStage, name: str | None = None) -> Run:
    _, started = await accept(stage.world.app, ADA, name, "")
    assert started.run is not None
    await stage.world.settle()
    return await stage.world.store.get_run(started.run.run_id)


def offered(stage: HealStage) -> str:
    """The branches that offer repairs."""
    return stage.git("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/becket")


async def state_of(stage: HealStage, run: Run) -> tuple[HandoffState, str]:
    (handoff,) = await stage.world.store.handoffs((), run.run_id)
    return handoff.state, handoff.note


def test_an_accepted_repair_is_promoted_as_it_was_proven(tmp_path: Path) -> None:
    """L3, L18: the very commit, by the usual door under its own proof, without running a gate or an agent again; and
    what a person must not be asked twice, a powerful change, is not."""
    stage, run = proposed(tmp_path, POWERFUL)
    calls = len(asyncio.run(stage.world.store.calls()))

    async def story() -> None:
        store = stage.world.store
        end = await taken(stage)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert stage.main() == run.detail["candidate"]
        assert (stage.world.root / "calc.py").read_text().strip() == POWERFUL.strip()
        (effect,) = [one for one in await store.effects(end.run_id) if one.call.name == PROMOTE]
        proofs = [
            step.outputs["digest"] for step in await store.steps(run.run_id) if step.id == "proof" and step.outputs
        ]
        assert effect.state is EffectState.done
        assert effect.call.payload["proof"] in proofs
        assert not [one for one in await store.receipts(end.run_id) if one.receipt.kind == "gate"]
        assert len(await store.calls()) == calls
        assert await store.recorded_by("proven", f"main@{stage.main()}") == end.run_id
        (by,) = {step.outputs["by"] for step in await store.steps(end.run_id) if step.id == "word"}
        assert by == ADA.name
        assert offered(stage) == "", "main has it, and the branch that offered it is in nobody's list"

    asyncio.run(story())


def test_where_main_moved_the_repair_is_carried_over_and_proven_again(tmp_path: Path) -> None:
    stage, run = proposed(tmp_path)
    stage.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")
    moved = stage.main()

    async def story() -> None:
        end = await taken(stage, run.run_id[:12])
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert stage.git("rev-parse", "main^") == moved
        assert stage.main() != run.detail["candidate"]
        assert stage.git("show", "main:calc.py") == GOOD.strip()
        proof = [step for step in await stage.world.store.steps(end.run_id) if step.id == "proof"]
        assert proof[-1].outputs["state"] == "proven"
        state, note = await state_of(stage, run)
        assert (state, note) == (HandoffState.done, f"settled: main is proven at {stage.main()[:12]} by {end.run_id}")
        assert offered(stage) == ""

    asyncio.run(story())


@pytest.mark.parametrize("kept", ["stood on", "moved"])
def test_a_branch_that_offered_a_repair_stays_where_somebody_uses_it(tmp_path: Path, kept: str) -> None:
    stage, run = proposed(tmp_path)
    if kept == "stood on":
        stage.git("worktree", "add", str(tmp_path / "mine"), offered(stage))
    else:
        stage.git("update-ref", f"refs/heads/{offered(stage)}", "main")
    before = offered(stage)
    assert asyncio.run(taken(stage)).status is RunStatus.completed
    assert stage.main() == run.detail["candidate"]
    assert offered(stage) == before != ""


def test_a_repair_that_fits_no_more_moves_nothing_and_calls_no_agent(tmp_path: Path) -> None:
    stage, _ = proposed(tmp_path)
    stage.world.commit({"calc.py": BAD.replace("left - right", "left * right - 1")}, "another way to be wrong")
    head, calls = stage.main(), len(asyncio.run(stage.world.store.calls()))
    end = asyncio.run(taken(stage))
    assert end.status is RunStatus.ready_for_handoff, (end.reason, end.detail)
    assert "does not fit" in str(end.detail["why"])
    assert stage.main() == head
    assert len(asyncio.run(stage.world.store.calls())) == calls


def test_a_repair_whose_commit_was_removed_is_not_accepted_in_vain(tmp_path: Path) -> None:
    stage, run = proposed(tmp_path)
    for ref in stage.git("for-each-ref", "--format=%(refname)", "refs/becket", "refs/heads/becket").split():
        stage.git("update-ref", "-d", ref)
    stage.git("reflog", "expire", "--expire=now", "--all")
    stage.git("gc", "--quiet", "--prune=now")

    async def story() -> None:
        with pytest.raises(UsageError, match=rf"not whole any more.*becket runs retry {run.run_id}"):
            await accept(stage.world.app, ADA, None, "")
        assert (await state_of(stage, run))[0] is HandoffState.open

    asyncio.run(story())


def test_only_a_yes_on_record_counts_and_a_no_ends_it(tmp_path: Path) -> None:
    """Text from outside is no approval: the run looks for the yes of somebody with the role in the journal (L41)."""
    stage, run = proposed(tmp_path)
    bad, app = stage.main(), stage.world.app

    async def story() -> None:
        end = await stage.world.run("heal", inputs={"accept": run.run_id})
        assert "nobody accepted" in str(end.detail), end.reason
        stage.world.write("becket.yaml", stage.git("show", "main:becket.yaml") + "\n" + NOT_ME)
        for wish in (accept(app, at_keyboard(app.config), None, ""), decline(app, at_keyboard(app.config), None, "")):
            with pytest.raises(UsageError, match="decided by approver or owner"):
                await wish
        (handoff,) = await stage.world.store.handoffs((), run.run_id)
        with pytest.raises(UsageError, match="decided by approver or owner"):
            await change_handoff(
                app, at_keyboard(app.config), handoff.handoff_id, HandoffState.done, "by the other door"
            )
        stage.git("checkout", "--", "becket.yaml")
        _, first = await accept(app, at_keyboard(app.config), None, "")
        _, second = await accept(app, at_keyboard(app.config), None, "")
        assert first.run is not None
        assert second.run is not None
        assert first.run.run_id == second.run.run_id
        with pytest.raises(UsageError, match="runs cancel"):
            await decline(app, at_keyboard(app.config), None, "")
        await stage.world.store.ask_cancel(first.run.run_id, person("ada"), "")
        await decline(app, at_keyboard(app.config), None, "we rewrite it anyway")
        assert await state_of(stage, run) == (HandoffState.declined, "declined: we rewrite it anyway")
        assert not await all_open(app)
        with pytest.raises(UsageError, match="no ready repair"):
            await find(app, None)
        assert stage.main() == bad

    asyncio.run(story())


def test_a_repair_that_somebody_merged_by_hand_is_closed(tmp_path: Path) -> None:
    """Also as another commit: what counts is the change."""
    stage, run = proposed(tmp_path)
    old = stage.main()
    stage.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")
    stage.git("cherry-pick", str(run.detail["branch"]))

    async def story() -> None:
        await branch_moved(stage.world.app, RefMoved(branch="main", old=old, new=stage.main()))
        assert await state_of(stage, run) == (HandoffState.done, f"settled: merged by hand at {stage.main()[:12]}")

    asyncio.run(story())


def test_an_accepted_repair_is_told_as_accepted_and_by_the_name_of_whoever_made_it(tmp_path: Path) -> None:
    """Whoever looks at the older run must not be sent after what is done."""
    stage, run = proposed(tmp_path)

    async def story() -> None:
        end = await taken(stage)
        left, took = [await read_report(stage.world.app, one) for one in (run.run_id, end.run_id)]
        assert left.end is not None
        assert took.end is not None
        assert left.end.headline.endswith(f"; the proven repair by fixer was accepted by {ADA.name}")
        assert stage.main()[:12] in left.end.lines[0]
        assert left.end.next == "becket status"
        assert took.end.headline == f"main is green at {stage.main()[:7]}, repaired by fixer"

    asyncio.run(story())


def test_what_is_tried_again_by_hand_leaves_one_open_handoff(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, config=CONFIG.replace("AUTONOMY", "observe"))

    async def story() -> None:
        await stage.heal()
        stage.break_it()
        first, second = await stage.heal(), await stage.heal()
        assert first.reason == second.reason == "observe_only"
        await settle(stage.world.app, second)
        assert await state_of(stage, first) == (HandoffState.done, f"settled: tried again by {second.run_id}")
        assert (await state_of(stage, second))[0] is HandoffState.open

    asyncio.run(story())


def test_a_handoff_closes_when_a_later_commit_is_proven_or_the_run_is_retried(tmp_path: Path) -> None:
    stage = HealStage(tmp_path)

    async def story() -> None:
        from becket.app.desk import retry

        await stage.heal()
        stage.break_it()
        first = await stage.heal()
        assert first.status is RunStatus.ready_for_handoff
        again = (await retry(stage.world.app, ADA, first.run_id)).run
        assert again is not None
        assert await state_of(stage, first) == (HandoffState.done, f"settled: retried as {again.run_id}")
        await stage.world.settle()
        stage.world.commit({"calc.py": GOOD}, "a person's repair")
        end = await stage.heal()
        told = f"settled: main is proven at {stage.main()[:12]} by {end.run_id}"
        assert await state_of(stage, again) == (HandoffState.done, told)

    asyncio.run(story())


@pytest.mark.parametrize("repair", [POWERFUL, ORDINARY], ids=["powerful", "ordinary"])
def test_the_services_of_a_repair_that_waits_for_a_person_are_built_only_after_the_yes(
    tmp_path: Path, repair: str
) -> None:
    """A build has the network, the build's variables and copies of shared data; a changed host is ordinary."""
    seen = tmp_path / "seen"
    service = f'services: {{main: {{start: "exec true", build: {{run: "git hash-object calc.py >> {seen}"}}}}}}\n'
    stage, run = proposed(tmp_path, repair, CONFIG + service)
    assert not seen.exists()

    async def story() -> None:
        raised = {item.ref for step in await stage.world.store.steps(run.run_id) for item in step.conditions}
        assert "candidate.smoke_waits" in raised
        end = await taken(stage)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert stage.main() == run.detail["candidate"]
        assert seen.read_text().split() == [stage.git("rev-parse", "main:calc.py")]

    asyncio.run(story())


def test_a_no_is_an_answer_until_somebody_asks_anew(tmp_path: Path) -> None:
    """Nobody is called again for that commit; and who is asked anew and does the very same is not offered again."""
    stage, run = proposed(tmp_path)
    app, store = stage.world.app, stage.world.store

    async def story() -> None:
        await decline(app, at_keyboard(app.config), None, "")
        calls = len(await store.calls())
        started = await start(app, at_keyboard(app.config), RunRequest(loop_id="heal"))
        assert started.run is None
        assert f"becket runs retry {run.run_id}" in started.dropped
        said = await declined_about(store, "heal", run.subject.name)
        assert said is not None
        assert said.run_id == run.run_id
        await app.triggers.sweep()
        await stage.world.settle()
        assert len(await store.calls()) == calls
        again = await retry(app, at_keyboard(app.config), run.run_id)
        assert again.run is not None
        await stage.world.settle()
        end = await store.get_run(again.run.run_id)
        assert end.reason == "declined_before", (end.status, end.detail)
        assert not await all_open(app)

    asyncio.run(story())


def test_a_branch_named_like_the_folder_of_ours_loses_no_repair(tmp_path: Path) -> None:
    """Git cannot have `becket` beside `becket/heal/...`: the repair is handed over by its commit."""
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("calc.py", GOOD))]), autonomy="propose")
    asyncio.run(stage.heal())
    stage.break_it()
    stage.git("branch", "becket")
    run = asyncio.run(stage.heal())
    assert (run.reason, run.detail["branch"]) == ("repair_ready", ""), run.detail

    async def story() -> None:
        end = await taken(stage)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert stage.main() == run.detail["candidate"]

    asyncio.run(story())


def test_a_second_yes_at_the_same_moment_hears_that_it_is_accepted_already(tmp_path: Path) -> None:
    stage, run = proposed(tmp_path)

    async def story() -> None:
        (handoff,) = await stage.world.store.handoffs((), run.run_id)
        await stage.world.store.change_handoff(handoff.handoff_id, HandoffState.accepted, person("ada"), "")
        with pytest.raises(UsageError, match="is accepted already, by ada"):
            await stage.world.store.change_handoff(handoff.handoff_id, HandoffState.accepted, person("bob"), "")

    asyncio.run(story())


def test_a_commit_that_the_branch_has_left_repaired_behind_needs_no_agent(tmp_path: Path) -> None:
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("calc.py", GOOD))]))
    asyncio.run(stage.heal())
    bad = stage.break_it()
    assert asyncio.run(stage.heal()).status is RunStatus.completed

    async def story() -> None:
        calls, head = len(await stage.world.store.calls()), stage.main()
        started = await start(stage.world.app, ADA, RunRequest(loop_id="heal", sha=bad))
        assert started.run is not None
        await stage.world.settle()
        run = await stage.world.store.get_run(started.run.run_id)
        proven = cast("dict[str, str]", run.detail["main_proven"])
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert (proven["sha"], proven["instead_of"], proven["repaired"]) == (head, bad, "")
        assert len(await stage.world.store.calls()) == calls
        assert _end(run).startswith("ended: completed (its branch has moved on)")

    asyncio.run(story())


def on_feature(folder: Path) -> tuple[HealStage, str]:
    """A green main, and a feature branch that is checked out and one broken commit ahead."""
    stage = HealStage(folder, ScriptedAgent([Act(writes("calc.py", GOOD))]))
    asyncio.run(stage.heal())
    stage.git("checkout", "-q", "-b", "feature/fast")
    return stage, stage.break_it()


async def asked(stage: HealStage, sha: str) -> Run:
    started = await start(stage.world.app, ADA, RunRequest(loop_id="heal", sha=sha))
    assert started.run is not None
    await stage.world.settle()
    return await stage.world.store.get_run(started.run.run_id)


async def told(stage: HealStage, run: Run) -> str:
    end = (await read_report(stage.world.app, run.run_id)).end
    assert end is not None
    return end.headline


def test_a_commit_of_a_feature_branch_is_judged_and_repaired_for_that_branch(tmp_path: Path) -> None:
    """Also at merge: what Becket does not watch, it neither moves nor releases by itself."""
    stage, bad = on_feature(tmp_path)

    async def story() -> None:
        green = stage.main()
        run = await asked(stage, "HEAD")
        assert (run.subject.name, run.reason) == (f"feature/fast@{bad}", "repair_ready"), run.detail
        assert (await told(stage, run)).startswith(f"feature/fast is red at {bad[:7]};")
        (one,) = await all_open(stage.world.app)
        assert (one.target, one.moved) == ("feature/fast", False)
        end = await taken(stage)
        assert end.status is RunStatus.completed, (end.reason, end.detail)
        assert stage.git("rev-parse", "feature/fast") == run.detail["candidate"]
        assert (await told(stage, end)).startswith(f"feature/fast is green at {str(run.detail['candidate'])[:7]}")
        assert stage.main() == green
        assert (await state_of(stage, run))[0] is HandoffState.done

    asyncio.run(story())


def test_a_repair_merged_into_its_feature_branch_by_hand_is_closed(tmp_path: Path) -> None:
    stage, _ = on_feature(tmp_path)

    async def story() -> None:
        run = await asked(stage, "HEAD")
        stage.git("merge", "-q", "--ff-only", str(run.detail["branch"]))
        assert await all_open(stage.world.app) == ()
        assert (await state_of(stage, run))[0] is HandoffState.done

    asyncio.run(story())


def test_a_commit_of_no_named_branch_is_judged_alone_and_its_repair_is_taken_by_hand(tmp_path: Path) -> None:
    stage, bad = on_feature(tmp_path)
    stage.world.commit({"notes.txt": "later\n"}, "more of it")

    async def story() -> None:
        run = await asked(stage, "HEAD~1")
        assert run.reason == "repair_ready", run.detail
        assert (await told(stage, run)).startswith(f"the commit is red at {bad[:7]};")
        branch = str(run.detail["branch"])
        assert run.detail["next"] == f"git merge --ff-only {branch}"
        with pytest.raises(UsageError, match=f"belongs to the commit {bad[:12]}.*git merge --ff-only {branch}"):
            await accept(stage.world.app, ADA, None, "")
        assert (await state_of(stage, run))[0] is HandoffState.open
        stage.git("checkout", "-q", "-b", "taken", bad)
        assert len(await all_open(stage.world.app)) == 1
        stage.git("merge", "-q", "--ff-only", branch)
        assert await all_open(stage.world.app) == ()
        assert (await state_of(stage, run))[0] is HandoffState.done

    asyncio.run(story())


def test_a_green_commit_of_no_named_branch_says_nothing_of_main(tmp_path: Path) -> None:
    stage, _ = on_feature(tmp_path)
    green = stage.world.commit({"calc.py": GOOD + "\n\nTWO = 2\n"}, "as it was, and two")
    stage.break_it()

    async def story() -> None:
        run = await asked(stage, green)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert await told(stage, run) == f"the commit is green at {green[:7]}"

    asyncio.run(story())


def test_a_green_feature_branch_is_not_put_into_service(tmp_path: Path) -> None:
    service = 'services: {shop: {start: "sleep 60", port: 8123}}\n'
    stage = HealStage(tmp_path, config=CONFIG + service, autonomy="release")
    stage.git("checkout", "-q", "-b", "feature/notes")
    head = stage.world.commit({"notes.txt": "to do\n"}, "notes")

    async def story() -> None:
        run = await asked(stage, "HEAD")
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert await told(stage, run) == f"feature/notes is green at {head[:7]}"
        (said,) = [one for one in await stage.world.store.conditions(run.run_id) if one.ref == "release_settled"]
        assert said.evidence["why"] == "feature/notes is not watched: not released"

    asyncio.run(story())
