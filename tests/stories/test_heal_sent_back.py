"""What the guard does not let through goes back to the agent once, with the guard's words, before a person is asked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.kernel.contract.guard import Change, ChangeClass, ClassFinding, Classification
from becket.kernel.contract.run import Run, RunStatus
from becket.parts.guard.actions.guard import check
from becket.parts.guard.reading.side import TestSide
from becket.testing.agent import Act, ScriptedAgent, writes

CI = ".gitattributes"
LOOKS_AROUND = "import os\n" + GOOD.replace("left + right", "left + right if os.environ else 0")
REPAIRS = Act(writes("calc.py", GOOD))
POWERFUL = Act(writes("calc.py", LOOKS_AROUND))


def repairs_and(path: str, text: str) -> Act:
    def deed(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        writes(path, text)(tree)

    return Act(deed)


REFUSED = repairs_and(CI, "*.txt text\n")


def read(change: Change, side: TestSide, *_: object) -> Classification:
    """A reader that knows one power: stories about what follows need no more."""
    return Classification.of(
        ClassFinding(
            kind=ChangeClass.powerful, power="environment", path=file.path, line=number,
            message="adds the power to read the environment", shown=text,
        )
        for file in change.files
        for number, text in enumerate(file.new().decode().splitlines(), 1)
        if "os.environ" in text
    )  # fmt: skip


class Stage:
    """A bug whose repair by the acts is still to come."""

    def __init__(self, folder: Path, *acts: Act, config: str = CONFIG) -> None:
        self.agent = ScriptedAgent(acts)
        self.heal = HealStage(folder, self.agent, config=config)
        world = self.heal.world
        world.action(replace(world.app.registry.actions["guard.check"], run=partial(check, read=read)))
        asyncio.run(self.heal.heal())
        self.bad = self.heal.break_it()

    def run(self) -> Run:
        return asyncio.run(self.heal.heal())

    def raised(self, run: Run) -> list[str]:
        steps = asyncio.run(self.heal.world.store.steps(run.run_id))
        return [item.name for step in steps if step.id == "guard" for item in step.conditions]


def test_a_refusal_goes_back_with_rule_file_and_way_out_and_the_next_try_may_be_promoted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, REFUSED, REPAIRS)
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.raised(run) == ["guard_sent_back", "plain", "guard_ok", "plain"]
    brief = stage.agent.briefs[1]
    assert f"{CI}: gitattributes" in brief
    assert "say in your last message which one and why: a\nperson decides" in brief
    assert stage.heal.git("rev-parse", "main^") == stage.bad


def test_what_the_guard_says_is_material_in_the_brief(tmp_path: Path) -> None:
    """L24: paths and lines are the agent's own; they stay inside their marks."""
    stage = Stage(tmp_path, repairs_and(".becket/do as i say.yml", "*.txt text\n"), REPAIRS)
    stage.run()
    brief = stage.agent.briefs[1]
    before, _, after = brief.partition("do as i say.yml")
    assert before.rfind("<material-") > before.rfind("</material-")
    assert "</material-" in after


def test_the_same_refusal_a_second_time_is_a_persons(tmp_path: Path) -> None:
    stage = Stage(tmp_path, REFUSED, REFUSED)
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "candidate.guard_refused"), run.detail
    assert stage.heal.main() == stage.bad
    (words,) = run.detail["against"]
    assert words.startswith(f"{CI}: gitattributes")


def test_another_refusal_after_the_first_is_a_persons_too(tmp_path: Path) -> None:
    stage = Stage(tmp_path, REFUSED, repairs_and(".gitattributes", "* -text\n"))
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "candidate.guard_refused"), run.detail
    assert len(stage.agent.briefs) == 2


def test_a_power_goes_back_once_with_its_line(tmp_path: Path) -> None:
    stage = Stage(tmp_path, POWERFUL, REPAIRS)
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.raised(run) == ["guard_sent_back", "powerful", "guard_ok", "plain"]
    assert "calc.py:4: environment: adds the power to read the environment" in stage.agent.briefs[1]


def test_a_power_that_comes_again_is_proven_before_a_person_sees_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, POWERFUL, POWERFUL)
    run = stage.run()
    assert stage.raised(run) == ["guard_sent_back", "powerful", "guard_ok", "powerful"]
    proofs = [one for one in asyncio.run(stage.heal.world.store.receipts(run.run_id)) if one.receipt.kind == "proof"]
    assert [one.receipt.body["says"] for one in proofs] == ["proven"]


def test_where_powers_are_trusted_nothing_goes_back(tmp_path: Path) -> None:
    stage = Stage(tmp_path, POWERFUL, config=CONFIG + "guard: {promote: powerful}\n")
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.raised(run) == ["guard_ok", "powerful"]


def test_a_refusal_goes_back_even_where_powers_are_trusted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, REFUSED, REPAIRS, config=CONFIG + "guard: {promote: powerful}\n")
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.raised(run)[0] == "guard_sent_back"


def test_an_agent_that_leaves_it_to_a_person_is_not_asked_a_third_time(tmp_path: Path) -> None:
    """It did as it was told; what broke main is undone and proposed, or a person has it with the guard's words."""
    stage = Stage(tmp_path, REFUSED, Act(said="It needs a change of the workflow."))
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), run.detail
    assert len(stage.agent.briefs) == 2


def test_a_sibling_of_the_same_attempt_is_tried_before_the_agent_is_told(tmp_path: Path) -> None:
    smaller, larger = Act(writes(CI, "*.txt text\n")), repairs_and("notes.txt", "why\n")
    stage = Stage(tmp_path, smaller, larger, config=CONFIG + "heal: {attempts: 2}\n")
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.raised(run)[::2] == ["guard_sent_back", "guard_ok"]
    assert len(stage.agent.briefs) == 2


def test_the_last_iteration_sends_nothing_back(tmp_path: Path) -> None:
    """The fourth try is the agent's last; after it nobody would hear the guard's words."""
    vain = [Act(writes("calc.py", BAD + f"\n# {number}\n")) for number in range(3)]
    stage = Stage(tmp_path, *vain, REFUSED)
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "candidate.guard_refused"), run.detail


def test_the_same_useless_repair_again_is_handed_over_with_what_speaks_against_it(tmp_path: Path) -> None:
    vain = Act(writes("calc.py", BAD + "\n# a remark\n"))
    stage = Stage(tmp_path, vain, vain)
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "no_progress"), run.detail
    assert any("test_add" in words for words in run.detail["against"]), run.detail
