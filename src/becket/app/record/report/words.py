"""What is said at the end of a run: one sentence about what is so, and one command."""

from __future__ import annotations

MOVED_ON = "{branch} has moved on; {asked} is in {sha}, which is proven"
GREEN = "{branch} is green at {sha}"
REPAIRED = "{branch} is green at {sha}, repaired by {agent}"
UNDONE = "{branch} is green at {sha}: what broke it is undone"
RED = "{branch} is red at {sha}"
ALONE = "the commit"
CANCELLED = "{what}: cancelled by {by}"
GOAL = "{loop}: {goal} ({status})"
DRY = "Dry run: {stand}; {would}. Nothing left this machine"
STOPPED = "{loop}: {reason} ({status})"

HEADLINES = {
    "declined_before": "the agent made the same change again that a person had declined",
    "repair_ready": "a proven repair by {agent} waits for you",
    "proposed": "a proven repair by {agent} waits for you",
    "no_agent": "no agent is configured that could repair it",
    "agent_not_found": "{agent} could not be started: {why}",
    "agent_gave_up": "{agent} gave up",
    "fix_exhausted": "no repair by {agent} was proven",
    "never_green": "it was never green here, so no agent was called",
    "no_progress": "the last try brought nothing new, and no repair was proven",
    "iterations_exhausted": "the tries are used up, and no repair was proven",
    "deadline_passed": "the deadline passed, and no repair was proven",
    "budget_exhausted": "a budget is used up, and no repair was proven",
    "model_unavailable": "the model of {agent} did not answer",
    "observe_only": "the autonomy is observe, so nothing was repaired",
    "candidate.guard_refused": "the guard refused what {agent} changed",
    "change.denied": "{agent}'s change of the tests was denied by {decider}",
    "change.expired": "nobody decided about {agent}'s change of the tests",
    "change.revoked": "the approval of {agent}'s change of the tests was taken back",
    "agent.auth_missing": "{agent} has no login or key",
    "contended": "a proven repair waits for you, because {branch} kept moving",
    "promote_refused": "a proven repair could not be taken over",
}
"""By reason: what is so besides that the branch is red."""

CHANGED = ("change.denied", "change.expired", "change.revoked")
"""A person did not let a change of the tests pass."""

WOULD_PLAN = {
    "plan.fix": "{agent} would have been called",
    "plan.revert": "what broke it would have been undone",
    "plan.observe": "the autonomy is observe, so nothing would have been repaired",
}
WOULD = {
    "completed": "nothing would have been left to do",
    "handoff": "it would have been handed over: {why}",
    "wait": "it would have waited: {why}",
    "cancelled": "it would have been cancelled",
    "again": "it would have gone on",
}
"""By the outcome that a dry run would have had in earnest."""

UNJUDGED = {
    "environment_broken": "{branch} at {sha} could not be judged: machine, set-up or becket.yaml is at fault",
    "undecided": "{branch} at {sha} is neither green nor red: the same tests pass and fail",
}
"""Ends in which nobody can say that the branch is red."""

REVERT_READY = "a proven commit that undoes what broke it waits for you"

WAS_RED = "{branch} was red at {sha}"
ACCEPTED = "{change} was accepted by {by}"
DECLINED = "{change} was declined by {by}"
TAKEN_OVER = "{change} is settled"
SETTLED_BY = "{loop} handed it over, and {by} settled it"
SETTLED_ITSELF = "{loop} handed it over, and it is settled"
REPAIR_OF, REVERT_OF = "the proven repair by {agent}", "the proven commit that undoes what broke it"
SETTLED_AT = "{when}: {how}"
"""How a run is told that handed something over, once that is settled."""

ADD_AGENT = (
    "Add one to becket.yaml, for example:",
    "  agents:",
    "    fixer: {driver: codex}",
)

NEXT = {
    "repair_ready": "becket proposals accept {run}",
    "proposed": "becket proposals accept {run}",
    "no_agent": "becket run {loop}",
    "agent_not_found": "becket doctor",
    "agent.auth_missing": "becket doctor",
    "never_green": "becket gates try",
    "model_unavailable": "becket runs retry {run}",
    "undecided": "becket runs retry {run}",
    **dict.fromkeys(CHANGED, "becket runs retry {run}"),
    "cancelled": "becket runs retry {run}",
    "main_proven": "becket up -d",
}
NEXT_OF_SETTLED = NEXT_WATCHED = "becket status"
NEXT_AGAIN = "becket runs retry {run}"
NEXT_OF_LOG = "becket runs show {run} --log {step}"
NEXT_OF_COMMIT = "git show {sha}"
NEXT_OTHERWISE = "becket runs show {run} --all"

STUCK = "it is stuck at the step {step} of the gate {gate}: {why}"
STUCK_APPROVED = "with the approved change of the tests, the step {step} of the gate {gate} still fails: {why}"
NOT_PROVEN = "the last change that was tried, which is not proven:"
SAID = "{agent} said: {words}"
DENIED = "{agent} was not allowed to reach {hosts} (`hosts` in becket.yaml)"
MORE = "... {count}"
NOT_TOLD = "not told"
NOBODY = "an agent"
