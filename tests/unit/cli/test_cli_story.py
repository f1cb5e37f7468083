"""A run's story as people see it."""

from __future__ import annotations

import time

import pytest
from tales import BEGAN, LOG, TESTS, condition, decision, run, step, story, text_of, verifier

from becket.cli.story import ASCII, render_story
from becket.kernel.contract.effect import Effect, EffectCall, EffectState, Origin
from becket.kernel.contract.handoff import Approval, Handoff, HandoffState
from becket.kernel.contract.run import RunStatus, StepState
from becket.kernel.contract.spec import EffectClass


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


BASE = step("discover", "base", 0.02)
FIX = step("act", "fix", 65.0, outputs={"patch": "--- a\n+++ b\n"}, conditions=(condition("fixed", exit_code=0),))


def test_a_completed_run_is_a_timeline_with_durations_at_the_right() -> None:
    seen = verifier("good", "pass", exit_code=0, log=LOG, end="exited", said="")
    ended = run(status=RunStatus.completed, reason="stop_conditions_met", ended_at=BEGAN + 70)
    tale = story(BASE, TESTS, FIX, seen, decision("completed", "stop_conditions_met"), run=ended)
    assert text_of(render_story(tale)) == (
        "heal  main@aaaaaaaa                                         completed in 1m10s\n"
        "run_1  manual by ann  22:13:20\n"
        "\n"
        "✓ discover   Know whether it is green.                                   2.02s\n"
        "  ├ ✓ base                                                               0.02s\n"
        "  └ ✓ tests  base.red  (exit code 1, log 3fa2c91a)                       2.00s\n"
        "✓ act        One smallest change.                                        1m05s\n"
        "  └ ✓ fix    fixed  (exit code 0)                                        1m05s\n"
        "✓ verify     See it.                                                     1.25s\n"
        "  └ ✓ good   pass  (exit code 0, log 3fa2c91a)                           1.25s\n"
        "✓ decide\n"
        "  └ → completed: every stop condition holds\n"
        "\n"
        "outputs\n"
        "  fix.patch  --- a  (2 lines)\n"
        "\n"
        "receipts\n"
        f"  {tale.receipts[0].digest[:8]}  discover.tests  exit 1  log 3fa2c91a                         2.00s"
    )


def test_failures_say_why_and_later_phases_are_marked_as_left_out() -> None:
    broken = step("act", "fix", 0.1, StepState.failed, error_kind="exit_2", error="no such file", attempts=3)
    ended = run(
        status=RunStatus.failed, reason="action_failed", detail={"errors": ["act.fix: no such file"]}, ended_at=BEGAN
    )
    text = text_of(render_story(story(BASE, TESTS, broken, run=ended)))
    assert "✗ act        One smallest change." in text
    assert "└ ✗ fix    exit_2: no such file; 3 attempts" in text
    assert "– verify     See it." in text
    assert "why\n  an action failed that the loop cannot do without\n  errors: act.fix: no such file" in text


def test_a_skipped_step_says_which_condition_was_missing() -> None:
    skipped = step("act", "fix", 0.0, StepState.skipped, note="not base.red", attempts=0)
    assert "· fix    skipped: not base.red" in text_of(render_story(story(BASE, TESTS, skipped)))


def test_an_undecided_verifier_does_not_look_like_a_failed_one() -> None:
    assert "? good" in text_of(render_story(story(BASE, verifier("good", "undecided", error="it crashed"))))


APPROVAL = Approval(
    approval_id="apr_1", run_id="run_1", question="Change the test?\nReally?", bound_to="b" * 64, role="approver",
    asked_at=BEGAN, expires_at=BEGAN + 60,
)  # fmt: skip


def test_an_open_question_shows_the_commands_that_answer_it() -> None:
    waiting = run(status=RunStatus.waiting, waiting_on=("approval.asked",))
    assert text_of(render_story(story(run=waiting, receipts=(), approvals=(APPROVAL,))), 60) == (
        "heal  main@aaaaaaaa                             waits, 3.00s\n"
        "run_1  manual by ann  22:13:20\n"
        "\n"
        "╭─ apr_1 waits for a decision ─────────────────────────────╮\n"
        "│ Change the test?                                         │\n"
        "│ Really?                                                  │\n"
        "│ for approver, about bbbbbbbb, until 22:14:20             │\n"
        "│ becket approve apr_1                                     │\n"
        "│ becket deny apr_1                                        │\n"
        "╰──────────────────────────────────────────────────────────╯"
    )


def test_a_wait_for_the_world_shows_what_wakes_it_and_how_to_give_it_up() -> None:
    waiting = run(status=RunStatus.waiting, waiting_on=("main_dirty",), waits_since={"main_dirty": BEGAN})
    text = text_of(render_story(story(run=waiting)))
    told_wait = " ".join(text.replace("│", " ").split())
    assert "for a clean work tree, wakes on any change of it, at most 1d00h, since 22:13:20" in told_wait
    assert "becket drop run_1" in text


@pytest.mark.parametrize(("state", "verb"), [(HandoffState.open, "take"), (HandoffState.taken, "done")])
def test_a_handoff_names_owner_reason_and_the_next_command(state: HandoffState, verb: str) -> None:
    handoff = Handoff(
        handoff_id="hnd_1", run_id="run_1", loop_id="heal", subject="s", owner="bob", reason="no_progress",
        next_step="look at it", state=state, created_at=BEGAN, updated_at=BEGAN,
    )  # fmt: skip
    text = text_of(
        render_story(story(run=run(status=RunStatus.ready_for_handoff, ended_at=BEGAN), handoffs=(handoff,)))
    )
    assert "hnd_1 for bob" in text
    assert "an iteration brought nothing new" in text
    assert f"becket handoffs {verb} hnd_1" in text


def test_effects_are_shown_with_their_state_never_as_sent() -> None:
    effect = Effect(
        key="k", origin=Origin(run_id="run_1"), call=EffectCall(name="http.post", target="https://x.example"),
        digest="d", class_=EffectClass.blind, state=EffectState.unknown, attempts=1, settle_at=0.0,
        reason="no answer", created_at=BEGAN, updated_at=BEGAN,
    )  # fmt: skip
    assert "  http.post  https://x.example  unknown  no answer" in text_of(render_story(story(effects=(effect,))))


def test_text_of_commands_cannot_steer_the_terminal() -> None:
    """L24: logs and subjects are untrusted."""
    nasty = step("act", "fix", state=StepState.failed, error_kind="exit_1", error="\x1b[2Jgone\x07\u202e\x9b31m")
    text = text_of(render_story(story(BASE, nasty, run=run(by="\x1b]0;title\x07eve"))))
    assert not set(text) & {"\x1b", "\x07", "\u202e", "\x9b"}
    assert "gone" in text
    assert "by eve" in text


def test_without_unicode_the_marks_are_ascii() -> None:
    text = text_of(render_story(story(BASE, TESTS, approvals=(APPROVAL,)), ASCII))
    assert text.isascii()
    assert "+ discover" in text
