"""What must not pass for proven: leftovers, forgotten tests, commits that nobody wants any more."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, RERUN, TESTS, HealStage
from test_heal_faults import replace_action

from becket.kernel.contract.action import ActionContext, Result
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.run import RunStatus, StepState
from becket.testing.agent import Act, ScriptedAgent, writes

REPAIRS = Act(writes("calc.py", GOOD))


def test_a_source_that_skips_its_tests_repairs_nothing(tmp_path: Path) -> None:
    """L21: the tests could not be collected on the parent, so only the last green knows that they must run."""
    skips = 'import unittest\nraise unittest.SkipTest("later")\n'
    config = CONFIG.replace(f'rerun: "{RERUN}", ', "")
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("calc.py", skips))] * 4), config=config)
    stage.world.commit({"tests/test_other.py": "def test_other():\n    assert True\n"}, "another test")
    asyncio.run(stage.heal())
    bad = stage.world.commit({"calc.py": GOOD + "(\n"}, "break it")
    run = asyncio.run(stage.heal())
    assert run.status is not RunStatus.completed, run.detail
    assert stage.main() == bad
    said = {item.ref for step in asyncio.run(stage.world.store.steps(run.run_id)) for item in step.conditions}
    assert "candidate.not_crossed" in said


def test_what_a_run_left_behind_does_not_make_a_red_commit_green(tmp_path: Path) -> None:
    """L5, L14: red in every clean tree is red, even if the second run in the same tree passes."""
    stage = HealStage(tmp_path, ScriptedAgent([]))
    asyncio.run(stage.heal())
    leaves = """
        from pathlib import Path
        def test_needs_what_it_makes():
            made = Path(__file__).with_name("made.pyc")
            was_there = made.exists()
            made.touch()
            assert was_there
        """
    bad = stage.world.commit({"tests/test_leaves.py": leaves}, "a test that passes the second time")
    run = asyncio.run(stage.heal())
    assert run.status is not RunStatus.completed, run.detail
    assert asyncio.run(stage.world.store.recorded_by("proven", f"main@{bad}")) is None


ENV_CONFIG = CONFIG.replace(
    "  fast:\n", '  fast:\n    - {name: first, run: "test -f .env", env_file: .env}\n', 1
).replace("test_side:", '    - {name: last, run: "test ! -e .env"}\ntest_side:', 1)


def test_a_step_does_not_see_the_env_file_of_another(tmp_path: Path) -> None:
    """L12: what a step did not declare is not in its key either, so it must not be there."""
    stage = HealStage(tmp_path, config=ENV_CONFIG)
    stage.world.write(".env", "TOKEN=1\n")
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert not (stage.world.root / ".worktrees/base/.env").exists()


def test_the_secrets_of_an_env_file_stay_out_of_what_is_kept(tmp_path: Path) -> None:
    """L25: they have no shape by which one could know them."""
    config = ENV_CONFIG.replace("test -f .env", "cat .env; false")
    stage = HealStage(tmp_path, config=config)
    secret = "Plain-but-Ours-77"
    stage.world.write(".env", f"export DB_PASSWORD='{secret}'\nNAME=x\n")
    run = asyncio.run(stage.heal())
    assert run.status is not RunStatus.completed
    folder = stage.world.app.state.artifacts
    assert not [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


GIVEN = """
version: 1
gates:
  fast:
    - {name: given, run: 'echo "$GIVEN-$MODE"; test "$GIVEN" = sesame-Open-99', env: [GIVEN], set: {MODE: plain}}
    - {name: not_given, run: "env | grep GIVEN && exit 1 || true"}
setup: {run: 'test -n "$GIVEN" && echo "$GIVEN" && mkdir made', key: [conftest.py], env: [GIVEN]}
sandbox: {use: none, without: [files, processes, network]}
agents: {fixer: {driver: command, run: "true"}}
"""


def test_a_step_has_the_variables_it_names_and_no_log_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L12, L16, L25: nobody else sees them, and another value is another environment."""
    monkeypatch.setenv("GIVEN", "sesame-Open-99")
    stage = HealStage(tmp_path, config=GIVEN)
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    kept = [path for path in stage.world.app.state.artifacts.rglob("*") if path.is_file()]
    assert any(b"-plain" in path.read_bytes() for path in kept)
    assert not [path for path in kept if b"sesame-Open-99" in path.read_bytes()]
    monkeypatch.setenv("GIVEN", "another-Word-11")
    stage.world.commit({"note.txt": "x"}, "a note")
    assert asyncio.run(stage.heal()).status is not RunStatus.completed


def test_inputs_that_name_no_file_remember_nothing_for_other_commits(tmp_path: Path) -> None:
    """L11: a slip of the pen in `inputs` must not make one green stand for every later commit."""
    config = CONFIG.replace("min_tests: 1", "min_tests: 1, inputs: ['sources/**']")
    stage = HealStage(tmp_path, config=config)
    asyncio.run(stage.heal())
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is not RunStatus.completed, run.detail
    assert asyncio.run(stage.world.store.recorded_by("proven", f"main@{bad}")) is None


def test_secrets_in_the_output_of_tests_do_not_reach_the_agent(tmp_path: Path) -> None:
    """L25: the brief is made of what tests printed."""
    agent = ScriptedAgent([REPAIRS])
    stage = HealStage(tmp_path, agent)
    asyncio.run(stage.heal())
    secret = "ghp_" + "a1B2" * 9
    tests = TESTS.replace("assert add(2, 3) == 5", f'assert add(2, 3) == 5, "gh" + "{secret[2:]}"')
    stage.world.commit({"tests/test_calc.py": tests}, "tell too much")
    stage.break_it()
    asyncio.run(stage.heal())
    assert agent.briefs, "the agent was not called"
    assert secret not in "".join(agent.briefs)
    folder = stage.world.app.state.artifacts
    kept = [path for path in folder.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert not kept


def test_a_slow_test_that_ran_when_main_was_green_must_still_run(tmp_path: Path) -> None:
    """L16, L21: the slow gate never ran on the red parent; what it must run is known from the last green."""

    def cheats(tree: Path) -> None:
        (tree / "calc.py").write_text(GOOD)
        (tree / "extra.py").unlink()

    slow = CONFIG.replace("GATE", "").split("  fast:\n")[1].splitlines()[0].replace("name: unit", "name: all")
    fast = CONFIG.replace('--junitxml=report.xml"', '--junitxml=report.xml tests/test_calc.py"', 1)
    stage = HealStage(
        tmp_path, ScriptedAgent([Act(cheats)] * 4), config=fast.replace("test_side:", f"  slow:\n{slow}\ntest_side:")
    )
    optional = """
        import pytest
        extra = pytest.importorskip("extra")
        def test_extra():
            assert extra.VALUE == 1
        """
    stage.world.commit({"extra.py": "VALUE = 1\n", "tests/test_extra.py": optional}, "something extra")
    assert asyncio.run(stage.heal()).status is RunStatus.completed
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is not RunStatus.completed, run.detail
    assert stage.main() == bad
    said = [item for step in asyncio.run(stage.world.store.steps(run.run_id)) for item in step.conditions]
    against = [str(item.evidence.get("against")) for item in said if item.ref == "candidate.not_proven"]
    assert against, {item.ref for item in said}
    assert "test_extra" in against[0]


def test_nothing_is_promoted_while_a_verifier_speaks_against_it(tmp_path: Path) -> None:
    """L1: a branch vanished while the candidate was proven, and nothing holds the tests away from the refs."""
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]))
    asyncio.run(stage.heal())
    stage.break_it()
    stage.git("branch", "somebodys")
    replace_action(stage.world, "service.smoke", lambda: stage.git("branch", "--delete", "--force", "somebodys"))
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    steps = asyncio.run(stage.world.store.steps(run.run_id))
    done = [step.iteration for step in steps if step.id == "promote" and step.state is StepState.done]
    assert done == [2]


def test_a_green_commit_that_left_main_is_not_what_main_is_proven_by(tmp_path: Path) -> None:
    """L8: nobody wants it any more, so it is not released either; what is there now counts."""
    stage = HealStage(tmp_path)
    newer = stage.world.commit({"notes.txt": "regretted\n"}, "regretted")
    replace_action(stage.world, "heal.settle", lambda: stage.git("reset", "--hard", "--quiet", stage.green))
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert run.detail["main_proven"]["sha"] == stage.main() == stage.green != newer


def test_an_agent_whose_work_was_committed_before_a_kill_is_not_called_again(tmp_path: Path) -> None:
    """L7: the first life of the step committed and was killed before its row was written."""
    agent = ScriptedAgent([REPAIRS])
    stage = HealStage(tmp_path, agent)
    asyncio.run(stage.heal())
    bad = stage.break_it()
    fix = stage.world.app.registry.actions["agent.fix"]

    async def twice(context: ActionContext, params: object) -> Result:
        await fix.run(context, params)  # type: ignore[arg-type]  # its own parameters
        return await fix.run(context, params)  # type: ignore[arg-type]

    stage.world.action(replace(fix, run=twice))
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert len(agent.briefs) == 1
    assert stage.git("rev-parse", "main^") == bad


def test_what_each_crashed_try_left_stays_saved(tmp_path: Path) -> None:
    """L7: the second try's leftovers do not take the place of the first's."""

    def crashes(text: str) -> Act:
        return Act(writes("calc.py", text), ended=False, error="boom", hint=AgentOutcome.crashed)

    stage = HealStage(tmp_path, ScriptedAgent([crashes("ONE = 1\n"), crashes("TWO = 2\n"), REPAIRS]))
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    saved = stage.git("for-each-ref", "--format=%(refname)", "refs/becket/rescue/").splitlines()
    assert {stage.git("show", f"{ref}:calc.py") for ref in saved} == {"ONE = 1", "TWO = 2"}


@pytest.mark.parametrize("given", ["set: {TOKEN: of-the-step}, ", ""])
def test_what_an_agents_own_code_said_in_a_step_with_variables_does_not_come_back_to_it(
    tmp_path: Path, given: str
) -> None:
    """L25: a name or a message of its own test could carry what the step was given."""

    def leaks(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        writes("tests/test_mine.py", "def test_told_by_name():\n    assert not 'told by message'\n")(tree)

    agent = ScriptedAgent([Act(leaks), REPAIRS])
    stage = HealStage(tmp_path, agent, config=CONFIG.replace("{name: unit, ", f"{{name: unit, {given}"))
    asyncio.run(stage.heal())
    stage.break_it()
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert "An earlier try was not proven" in agent.briefs[1]
    assert ("told by message" in agent.briefs[1]) is not bool(given)
    assert ("1 more lines are not shown" in agent.briefs[1]) is bool(given)
