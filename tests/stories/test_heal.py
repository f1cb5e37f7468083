"""The heal loop, branch by branch, with a real git, a real gate and an agent that does as it is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import BAD, CONFIG, GOOD, TESTS, HealStage

from becket.app.tree_watch import TreeWatch
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

REPAIRS = Act(writes("calc.py", GOOD))
TRUSTING = CONFIG + "guard: {promote: powerful}\n"
"""For stories about something else than what a change can do."""


def broken(folder: Path, *acts: Act, config: str = "", autonomy: str = "merge") -> HealStage:
    """A stage whose last proven commit is followed by a bug; the run about the bug is still to come."""
    stage = HealStage(folder, ScriptedAgent(acts) if acts else None, config=config, autonomy=autonomy)
    asyncio.run(stage.heal())
    stage.break_it()
    return stage


def raised(stage: HealStage, run: Run) -> set[str]:
    return {item.ref for step in asyncio.run(stage.world.store.steps(run.run_id)) for item in step.conditions}


def test_a_green_commit_is_proven_at_its_sha(tmp_path: Path) -> None:
    """L8: what is proven is one exact commit, and it is remembered as such."""
    stage = HealStage(tmp_path)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.completed, "stop_conditions_met"), run.detail
    assert stage.main() == stage.green
    assert asyncio.run(stage.world.store.recorded_by("proven", f"main@{stage.green}")) == run.run_id


def test_a_red_commit_is_repaired_proven_and_promoted(tmp_path: Path) -> None:
    """L3, L5, L16: main is at a commit on top of the red one, with a proof that names every gate."""
    stage = broken(tmp_path, REPAIRS)
    bad = stage.main()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("rev-parse", "main^") == bad
    assert (stage.world.root / "calc.py").read_text().strip() == GOOD.strip()
    assert stage.git("status", "--porcelain") == ""
    assert "Repair test_add" in stage.git("log", "-1", "--format=%s", "main")
    assert asyncio.run(stage.world.store.recorded_by("proven", f"main@{stage.main()}")) == run.run_id


def test_the_next_repair_has_the_files_of_the_last(tmp_path: Path) -> None:
    """One tree for all that a run judges and one for its agent, and neither is made anew for the next run."""
    stage = broken(tmp_path, REPAIRS, REPAIRS)
    spares = stage.world.state.folder / "spares"
    made: list[dict[str, int]] = []
    for _ in range(2):
        run = asyncio.run(stage.heal())
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        made.append({place.name: (place / "tree/tests/test_calc.py").stat().st_ino for place in spares.iterdir()})
        stage.break_it()
    assert made[0].keys() == {"proof", "1"}
    assert made[0] == made[1]


def test_a_repair_made_only_of_new_files_counts(tmp_path: Path) -> None:
    """L5: `git diff` does not see untracked files."""
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("missing.py", "VALUE = 1\n"))]), config=TRUSTING)
    asyncio.run(stage.heal())
    stage.world.commit({"calc.py": "import missing\n" + GOOD}, "use a module that nobody committed")
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("show", "main:missing.py") == "VALUE = 1"


def test_a_missing_tool_is_no_bug_of_the_code(tmp_path: Path) -> None:
    """L13: the fixer is not called for what it cannot repair."""
    stage = HealStage(tmp_path, ScriptedAgent([]), config=CONFIG.replace("report: ", "network: none, report: ", 1))
    text = (stage.world.root / "becket.yaml").read_text()
    stage.world.commit({"becket.yaml": text.replace("slow:", "").replace(
        "  fast:", "  fast:\n    - {name: lint, run: no-such-linter .}")}, "a gate that needs a tool")  # fmt: skip
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "environment_broken"), run.detail
    assert "no-such-linter" in str(run.detail)


def test_a_test_that_fails_once_does_not_block_the_commit(tmp_path: Path) -> None:
    """L14: alone and again it passes, so it is flaky, is named, and nobody is called."""
    flag = tmp_path / "flag"
    stage = HealStage(tmp_path, ScriptedAgent([]))
    flaky = f"""
        from pathlib import Path
        def test_now_and_then():
            flag = Path({str(flag)!r})
            first = not flag.exists()
            flag.touch()
            assert not first
        """
    stage.world.commit({"tests/test_flaky.py": flaky}, "a flaky test")
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert "base.flaky_seen" in raised(stage, run)


def test_runs_that_disagree_are_undecided(tmp_path: Path) -> None:
    """L14: red, green, red on one tree is neither."""
    count = tmp_path / "count"
    stage = HealStage(tmp_path, ScriptedAgent([]))
    torn = f"""
        from pathlib import Path
        def test_torn():
            count = Path({str(count)!r})
            count.write_text(count.read_text() + "x" if count.exists() else "x")
            assert len(count.read_text()) % 2 == 0
        """
    stage.world.commit({"tests/test_torn.py": torn}, "a torn test")
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "undecided"), run.detail


def test_a_change_of_the_tests_is_refused_and_kept(tmp_path: Path) -> None:
    """L7, L21: the guard names rule, path and line; the patch is kept; main stays."""
    emptied = TESTS.replace("assert add(2, 3) == 5", "pass")
    stage = broken(tmp_path, *[Act(writes("tests/test_calc.py", emptied))] * 2)
    bad = stage.main()
    run = asyncio.run(stage.heal())
    assert run.status in (RunStatus.ready_for_handoff, RunStatus.waiting), run.detail
    assert stage.main() == bad
    assert raised(stage, run) & {"candidate.guard_refused", "candidate.test_change_asked"}
    assert stage.git("for-each-ref", f"refs/becket/candidate/{run.run_id}")


def test_a_repair_that_repairs_nothing_gets_another_try_with_the_reasons(tmp_path: Path) -> None:
    """L21: a claim of success with a red test is not crossed; the next brief says why."""
    stage = broken(tmp_path, Act(writes("calc.py", BAD + "\n# a remark\n")), REPAIRS)
    agent = stage.agent
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert "candidate.not_crossed" in raised(stage, run)
    assert isinstance(agent, ScriptedAgent)
    assert "An earlier try was not proven" in agent.briefs[1]
    assert run.counted == 2


def test_an_agent_that_does_nothing_ends_in_a_proven_revert_for_a_person(tmp_path: Path) -> None:
    """L20: exit 0 and nice words with nothing done. The culprit undone is proven and proposed."""
    stage = broken(tmp_path, *[Act()] * 4)
    bad = stage.main()
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), (run.reason, run.detail)
    assert stage.main() == bad
    branch = run.detail["branch"]
    assert stage.git("show", f"{branch}:calc.py") == GOOD.strip()
    assert "Revert" in stage.git("log", "-1", "--format=%s", branch)


def test_a_revert_is_promoted_where_the_user_chose_it(tmp_path: Path) -> None:
    config = CONFIG + "heal: {on_exhausted: revert}\n"
    stage = broken(tmp_path, *[Act()] * 4, config=config)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("show", "main:calc.py") == GOOD.strip()


def test_without_an_agent_the_culprit_is_undone_and_proposed(tmp_path: Path) -> None:
    stage = broken(tmp_path)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), (run.reason, run.detail)


def test_whoever_gets_an_exhausted_repair_reads_why_main_is_red(tmp_path: Path) -> None:
    """L17: no test fails here; the step spoils the tree."""
    step = "gates: {fast: [{name: unit, run: echo more >> conftest.py}]}"
    sandbox = "sandbox: {use: none, without: [files, processes, network]}"
    stage = HealStage(tmp_path, config=f"version: 1\nautonomy: merge\n{step}\n{sandbox}\n")
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_agent"), run.detail
    assert run.detail["against"] == ["unit: the step changed tracked files: conftest.py"]


@pytest.mark.parametrize(
    ("autonomy", "reason", "calls"), [("observe", "observe_only", 0), ("propose", "repair_ready", 1)]
)
def test_autonomy_is_held(tmp_path: Path, autonomy: str, reason: str, calls: int) -> None:
    """L18: observe calls no agent and moves nothing; propose offers a branch and moves nothing."""
    stage = broken(tmp_path, REPAIRS, autonomy=autonomy)
    agent = stage.agent
    assert isinstance(agent, ScriptedAgent)
    bad = stage.main()
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, reason), run.detail
    assert stage.main() == bad
    assert len(agent.briefs) == calls


def test_what_caps_the_autonomy_is_named_where_it_decides(tmp_path: Path) -> None:
    """L18: becket.yaml says merge, and the sandbox does not allow it."""
    config = CONFIG.replace("{use: none, without: [files, processes, network]}", "none")
    stage = broken(tmp_path, REPAIRS, config=config)
    run = asyncio.run(stage.heal())
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), run.detail
    steps = asyncio.run(stage.world.store.steps(run.run_id))
    (way,) = [step for step in steps if "way" in step.outputs]
    assert "the sandbox here is none and does not hold files and network and processes" in way.note


def test_a_person_who_works_on_the_same_file_is_waited_for(tmp_path: Path) -> None:
    """L6: `main_dirty`; the candidate is kept, and promoted once the file is free."""
    stage = broken(tmp_path, REPAIRS)
    bad = stage.main()
    (stage.world.root / "calc.py").write_text("half a thought\n")

    async def story() -> None:
        run = await stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("main_dirty",)), (run.reason, run.detail)
        assert stage.main() == bad
        assert (stage.world.root / "calc.py").read_text() == "half a thought\n"
        stage.git("checkout", "--", "calc.py")
        await stage.world.pass_time(31)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert stage.git("rev-parse", "main^") == bad

    asyncio.run(story())


def test_a_file_that_becomes_free_is_seen_at_once_and_not_at_the_next_poll(tmp_path: Path) -> None:
    stage = broken(tmp_path, REPAIRS)
    (stage.world.root / "calc.py").write_text("half a thought\n")

    async def story() -> None:
        run = await stage.heal()
        watch = TreeWatch(stage.world.app)
        for _ in range(3):
            await watch.look()
        await stage.world.pass_time(0)
        assert (await stage.world.store.get_run(run.run_id)).status is RunStatus.waiting, "nothing has changed"
        stage.git("checkout", "--", "calc.py")
        await watch.look()
        await stage.world.pass_time(0)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)

    asyncio.run(story())


def test_main_that_moves_is_followed(tmp_path: Path) -> None:
    """L2: the repair is carried over and proven again; a move does not count as an iteration."""
    stage = HealStage(tmp_path)

    def repairs_while_somebody_commits(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        stage.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")

    stage = HealStage(tmp_path / "again", ScriptedAgent([Act(repairs_while_somebody_commits)]))
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert "main_moved" in raised(stage, run)
    assert run.counted == 1
    assert stage.git("show", "main:notes.txt") == "meanwhile"
    assert stage.git("show", "main:calc.py") == GOOD.strip()


def test_somebody_else_repairs_it_first(tmp_path: Path) -> None:
    """Main is green again without us: the run says so and drops its own repair."""

    def somebody_is_faster(tree: Path) -> None:
        writes("calc.py", GOOD + "\n# ours\n")(tree)
        stage.world.commit({"calc.py": GOOD}, "put it right")

    stage = HealStage(tmp_path, ScriptedAgent([Act(somebody_is_faster)]))
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("show", "main:calc.py") == GOOD.strip()


def test_a_quota_is_waited_for(tmp_path: Path) -> None:
    """L23: the run sleeps until the reset instead of burning its tries."""
    stage = HealStage(tmp_path)
    until = stage.world.clock() + 3600
    acts = [Act(hint=AgentOutcome.quota_wait, error="quota", until=until), REPAIRS]
    stage = HealStage(tmp_path / "again", ScriptedAgent(acts))

    async def story() -> None:
        await stage.heal()
        stage.break_it()
        run = await stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",)), (run.reason, run.detail)
        await stage.world.pass_time(3601)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)

    asyncio.run(story())


def test_the_commit_that_broke_it_is_found_among_many(tmp_path: Path) -> None:
    """The culprit is in the brief, by bisection over the new commits."""
    agent = ScriptedAgent([REPAIRS])
    stage = HealStage(tmp_path, agent)
    asyncio.run(stage.heal())
    for number in range(3):
        stage.world.commit({f"before{number}.txt": "x\n"}, f"harmless {number}")
    bad = stage.break_it()
    for number in range(2):
        stage.world.commit({f"after{number}.txt": "x\n"}, f"harmless too {number}")
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert f"It broke with the commit {bad[:12]}" in agent.briefs[0]
    assert "left - right" in agent.briefs[0]


def test_two_agents_work_and_the_first_proven_wins(tmp_path: Path) -> None:
    """`attempts: 2`: the smaller change is tried first; it is wrong, and the other is proven without a new call."""
    acts = [Act(writes("calc.py", BAD + "\n# nothing\n")), Act(writes("calc.py", GOOD), said="two files")]

    def two_files(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        writes("extra.py", "EXTRA = 1\n")(tree)

    acts[1] = Act(two_files)
    agent = ScriptedAgent(acts)
    stage = HealStage(tmp_path, agent, config=TRUSTING + "heal: {attempts: 2}\n")
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert len(agent.briefs) == 2
    assert stage.git("show", "main:extra.py") == "EXTRA = 1"
