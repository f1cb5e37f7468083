"""`becket watch`, `becket run --base-sha` and the reports that ended runs leave, with the real program."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_stage import Stage, wait_for

CONFIG = """\
version: 1
autonomy: merge
gates:
  fast:
    - {name: word, run: "grep -q good word.txt"}
sandbox: {use: none}
"""

LOOK = """\
version: 1
loop_id: look
goal: Know whether a commit is green.
trigger:
  - commit: {branch: main}
  - manual: {}
subject: "{branch}@{sha}"
max_iterations: 1
deadline: 10m
autonomy: release
stop_conditions: [base.fast_green]
phases:
  discover:
    objective: Look.
    actions:
      - {id: base, uses: git.read_base}
      - {id: bf, uses: gate.run, with: {of: base, gate: fast, at: "{base.sha}", by: "{base.sha}"}}
  verify:
    objective: Nothing to doubt.
    verifiers: [{id: fine, run: "true", in: scratch}]
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "repo", "greet")
    stage.write("becket.yaml", CONFIG)
    stage.write(".becket/loops/look.yaml", LOOK)
    stage.write("word.txt", "good\n")
    stage.commit("good")
    stage.write("word.txt", "bad\n")
    stage.commit("bad")
    return stage


def test_a_run_is_about_the_commit_that_base_sha_names(stage: Stage) -> None:
    good = stage.git("rev-parse", "HEAD^").strip()
    for name in (good[:8], good.upper(), "HEAD^"):
        run = stage.json("run", "look", "--base-sha", name, "--follow")["run"]
        assert (run["subject"]["name"], run["status"]) == (f"main@{good}", "completed")


def test_on_another_branch_it_says_which_one_it_is_about_and_how_to_ask_about_this_one(stage: Stage) -> None:
    stage.git("checkout", "-q", "-b", "feature")
    bad = stage.git("rev-parse", "HEAD").strip()
    said = stage.becket("run", "look", code=1).err
    assert "This is about main" in said
    assert "--base-sha" not in said, "main holds this commit, so that would be about main again"
    stage.write("word.txt", "worse\n")
    stage.commit("worse")
    said = stage.becket("run", "look", code=1).err
    assert f"main@{bad[:8]}" not in said
    command = "becket run look --base-sha HEAD"
    assert f"not about feature, which is checked out here; for that one: {command}.\n" in said
    run = stage.json(*command.split()[1:], "--follow", code=1)["run"]
    assert run["subject"]["name"] == f"feature@{stage.git('rev-parse', 'HEAD').strip()}"


def test_a_queued_run_of_a_paused_loop_is_told_what_keeps_it(stage: Stage) -> None:
    stage.becket("pause", "look")
    stage.becket("run", "look", "--base-sha", "HEAD^")
    text = stage.becket("status").out
    assert ", and look is paused; let go: becket pause look --off" in text
    assert "go on with it" not in text
    assert "Nothing runs what is queued" not in text
    stage.becket("pause", "look", "--off")
    text = stage.becket("status").out
    assert "nobody works on it; go on with it: becket runs show" in text
    assert "Nothing runs what is queued: `becket up --detach`." in text


def test_a_becket_yaml_that_nobody_committed_is_told_to_be_committed(stage: Stage) -> None:
    stage.git("rm", "-q", "--cached", "becket.yaml")
    stage.git("commit", "-q", "-m", "without it")
    said = stage.becket("run", "look", code=1)
    assert "`git add becket.yaml` and commit it (`becket init` writes one where there is none)" in said.out + said.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("greet", "--base-sha", "HEAD"), "greet is not about a commit"),
        (("look", "--base-sha", "HEAD~99"), "there is no commit 'HEAD~99' here"),
        (("look", "--base-sha", "@{x..y"), "there is no commit '@{x..y' here"),
        (("look", "--base-sha", "0000000"), "there is no commit '0000000' here"),
        (("look", "--base-sha", "0000", "--subject", "main@0000"), "give one of them"),
    ],
)
def test_a_wrong_base_sha_says_what_to_do_with_exit_code_2(stage: Stage, arguments: tuple[str, ...], said: str) -> None:
    assert said in stage.becket("run", *arguments, code=2).err


def test_an_ended_run_leaves_reports_and_show_says_where(stage: Stage) -> None:
    """L22: also where it went badly."""
    run = stage.json("run", "look", code=1)["run"]
    folder = stage.state / "reports"
    names = {f"{name}.{ending}" for name in (run["run_id"], "latest") for ending in ("html", "json", "md")}
    assert {path.name for path in folder.iterdir()} == names
    shown = stage.becket("runs", "show", run["run_id"], "--all")
    assert f"Its report: {folder / run['run_id']}.html" in shown.err
    assert "base fast red" in shown.out
    assert "step word: " in shown.out
    stage.json("run", "greet")
    assert {path.name for path in folder.iterdir()} == names, "a run that judged no commit leaves no report"


def test_watch_is_started_looked_at_and_stopped_as_one_thing(stage: Stage) -> None:
    """L18: how far it may go, and why no further, is always in sight. L30: stop means stopped."""
    down = stage.becket("watch", "status", code=1).out
    assert "daemon    down" in down
    assert "There is no log yet" in stage.becket("watch", "logs").err
    first = stage.json("watch", "start")
    try:
        status = stage.json("watch", "status")
        assert status["daemon"] == first["pid"]
        assert status["autonomy"]["allowed"] == "propose"
        assert status["autonomy"]["configured"] == "merge"
        loops = {item["loop_id"]: item for item in status["loops"]}
        assert (loops["look"]["branches"], loops["look"]["autonomy"]) == (["main"], "propose")
        assert "greet" not in loops
        text = stage.becket("watch", "status").out
        assert (
            "becket.yaml says merge; the sandbox here is none and does not hold files and network and processes" in text
        )
        wait_for(lambda: f"daemon {first['pid']} begins" in stage.becket("watch", "logs", "-n", "20").out)
        second = stage.json("watch", "restart")
        assert second["pid"] != first["pid"]
    finally:
        stopped = stage.json("watch", "stop")
    assert stopped["daemon"] == second["pid"]
    assert stage.json("watch", "status", code=1)["daemon"] is None


def test_where_the_file_does_not_load_observe_is_in_force_and_everything_can_be_read(stage: Stage) -> None:
    first = stage.json("watch", "start")
    try:
        stage.write("becket.yaml", "version: 1\nautonmy: mergee\n")
        wait_for(lambda: stage.json("status")["autonomy"]["allowed"] == "observe")
        for verb in (("status",), ("watch", "status")):
            told = stage.becket(*verb).out
            assert "observe (becket.yaml does not load)" in told
            assert str(first["pid"]) in told
        loops = {item["loop_id"]: item for item in stage.json("watch", "status")["loops"]}
        assert loops["look"]["autonomy"] == "observe"
        assert "greet" in stage.becket("loops", "list").out
        assert "loop_id: greet" in stage.becket("loops", "show", "greet").out
        (alert,) = stage.json("status")["alerts"]
        assert "nothing goes further than `observe`" in alert["text"]
    finally:
        stage.json("watch", "stop")
    assert "observe (becket.yaml does not load)" in stage.becket("status").out


def test_logs_follow_what_the_daemon_writes(stage: Stage) -> None:
    log = stage.state / "logs" / "daemon.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\n")
    follower = stage.start("watch", "logs", "-f", "-n", "1")
    try:
        assert follower.stdout is not None
        assert follower.stdout.readline() == "two\n"
        with log.open("a") as file:
            file.write("three\x1b[31m\n")
        assert follower.stdout.readline() == "three\n"
        log.rename(log.with_suffix(".log.1"))
        log.write_text("four\n")
        assert follower.stdout.readline() == "four\n"
    finally:
        follower.kill()
        follower.communicate()
