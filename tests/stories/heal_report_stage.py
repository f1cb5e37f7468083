"""A loop of its own that leaves every kind of proof: reports go by what steps leave, not by a loop's name."""

from __future__ import annotations

from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, TESTS

from becket.kernel.contract.action import ActionContext, ActionDef, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.run import Run
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World

MEND = """
version: 1
loop_id: mend
goal: What is red is repaired, and the repair is proven.
trigger:
  - manual: {}
subject: "{branch}@{sha}"
max_iterations: 2
deadline: 1h
budget: {agent_time: 1h}
autonomy: propose
stop_conditions: [base.fast_green]
handoff_conditions: [repair_ready, candidate.guard_refused, candidate.test_change_asked]
phases:
  discover:
    objective: Know whether it is green.
    actions:
      - {id: base, uses: git.read_base}
      - {id: bf, uses: gate.run, with: {of: base, gate: fast, at: "{base.sha}", by: "{base.sha}"}}
  plan:
    objective: Know who broke it.
    actions:
      - id: why
        uses: git.culprit
        with: {base: "{base.sha}", branch: "{base.branch}", verdicts: ["{bf.verdict}"]}
        when: base.code_red
  act:
    objective: Repair it.
    actions:
      - id: fix
        uses: agent.fix
        with: {brief: "{bf.summary}", base: "{base.sha}", subject: Repair it}
        when: base.code_red
  verify:
    objective: Prove it.
    actions:
      - {id: cand, uses: candidate.current, when: candidate.exists}
      - id: guard
        uses: guard.check
        with: {base: "{base.sha}", candidate: "{cand.sha}"}
        when: candidate.exists
      - id: cross
        uses: gate.cross
        with: {base: "{base.sha}", candidate: "{cand.sha}", verdicts: ["{bf.verdict}"]}
        when: candidate.guard_ok
      - id: cf
        uses: gate.run
        with: {of: candidate, gate: fast, at: "{cand.sha}", by: "{base.sha}"}
        when: candidate.crossed
      - id: proof
        uses: gate.prove
        with:
          base: "{base.sha}"
          candidate: "{cand.sha}"
          before: ["{bf.verdict}"]
          after: ["{cf.verdict}"]
          parts: {guard: "{guard.digest}", crossing: "{cross.digest}"}
          needs: [candidate.crossed, candidate.fast_green]
        when: candidate.fast_green
    verifiers:
      - {id: clean, run: "true", in: scratch}
  decide:
    objective: Offer it.
    actions:
      - id: propose
        uses: candidate.propose
        with: {candidate: "{cand.sha}", base: "{base.sha}", patch: "{cand.patch}"}
        when: candidate.proven
      - {id: note, uses: test.note_green, with: {sha: "{base.sha}", branch: "{base.branch}"}, when: base.fast_green}
"""

SAID = "<script>alert('x')</script> 10 of 10 PASS | `sudo` \u202e\x1b[31m"
"""What an agent says must neither steer a page nor a terminal."""
REPAIR = Act(writes("calc.py", GOOD), said=SAID)
CHEAT = Act(writes("tests/test_calc.py", TESTS.replace("assert add(2, 3) == 5", "assert True")), said=SAID)


class Noted(Record):
    sha: str
    branch: str


async def _note(context: ActionContext, params: Noted) -> Result:
    return Result(facts={"proven": f"{params.branch}@{params.sha}"})


NOTE = ActionDef(name="test.note_green", summary="Remember a green commit.", run=_note, params=Noted)


class Mending:
    """A repository that was green, then broke, then was mended by an agent that plays one act."""

    def __init__(self, folder: Path, act: Act = REPAIR, *, store: str = "memory") -> None:
        self.world = World(folder, store=store, agents={"fixer": ScriptedAgent([act])})
        self.world.action(NOTE)
        self.world.loop(MEND)
        files = {
            "becket.yaml": CONFIG.replace("AUTONOMY", "propose"),
            "calc.py": GOOD,
            "tests/test_calc.py": TESTS,
            "conftest.py": "",
            ".gitignore": "__pycache__/\n*.pyc\nreport.xml\n",
        }
        self.green = self.world.commit(files, "a calculator")
        self.bad = ""

    async def mend(self) -> tuple[Run, Run]:
        """The run on the green commit, and the one on the broken commit."""
        before = await self.world.run("mend")
        self.bad = self.world.commit({"calc.py": BAD}, "make add faster")
        return before, await self.world.run("mend")
