"""Why a run ended or waits, in words: whatever shows a reason to a person asks here. Standard library only."""

from __future__ import annotations

ALREADY_SO = "already_so"
"""Nothing was left to do for a run when its turn came."""

REASONS = {
    "stop_conditions_met": "every stop condition holds",
    "stop_conditions_unmet": "the stop conditions do not hold yet",
    "dry_run": "the dry run is over",
    "dry_run_failed": "an action failed in the dry run",
    "action_failed": "an action failed that the loop cannot do without",
    "internal_error": "Becket itself failed",
    "invalid_spec": "the stored spec cannot be read",
    "superseded": "a newer start took its place",
    ALREADY_SO: "what it was started for was settled before its turn came",
    "wait_expired": "what it waited for did not come in time",
    "iterations_exhausted": "the iterations are used up and the stop conditions are not proven",
    "deadline_passed": "its deadline passed",
    "budget_exhausted": "a budget is used up",
    "no_progress": "an iteration brought nothing new",
    "effect_unknown": "whether an effect happened cannot be known",
    "effect_refused": "the door refused an effect",
    "observe_only": "the loop may only observe, and its stop conditions are not proven",
    "cancelled": "a person cancelled it",
    "main_dirty": "uncommitted work is in the way",
    "main_busy": "another git command is at work",
    "declined_before": "the agent made the same change again that a person had declined",
    "repair_ready": "a proven repair waits for a person",
    "proposed": "a proven repair waits for a person",
    "no_agent": "no agent is configured that could repair it",
    "agent_not_found": "the agent's program is not found, or may not be executed",
    "agent_gave_up": "the agent changed nothing any more",
    "fix_exhausted": "no repair was proven",
    "never_green": "what is red was never green here",
    "environment_broken": "the machine, the set-up or becket.yaml is at fault",
    "undecided": "the same tests pass and fail",
    "contended": "a proven repair waits for a person, as the branch kept moving",
    "promote_refused": "a proven repair could not be taken over",
    "release_rolled_back": "the release was rolled back",
    "release_failed": "the release failed",
    "candidate.guard_refused": "the guard refused the change",
    "candidate.holdout_waits": "the hold-out checks cannot be written yet",
    "change.asked": "a person is asked about a change of the tests",
    "change.denied": "a change of the tests was denied",
    "change.expired": "nobody decided about a change of the tests",
    "change.revoked": "the approval of a change of the tests was taken back",
    "agent.quota_wait": "the agent's quota is used up; it goes on by itself when the quota is back",
    "agent.not_found": "the agent's program is not found, or may not be executed: see `becket doctor`",
    "agent.auth_missing": "the agent has no login or key: log in as yourself or set its key, see `becket doctor`, "
    "then retry",
    "agent.limit_reached": "the agent hit a limit of its own; its work is saved: `becket rescue list`",
    "agent.refused": "the agent refused",
    "agent.model_error": "the agent's model failed",
    "model_unavailable": "the agent's model does not work, however often it was asked; when it does, retry, or name "
    "another agent as `fallback`",
    "agent.crashed": "the agent ended without a result",
    "agent.cancelled": "the agent was stopped",
}
WAITS = {
    "agent.quota_wait": "the agent's quota",
    "agent.model_error": "the agent's model to work again",
    "candidate.holdout_waits": "hold-out checks",
    "change.asked": "a person's word on its change of the tests",
    "main_dirty": "a clean work tree",
    "main_busy": "another git command to end",
}
"""By condition: what a run waits for."""

VERDICTS = {"fail": "{what} failed", "undecided": "{what} could not tell", "pass": "{what} passed"}


def reason_words(code: str) -> str:
    """A loop's own condition reads as what it is called."""
    if code in REASONS:
        return REASONS[code]
    what, _, verdict = code.rpartition(".")
    return VERDICTS[verdict].format(what=_spaced(what)) if what and verdict in VERDICTS else _spaced(code)


def wait_words(code: str) -> str:
    return WAITS.get(code) or _spaced(code)


def _spaced(code: str) -> str:
    return code.replace(".", " ").replace("_", " ")
