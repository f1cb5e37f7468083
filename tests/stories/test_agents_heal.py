"""A failing test, repaired end to end by an agent's own program against a scripted model, and promoted with proof."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from heal_stage import BAD, CONFIG, GOOD, HealStage

from agent_programs import fakes, live_as_a_daemon, real, settings
from becket.app.record.verify import verify_run
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.process import SandboxKind
from becket.kernel.contract.run import Run, RunStatus
from becket.kernel.process import available
from becket.testing.model import Cut, Edit, Loop, Say, ScriptedModel, Shell
from becket.testing.model import Status as Answer

LANDLOCK_WORKS = any(offer.kind is SandboxKind.landlock and offer.holds for offer in available())
QUICKLY = "landlock" if LANDLOCK_WORKS else "none"
REPAIR = (Edit("calc.py", "    return left - right\n", "    return left + right\n"), Say("add adds again."))


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server
    server.check()


class AgentsHeal:
    """A repository whose newest commit is red, with one agent in its becket.yaml and nothing put in its place."""

    def __init__(
        self, folder: Path, program: str, sandbox: str, model: ScriptedModel, spare: ScriptedModel | None = None
    ) -> None:
        given = {"fixer": {**settings(program, model), "sandbox": sandbox}}
        if spare is not None:
            given["fixer"]["fallback"] = ["spare"]
            given["spare"] = {**settings("claude", spare), "sandbox": sandbox}
        agents = json.dumps(given) + "\nheal: {agent: fixer}"
        text = CONFIG.replace('agents: {fixer: {driver: command, run: "true"}}', f"agents: {agents}")
        self.stage = HealStage(folder, config=text)
        self.world = self.stage.world
        self.model = model

    async def broken(self) -> str:
        run = await self.stage.heal()
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        return self.stage.break_it()

    async def repaired(self, run: Run, bad: str) -> None:
        """On top of the red commit, with a proof that holds, and nothing else of the person's changed."""
        stage = self.stage
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert stage.git("rev-parse", "main^") == bad
        assert stage.git("show", "main:calc.py").strip() == GOOD.strip()
        assert stage.git("status", "--porcelain") == ""
        assert await self.world.store.recorded_by("proven", f"main@{stage.main()}") == run.run_id
        checks = await verify_run(self.world.app, run.run_id, rerun=False)
        assert [item.what for item in checks if not item.ok] == []

    def told(self) -> str:
        return "\n".join(text for request in self.model.requests for text in request.prompts)


def heal_by(folder: Path, program: str, sandbox: str, model: ScriptedModel) -> None:
    place = AgentsHeal(folder, program, sandbox, model)

    async def story() -> None:
        bad = await place.broken()
        model.script(Shell("cat calc.py"), *REPAIR)
        run = await place.stage.heal()
        await place.repaired(run, bad)
        (call,) = await place.world.store.calls(run.run_id)
        assert call.end is not None
        assert call.end.outcome is AgentOutcome.changed
        assert call.end.usage.tokens == 330
        assert call.end.usage.turns == 3

    asyncio.run(story())
    assert "test_add" in place.told()  # the failing evidence reached the model
    model.check(finished=True)


@pytest.mark.parametrize(
    "program", ["claude", *(pytest.param(name, marks=pytest.mark.slow) for name in ("codex", "gemini"))]
)
def test_a_red_commit_is_repaired_by_a_fake_program(
    program: str, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", fakes(tmp_path / "bin"))
    heal_by(tmp_path / "world", program, QUICKLY, model)


@pytest.mark.agents
@pytest.mark.parametrize("program", ["codex", "claude", "gemini"])
def test_a_red_commit_is_repaired_by_a_real_program(
    program: str, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", real(program))
    heal_by(tmp_path / "world", program, "bwrap", model)


def wait_and_heal_by(folder: Path, program: str, sandbox: str, model: ScriptedModel) -> None:
    """L23: the vendor says when; the run waits until then and repairs, without a burnt retry."""
    place = AgentsHeal(folder, program, sandbox, model)
    world = place.world

    async def story() -> None:
        bad = await place.broken()
        world.clock.set(time.time())
        model.script(Answer(429, kind="usage_limit", resets_at=time.time() + 2), *REPAIR)
        run = await place.stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",)), (run.reason, run.detail)
        assert len(model.requests) == 1
        (call,) = await world.store.calls(run.run_id)
        assert call.end is not None
        assert call.end.until is not None
        assert call.end.until <= time.time() + 130
        await world.pass_time(call.end.until - world.clock() - 0.5)
        assert (await world.store.get_run(run.run_id)).status is RunStatus.waiting
        await world.pass_time(1.0)
        await place.repaired(await world.store.get_run(run.run_id), bad)

    asyncio.run(story())


def test_a_quota_is_waited_for_and_the_repair_then_made_by_a_fake_program(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", fakes(tmp_path / "bin"))
    wait_and_heal_by(tmp_path / "world", "codex", QUICKLY, model)


@pytest.mark.agents
def test_a_quota_is_waited_for_and_the_repair_then_made_by_the_real_codex(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", real("codex"))
    wait_and_heal_by(tmp_path / "world", "codex", "bwrap", model)


def outlast_an_outage(
    folder: Path, program: str, sandbox: str, model: ScriptedModel, answer: Answer | Cut, each: int
) -> None:
    """The run is a row meanwhile. A call makes `each` requests; six calls are made in two hours (test_heal_agents)."""
    place = AgentsHeal(folder, program, sandbox, model)
    world = place.world

    async def story() -> None:
        bad = await place.broken()
        model.script(*([answer] * (2 * each)), *REPAIR)
        run = await place.stage.heal()
        for asked in (1, 2):
            assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.model_error",)), (run.reason, run.detail)
            calls = await world.store.calls(run.run_id)
            assert [call.end and call.end.outcome for call in calls] == [AgentOutcome.model_error] * asked
            assert len(model.requests) == each * asked
            await world.pass_time(31 if asked == 1 else 100)
            run = await world.store.get_run(run.run_id)
        await place.repaired(await world.store.get_run(run.run_id), bad)

    asyncio.run(story())


OUTAGES = [
    pytest.param("codex", Answer(500), 3, id="codex-500"),
    pytest.param("codex", Answer(503), 1, id="codex-503", marks=pytest.mark.slow),
    pytest.param("codex", Cut(at_once=True), 3, id="codex-dropped", marks=pytest.mark.slow),
    pytest.param("claude", Answer(529), 3, id="claude-529", marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("program", "answer", "each"), OUTAGES)
def test_an_outage_costs_few_requests_and_the_repair_is_made_when_it_is_over(
    program: str, answer: Answer | Cut, each: int, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", fakes(tmp_path / "bin"))
    outlast_an_outage(tmp_path / "world", program, QUICKLY, model, answer, each)


@pytest.mark.agents
@pytest.mark.parametrize("program", ["codex", "claude"])
def test_an_outage_of_a_real_programs_model_costs_few_requests(
    program: str, tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", real(program))
    outlast_an_outage(tmp_path / "world", program, "bwrap", model, Answer(500), 3)


@pytest.mark.agents
def test_a_second_try_goes_on_with_the_first_ones_session(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real claude: its model is shown the first try and why it was not proven."""
    live_as_a_daemon(monkeypatch, tmp_path / "home", real("claude"))
    place = AgentsHeal(tmp_path / "world", "claude", "bwrap", model)
    vain = Edit("calc.py", "    return left - right\n", "    return right - left\n")

    async def story() -> None:
        bad = await place.broken()
        model.script(vain, Say("heron-one"), *REPAIR)
        run = await place.stage.heal()
        await place.repaired(run, bad)
        first, second = await place.world.store.calls(run.run_id)
        assert first.end is not None
        assert second.end is not None
        assert first.end.session == second.end.session
        assert second.end.usage.tokens == 220
        assert second.end.usage.usd == pytest.approx(first.end.usage.usd)

    asyncio.run(story())
    assert "heron-one" in json.dumps(model.requests[-1].body)


def test_an_agent_that_claims_but_does_not_repair_is_not_believed(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L20, L22: main stays where it is."""
    live_as_a_daemon(monkeypatch, tmp_path / "home", fakes(tmp_path / "bin"))
    place = AgentsHeal(tmp_path / "world", "claude", QUICKLY, model)

    async def story() -> None:
        bad = await place.broken()
        model.script(*(Say("I repaired it; all 3 tests pass.") for _ in range(10)))
        run = await place.stage.heal()
        assert run.status is not RunStatus.completed
        assert place.stage.main() == bad
        assert place.stage.git("show", "main:calc.py").strip() == BAD.strip()

    asyncio.run(story())


def falls_back(folder: Path, sandbox: str, model: ScriptedModel) -> None:
    """Codex has no login, claude repairs; both calls are in the journal, and one iteration is enough."""
    with ScriptedModel() as spare:
        place = AgentsHeal(folder, "codex", sandbox, model, spare)

        async def story() -> None:
            bad = await place.broken()
            model.script(Loop(Answer(401)))
            spare.script(*REPAIR)
            run = await place.stage.heal()
            await place.repaired(run, bad)
            calls = await place.world.store.calls(run.run_id)
            assert {call.agent: call.end.outcome for call in calls if call.end is not None} == {
                "fixer": AgentOutcome.auth_missing,
                "spare": AgentOutcome.changed,
            }
            assert run.counted == 1

        asyncio.run(story())
        spare.check(finished=True)


def test_where_one_program_has_no_login_another_repairs(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", fakes(tmp_path / "bin"))
    falls_back(tmp_path / "world", QUICKLY, model)


@pytest.mark.agents
def test_where_one_real_program_has_no_login_another_repairs(
    tmp_path: Path, model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_as_a_daemon(monkeypatch, tmp_path / "home", real("codex"))
    falls_back(tmp_path / "world", "bwrap", model)
