"""The real program is killed at a named point; the next call of it, by whichever verb, ends the run properly."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from cli_stage import Stage, wait_for

from becket.kernel.contract.crash import ENV

KILLED = -signal.SIGKILL


def killed(stage: Stage, at: str, *arguments: str) -> None:
    stage.becket(*arguments, code=KILLED, env={ENV: at})


def only_run(stage: Stage) -> str:
    (run,) = stage.json("runs", "list")
    return str(run["run_id"])


@pytest.mark.parametrize("at", ["step.action_done", "walk.moved"])
def test_the_same_run_again_ends_what_a_killed_one_began(at: str, tmp_path: Path) -> None:
    """L7: the person types the same line again; there is one run, and it is proven."""
    stage = Stage(tmp_path, "greet")
    killed(stage, at, "run", "greet")
    run_id = only_run(stage)
    if at != "walk.moved":  # by then it had ended, and the same line is a new wish
        assert stage.json("run", "greet")["run"]["run_id"] == run_id
    run = stage.json("runs", "show", run_id)["run"]
    assert (run["status"], run["reason"]) == ("completed", "stop_conditions_met")
    stage.becket("verify", run_id)


def test_the_daemon_ends_what_a_killed_run_began(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "greet")
    killed(stage, "store.record.before_commit@2", "run", "greet")
    run_id = only_run(stage)
    stage.becket("up", "--detach")
    try:
        wait_for(lambda: stage.json("runs", "show", run_id)["run"]["status"] == "completed")
    finally:
        stage.becket("down")
    stage.becket("verify", run_id)


@pytest.mark.parametrize("at", ["store.decide_approval.before_commit", "store.decide_approval.after_commit"])
def test_an_answer_given_by_a_killed_program_counts_once_or_not_at_all(at: str, tmp_path: Path) -> None:
    """L41: a decision and the signal that carries it are one; whoever saw no answer may answer again."""
    stage = Stage(tmp_path, "ask")
    killed(stage, "store.wait.after_commit", "run", "ask")
    (asked,) = stage.json("approvals", "list")
    killed(stage, at, "approve", asked["approval_id"])
    stage.becket("run", "ask") if at.endswith("after_commit") else stage.becket("approve", asked["approval_id"])
    run = stage.json("runs", "show", only_run(stage))["run"]
    assert (run["status"], run["reason"]) == ("completed", "stop_conditions_met")
