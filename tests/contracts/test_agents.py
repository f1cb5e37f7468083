"""Contract of the agents' drivers: how a call ended is told from facts, whatever the program claims (L20, L23)."""

from __future__ import annotations

import time

import pytest
from agent_stage import (
    CLAUDE,
    CODEX,
    GEMINI,
    IN_LANDLOCK,
    REPAIR,
    AgentStage,
    Kind,
    kinds,
    model,
    repairs,
    shell,
    stage,
)

from becket.kernel.contract.agent import AgentEventKind, AgentOutcome, CallState, Limits
from becket.kernel.contract.process import SandboxKind
from becket.testing.model import Cut, Loop, Refuse, Say, Shell, Status, Think, Truncate, Write

__all__ = ["model", "stage"]

UNCONTAINED = tuple(Kind(program, True, SandboxKind.none) for program in ("codex", "claude", "gemini"))
ALL = kinds(CODEX, CLAUDE, GEMINI, *IN_LANDLOCK, *UNCONTAINED, bare=True)
"""In every sandbox: each of them gives other flags to the program."""

HELD = kinds(CODEX, CLAUDE, GEMINI)
QUICK = kinds(CODEX, CLAUDE)
"""The real gemini takes ten times as long: it plays what it may do differently."""


@pytest.mark.parametrize("kind", ALL)
def test_an_edit_is_made_told_and_judged_by_the_work_tree(stage: AgentStage) -> None:
    done = stage.call(Think("Easy."), *repairs())
    assert (done.judged.outcome, done.judged.changed_paths) == (AgentOutcome.changed, ("value.txt",)), done
    assert (stage.tree / "value.txt").read_text() == "good\n"
    assert done.report.ended
    assert done.report.error == ""
    assert "good now" in done.report.said
    assert stage.model.saw("(suite)")
    told = [event for event in done.events if event.kind in (AgentEventKind.edit, AgentEventKind.tool_call)]
    assert told[-1].state is CallState.done, told
    assert "value.txt" in " ".join((*told[-1].paths, told[-1].text))
    assert done.events[-1].kind is AgentEventKind.end
    stage.model.check(finished=True)


@pytest.mark.parametrize("kind", HELD)
def test_an_end_without_a_change_is_nothing_done_whatever_it_says(stage: AgentStage) -> None:
    """L20: exit code 0, a result and the word "fixed"."""
    done = stage.call(Say("All tests pass now, everything is fixed."))
    assert done.report.ended
    assert done.judged.outcome is AgentOutcome.nothing_done


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, fakes=("codex",)))
def test_new_files_alone_are_a_change(stage: AgentStage) -> None:
    """L5."""
    done = stage.call(Write("notes/new.txt", "new\n"), Say("Done."))
    assert (done.judged.outcome, done.judged.changed_paths) == (AgentOutcome.changed, ("notes/new.txt",))


@pytest.mark.parametrize("kind", HELD)
def test_a_wrong_key_is_a_missing_login(stage: AgentStage) -> None:
    """And found out soon: it is no reason to try again for minutes."""
    done = stage.call(Loop(Status(401)))
    assert done.judged.outcome is AgentOutcome.auth_missing, done.report
    assert done.judged.reason
    assert done.report.usage.seconds < 25


@pytest.mark.parametrize("kind", QUICK)
def test_a_variable_that_is_not_set_is_a_missing_login_and_starts_nothing(
    stage: AgentStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SUITE_MODEL_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name)
    done = stage.call()
    assert done.judged.outcome is AgentOutcome.auth_missing
    assert "must be set where Becket runs" in done.judged.reason
    assert stage.watcher.seen == []


@pytest.mark.parametrize("kind", HELD)
def test_a_used_up_quota_is_waited_for_until_its_reset(stage: AgentStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """L23: the time that the vendor told is the run's, and the agent does not wait by itself."""
    resets_at = time.time() + 5_400
    more = {}
    if stage.kind.program == "claude":  # with a key it tells no time, with a subscription it does
        monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "login-of-the-person")
        more = {"key": "CLAUDE_CODE_OAUTH_TOKEN"}
    done = stage.call(Loop(Status(429, kind="usage_limit", resets_at=resets_at)), **more)
    assert done.judged.outcome is AgentOutcome.quota_wait, done.report
    if stage.kind.program == "gemini":  # its quota of a day is told without a time
        assert done.report.until is None
    else:
        assert done.report.until == pytest.approx(resets_at, abs=90)
    assert done.report.usage.seconds < 25


@pytest.mark.parametrize("kind", QUICK)
def test_a_rate_limit_with_a_long_retry_after_is_the_runs_to_wait_for(stage: AgentStage) -> None:
    done = stage.call(Loop(Status(429, kind="rate", retry_after=1_200)), limits=Limits(seconds=8))
    assert done.judged.outcome is AgentOutcome.quota_wait, done.report
    told = time.time() + 1_200 if stage.kind.program == "gemini" else None  # the others do not pass it on
    assert done.report.until == (told and pytest.approx(told, abs=60))


@pytest.mark.parametrize("kind", kinds(CODEX, fakes=("codex",)))
def test_a_rate_limit_with_a_short_retry_after_is_left_to_codex(stage: AgentStage) -> None:
    """It waits by itself: to stop it meanwhile would throw its work away."""
    done = stage.call(Status(429, kind="rate", retry_after=12 if stage.kind.real else 1), *repairs())
    assert done.judged.outcome is AgentOutcome.changed, done.report


@pytest.mark.parametrize("kind", HELD)
def test_a_failing_server_is_the_models_error(stage: AgentStage) -> None:
    """L20: claude calls this `subtype: success`."""
    done = stage.call(Loop(Status(500)))
    assert done.judged.outcome is AgentOutcome.model_error, done.report
    assert done.judged.reason


@pytest.mark.parametrize("kind", HELD)
def test_a_stream_that_is_always_cut_is_the_models_error_and_no_work(stage: AgentStage) -> None:
    """L20: gemini ends its turn as if all were well."""
    done = stage.call(Loop(Cut()), limits=Limits(seconds=40))
    assert done.judged.outcome is AgentOutcome.model_error, done.report


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("last", [Cut(), Truncate("")], ids=["cut", "empty"])
def test_an_answer_that_is_not_whole_after_an_edit_is_no_good_end(stage: AgentStage, last: Cut | Truncate) -> None:
    """L20: gemini ends its turn well for all that. What was done is there to be saved (L7)."""
    done = stage.call(REPAIR, Loop(last), limits=Limits(seconds=40))
    assert done.judged.outcome is AgentOutcome.model_error, done.report
    assert done.judged.changed_paths == ("value.txt",)


@pytest.mark.parametrize("kind", kinds(GEMINI, fakes=("gemini",)))
def test_an_empty_end_that_gemini_takes_for_an_answer_after_an_edit_is_a_good_end(stage: AgentStage) -> None:
    done = stage.call(REPAIR, Say(""))
    assert (done.judged.outcome, done.judged.changed_paths) == (AgentOutcome.changed, ("value.txt",)), done.report


@pytest.mark.parametrize("kind", QUICK)
def test_a_stream_that_is_cut_once_is_tried_again(stage: AgentStage) -> None:
    done = stage.call(Cut(), *repairs())
    assert done.judged.outcome is AgentOutcome.changed, done.report


@pytest.mark.parametrize("kind", HELD)
def test_an_answer_that_is_too_long_for_its_model_is_never_taken_for_work(stage: AgentStage) -> None:
    """Gemini does not tell how its model's answer ended: what there is of it is then all it has to say."""
    done = stage.call(Loop(Truncate()))
    untold = stage.kind.program == "gemini"
    assert done.judged.outcome is (AgentOutcome.nothing_done if untold else AgentOutcome.model_error), done.report
    assert done.judged.changed_paths == ()


@pytest.mark.parametrize("kind", QUICK)
def test_a_model_that_declines_has_not_worked(stage: AgentStage) -> None:
    done = stage.call(Loop(Refuse("I can't help with that.")))
    wanted = (AgentOutcome.refused, AgentOutcome.nothing_done)
    assert done.judged.outcome in (wanted if stage.kind.program != "claude" else wanted[:1]), done.report


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, GEMINI))
def test_a_failing_command_is_told_and_the_agent_goes_on(stage: AgentStage) -> None:
    done = stage.call(Shell("echo once >&2; exit 3"), *repairs())
    assert done.judged.outcome is AgentOutcome.changed
    assert any("once" in result for request in stage.model.requests for result in request.results)


@pytest.mark.parametrize("kind", [pytest.param(Kind("claude", sandbox=SandboxKind.none), id="fake-claude-bare"),
                                  pytest.param(Kind("claude", True, SandboxKind.none), id="real-claude-bare",
                                               marks=pytest.mark.agents)])  # fmt: skip
def test_a_tool_call_that_is_refused_is_told_and_no_work(stage: AgentStage) -> None:
    """Without a sandbox the agent's own rules are all there is: it runs no command unasked."""
    done = stage.call(*shell(f"touch {stage.decoy}/planted"))
    assert done.judged.outcome is AgentOutcome.refused, done.report
    assert "touch" in done.judged.reason
    assert CallState.refused in [event.state for event in done.events], done.events


@pytest.mark.parametrize("kind", [pytest.param(Kind("gemini", sandbox=SandboxKind.none), id="fake-gemini-bare"),
                                  pytest.param(Kind("gemini", True, SandboxKind.none), id="real-gemini-bare",
                                               marks=pytest.mark.agents)])  # fmt: skip
def test_an_acp_agent_is_not_let_write_outside_without_a_sandbox(stage: AgentStage) -> None:
    """Gemini asks before it writes into a folder of its own in HOME."""
    place = stage.agent_home / ".gemini" / "tmp" / stage.tree.name / "planted"
    done = stage.call(Write(str(place), "x"), Say("Done."))
    assert done.judged.outcome is AgentOutcome.refused, done.report
    assert "planted" in done.judged.reason
    assert CallState.refused in [event.state for event in done.events], done.events
    assert not place.exists()


@pytest.mark.parametrize("kind", kinds(GEMINI, fakes=()))
def test_what_gemini_declines_by_itself_is_told_and_no_work(stage: AgentStage) -> None:
    """L20: it does not ask, and calls a command that it did not run `completed`."""
    done = stage.call(Write(str(stage.decoy / "planted"), "x"), Shell("echo $(date) > value.txt"), Say("Done."))
    assert done.judged.outcome is AgentOutcome.refused, done.report
    assert ["planted" in done.report.refusals[0], done.report.refusals[1:]] == [True, ("echo $(date) > value.txt",)]
    assert [event.state for event in done.events].count(CallState.refused) == 2, done.events
