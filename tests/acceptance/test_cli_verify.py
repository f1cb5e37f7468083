"""`becket verify` by the real program: its last line, a head that was kept, a record that was tampered with."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from cli_stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "repo", "greet", "fail")


def tamper(stage: Stage, *statements: str) -> None:
    with sqlite3.connect(stage.state / "becket.db") as journal:
        for statement in statements:
            assert journal.execute(statement).rowcount
    journal.close()


def test_the_last_line_is_the_head_of_the_chain_and_can_be_given_back(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    head = stage.becket("verify", run_id).out.splitlines()[-1].removeprefix("chain head ")
    assert len(head) == 64
    assert stage.json("verify", run_id)["head"] == head
    assert "the last one" in stage.becket("verify", run_id, "--head", head).out
    for other in ("0" * 64, head[:12], "x"):
        told = stage.becket("verify", run_id, "--head", other, code=1).out
        assert "BAD  kept head" in told
    assert stage.json("verify", run_id, "--head", "0" * 64, code=1)["ok"] is False


def test_a_handoff_that_was_taken_since_does_not_spoil_a_kept_head(stage: Stage) -> None:
    run_id = stage.json("run", "fail", code=1)["run"]["run_id"]
    kept = stage.json("verify", run_id)["head"]
    (handoff,) = stage.json("handoffs", "list")
    stage.becket("handoffs", "take", handoff["handoff_id"])
    now = stage.json("verify", run_id, "--head", kept)
    assert now["ok"] is True
    assert now["head"] != kept


def test_a_forged_success_is_exit_code_1_and_its_commands_are_not_repeated(stage: Stage) -> None:
    run_id = stage.json("run", "fail", code=1)["run"]["run_id"]
    tamper(
        stage,
        "UPDATE steps SET state = 'done', error = '', error_kind = '' WHERE id = 'good'",
        "DELETE FROM conditions WHERE name = 'fail'",
        "UPDATE receipts SET receipt = replace(receipt, '\"exit_code\":1', '\"exit_code\":0')",
    )
    told = stage.becket("verify", run_id, "--rerun", code=1).out
    assert "BAD  step 1/verify/good" in told
    assert "BAD  condition good.fail" in told
    assert "BAD  receipt" in told
    assert "nothing was repeated" in told
    assert "Commands were repeated" not in told


def test_a_row_that_cannot_be_read_is_a_finding_and_no_fault_of_ours(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    tamper(stage, "UPDATE runs SET status = 'splendid'")
    told = stage.becket("verify", run_id, code=1)
    assert "BAD  run  its row cannot be read" in told.out
    assert "internal error" not in told.err
