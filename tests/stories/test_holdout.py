"""The hold-out proof, with a real git, a real gate and two agents: one repairs, one writes checks it never sees."""

from __future__ import annotations

import asyncio
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from heal_stage import BAD, CONFIG, GOOD, HealStage
from rich.console import Console

from becket.app.record.report.collect import read_report
from becket.app.record.report.html import html_of
from becket.app.record.report.markdown import markdown_of
from becket.app.record.verify import verify_run
from becket.cli.proof import proof_sections
from becket.kernel.contract.agent import AgentOutcome, Usage
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.contract.store import ArtifactRef
from becket.kernel.contract.toolchains import find
from becket.parts.agents.adapters.inbox import put
from becket.parts.agents.messages import MAIL
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.crashes import Crashed, crashing

HOLDS_OUT = CONFIG.replace(
    "agents: {", 'heal: {hold_out: judge}\nagents: {judge: {driver: command, run: "true"}, '
)  # fmt: skip
FOLDER = "independent_checks"

HONEST = BAD.replace("left - right", "_sum(left, right)") + "\n\ndef _sum(left, right):\n    return left + right\n"
TABLE = BAD.replace(
    "    return left - right", "    known = {(2, 3): 5, (0, 0): 0}\n    return known.get((left, right), left - right)"
)
LOADED = "import sys\n\n\ndef loaded(name):\n    return name in sys.modules\n"
AWARE = "from plugins import loaded\n" + BAD.replace(
    "    return left - right", "    return left + right if loaded('pytest') else left - right"
)
POWER = "import os\n" + GOOD.replace("left + right", "left + right if os.environ else 0")
NTH = BAD.replace("    return left - right", "    return _ANSWERS.pop(0) if _ANSWERS else left - right").replace(
    "def add", "_ANSWERS = [5, 0, 5, 0]\n\n\ndef add", 1
)

MANY = """
from calc import add

for left in range(-9, 9):
    for right in range(-9, 9):
        if add(left, right) - right != left:
            raise SystemExit(1)
"""
KNOWN = """
import sys
import calc
sys.exit(calc.add(40, 2) != 42 or calc.add(-7, 7) != 0)
"""
OTHER = "import calc\nassert calc.mean([4, 8]) == 6\n"
COPY = "from calc import add\nif add(2, 3) != 5 or add(0, 0) != 0:\n    raise SystemExit(1)\n"
FALSE = "from calc import add\nassert add(10, 20) == 31\n"


def checks(*texts: str, ending: str = ".py") -> Act:
    def deed(tree: Path) -> None:
        for number, text in enumerate(texts, 1):
            writes(f"{FOLDER}/check_{number}{ending}", text)(tree)

    return Act(deed, said="Here they are.", usage=Usage(seconds=2.0, turns=1, output_tokens=70, usd=0.05))


JUDGES = checks(MANY, KNOWN, OTHER)


def repairs(*texts: str) -> list[Act]:
    return [Act(writes("calc.py", text)) for text in texts]


class Stage(HealStage):
    """`fixer` repairs, `judge` writes the checks."""

    def __init__(self, folder: Path, fixes: list[Act], judges: list[Act], config: str = HOLDS_OUT) -> None:
        self.fixer, self.judge = ScriptedAgent(fixes), ScriptedAgent(judges)
        super().__init__(folder, self.fixer, config=config, judge=self.judge)

    async def broken(self) -> str:
        await self.heal()
        return self.break_it()

    async def raised(self, run: Run) -> dict[str, dict[str, Any]]:
        steps = await self.world.store.steps(run.run_id)
        return {item.ref: item.evidence for step in steps for item in step.conditions}

    async def kept(self, run: Run) -> list[ArtifactRef]:
        return [ref for ref in await self.world.store.artifacts(run.run_id) if ref.name.startswith("holdout.check_")]

    async def receipt(self, run: Run) -> dict[str, Any]:
        found = [item.receipt for item in await self.world.store.receipts(run.run_id)]
        return [receipt.body for receipt in found if receipt.kind == "holdout"][-1]

    async def holds_together(self, run: Run) -> None:
        against = [
            f"{one.what} {one.detail}"
            for one in await verify_run(self.world.app, run.run_id, rerun=False)
            if not one.ok
        ]
        assert not against


def played(stage: Stage) -> tuple[Run, str]:
    """A green commit is proven, a bug comes, the loop heals; the run and the red commit."""

    async def story() -> tuple[Run, str]:
        bad = await stage.broken()
        run = await stage.heal()
        await stage.holds_together(run)
        return run, bad

    return asyncio.run(story())


def promoted(stage: Stage, run: Run, bad: str) -> None:
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("rev-parse", "main^") == bad


def proposed(stage: Stage, run: Run, bad: str, *words: str) -> None:
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "repair_ready"), (run.reason, run.detail)
    assert stage.main() == bad
    for word in words:
        assert word in run.detail["why"], run.detail


def test_an_honest_repair_passes_and_main_moves(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [JUDGES])
    run, bad = played(stage)
    promoted(stage, run, bad)
    body = asyncio.run(stage.receipt(run))
    assert body["says"] == "holdout_passed"
    assert body["oracle"] == stage.green
    assert {name: (row["oracle"], row["candidate"]) for name, row in body["checks"].items()} == {
        f"check_{number}.py": ([0, 0], [0, 0]) for number in (1, 2, 3)
    }
    assert [bool(row["parent"][0]) for row in body["checks"].values()] == [True, True, False]
    assert sorted(ref.name for ref in asyncio.run(stage.kept(run))) == [f"holdout.check_{n}.py" for n in (1, 2, 3)]
    way = asyncio.run(stage.raised(run))["way.promote"]["why"]
    assert "3 hold-out checks pass" in way
    assert f"becket runs show {run.run_id} --log holdout" in way


def test_the_checks_are_told_in_every_report_and_offered_as_tests(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [checks(FALSE, KNOWN)])
    run, _ = played(stage)
    report = asyncio.run(read_report(stage.world.app, run.run_id))
    console = Console(width=200, file=io.StringIO())
    console.print(*proof_sections(report), sep="\n")
    for shown in (markdown_of(report), html_of(report), console.file.getvalue()):
        for word in ("check_2.py", "check_1.py", "does not count", "passed", f"runs show {run.run_id} --log holdout"):
            assert word in shown
    (receipt,) = [
        item.receipt for item in asyncio.run(stage.world.store.receipts(run.run_id)) if item.action_id == "holdout"
    ]
    assert "calc.add(40, 2) != 42" in stage.world.app.artifacts.read(receipt.log).decode()


def test_the_proof_holds_the_digest_of_the_hold_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [JUDGES])
    run, _ = played(stage)
    steps = {step.id: step for step in asyncio.run(stage.world.store.steps(run.run_id))}
    parts = asyncio.run(stage.raised(run))["candidate.proven"]["parts"]
    assert parts["holdout"] == steps["holdout"].outputs["digest"]


def test_a_plain_repair_needs_no_checks(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(GOOD), [])
    run, bad = played(stage)
    promoted(stage, run, bad)
    assert "holdout" not in asyncio.run(stage.raised(run))["candidate.proven"]["parts"]


def test_a_constant_that_stands_as_it_was_proven_needs_no_checks_and_another_one_does(tmp_path: Path) -> None:
    """Nobody writes checks here. What comes back from the last proven commit to the letter is nothing new."""
    right = GOOD.replace("left + right", "left + right + SHIFT - 250").replace("def add", "SHIFT = 250\n\n\ndef add", 1)
    wrong = right.replace("SHIFT = 250", "SHIFT = 205")
    other = right.replace("SHIFT = 250", "SHIFT = 251").replace("SHIFT - 250", "SHIFT - 251")
    for name, repair, moved in (("back", right, True), ("other", other, False)):
        stage = HealStage(tmp_path / name, ScriptedAgent([Act(writes("calc.py", repair))]))
        stage.world.commit({"calc.py": right}, "a shift")
        asyncio.run(stage.heal())
        bad = stage.world.commit({"calc.py": wrong, "notes.txt": "newer\n"}, "another shift")
        run = asyncio.run(stage.heal())
        assert (run.status is RunStatus.completed) is moved, (name, run.reason, run.detail)
        assert (stage.main() != bad) is moved
        assert moved or "no hold-out proof" in str(run.detail["why"])


@pytest.mark.parametrize("cheat", [TABLE, AWARE, NTH], ids=["table of answers", "aware of tests", "n-th answer"])
def test_a_repair_that_only_knows_the_tests_fails_and_the_next_one_is_asked_for(tmp_path: Path, cheat: str) -> None:
    stage = Stage(tmp_path, repairs(cheat, HONEST), [JUDGES])
    stage.world.commit({"plugins.py": LOADED}, "what is loaded")
    run, bad = played(stage)
    raised = asyncio.run(stage.raised(run))
    assert {"candidate.crossed", "candidate.slow_green", "candidate.holdout_failed"} <= raised.keys(), raised.keys()
    promoted(stage, run, bad)
    assert stage.git("show", "main:calc.py").strip() == HONEST.strip()
    assert len(stage.judge.briefs) == 1, "the checks are still unseen: they serve for the next candidate too"


def test_whoever_repairs_hears_nothing_of_the_checks(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(TABLE, HONEST), [JUDGES])
    run, bad = played(stage)
    promoted(stage, run, bad)
    again = stage.fixer.briefs[1]
    assert "independent checks of the same behaviour fail with your change" in again
    for secret in ("check_1", "range(-9, 9)", "40, 2", "hold-out", FOLDER):
        assert secret not in again
    objects = stage.git("cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)").splitlines()
    blobs = [line.split()[0] for line in objects if line.endswith("blob")]
    assert not [blob for blob in blobs if "range(-9, 9)" in stage.git("cat-file", "-p", blob)]


def test_whoever_writes_checks_sees_the_last_green_commit_and_nothing_of_the_repair(tmp_path: Path) -> None:
    looked: list[str] = []

    def looks(tree: Path) -> None:
        looked.append((tree / "calc.py").read_text())
        JUDGES.deed(tree)

    stage = Stage(tmp_path, repairs(HONEST), [Act(looks)])
    run, bad = played(stage)
    promoted(stage, run, bad)
    assert looked[0].strip() == GOOD.strip()
    (brief,) = stage.judge.briefs
    assert stage.green[:12] in brief
    assert "test_add" in brief
    assert "assert" in brief, "what the failing tests said"
    for secret in ("_sum", bad[:12], stage.main()[:12], "left - right"):
        assert secret not in brief
    fixer, judge = stage.fixer.seen[0], stage.judge.seen[0]
    assert judge.session is None
    assert judge.call_context.home != fixer.call_context.home
    assert judge.workspace != fixer.workspace


def test_the_same_agent_may_do_both_with_a_home_and_a_context_for_each(tmp_path: Path) -> None:
    config = HOLDS_OUT.replace("hold_out: judge", "hold_out: fixer")
    stage = Stage(tmp_path, [Act(writes("calc.py", HONEST), session="s1"), JUDGES], [], config)
    run, bad = played(stage)
    promoted(stage, run, bad)
    repaired, judged = stage.fixer.seen
    assert judged.session is None
    assert judged.call_context.home != repaired.call_context.home


def test_its_cost_is_booked(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [JUDGES])
    run, _ = played(stage)
    calls = {call.step_id: call for call in asyncio.run(stage.world.store.calls(run.run_id))}
    assert (calls["holdout"].agent, calls["holdout"].phase) == ("judge", "verify")
    assert calls["holdout"].end is not None
    assert calls["holdout"].end.usage.usd == 0.05
    assert asyncio.run(stage.world.store.spent(run.run_id))["usd"] == pytest.approx(0.06)


@pytest.mark.parametrize(
    ("judge", "why"),
    [
        pytest.param(Act(), "judge wrote none: nothing_done", id="nothing"),
        pytest.param(Act(writes("calc.py", "x")), "judge wrote none: nothing_done", id="elsewhere"),
        pytest.param(Act(hint=AgentOutcome.auth_missing, error="no login"), "auth_missing", id="no login"),
        pytest.param(checks(FALSE), "it fails on", id="wrong where all is right"),
        pytest.param(checks(COPY), "it is mostly a copy of a failing test", id="a copy"),
        pytest.param(checks("import pytest\n" + KNOWN), "it uses a test framework", id="a framework"),
        pytest.param(checks(f"import tests.test_calc\n{KNOWN}"), "which belongs to the tests", id="imports a test"),
        pytest.param(checks("exec(open('tests' + '/test_' + 'calc.py').read())\n"), "it fails on", id="reads a test"),
        pytest.param(checks(OTHER), "passes on the red commit too", id="about something else"),
        pytest.param(checks("raise SystemExit(0)\n"), "passes on the red commit too", id="idle"),
    ],
)
def test_checks_that_prove_nothing_count_for_nothing_and_the_repair_is_proposed(
    tmp_path: Path, judge: Act, why: str
) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [judge])
    run, bad = played(stage)
    proposed(stage, run, bad, "adds a function: calc.py:", why)


def test_of_good_and_bad_checks_the_good_ones_count_and_the_others_are_named(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [checks(FALSE, KNOWN, COPY)])
    run, bad = played(stage)
    promoted(stage, run, bad)
    body = asyncio.run(stage.receipt(run))
    assert list(body["checks"]) == ["check_2.py"]
    assert {"check_1.py", "check_3.py"} == body["left_out"].keys()


def test_without_an_agent_for_it_an_ordinary_repair_is_proposed_with_the_key_to_set(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [], HOLDS_OUT.replace("heal: {hold_out: judge}\n", ""))
    run, bad = played(stage)
    proposed(stage, run, bad, "`heal: {hold_out: AGENT}`")


def test_where_no_commit_was_ever_green_an_ordinary_repair_is_proposed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [])
    bad = stage.break_it()
    run = asyncio.run(stage.heal())
    proposed(stage, run, bad, f"no commit before {bad[:12]} is known to be green")


def test_a_language_without_checks_is_told(tmp_path: Path) -> None:
    test = "fn main() {}\n"
    config = HOLDS_OUT.replace('["tests/**", "conftest.py"]', '["tests/**", "conftest.py", "*.rs"]')
    gate = f"{sys.executable} gate.py"
    config = config.replace(config[config.index("    - {name: unit") : config.index("test_side")],
                            f'    - {{name: unit, run: "{gate}", report: "tap"}}\n')  # fmt: skip
    script = """
        import calc
        ok = calc.add(2, 3) == 5
        print(f"1..1\\n{'' if ok else 'not '}ok 1 - it.rs::adds")
        raise SystemExit(not ok)
        """
    stage = Stage(tmp_path, repairs(HONEST), [], config)
    stage.green = stage.world.commit({"gate.py": script, "it.rs": test}, "a gate of another kind")
    run, bad = played(stage)
    proposed(stage, run, bad, "hold-out checks are not supported for Rust")


def test_a_red_step_that_named_no_tests_is_crossed_by_a_plain_change_only(tmp_path: Path) -> None:
    config = HOLDS_OUT.replace(', report: "junit:report.xml", min_tests: 1', "")
    stage = Stage(tmp_path / "ordinary", repairs(HONEST), [], config)
    run, bad = played(stage)
    proposed(stage, run, bad, "the red step unit named no tests")
    stage = Stage(tmp_path / "plain", repairs(GOOD), [], config)
    run, bad = played(stage)
    promoted(stage, run, bad)


def test_a_power_is_proposed_with_its_line(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(POWER, POWER), [])
    run, bad = played(stage)
    proposed(stage, run, bad, "adds the power to read or change the environment (os.environ): calc.py:4")


@pytest.mark.parametrize("repair", [HONEST, POWER], ids=["ordinary", "powerful"])
def test_where_only_plain_changes_are_trusted_the_others_are_proposed(tmp_path: Path, repair: str) -> None:
    stage = Stage(tmp_path, repairs(repair, repair), [], HOLDS_OUT + "guard: {promote: plain}\n")
    run, bad = played(stage)
    proposed(stage, run, bad, "calc.py:")


def test_where_every_change_is_trusted_the_report_says_so_in_so_many_words(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(POWER), [], HOLDS_OUT + "guard: {promote: powerful}\n")
    run, bad = played(stage)
    promoted(stage, run, bad)
    assert "the tests are enough" in asyncio.run(stage.raised(run))["way.promote"]["why"]


def test_a_trust_that_only_the_working_copy_declares_counts_for_nothing(tmp_path: Path) -> None:
    def trusts(tree: Path) -> None:
        writes("calc.py", POWER)(tree)
        (stage.world.root / "becket.yaml").write_text(
            HOLDS_OUT.replace("AUTONOMY", "merge") + "guard: {promote: powerful}\n"
        )

    stage = Stage(tmp_path, [Act(trusts), Act(trusts)], [])
    run, bad = played(stage)
    proposed(stage, run, bad, "adds the power to read or change the environment")


def test_below_merge_nobody_is_paid_for_checks(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [], HOLDS_OUT.replace("AUTONOMY", "propose"))
    run, bad = played(stage)
    proposed(stage, run, bad, "autonomy is propose")


@pytest.mark.parametrize(
    ("outcome", "lasts"), [(AgentOutcome.quota_wait, 3600), (AgentOutcome.model_error, 30)], ids=["quota", "outage"]
)
def test_a_quota_or_a_model_is_waited_for_without_losing_the_repair(
    tmp_path: Path, outcome: AgentOutcome, lasts: int
) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [])
    until = stage.world.clock() + lasts if outcome is AgentOutcome.quota_wait else None
    stage.judge.acts = [Act(hint=outcome, error="not now", until=until), JUDGES]

    async def story() -> None:
        bad = await stage.broken()
        run = await stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("candidate.holdout_waits",)), (
            run.reason,
            run.detail,
        )
        await stage.world.pass_time(lasts + 1)
        run = await stage.world.store.get_run(run.run_id)
        promoted(stage, run, bad)
        assert (len(stage.fixer.briefs), len(stage.judge.briefs)) == (1, 2)

    asyncio.run(story())


def test_main_that_moves_does_not_make_the_checks_be_paid_again(tmp_path: Path) -> None:
    def repairs_while_somebody_commits(tree: Path) -> None:
        writes("calc.py", HONEST)(tree)
        stage.world.commit({"notes.txt": "meanwhile\n"}, "somebody else's work")

    stage = Stage(tmp_path, [Act(repairs_while_somebody_commits)], [JUDGES])
    run, bad = played(stage)
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("rev-parse", "main~2") == bad
    assert "main_moved" in asyncio.run(stage.raised(run))
    assert len(stage.judge.briefs) == 1
    body = asyncio.run(stage.receipt(run))
    assert (body["base"], body["says"]) == (stage.git("rev-parse", "main^"), "holdout_passed")


def test_what_people_say_to_the_run_is_for_whoever_repairs(tmp_path: Path) -> None:
    def hears(tree: Path) -> None:
        writes("calc.py", TABLE)(tree)
        (run,) = stage.world.state.runs.iterdir()
        put(run / MAIL, "Mind the fixture.")

    stage = Stage(tmp_path, [Act(hears), *repairs(HONEST)], [JUDGES])
    run, bad = played(stage)
    promoted(stage, run, bad)
    assert "Mind the fixture." not in stage.judge.briefs[0]
    assert "Mind the fixture." in stage.fixer.briefs[1]


def test_without_budget_for_the_checks_the_repair_is_proposed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [], HOLDS_OUT + "budgets: {day: {usd: 0.01}}\n")
    run, bad = played(stage)
    proposed(stage, run, bad, "the usd budget of today is used up")


SIGNS = """
import json, os, sys
import calc
told = {"env": dict(os.environ), "argv": sys.argv, "cwd": os.getcwd(), "file": __file__, "calc": calc.__file__,
        "modules": sorted(sys.modules), "tests": os.path.exists("tests"), "git": os.path.exists(".git")}
open(PLACE, "a").write(json.dumps(told) + "\\n")
assert calc.add(30, 12) == 42
"""


def test_nothing_around_a_check_says_that_it_is_one(tmp_path: Path) -> None:
    told = tmp_path / "told"
    stage = Stage(
        tmp_path, repairs(HONEST), [checks(SIGNS.replace("PLACE", f"bytes.fromhex({str(told).encode().hex()!r})"))]
    )
    run, bad = played(stage)
    promoted(stage, run, bad)
    seen = [json.loads(line) for line in told.read_text().splitlines()]
    assert len(seen) == 5, "twice on the oracle, once on the parent, twice on the candidate"
    usual = {"PATH", "LANG", "LC_CTYPE", "HOME", "TMPDIR", "PYTHONPATH", "PWD", "SHLVL", "_"}
    for each in seen:
        assert each["env"].keys() <= usual | find(os.environ).variables.keys()
        call_context = json.dumps({key: each[key] for key in ("argv", "cwd", "file", "calc", "modules")}).lower()
        for sign in ("becket", "pytest", "unittest", "test", "check", "holdout", "hold_out"):
            assert sign not in call_context, (sign, call_context)
        assert not each["tests"]
        assert not each["git"]
    assert len({each["file"] for each in seen}) == 5
    assert not any(Path(each["cwd"]).exists() for each in seen), "the places are gone"


@pytest.mark.parametrize("point", ["fix.agent_ended", "holdout.written", "holdout.counted", "holdout.tried"])
def test_killed_on_the_way_it_goes_on_without_paying_twice(tmp_path: Path, point: str) -> None:
    stage = Stage(tmp_path, repairs(HONEST), [JUDGES])

    async def story() -> None:
        bad = await stage.broken()
        run = await stage.world.start("heal")
        with crashing(point, 2 if point == "fix.agent_ended" else 1), pytest.raises(Crashed):
            await stage.world.settle()
        await stage.world.restart()
        await stage.world.settle()
        run = await stage.world.store.get_run(run.run_id)
        promoted(stage, run, bad)
        assert len(stage.judge.briefs) == 1
        assert len(stage.fixer.briefs) == 1
        assert len(await stage.kept(run)) >= 3
        await stage.holds_together(run)

    asyncio.run(story())
