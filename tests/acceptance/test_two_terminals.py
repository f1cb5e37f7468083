"""Several commands at once, each a process of its own, and no daemon: each drives its own run and nobody else's."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from calc_stage import HEAL, REPAIR, Calculator
from cli_stage import CONFIG, SLOW, Stage, wait_for

GROUPED = SLOW.replace("loop_id: slow", "loop_id: grouped").replace(
    "deadline: 10m", "deadline: 10m\nconcurrency: {group: one, on_busy: queue}"
)
PARENT = """\
version: 1
loop_id: parent
goal: The child has ended well.
trigger: [{manual: {}}]
max_iterations: 2
deadline: 2h
stop_conditions: [children.completed]
handoff_conditions: [children.unfinished]
wait_conditions:
  children.pending: {wake: child, for: 1h}
phases:
  act:
    objective: Start it.
    actions:
      - {id: go, uses: run.start, with: {loop: greet, inputs: {who: child}}}
      - {id: stand, uses: run.gather}
  verify:
    objective: It ended.
    verifiers: [{id: ended, uses: children_ended, when: not children.pending}]
"""
LATER = """\
version: 1
loop_id: later
goal: A file is there.
subject: the file
trigger: [{manual: {}}]
max_iterations: 2
deadline: 1h
stop_conditions: [there, fine.pass]
wait_conditions:
  missing: {wake: clock, poll: 1s, for: 1h}
phases:
  act:
    objective: Look for it.
    actions:
      - id: look
        run: test -e ready
        in: scratch
        raises: {"0": there, "1": missing}
  verify:
    objective: Look again.
    verifiers:
      - {id: fine, run: "true", in: scratch, when: there}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "repo", "greet", "slow")
    for name, text in (("grouped", GROUPED), ("parent", PARENT), ("later", LATER)):
        stage.write(f".becket/loops/{name}.yaml", text)
    return stage


def begin(stage: Stage, loop: str, subject: str) -> tuple[Any, str]:
    """A terminal of its own, and its run once its command is really at work."""
    before = set(stage.state.glob("runs/*/scratch/resting"))
    process = stage.start("run", loop, "--subject", subject)
    (found,) = wait_for(lambda: set(stage.state.glob("runs/*/scratch/resting")) - before)
    return process, found.parent.parent.name


def run_of(stage: Stage, run_id: str) -> Any:
    return next(run for run in stage.json("runs", "list") if run["run_id"] == run_id)


def wake(stage: Stage, run_id: str) -> None:
    (stage.scratch_of(run_id) / "wake").touch()


def test_two_terminals_drive_a_run_each_and_ctrl_c_in_one_does_not_disturb_the_other(stage: Stage) -> None:
    first, one = begin(stage, "slow", "one")
    second, two = begin(stage, "slow", "two")
    assert stage.json("status")["counts"] == {"running": 2}
    os.kill(first.pid, signal.SIGINT)
    assert stage.end(first).code == 130
    wake(stage, two)
    assert "1 other run waits: `becket up` runs it." in stage.end(second).err
    assert (run_of(stage, two)["status"], run_of(stage, two)["epoch"]) == ("completed", 1), "claimed once, paid once"
    left = run_of(stage, one)
    assert left["status"] == "queued"
    assert stage.becket("run", "greet").err == "1 other run waits: `becket up` runs it.\n"
    assert run_of(stage, one) == left, "a stranger's command does not touch it"
    assert f"{two} has already ended: completed" in stage.becket("runs", "cancel", two, code=2).err


def test_what_a_killed_terminal_left_is_put_in_order_by_others_and_driven_by_none(stage: Stage) -> None:
    killed, one = begin(stage, "slow", "one")
    living, two = begin(stage, "slow", "two")
    killed.kill()
    stage.end(killed)
    assert "1 other run waits" in stage.becket("run", "greet").err
    assert run_of(stage, one)["status"] == "queued"
    assert stage.json("status")["running"][0]["run_id"] == two
    assert stage.json("runs", "cancel", one)["run"]["status"] == "cancelled", "at once: nobody is there to be asked"
    living.kill()
    stage.end(living)
    assert f"{two} is cancelled" in stage.becket("runs", "cancel", two).out
    assert list((stage.state / "drivers").iterdir()) == []


def test_status_tells_a_run_at_work_from_a_queued_one_and_from_one_whose_terminal_was_killed(tmp_path: Path) -> None:
    """At once, not when a lease has run out; with the command that goes on."""
    stage = Stage(tmp_path / "repo")
    busy = "touch SEEN; while [ ! -e WAKE ]; do sleep 0.05; done"
    busy = busy.replace("SEEN", str(tmp_path / "seen")).replace("WAKE", str(tmp_path / "wake"))
    gates = f"gates: {{fast: [{{name: busy, run: '{busy}'}}]}}\n"
    stage.write("becket.yaml", CONFIG + "sandbox: {use: none, without: [files, processes, network]}\n" + gates)
    stage.commit("a gate that takes its time")
    stage.becket("run", "heal", "--no-follow")
    (run,) = stage.json("runs", "list")
    told = stage.becket("status").out
    go_on = f"nobody works on it; becket runs show {run['run_id']} --follow"
    assert f"is not judged yet: {run['run_id']} is queued and {go_on}" in told
    assert told.count(f"becket runs show {run['run_id']} --follow") == 2, "in the list of queued runs too"
    process = stage.start("run", "heal")
    wait_for((tmp_path / "seen").exists)
    assert f"is being judged by {run['run_id']} (began " in stage.becket("status").out
    process.kill()
    stage.end(process)
    told = stage.becket("status").out
    assert f"is not judged yet: {run['run_id']} was interrupted: {go_on}" in told
    assert "nobody has been at work on it for" in told
    (tmp_path / "wake").touch()
    assert stage.becket("runs", "show", run["run_id"], "--follow").code == 0


@pytest.mark.parametrize("left", ["queued", "interrupted"])
def test_a_probe_and_a_call_by_hand_leave_a_heal_run_where_it_is(tmp_path: Path, left: str) -> None:
    """They once drove whatever was queued: an agent was called and main moved by a command that asked for neither."""
    seen = tmp_path / "seen"
    project = Calculator(tmp_path / "repo", f"if [ -e {seen} ]; then {REPAIR}; else touch {seen}; sleep 600; fi")
    if left == "interrupted":
        killed = project.start(*HEAL)
        wait_for(seen.exists)
        killed.kill()
        project.end(killed)
    else:
        seen.touch()
        project.becket(*HEAL, "--no-follow")
    head = project.git("rev-parse", "main")
    both = [project.start("doctor", "--probe"), project.start("agent", "run", "fixer", "add")]
    told = [project.end(each) for each in both]
    assert "1 other run waits: `becket up` runs it." in told[1].err, told[1]
    assert "fixer: changed in " in told[0].out, told[0]
    runs = project.json("runs", "list")
    assert sorted(run["loop_id"] for run in runs) == ["heal", "once", "once"]
    (heal,) = [run for run in runs if run["loop_id"] == "heal"]
    claims = [one for one in project.json("runs", "show", heal["run_id"])["events"] if one["kind"] == "run.claimed"]
    assert (heal["status"], len(claims)) == ("queued", int(left == "interrupted"))
    calls = {row["key"]: row["calls"] for row in project.json("agent", "spend", "--by", "loop")["rows"]}
    assert calls == ({"heal": 1, "once": 2} if left == "interrupted" else {"once": 2})
    assert project.git("rev-parse", "main") == head
    project.becket("runs", "show", heal["run_id"], "--follow")
    assert project.git("rev-parse", "main") != head, "it still does its own work"


@pytest.mark.slow
def test_a_second_run_of_a_group_says_for_whom_it_waits_and_follows(stage: Stage) -> None:
    first, one = begin(stage, "grouped", "one")
    second = stage.start("run", "grouped", "--subject", "two")
    assert second.stderr is not None
    assert f"waits for {one} (one), which pid {first.pid} (`becket run grouped" in second.stderr.readline()
    wake(stage, one)
    assert stage.end(first).err == "", "the other one is in good hands"
    (two,) = wait_for(lambda: {path.parent.parent.name for path in stage.state.glob("runs/*/scratch/resting")} - {one})
    wake(stage, two)
    assert stage.end(second).code == 0
    third, three = begin(stage, "grouped", "three")
    third.kill()
    stage.end(third)
    told = stage.becket("run", "grouped", "--subject", "four")
    assert f"waits behind {three} (three), which nobody works on" in told.err
    assert f"becket runs show {three} --follow" in told.err


@pytest.mark.slow
def test_a_daemon_that_starts_meanwhile_leaves_the_run_to_its_driver(stage: Stage) -> None:
    process, mine = begin(stage, "slow", "mine")
    stage.becket("up", "--detach")
    try:
        assert stage.json("run", "greet", "--follow")["run"]["status"] == "completed", "the daemon is at work beside it"
        wake(stage, mine)
        assert stage.end(process).code == 0
    finally:
        stage.becket("down")
    assert (run_of(stage, mine)["status"], run_of(stage, mine)["epoch"]) == ("completed", 1)


def test_a_command_drives_the_children_that_its_run_waits_for(stage: Stage) -> None:
    assert stage.json("run", "parent")["run"]["status"] == "completed"
    assert stage.json("status")["counts"] == {"completed": 2}


def test_without_a_daemon_a_run_that_waits_says_so_and_is_looked_at_when_a_person_asks(stage: Stage) -> None:
    told = stage.becket("run", "later")
    (run_id,) = [run["run_id"] for run in stage.json("runs", "list")]
    assert f"{run_id} waits for missing" in told.err
    assert "nobody is there to go on: becket up --detach" in told.err
    assert f"becket runs show {run_id} --follow" in told.err
    wait_for(lambda: "nobody wakes it" in stage.becket("status").out)
    for verb in (("run", "later"), ("runs", "show", run_id, "--follow")):
        before = run_of(stage, run_id)["epoch"]
        if verb[0] == "runs":
            (stage.scratch_of(run_id) / "ready").touch()
        assert stage.json(*verb)["run"]["run_id"] == run_id
        assert run_of(stage, run_id)["epoch"] > before
    assert run_of(stage, run_id)["status"] == "completed"


def test_a_person_who_asks_is_not_kept_waiting_for_the_next_look(stage: Stage) -> None:
    """Neither with the command again nor with --follow; of a wait whose end nobody polls for, nothing is looked at."""
    stage.write(".becket/loops/later.yaml", LATER.replace("poll: 1s", "poll: 50m"))
    told = stage.becket("run", "later")
    (run,) = stage.json("runs", "list")
    assert ", looks again " in told.out
    assert "or look now: becket runs show" in told.err
    assert stage.json("run", "later")["run"]["epoch"] == run["epoch"] + 1
    (stage.scratch_of(run["run_id"]) / "ready").touch()
    assert stage.json("runs", "show", run["run_id"], "--follow")["run"]["status"] == "completed"
    stage.becket("verify", run["run_id"])
