"""What people decide, by the real program: each command is a process of its own, so every answer crosses a restart."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from cli_stage import ASK, CONFIG, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "repo", "ask", "fail", "greet")


def asked(stage: Stage, topic: str = "tea") -> tuple[str, str]:
    """(run, approval) of a run that waits for a decision."""
    found = stage.json("run", "ask", "--with", f"topic={topic}")
    assert found["run"]["status"] == "waiting"
    return found["run"]["run_id"], found["approvals"][0]["approval_id"]


def test_a_run_that_waits_shows_the_commands_that_decide_it(stage: Stage) -> None:
    answer = stage.becket("run", "ask")
    told = answer.out
    (approval,) = stage.json("approvals", "list")
    for command in (f"becket approve {approval['approval_id']}", f"becket deny {approval['approval_id']}"):
        assert command in told
        assert command in answer.err
        assert command in stage.becket("status").out
        assert command in stage.becket("runs", "show", approval["run_id"]).out
    assert "look now" not in answer.err
    assert "Make tea?" in stage.becket("approvals", "list").out


def test_a_question_is_shown_with_the_commands_that_decide_it_and_an_answer_with_how_the_run_stands(
    stage: Stage,
) -> None:
    run_id, approval_id = asked(stage)
    for name in ((), (approval_id,), (run_id,)):
        told = stage.becket("approvals", "show", *name).out
        assert told.startswith("Make tea?\n")
        assert told.endswith(f"Next: becket approve {approval_id}   or   becket deny {approval_id}\n")
    assert stage.json("approvals", "show")["diff"] == ""
    told = stage.becket("approve", approval_id).out
    assert told.startswith(f"{approval_id} is approved")
    assert "ask: A person decides (completed)" in told
    assert f"{approval_id} of {run_id} is used" in stage.becket("approvals", "show", approval_id).out
    assert "nothing waits for a decision" in stage.becket("approvals", "show", code=2).err


def test_an_approval_wakes_the_run_of_an_earlier_process_and_sees_it_through(stage: Stage) -> None:
    run_id, approval_id = asked(stage)
    found = stage.json("approve", approval_id, "--note", "with milk")
    assert (found["approval"]["state"], found["approval"]["note"]) == ("approved", "with milk")
    assert (found["run"]["run_id"], found["run"]["status"]) == (run_id, "completed")
    assert stage.json("approvals", "list") == []
    assert stage.json("approvals", "list", "--all")[0]["state"] == "used"


def test_a_denial_ends_at_a_person(stage: Stage) -> None:
    run_id, approval_id = asked(stage)
    told = stage.becket("deny", approval_id[:-3]).out
    assert f"{approval_id} is denied" in told
    assert "handed off" in told
    (handoff,) = stage.json("handoffs", "list")
    assert (handoff["run_id"], handoff["reason"]) == (run_id, "approval.denied")


def test_no_wait_leaves_the_woken_run_to_others(stage: Stage) -> None:
    run_id, approval_id = asked(stage)
    assert stage.json("approve", approval_id, "--no-wait")["run"]["status"] == "queued"
    assert stage.json("runs", "show", run_id, "--follow")["run"]["status"] == "completed"


def test_a_decision_is_bound_to_what_was_asked(stage: Stage) -> None:
    """L41"""
    _, approval_id = asked(stage)
    (approval,) = stage.json("approvals", "list")
    assert "look at it again" in stage.becket("approve", approval_id, "--about", "0" * 64, code=2).err
    assert stage.json("approve", approval_id, "--about", approval["bound_to"])["run"]["status"] == "completed"
    assert "already" in stage.becket("approve", approval_id, code=2).err


def test_a_role_that_is_too_low_decides_nothing(stage: Stage) -> None:
    """L41"""
    _, approval_id = asked(stage)
    people = f"people: {{me: {{role: member, os_user: {pwd.getpwuid(os.getuid()).pw_name}}}}}\n"
    stage.write("becket.yaml", CONFIG + people)
    for verb in ("approve", "deny", "revoke"):
        assert "member" in stage.becket(verb, approval_id, code=2).err
    assert stage.json("approvals", "list")[0]["state"] == "asked"


def test_an_approval_can_be_taken_back(stage: Stage) -> None:
    _, approval_id = asked(stage)
    stage.becket("approve", approval_id, "--no-wait")
    found = stage.json("revoke", approval_id)
    assert found["approval"]["state"] == "revoked"
    assert found["run"]["status"] == "ready_for_handoff"


def test_handoffs_are_shown_taken_and_done(stage: Stage) -> None:
    stage.becket("run", "fail", code=1)
    (handoff,) = stage.json("handoffs", "list")
    name = handoff["handoff_id"]
    assert "Next: " in stage.becket("handoffs", "show", name).out
    assert f"becket handoffs take {name}" in stage.becket("status").out
    assert stage.json("handoffs", "take", name, "--note", "mine")["taken_by"] == pwd.getpwuid(os.getuid()).pw_name
    assert f"becket handoffs done {name}" in stage.becket("status").out
    assert f"{name} is done" in stage.becket("handoffs", "done", name).out
    assert stage.json("handoffs", "list") == []
    assert stage.json("handoffs", "list", "--all")[0]["state"] == "done"
    stage.becket("handoffs", "done", name, code=2)


def test_a_waiting_run_is_moved_to_the_new_spec(stage: Stage) -> None:
    run_id, approval_id = asked(stage)
    assert "current spec of ask already" in stage.becket("runs", "migrate", run_id, code=2).err
    stage.write(".becket/loops/ask.yaml", ASK.replace('run: "true"', 'run: "exit 1"'))
    assert "follows the current spec" in stage.becket("runs", "migrate", run_id).out
    found = stage.json("approve", approval_id)
    assert found["run"]["status"] != "completed"
    assert "told.fail" in stage.becket("runs", "events", run_id).out


def test_an_event_starts_the_loops_that_listen_once_per_id(stage: Stage) -> None:
    """L42"""
    first = stage.json("event", "guest.came", "--with", "who=eve", "--id", "e1")
    (run,) = first["runs"]
    assert (run["subject"]["name"], run["status"]) == ("guest/eve", "completed")
    again = stage.json("event", "guest.came", "--with", "who=eve", "--id", "e1")
    assert [item["run_id"] for item in again["runs"]] == [run["run_id"]]
    assert [item["created"] for item in again["starts"]] == [False]
    assert "no loop listens" in stage.becket("event", "guest.left").err
    for bad in ("", "i" * 501, "\udcff"):
        assert "--id is" in stage.becket("event", "guest.came", "--id", bad, code=2).err


@pytest.mark.parametrize("name", ["a b", "Guest.came", "", "guest..came", "guest.came\n", "g" * 1000])
def test_an_event_that_no_loop_could_hear_is_refused(stage: Stage, name: str) -> None:
    answer = stage.becket("event", name, code=2)
    assert "is no name of an event" in answer.err
    assert "like ci.failed" in answer.err
