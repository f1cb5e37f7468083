"""Contract of the agents' drivers, for `driver: command`: any program, believed only by what it leaves (L19, L20)."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest
from agent_stage import LANDLOCK_WORKS, AgentStage, Kind, model, stage
from process_stage import sleeping, unique_sleep

from becket.kernel.contract.agent import AgentEventKind, AgentOutcome, Limits, PriceSource
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import SandboxKind

__all__ = ["model", "stage"]

KINDS = [
    pytest.param(Kind("command", sandbox=SandboxKind.none), id="none"),
    *([pytest.param(Kind("command", sandbox=SandboxKind.landlock), id="landlock")] if LANDLOCK_WORKS else []),
    pytest.param(Kind("command", sandbox=SandboxKind.bwrap), id="bwrap", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        ("sed -i s/bad/good/ value.txt; echo fixed", AgentOutcome.changed),
        ("echo new > new.txt", AgentOutcome.changed),
        ("echo 'all tests pass now'", AgentOutcome.nothing_done),
        ("echo half > value.txt; exit 3", AgentOutcome.crashed),
        ("kill -9 $$", AgentOutcome.crashed),
        ("no-such-program-here", AgentOutcome.not_found),
    ],
    ids=["edit", "new-file", "claim", "exit-code", "killed", "missing"],
)
def test_its_end_is_judged_by_the_work_tree_and_its_exit_code(
    stage: AgentStage, run: str, outcome: AgentOutcome
) -> None:
    done = stage.call(run=run, network="none")
    assert done.judged.outcome is outcome, done.report
    assert done.judged.reason
    assert done.report.usage.priced is PriceSource.unknown
    assert done.events[-1].kind is AgentEventKind.end


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_hangs_ends_at_the_limit_of_time(stage: AgentStage) -> None:
    nap, begun = unique_sleep(), stage.tree / "begun"
    run = f"setsid sh -c 'touch begun; exec sleep {nap}' & sleep {nap}"
    for seconds in (0.6, 2.0, 6.0, 18.0):  # as much time as it needs to begin
        done = stage.call(run=run, network="none", limits=Limits(seconds=seconds))
        assert done.judged.outcome is AgentOutcome.limit_reached, done.report
        assert sleeping(nap) == []
        if begun.exists():
            return
    raise AssertionError("the command did not begin")


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_is_cancelled_or_killed_with_all_it_started(stage: AgentStage) -> None:
    """L19: what is in a session of its own, too."""
    nap = unique_sleep()
    given = {"run": f"setsid sleep {nap} & sleep {nap}9; true", "network": "none"}

    async def at_work() -> None:
        while not (sleeping(nap) and sleeping(f"{nap}9")):
            await asyncio.sleep(0.01)

    async def story() -> None:
        call = asyncio.create_task(stage.work(**given))
        await asyncio.wait_for(at_work(), 40)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 40)
        assert (sleeping(nap), sleeping(f"{nap}9")) == ([], [])
        call = asyncio.create_task(stage.work(**{**given, "run": f"setsid sleep {nap} & exec sleep {nap}9"}))
        await asyncio.wait_for(at_work(), 40)
        os.kill(sleeping(f"{nap}9")[0], signal.SIGKILL)
        done = await asyncio.wait_for(call, 40)
        assert done.judged.outcome is AgentOutcome.crashed, done.report

    asyncio.run(story())
    assert sleeping(nap) == []


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_given_what_is_named_and_nothing_else(stage: AgentStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """L12, L25."""
    monkeypatch.setenv("NAMED", "given on purpose")
    dump = 'env > dump.txt; cat > brief.txt; ls "$BECKET_SKILLS" > skills.txt; pwd > place.txt'
    done = stage.call(run=dump, network="none", env=["NAMED"], set={"COLOUR": "grey"}, brief="Do it.")
    assert done.judged.outcome is AgentOutcome.changed, done.report
    dumped = (stage.tree / "dump.txt").read_text()
    assert "NAMED=given on purpose" in dumped
    assert "COLOUR=grey" in dumped
    assert f"daemon-{stage.mark}" not in dumped
    assert (stage.tree / "brief.txt").read_text() == "Do it."
    assert (stage.tree / "skills.txt").read_text().split() == ["test-driven-development", "verify-before-complete"]
    assert (stage.tree / "place.txt").read_text().strip() == str(stage.tree)


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("named", [False, True], ids=["no hosts", "its host"])
def test_it_reaches_its_hosts_and_nothing_else(stage: AgentStage, named: bool) -> None:
    """Without a word about the network there is none: what it is not let reach is no surprise in a bill."""
    port = stage.model.port
    asks = f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)"
    hosts = {"hosts": [f"127.0.0.1:{port}"]} if named else {}
    done = stage.call(run=f'python3 -c "{asks}" && echo reached > value.txt', **hosts)
    assert done.judged.outcome is (AgentOutcome.changed if named else AgentOutcome.crashed), done.report


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_program_that_only_this_machine_sees_is_told_with_the_line_that_shows_it(stage: AgentStage) -> None:
    """Before it is started: a shell could only say that it is not there."""
    program = stage.folder / "agents" / "fix.sh"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho fixed > value.txt\n")
    program.chmod(0o755)
    done = stage.call(run=f"{program} --now", network="none")
    assert done.judged.outcome is AgentOutcome.not_found, done.report
    assert f"in becket.yaml: sandbox: {{readable: [{program.parent}]}}" in done.judged.reason


@pytest.mark.parametrize("kind", KINDS[:1])
def test_a_limit_of_money_that_nobody_can_hold_is_refused(stage: AgentStage) -> None:
    agent = stage.agent(run="true", limits={"usd": 1.0})
    with pytest.raises(UsageError, match="nobody can tell what a `command` agent costs"):
        asyncio.run(agent.run("Go.", stage.tree, Limits(seconds=5)))
