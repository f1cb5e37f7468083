"""A run follows the text it began with: an older one of the heal loop, which hands every value on by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

from heal_stage import BAD, CONFIG, GOOD, HealStage

from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.run import RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

STORED = Path(__file__).parents[1] / "specs" / "stored" / "heal.yaml"


def test_a_run_that_began_with_the_older_loop_goes_on_with_it(tmp_path: Path) -> None:
    """Over a try that is not proven, a wait, and the end of the file itself: its words are stored with the run."""
    until = HealStage(tmp_path).world.clock() + 3600
    quota = Act(hint=AgentOutcome.quota_wait, error="quota", until=until)
    agent = ScriptedAgent([Act(writes("calc.py", BAD + "\n# a remark\n")), quota, Act(writes("calc.py", GOOD))])
    stage = HealStage(tmp_path / "again", agent, config=CONFIG)
    file = stage.world.write(".becket/loops/heal.yaml", "replaces_built_in: true\n" + STORED.read_text())
    stage.world.commit(message="the loop as it was")

    async def story() -> None:
        assert (await stage.heal()).status is RunStatus.completed
        stage.break_it()
        run = await stage.heal()
        assert (run.status, run.waiting_on) == (RunStatus.waiting, ("agent.quota_wait",)), (run.reason, run.detail)
        file.unlink()
        await stage.world.pass_time(3601)
        run = await stage.world.store.get_run(run.run_id)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        spec = stage.world.app.loops.parse((await stage.world.store.spec_text(run.spec_digest)) or "")
        assert spec.phase(spec_phase := next(iter(spec.phases))).persist_outputs, spec_phase

    asyncio.run(story())
    assert "An earlier try was not proven" in agent.briefs[2]
    assert stage.git("show", "main:calc.py") == GOOD.strip()
