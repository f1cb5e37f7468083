"""Runs by the real program: started, followed, stopped, kept from going on, told and verified."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from pathlib import Path

import pytest
from cli_stage import SLOW, Stage, wait_for


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "repo", "greet", "slow", "fail")


def only_run(stage: Stage) -> str:
    (run,) = stage.json("runs", "list")
    return str(run["run_id"])


def at_work(stage: Stage) -> str:
    """Wait until the slow loop's command really runs; its run id."""
    found = wait_for(lambda: list(stage.state.glob("runs/*/scratch/resting")))
    return str(found[0].parent.parent.name)


def processes_naming(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if text.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


def test_a_loop_of_yaml_runs_to_completion_and_says_what_is_so(stage: Stage) -> None:
    told = stage.becket("run", "greet", "--with", "who=ann").out
    run_id = only_run(stage)
    assert told.splitlines()[-2:] == [
        "greet: A greeting is written and was seen (completed)", f"Next: becket runs show {run_id} --all",
    ]  # fmt: skip
    assert not any(word in told for word in ("raised", "worker", "segment", "act.write"))
    assert stage.becket("runs", "show", run_id).out.splitlines() == told.splitlines()[-2:]
    assert stage.becket("runs", "show", run_id, "--output", "write.text").out == "hello ann\n"
    assert stage.becket("runs", "show", run_id, "--log", "write").out == "hello ann\n"


def test_what_a_terminal_would_obey_is_spelled_in_a_pipe_too_unless_raw_is_asked_for(stage: Stage) -> None:
    said = r"printf 'a\033[2Jb\tc\r\n\302\233d\342\200\256e\n' # {who}"
    text = (stage.root / ".becket/loops/greet.yaml").read_text()
    stage.write(".becket/loops/greet.yaml", text.replace('echo "hello {who}" | tee greeting.txt', said))
    stage.becket("run", "greet", code=1)
    run_id = only_run(stage)
    spelled, raw = "a\\x1b[2Jb\tc\r\n\\x9bd\\u202ee", "a\x1b[2Jb\tc\r\n\x9bd\u202ee"
    for way in (("--output", "write.text"), ("--log", "write")):
        assert stage.becket_bytes("runs", "show", run_id, *way).decode().rstrip("\n") == spelled
        assert stage.becket_bytes("runs", "show", run_id, *way, "--raw").decode().rstrip("\n") == raw


def test_json_is_one_document_even_where_a_loop_speaks(stage: Stage) -> None:
    notify = (
        "  notify:\n    objective: Say it.\n    actions:\n      - {id: say, uses: notify.console, with: {text: well}}\n"
    )
    text = (stage.root / ".becket/loops/greet.yaml").read_text() + notify
    stage.write(".becket/loops/greet.yaml", text)
    found = stage.json("run", "greet")
    assert (found["run"]["status"], found["created"]) == ("completed", True)
    assert found["outputs"]["write"] == {"text": "hello world"}
    assert sorted(found["conditions"]) == ["greeted", "seen.pass"]
    assert "well" in stage.becket("run", "greet", "--json").err


def test_every_reading_verb_has_json(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    whole = stage.json("runs", "show", run_id)
    parts = {
        "run",
        "steps",
        "conditions",
        "events",
        "receipts",
        "effects",
        "approvals",
        "handoffs",
        "artifacts",
        "calls",
        "state_refs",
    }
    assert set(whole) == parts
    events = stage.json("runs", "events", run_id)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert stage.json("runs", "events", run_id, "--after", "3")[0]["seq"] == 4
    assert stage.json("handoffs", "list") == []
    assert stage.json("approvals", "list") == []
    assert stage.json("status")["counts"] == {"completed": 1}
    assert stage.json("runs", "list", "--status", "failed") == []
    assert len(stage.json("runs", "list", "--loop", "greet", "--status", "completed")) == 1


def test_a_secret_is_refused_before_anything_is_kept(stage: Stage) -> None:
    token = "ghp_" + "Q" * 36
    for words in (
        ("run", "greet", "--with", f"who={token}"), ("run", "greet", "--subject", f"about {token}"),
        ("event", "guest.came", "--with", f"who={token}"), ("event", "guest.came", "--id", token),
    ):  # fmt: skip
        told = stage.becket(*words, code=2)
        assert "looks like a secret" in told.err
        assert token not in told.out + told.err
    assert stage.json("runs", "list") == []
    stage.becket("pause", "greet", "--note", f"see {token}")
    assert stage.json("status")["paused"][0]["note"] == "see [redacted:github]"


def test_the_journal_is_printed_one_event_per_line(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    lines = stage.becket("runs", "events", run_id).out.splitlines()
    assert len(lines) == len(stage.json("runs", "events", run_id))
    assert "greet on guest/world asked for by" in lines[0]
    assert "completed: every stop condition holds" in lines[-1]


def test_a_run_told_whole_has_a_line_per_event_and_every_receipt(stage: Stage) -> None:
    told = stage.becket("run", "greet", "--all").out
    for line in ("act.write done", "seen.pass", "completed: every stop condition holds", "completed in ", "receipts"):
        assert line in told


def test_a_run_is_found_by_the_beginning_of_its_id(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    assert run_id in stage.becket("runs", "show", run_id[:-4]).out
    assert "becket runs" in stage.becket("runs", "show", "run_nope", code=2).err


def test_a_run_that_does_not_reach_its_goal_exits_with_1(stage: Stage) -> None:
    told = stage.becket("run", "fail", code=1).out
    assert "it is broken" in told
    assert told.splitlines()[-1].startswith("Next: becket runs show run_")
    (handoff,) = stage.json("handoffs", "list")
    assert stage.json("run", "fail", code=1)["run"]["status"] == "ready_for_handoff"
    assert handoff["reason"] == "iterations_exhausted"


def test_dry_run_ends_after_one_iteration_and_says_so(stage: Stage) -> None:
    found = stage.json("run", "greet", "--dry-run")["run"]
    assert (found["status"], found["dry_run"]) == ("completed_dry_run", True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nope",), "there is no loop 'nope'"),
        (("greet", "--with", "wo=ann"), "wo: greet has no such input; it has who, times"),
        (("greet", "--with", "times=often"), "times:"),
        (("greet", "--with", "who"), "is not NAME=VALUE"),
        (("greet", "--with", "who=a", "--with", "who=b"), "given twice"),
        (("greet", "--with", "who=\udcff"), "--with who is not UTF-8"),
        (("greet", "--subject", "x" * 501), "--subject is not a plain line"),
        (("greet", "--autonomy", "all"), "observe"),
        (("greet", "--nope"), "--nope"),
        ((), "LOOP"),
    ],
)
def test_what_is_wrong_with_a_start_is_said_with_exit_code_2(
    stage: Stage, arguments: tuple[str, ...], said: str
) -> None:
    assert said in stage.becket("run", *arguments, code=2).err
    assert stage.json("runs", "list") == []


def test_two_runs_at_once_without_a_daemon_both_finish(stage: Stage) -> None:
    both = [stage.start("run", "greet", "--with", f"who={name}", "--json") for name in ("ann", "bob")]
    ends = [stage.end(process) for process in both]
    assert [end.code for end in ends] == [0, 0]
    assert sorted(end.json["outputs"]["write"]["text"] for end in ends) == ["hello ann", "hello bob"]


def test_a_second_start_on_the_same_subject_joins_the_first(stage: Stage) -> None:
    first = stage.start("run", "slow", "--subject", "one", "--json")
    run_id = at_work(stage)
    second = stage.start("run", "slow", "--subject", "one", "--json")
    assert second.stderr is not None
    assert f"{run_id} already works on this subject (one): " in second.stderr.readline()
    (stage.scratch_of(run_id) / "wake").touch()
    ends = [stage.end(process) for process in (first, second)]
    assert [end.json["run"]["run_id"] for end in ends] == [run_id, run_id]
    assert [end.json["created"] for end in ends] == [True, False]


def test_a_start_that_is_dropped_says_why(stage: Stage) -> None:
    busy = "concurrency: {group: all, on_busy: drop}\nmax_iterations: 1"
    stage.write(".becket/loops/slow.yaml", SLOW.replace("max_iterations: 1", busy))
    first = stage.start("run", "slow", "--subject", "one")
    run_id = at_work(stage)
    refused = stage.becket("run", "slow", "--subject", "two", "--json", code=1)
    assert refused.json["run"] is None
    assert "Nothing was started" in refused.err
    (stage.scratch_of(run_id) / "wake").touch()
    assert stage.end(first).code == 0


def test_no_follow_leaves_the_run_queued_and_says_how_to_go_on(stage: Stage) -> None:
    told = stage.becket("run", "greet", "--no-follow")
    run_id = told.out.strip()
    assert f"becket runs show {run_id} --follow" in told.err
    assert stage.json("status")["queued"][0]["run_id"] == run_id
    assert "becket up" in stage.becket("status").out
    assert "completed" in stage.becket("runs", "show", run_id, "--follow").out


def test_ctrl_c_loses_nothing_and_says_how_to_go_on(stage: Stage) -> None:
    """L19, L26: what the run started is gone; the run itself goes on later."""
    process = stage.start("run", "slow")
    run_id = at_work(stage)
    os.kill(process.pid, signal.SIGINT)
    end = stage.end(process)
    assert end.code == 130
    assert "Traceback" not in end.err
    assert f"becket runs show {run_id} --follow" in end.err
    assert stage.json("status")["counts"] == {"queued": 1}
    assert processes_naming(str(stage.root)) == []
    again = stage.start("runs", "show", run_id, "--follow", "--json")
    at_work(stage)
    wait_for(lambda: stage.json("status")["running"])
    (stage.scratch_of(run_id) / "wake").touch()
    assert stage.end(again).json["run"]["status"] == "completed"


def test_kill_minus_9_loses_nothing_either(stage: Stage) -> None:
    process = stage.start("run", "slow")
    run_id = at_work(stage)
    process.kill()
    stage.end(process)
    (stage.scratch_of(run_id) / "wake").touch()
    assert stage.json("runs", "show", run_id, "--follow")["run"]["status"] == "completed"


def test_cancel_stops_a_run_at_work(stage: Stage) -> None:
    process = stage.start("run", "slow")
    run_id = at_work(stage)
    assert f"{run_id} is cancelled" in stage.becket("runs", "cancel", run_id, "--reason", "enough").out
    end = stage.end(process)
    assert end.code == 1
    assert "slow: cancelled by " in end.out
    assert "has already ended: cancelled" in stage.becket("runs", "cancel", run_id, code=2).err


def test_retry_starts_the_same_subject_again(stage: Stage) -> None:
    first = stage.json("run", "greet", "--with", "who=ann")["run"]
    again = stage.json("runs", "retry", first["run_id"])["run"]
    assert again["retry_of"] == first["run_id"]
    assert (again["subject"]["name"], again["inputs"]["who"], again["status"]) == ("guest/ann", "ann", "completed")


def test_a_held_run_does_not_go_on_until_it_is_let_go(stage: Stage) -> None:
    run_id = stage.becket("run", "greet", "--no-follow").out.strip()
    assert stage.json("hold", run_id)["run"]["held"] is True
    assert "is held" in stage.becket("runs", "show", run_id, "--follow").err
    assert f"becket hold {run_id} --off" in stage.becket("status").out
    assert stage.json("hold", run_id, "--off")["run"]["status"] == "completed"


def test_drop_gives_up_what_is_not_at_work(stage: Stage) -> None:
    run_id = stage.becket("run", "greet", "--no-follow").out.strip()
    assert stage.json("drop", run_id)["run"]["status"] == "cancelled"
    process = stage.start("run", "slow")
    busy = at_work(stage)
    assert f"becket runs cancel {busy}" in stage.becket("drop", busy, code=2).err
    (stage.scratch_of(busy) / "wake").touch()
    assert stage.end(process).code == 0


@pytest.mark.parametrize("scope", [(), ("greet",)])
def test_a_paused_loop_starts_nothing_until_it_is_let_go(stage: Stage, scope: tuple[str, ...]) -> None:
    stage.becket("pause", *scope, "--note", "lunch")
    told = stage.becket("run", "greet")
    assert "is paused by" in told.err
    assert "(lunch)" in told.err
    command = " ".join(["becket", "pause", *scope, "--off"])
    assert command in told.err
    assert command in stage.becket("status").out
    (run,) = stage.json("runs", "list")
    assert run["status"] == "queued"
    assert stage.json("pause", *scope, "--off") == {"paused": []}
    assert stage.json("run", "greet")["run"]["run_id"] == run["run_id"]
    assert "there is no loop" in stage.becket("pause", "nope", code=2).err
    assert "there is no loop" in stage.becket("pause", "nope", "--off", code=2).err


def test_verify_recomputes_everything_and_can_repeat_the_commands(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    found = stage.json("verify", run_id, "--rerun")
    assert found["ok"] is True
    assert {item["what"].split()[0] for item in found["checks"]} >= {"events", "status", "receipt", "artifact", "again"}
    assert "hold." in stage.becket("verify", run_id).out


def test_verify_finds_a_changed_artifact(stage: Stage) -> None:
    run_id = stage.json("run", "greet")["run"]["run_id"]
    log = next(item for item in stage.json("runs", "show", run_id)["artifacts"] if item["size"])
    (file,) = stage.state.glob(f"artifacts/**/*{log['digest'][8:]}*")
    file.chmod(0o600)
    file.write_text("hello mallory\n")
    told = stage.becket("verify", run_id, code=1).out
    assert f"BAD  artifact {log['digest'][:12]}" in told
    assert stage.json("verify", run_id, code=1)["ok"] is False


def test_verify_finds_a_changed_record(stage: Stage) -> None:
    run_id = stage.json("run", "fail", code=1)["run"]["run_id"]
    with sqlite3.connect(stage.state / "becket.db") as journal:
        journal.execute("UPDATE runs SET status = 'completed' WHERE run_id = ?", (run_id,))
    found = stage.json("verify", run_id, code=1)
    assert [item["what"] for item in found["checks"] if not item["ok"]] == ["status"]
