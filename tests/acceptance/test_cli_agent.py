"""Agents by the real program: called once, watched, spoken to, stopped, paid for and looked at by the doctor."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_stage import PROGRAM, Stage, as_in_a_terminal, environment, wait_for

CONFIG = """\
version: 1
branch: main
autonomy: propose
gates: {fast: [{name: unit, run: "test -e calc.txt"}]}
budgets: {day: {agent_time: 10m}, loops: {once: {month: {tokens: 1000}}}}
agents:
  fixer:
    driver: command
    run: "cat > brief.txt; echo 2 >> calc.txt; printf 'done\\\\033[31m\\\\n'"
    limits: {time: 1m}
  idle: {driver: command, run: "echo ok"}
  bad: {driver: command, run: "echo oh no; exit 3"}
  slow: {driver: command, run: "setsid sleep {nap}1 & echo at work; sleep {nap}2"}
"""


def nap(folder: Path) -> str:
    """So many seconds as nobody else on this machine sleeps."""
    return f"613.{os.getpid()}{folder.stat().st_ino}"


def config(folder: Path) -> str:
    return CONFIG.replace("{nap}", nap(folder))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    made = Stage(tmp_path / "repo")
    made.write("becket.yaml", config(tmp_path))
    made.write("calc.txt", "1\n")
    made.commit("agents")
    return made


def sleepers(stage: Stage) -> list[int]:
    """The processes that the slow agent starts, one of them in a session of its own."""
    found = []
    mine = [f"sleep\0{nap(stage.root.parent)}{number}\0".encode() for number in (1, 2)]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes() in mine:
                    found.append(int(entry.name))
    return found


def slow_at_work(stage: Stage) -> tuple[object, str]:
    process = stage.start("agent", "run", "slow", "wait for me")
    assert process.stdout is not None
    run_id = process.stdout.readline().split()[0]
    assert "at work" in process.stdout.readline()
    return process, run_id


def test_a_call_shows_events_diff_outcome_and_changes_nothing(stage: Stage) -> None:
    before = stage.git("for-each-ref", "refs/heads")
    told = stage.becket("agent", "run", "fixer", "add two").out
    assert "says      done" in told
    assert "+2" in told
    assert "+add two" in told
    assert "fixer: changed in " in told
    assert "changed: 2 paths differ" in told
    patch = next(line for line in told.splitlines() if line.startswith("The whole patch: ")).split(": ")[1]
    assert b"+2" in Path(patch).read_bytes()
    assert stage.git("status", "--porcelain") == ""
    assert stage.git("for-each-ref", "refs/heads") == before


def test_the_exit_code_is_the_outcome(stage: Stage) -> None:
    """L20: by the work tree, not by what the program says."""
    assert "nothing done: the work tree is as it was" in stage.becket("agent", "run", "idle", "x", code=1).out
    assert "crashed: it ended with exit code 3" in stage.becket("agent", "run", "bad", "x", code=1).out
    assert stage.json("handoffs", "list") == []  # whoever asked has seen it
    assert "no agent is called 'nobody'" in stage.becket("agent", "run", "nobody", "x", code=2).err


def test_what_can_never_work_is_refused_before_a_run_begins(stage: Stage) -> None:
    refused = subprocess.run(
        [*PROGRAM, "agent", "run", "fixer", "-"], cwd=stage.root, env=environment(), input="x" * 200_001, text=True,
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert (refused.returncode, "the brief has 200,001 characters" in refused.stderr) == (2, True)
    agents = '  dear: {driver: command, run: "true", limits: {usd: 1}}\n  apt: {driver: command, run: x, skills: [y]}\n'
    stage.write("becket.yaml", config(stage.root.parent) + agents)
    assert "leave `limits.usd` away" in stage.becket("agent", "run", "dear", "x", code=2).err
    assert "no skill is called y; there is: " in stage.becket("agent", "run", "apt", "x", code=2).err
    assert stage.json("runs", "list") == []


def test_a_spent_budget_is_told_in_words(stage: Stage) -> None:
    stage.write("becket.yaml", config(stage.root.parent).replace("agent_time: 10m", "agent_time: 0s"))
    told = stage.becket("agent", "run", "fixer", "x", code=1).out
    assert "no call was made: the " in told
    assert " of today is used up (" in told


def test_a_secret_of_the_environment_is_shown_neither_live_nor_in_the_diff(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L25."""
    monkeypatch.setenv("API_TOKEN", "tok-9f8e7d6c5b4a3210")
    stage.write(
        "becket.yaml",
        config(stage.root.parent)
        + '  leaky: {driver: command, run: "echo $API_TOKEN | tee out.txt", env: [API_TOKEN]}\n',
    )
    stage.commit("leaky")
    done = stage.becket("agent", "run", "leaky", "x")
    assert "says" in done.out
    assert "out.txt" in done.out
    assert "tok-9f8e7d6c5b4a3210" not in done.out + done.err


def test_json_is_for_scripts(stage: Stage) -> None:
    found = stage.json("agent", "run", "fixer", "add two")
    assert (found["outcome"], found["applied"], found["unseen"]) == ("changed", False, [])
    assert found["base"] == stage.git("rev-parse", "HEAD").strip()
    assert Path(found["patch"]).exists()
    (call,) = found["calls"]
    assert (call["agent"], call["end"]["outcome"], call["loop_id"]) == ("fixer", "changed", "once")
    assert stage.json("agent", "run", "idle", "x", code=1)["sha"] is None


def test_a_change_is_applied_only_to_a_clean_tree(stage: Stage) -> None:
    stage.write("notes.txt", "mine\n")
    refused = stage.becket("agent", "run", "fixer", "add two", "--apply", code=2)
    assert "notes.txt" in refused.err
    assert stage.json("runs", "list") == []
    warned = stage.becket("agent", "run", "fixer", "add two")
    assert "does not see what is not committed: notes.txt" in warned.err
    (stage.root / "notes.txt").unlink()
    told = stage.becket("agent", "run", "fixer", "add two", "--apply").out
    assert "staged and not committed" in told
    assert (stage.root / "calc.txt").read_text() == "1\n2\n"
    assert stage.git("diff", "--cached", "--name-only").split() == ["brief.txt", "calc.txt"]
    stage.git("reset", "--hard", "--quiet")
    assert "Nothing was applied" in stage.becket("agent", "run", "idle", "x", "--apply", code=1).err


def test_a_brief_comes_from_standard_input(stage: Stage) -> None:
    command = [*PROGRAM, "agent", "run", "fixer", "-"]
    for brief, code, words in (("add\ntwo\n", 0, "+add"), (" \n", 2, "the brief is empty")):
        done = subprocess.run(
            command, cwd=stage.root, env=environment(), input=brief, capture_output=True, text=True, check=False
        )
        assert done.returncode == code
        assert words in done.stdout + done.stderr


def test_another_repository_is_meant_by_its_folder(stage: Stage, tmp_path: Path) -> None:
    other = Stage(tmp_path / "other")
    (stage.root / "deep").mkdir()
    told = other.becket("agent", "run", "fixer", "add two", "--in", str(stage.root / "deep")).out
    assert "changed: 2 paths differ" in told
    assert other.json("runs", "list") == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whoever_interrupts_a_call_ends_everything_it_started(stage: Stage, how: signal.Signals) -> None:
    """L19: nothing of it goes on, and the journal says so."""
    process, run_id = slow_at_work(stage)
    wait_for(lambda: len(sleepers(stage)) == 2)
    process.send_signal(how)  # type: ignore[attr-defined]
    wait_for(lambda: not sleepers(stage))
    ended = stage.end(process)  # type: ignore[arg-type]
    assert ended.code == 130
    assert f"{run_id} is cancelled; everything it started is gone" in ended.err
    whole = stage.json("runs", "show", run_id)
    assert whole["run"]["status"] == "cancelled"
    assert whole["calls"][0]["end"]["outcome"] == "cancelled"


def test_a_call_whose_command_was_killed_counts_for_the_time_that_it_worked(stage: Stage) -> None:
    """L23: in silence, too; until its folder is looked through, it counts for all that it was allowed."""
    process, run_id = slow_at_work(stage)
    time.sleep(4)
    process.kill()
    stage.end(process)
    stage.becket("runs", "cancel", run_id)
    assert stage.json("agent", "spend", "--by", "run")["rows"][0]["open"] == 1
    stage.becket("agent", "run", "idle", "put in order what was left", code=1)
    killed = next(row for row in stage.json("agent", "spend", "--by", "run")["rows"] if row["key"] == run_id)
    assert (killed["open"], 2 <= killed["seconds"] <= 60) == (0, True), killed


def test_an_agent_at_work_is_watched_and_told(stage: Stage) -> None:
    process, run_id = slow_at_work(stage)
    told = stage.json("agent", "tell", run_id, "hurry up")
    assert (told["agent"], told["delivered"]) == ("slow", "next_brief")
    (inbox,) = stage.state.glob(f"runs/{run_id}/calls/*/inbox")
    assert [path.read_text() for path in inbox.iterdir()] == ["hurry up"]
    watcher = stage.start("agent", "attach", run_id, "--say", "look here")
    assert watcher.stdout is not None
    assert "says      at work" in watcher.stdout.readline()
    assert sorted(path.read_text() for path in inbox.iterdir()) == ["hurry up", "look here"]
    stage.becket("runs", "cancel", run_id)
    seen = stage.end(watcher)
    assert seen.code == 0
    assert "ends" in seen.out
    assert f"{run_id}: cancelled" in seen.err
    assert stage.end(process).code == 1  # type: ignore[arg-type]  # cancelled by somebody else: an outcome
    kept = stage.becket("agent", "attach", run_id).out
    assert "says      at work" in kept
    ended = stage.becket("agent", "tell", run_id, "anybody?", code=2)
    assert "has ended (cancelled)" in ended.err
    assert "no run" in stage.becket("agent", "attach", "run_none", code=2).err


def test_what_is_typed_at_the_terminal_is_told(stage: Stage) -> None:
    process, run_id = slow_at_work(stage)
    pid, terminal = pty.fork()
    if pid == 0:
        as_in_a_terminal()
        os.chdir(stage.root)
        os.execve(PROGRAM[0], [*PROGRAM, "agent", "attach", run_id], environment())
    seen = b""
    while b"at work" not in seen:
        seen += os.read(terminal, 4096)
    os.write(terminal, b"bitte schneller\n")
    (inbox,) = stage.state.glob(f"runs/{run_id}/calls/*/inbox")
    wait_for(lambda: [path.read_text() for path in inbox.glob("*.txt")] == ["bitte schneller"])
    os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 130
    os.close(terminal)
    assert stage.json("runs", "show", run_id)["run"]["status"] == "running"  # leaving does not stop it
    stage.becket("runs", "cancel", run_id)
    stage.end(process)  # type: ignore[arg-type]


def test_what_agents_used_is_in_every_place_where_it_is_looked_for(stage: Stage) -> None:
    run_id = stage.json("agent", "run", "fixer", "add two")["run"]["run_id"]
    stage.becket("agent", "run", "bad", "x", code=1)
    spent = stage.json("agent", "spend", "--by", "agent")
    assert {row["key"]: row["outcomes"] for row in spent["rows"]} == {"fixer": {"changed": 1}, "bad": {"crashed": 1}}
    assert spent["total"]["unpriced"] == 2
    assert {(one["scope"], one["period"], one["kind"]) for one in spent["budgets"]} == {
        ("", "day", "agent_time"),
        ("once", "month", "tokens"),
    }
    table = stage.becket("agent", "spend").out
    assert "1 changed, 1 crashed" in table
    assert "$?" in table
    assert "today: " in table
    assert "of 10m00s left" in table
    assert "this month, once: 1,000 tokens of 1,000 tokens left" in table
    assert "today 2 calls" in stage.becket("status").out
    assert stage.json("status")["spent"]["calls"] == 2
    assert "fixer  changed" in stage.becket("runs", "show", run_id, "--all").out
    assert "Calls of agents" in stage.becket("runs", "report", run_id).out
    stage.becket("runs", "report", run_id, "--html", "report.html")
    assert "Calls of agents" in (stage.root / "report.html").read_text()
    assert stage.json("runs", "report", run_id)["calls"][0]["outcome"] == "changed"


def test_agents_are_listed_and_probed(stage: Stage) -> None:
    listed = {item["name"]: item for item in stage.json("agent", "list")}
    assert (listed["fixer"]["driver"], listed["fixer"]["limits"]["time"]) == ("command", "1m")
    assert "fixer" in stage.becket("agent", "list").out
    good = stage.becket("doctor", "--probe", "--agent", "idle").out
    assert "idle: nothing done in " in good
    found = json.loads(stage.becket("doctor", "--probe", "--agent", "bad", "--json", code=1).out)
    (probe,) = found["probes"]
    assert (probe["agent"], probe["works"]) == ("bad", False)
    assert probe["calls"][0]["end"]["outcome"] == "crashed"
    assert "no agent is called 'nobody'" in stage.becket("doctor", "--probe", "--agent", "nobody", code=2).err
    assert len(stage.json("runs", "list", "--loop", "once")) == 2
