"""The fake codex behaves as codex 0.166.0 was seen to, traps included."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from fake_stage import Stage

from becket.testing.model import (
    Call,
    Cut,
    Edit,
    Hang,
    Loop,
    Refuse,
    Say,
    ScriptedModel,
    Shell,
    Status,
    Step,
    Think,
    Tokens,
    Truncate,
    Write,
)


def test_a_turn_with_a_command_and_edits(tmp_path: Path) -> None:
    edits = (Edit("calc.py", "    return a - b", "    return a + b"), Write("n/x", "1\n"))
    with ScriptedModel([Think("hm"), Shell("echo hi; exit 3"), *edits, Say("done")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.codex())
        model.check(finished=True)
        assert model.saw("Process exited with code 3")
    assert done.code == 0
    began = ["thread.started", "turn.started", "item.completed reasoning"]
    command_run = ["item.started command_execution", "item.completed command_execution"]
    changes = ["item.started file_change", "item.completed file_change"] * 2
    assert done.kinds == [*began, *command_run, *changes, "item.completed agent_message", "turn.completed"]
    command, change = done.events[4]["item"], done.events[6]["item"]
    assert (command["exit_code"], command["status"], command["aggregated_output"]) == (3, "failed", "hi\n")
    assert change["changes"] == [{"path": str(stage.tree / "calc.py"), "kind": "update"}]
    assert "a + b" in (stage.tree / "calc.py").read_text()
    assert (stage.tree / "n/x").read_text() == "1\n"


def test_an_unknown_model_gets_a_harmless_error_item_and_no_patch_tool(tmp_path: Path) -> None:
    with ScriptedModel([Edit("calc.py", "a - b", "a + b"), Say("done")]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.codex(model="scripted"))
        assert model.requests[0].tools == ("exec_command",)
    assert (done.code, done.events[1]["item"]["type"], done.last["type"]) == (0, "error", "turn.completed")
    assert "a + b" in (stage.tree / "calc.py").read_text()


def test_usage_is_of_the_whole_thread_and_a_resumed_one_tells_the_model_everything(tmp_path: Path) -> None:
    with ScriptedModel([Shell("echo one"), Say("one"), Say("two")], usage=Tokens(100, 10, 40)) as model:
        stage = Stage(tmp_path, model)
        first = stage.run(stage.codex())
        thread = first.events[0]["thread_id"]
        second = stage.run(stage.codex("resume", thread, prompt="and now"))
        model.check(finished=True)
        assert model.requests[-1].prompts[-2:] == ("fix it", "and now")
    assert second.events[0]["thread_id"] == thread
    used = {"cached_input_tokens": 80, "cache_write_input_tokens": 0, "reasoning_output_tokens": 0}
    assert first.last["usage"] == {"input_tokens": 200, "output_tokens": 20, **used}
    assert second.last["usage"]["input_tokens"] == 300


def test_resuming_an_unknown_thread_fails_and_a_name_that_is_no_id_begins_a_new_one(tmp_path: Path) -> None:
    with ScriptedModel([Say("new")]) as model:
        stage = Stage(tmp_path, model)
        unknown = stage.run(stage.codex("resume", "01a1e238-a346-7a23-9d3f-d4428acd8300"))
        assert (unknown.code, unknown.out) == (1, "")
        assert "no rollout found" in unknown.told
        assert stage.run(stage.codex("resume", "nonsense")).last["type"] == "turn.completed"


def test_a_thread_whose_turn_was_killed_can_be_resumed(tmp_path: Path) -> None:
    with ScriptedModel([Shell("touch began; exec tail -f /dev/null"), Say("again")]) as model:
        stage = Stage(tmp_path, model)
        with stage.started(stage.codex(prompt="go")) as running:
            feed(running)
            wait_for(stage.tree / "began")
            running.terminate()
            out = running.stdout.read() if running.stdout else ""
            assert running.wait(60) == -signal.SIGTERM
        assert "turn.completed" not in out
        thread = out.split('"thread_id":"')[1].split('"')[0]
        assert stage.run(stage.codex("resume", thread, prompt="go on")).code == 0
        model.check(finished=True)  # the call without a result was answered with "aborted"


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Status(400), '{"error"'),
        (Status(401), "unexpected status 401 Unauthorized: Incorrect API key"),
        (Status(429, retry_after=7), "exceeded retry limit, last status: 429 Too Many Requests"),
        (Status(429, kind="quota"), "Quota exceeded."),
        (Status(429, kind="usage_limit", resets_at=1_900_000_000), "You’ve hit your usage limit."),
        (Status(500), "We’re currently experiencing high demand"),
        (Status(500, midstream=True), "stream disconnected before completion: The server had an error"),
        (Cut(), "stream disconnected before completion: Transport error"),
        (Truncate("I will"), "Incomplete response returned, reason: max_output_tokens"),
    ],
    ids=["400", "401", "429", "quota", "usage limit", "500", "midstream", "cut", "truncated"],
)
def test_failures_end_in_turn_failed_with_exit_1(tmp_path: Path, step: Step, said: str) -> None:
    with ScriptedModel([step]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.codex())
        assert len(model.requests) == 1
    assert (done.code, done.last["type"]) == (1, "turn.failed")
    assert done.last["error"]["message"].startswith(said)


def test_a_refusal_is_a_completed_turn_without_a_word(tmp_path: Path) -> None:
    """L20: exit 0, and nothing says that the model refused."""
    with ScriptedModel([Refuse()]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.codex())
    assert (done.code, done.kinds) == (0, ["thread.started", "turn.started", "turn.completed"])


def test_retries_are_told_as_errors_that_are_none(tmp_path: Path) -> None:
    """A 429 is tried again where the server says when, and only there."""
    with ScriptedModel([Status(500), Status(429, retry_after=1), Say("at last"), Status(429)]) as model:
        stage = Stage(tmp_path, model)
        done = stage.run(stage.codex(retries=1))
        assert stage.run(stage.codex(retries=1)).last["type"] == "turn.failed"
    assert (done.code, done.last["type"]) == (0, "turn.completed")
    told = [event["message"].partition(" (")[0] for event in done.events if event["type"] == "error"]
    assert told == ["Reconnecting... 1/1"]


def test_a_tool_that_does_not_exist_does_not_end_the_turn(tmp_path: Path) -> None:
    with ScriptedModel([Call("nosuch"), Say("oh")]) as model:
        stage = Stage(tmp_path, model)
        assert stage.run(stage.codex()).code == 0
        assert model.saw("unsupported call: nosuch")


def test_it_asks_for_a_key_a_repository_a_prompt_and_known_options(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        stage = Stage(tmp_path, model)
        keyless = stage.run(stage.codex(), MODEL_KEY="")
        assert (keyless.code, keyless.last["error"]["message"]) == (1, "Missing environment variable: `MODEL_KEY`.")
        assert stage.run(stage.codex(prompt="-")).told.endswith("No prompt provided via stdin.\n")
        unknown = stage.run(stage.codex("--nosuch"))
        assert (unknown.code, unknown.told.splitlines()[0]) == (2, "error: unexpected argument '--nosuch' found")
        (stage.tree / ".git").rmdir()
        assert stage.run(stage.codex()).told.startswith("Not inside a trusted directory")
        assert stage.run([str(stage.programs / "codex"), "--version"]).out == "codex-cli 0.166.0\n"


def test_skills_below_home_are_told_to_the_model_and_hidden_variables_not_to_commands(tmp_path: Path) -> None:
    with ScriptedModel([Shell("echo key=$MODEL_KEY."), Say("x")]) as model:
        stage = Stage(tmp_path, model)
        skill = stage.home / ".agents/skills/tdd/SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\nname: tdd\ndescription: Tests come first.\n---\n")
        stage.run(stage.codex("-c", 'shell_environment_policy.exclude=["MODEL_KEY"]'))
        assert model.saw("tdd: Tests come first.")
        assert model.saw("key=.\n")


def test_an_endless_loop_ends_only_by_a_signal_and_a_command_of_another_session_lives_on(tmp_path: Path) -> None:
    """L19: killing the program is not containment."""
    stray = "setsid sh -c 'echo $$ > pid; exec tail -f /dev/null' >/dev/null 2>&1 & until test -s pid; do :; done"
    with ScriptedModel([Shell(stray), Loop(Shell("true"))]) as model:
        stage = Stage(tmp_path, model)
        with stage.started(stage.codex()) as running:
            feed(running)
            assert model.wait_for(requests=4)
            running.send_signal(signal.SIGINT)
            assert running.wait(60) == 1
        pid = int((stage.tree / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
        os.kill(pid, signal.SIGKILL)


def test_a_hanging_model_keeps_it_waiting(tmp_path: Path) -> None:
    with ScriptedModel([Hang()]) as model:
        stage = Stage(tmp_path, model)
        with stage.started(stage.codex()) as running:
            feed(running)
            assert model.wait_for(requests=1)
            assert running.poll() is None


def feed(running: subprocess.Popen[str]) -> None:
    """It reads what stands on standard input before it begins."""
    assert running.stdin is not None
    running.stdin.close()


def wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path.name} did not come"
        time.sleep(0.01)
