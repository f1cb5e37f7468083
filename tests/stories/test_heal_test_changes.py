"""A repair that changes tests: a person is told what the guard found, and one yes counts for exactly that change."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, TESTS, HealStage

from becket.app.record.questions import read_question
from becket.app.record.report.collect import read_report
from becket.kernel.contract.errors import NotFound, UsageError
from becket.kernel.contract.handoff import Approval, ApprovalState
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, Deed, ScriptedAgent, writes
from becket.testing.people import person

TOLERANT = TESTS.replace("assert add(2, 3) == 5", "assert add(2, 3) in (5, 6)")


def repairs_and_changes_tests(tree: Path) -> None:
    writes("calc.py", GOOD)(tree)
    writes("tests/test_calc.py", TOLERANT)(tree)


def broken(folder: Path, deed: Deed = repairs_and_changes_tests) -> HealStage:
    stage = HealStage(folder, ScriptedAgent([Act(deed)] * 2))  # it insists: the guard sends it back once
    asyncio.run(stage.heal())
    stage.break_it()
    return stage


async def asked(stage: HealStage) -> tuple[Run, Approval]:
    run = await stage.heal()
    assert (run.status, run.waiting_on) == (RunStatus.waiting, ("change.asked",)), (run.reason, run.detail)
    (approval,) = await stage.world.store.approvals(run.run_id)
    return run, approval


async def answer(stage: HealStage, approval: Approval, approve: bool) -> Run:
    store = stage.world.store
    await store.decide_approval(approval.approval_id, approve, person("ada"), approval.bound_to, "")
    await stage.world.settle()
    return await store.get_run(approval.run_id)


def test_the_question_says_rule_file_line_and_what_was_found(tmp_path: Path) -> None:
    stage = broken(tmp_path)
    _, approval = asyncio.run(asked(stage))
    first, *findings = approval.question.split("\n")
    assert first == "May this repair change the tests?"
    assert findings[0].startswith("tests/test_calc.py:6 test-")
    assert findings[-1] == f"See the whole change: `becket approvals show {approval.run_id}`."


def test_an_agent_that_changed_tests_gets_another_try_before_a_person_is_asked(tmp_path: Path) -> None:
    """L21: with the guard's words; a repair that leaves the tests alone then needs nobody."""
    agent = ScriptedAgent([Act(repairs_and_changes_tests), Act(writes("calc.py", GOOD))])
    stage = HealStage(tmp_path, agent)
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert "tests/test_calc.py:6: test-" in agent.briefs[1]
    assert not asyncio.run(stage.world.store.approvals(run.run_id))
    assert stage.git("show", "main:tests/test_calc.py") == TESTS.strip()


def test_five_findings_are_told_and_the_rest_is_counted(tmp_path: Path) -> None:
    def changes_many(tree: Path) -> None:
        repairs_and_changes_tests(tree)
        for number in range(7):
            path = tree / f"tests/test_more_{number}.py"
            path.write_text(path.read_text().replace("== 4", "in (4, 5)"))

    stage = HealStage(tmp_path, ScriptedAgent([Act(changes_many)] * 2))
    more = "from calc import add\n\n\ndef test_more():\n    assert add(4, 0) == 4\n"
    stage.world.commit({f"tests/test_more_{number}.py": more for number in range(7)}, "more tests")
    asyncio.run(stage.heal())
    stage.break_it()
    _, approval = asyncio.run(asked(stage))
    _, *findings, _ = approval.question.split("\n")
    assert len(findings) == 6
    assert findings[-1] == "and 3 more"


def test_one_yes_lets_the_change_be_proven_and_promoted(tmp_path: Path) -> None:
    stage = broken(tmp_path)

    async def story() -> None:
        _, approval = await asked(stage)
        run = await answer(stage, approval, True)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert stage.git("show", "main:tests/test_calc.py") == TOLERANT.strip()

    asyncio.run(story())


def test_a_yes_is_not_asked_for_again_while_main_is_dirty(tmp_path: Path) -> None:
    """The run looks every half minute; each look is an iteration of its own."""
    stage = broken(tmp_path)
    (stage.world.root / "calc.py").write_text("half a thought\n")

    async def story() -> None:
        _, approval = await asked(stage)
        run = await answer(stage, approval, True)
        assert run.waiting_on == ("main_dirty",), (run.reason, run.detail)
        await stage.world.pass_time(31)
        stage.git("checkout", "--", "calc.py")
        await stage.world.pass_time(31)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        (only,) = await stage.world.store.approvals(run.run_id)
        assert (only.approval_id, only.state, only.decided_by) == (approval.approval_id, ApprovalState.used, "ada")

    asyncio.run(story())


def test_a_yes_stands_for_the_same_change_on_a_main_that_moved(tmp_path: Path) -> None:
    """The commit is another one; what it changes is the same, byte by byte."""
    stage = broken(tmp_path)

    async def story() -> None:
        _, approval = await asked(stage)
        stage.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")
        run = await answer(stage, approval, True)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert stage.git("show", "main:notes.txt") == "meanwhile"
        assert len(await stage.world.store.approvals(run.run_id)) == 1

    asyncio.run(story())


def test_a_yes_does_not_stand_when_the_tests_themselves_moved_below_it(tmp_path: Path) -> None:
    """What was approved is a change of that file as it was."""
    stage = broken(tmp_path)

    async def story() -> None:
        _, approval = await asked(stage)
        stage.world.commit({"tests/test_calc.py": TESTS + "\n\ndef test_late():\n    assert True\n"}, "a late test")
        run = await answer(stage, approval, True)
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("change.asked",)), (run.reason, run.detail)
        states = [one.state for one in await stage.world.store.approvals(run.run_id)]
        assert sorted(states) == [ApprovalState.approved, ApprovalState.asked]
        assert stage.main() == stage.git("rev-parse", "main")

    asyncio.run(story())


def test_a_no_ends_at_a_person_and_stays_a_no(tmp_path: Path) -> None:
    stage = broken(tmp_path)
    bad = stage.main()

    async def story() -> None:
        _, approval = await asked(stage)
        run = await answer(stage, approval, False)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "change.denied"), run.detail
        assert stage.main() == bad
        with pytest.raises(UsageError):
            await stage.world.store.decide_approval(approval.approval_id, True, person("eve"), None, "")

    asyncio.run(story())


def test_a_yes_that_was_taken_back_counts_for_nothing(tmp_path: Path) -> None:
    stage = broken(tmp_path)
    bad = stage.main()

    async def story() -> None:
        _, approval = await asked(stage)
        store = stage.world.store
        await store.decide_approval(approval.approval_id, True, person("ada"), None, "")
        await store.revoke_approval(approval.approval_id, person("ada"), "on second thoughts")
        await stage.world.settle()
        run = await store.get_run(approval.run_id)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "change.revoked"), run.detail
        assert stage.main() == bad

    asyncio.run(story())


def test_the_whole_change_is_shown_to_whoever_decides(tmp_path: Path) -> None:
    stage = broken(tmp_path)

    async def story() -> None:
        run, approval = await asked(stage)
        for name in (None, run.run_id, approval.approval_id[:-2]):
            shown = await read_question(stage.world.app, name)
            assert shown.approval.approval_id == approval.approval_id
            for line in (b"+    assert add(2, 3) in (5, 6)", b"+    return left + right"):
                assert line in shown.diff
        await answer(stage, approval, False)
        with pytest.raises(NotFound, match="nothing waits for a decision"):
            await read_question(stage.world.app, None)
        assert (await read_question(stage.world.app, approval.approval_id)).diff, "what was decided can be read later"

    asyncio.run(story())


def test_after_a_yes_the_end_says_that_tests_still_fail_and_where(tmp_path: Path) -> None:
    wrong = TESTS.replace("assert add(2, 3) == 5", "assert add(2, 3) in (6, 7)")

    def in_vain(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        writes("tests/test_calc.py", wrong)(tree)

    stage = HealStage(tmp_path, ScriptedAgent([Act(in_vain)] * 3))
    asyncio.run(stage.heal())
    stage.break_it()

    async def story() -> None:
        _, approval = await asked(stage)
        run = await answer(stage, approval, True)
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress"), run.detail
        end = (await read_report(stage.world.app, run.run_id)).end
        assert end is not None
        assert end.headline.endswith("; the last try brought nothing new, and no repair was proven")
        still = "with the approved change of the tests, the step unit of the gate fast still fails: 1 of 3 fails: "
        assert end.lines[0] == still + "tests/test_calc.py::test_add"
        assert not [line for line in end.lines if "ask a person to approve" in line], "somebody has"

    asyncio.run(story())


def test_an_end_without_progress_names_the_gate_the_step_and_the_failing_tests(tmp_path: Path) -> None:
    vain = Act(writes("calc.py", GOOD.replace("left + right", "left * right")))
    stage = HealStage(tmp_path, ScriptedAgent([vain] * 3))
    asyncio.run(stage.heal())
    stage.break_it()

    async def story() -> None:
        run = await stage.heal()
        assert run.reason == "no_progress", run.detail
        end = (await read_report(stage.world.app, run.run_id)).end
        assert end is not None
        stuck = "it is stuck at the step unit of the gate fast: 1 of 3 fails: tests/test_calc.py::test_add"
        shown = "the last change that was tried, which is not proven:"
        assert (end.lines, end.change) == ((stuck, "fix brought the same result as an earlier iteration", shown), True)

    asyncio.run(story())


def test_the_question_is_bound_to_the_whole_change_however_long_it_is(tmp_path: Path) -> None:
    """Two changes that differ only beyond what is shown of a patch are two questions."""

    def long(end: str) -> Deed:
        def deed(tree: Path) -> None:
            repairs_and_changes_tests(tree)
            writes("words.py", "WORDS = '''\n" + "word\n" * 500_000 + f"'''\n# {end}\n")(tree)

        return deed

    hashes = set()
    for end in ("one", "two"):
        _, approval = asyncio.run(asked(broken(tmp_path / end, long(end))))
        hashes.add(approval.bound_to)
    assert len(hashes) == 2


@pytest.mark.parametrize(("example", "asks"), [("5", False), ("-1", True)])
def test_a_module_with_doctests_is_product_and_only_a_changed_example_is_a_question(
    tmp_path: Path, example: str, asks: bool
) -> None:
    """L21: the report names the module for its doctests, and its functions may be repaired all the same."""
    code = GOOD.replace(
        "    return left + right", '    """\n    >>> add(2, 3)\n    5\n    """\n    return left + right'
    )
    repair = Act(writes("calc.py", code.replace("    5\n", f"    {example}\n")))
    stage = HealStage(
        tmp_path, ScriptedAgent([repair] * 2), config=CONFIG.replace("-m pytest", "-m pytest --doctest-modules")
    )
    stage.world.commit({"calc.py": code}, "an example")
    asyncio.run(stage.heal())
    stage.world.commit({"calc.py": code.replace("left + right", "left - right")}, "make add faster")
    run = asyncio.run(stage.heal())
    assert (run.waiting_on == ("change.asked",)) is asks, (run.reason, run.detail)
    assert (run.status is RunStatus.completed) is not asks, (run.reason, run.detail)
