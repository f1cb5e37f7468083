"""How an ACP agent's work ended. Its stop reason is a claim: `end_turn` may carry an error of its model as text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.process import ChildEnd, ChildResult
from becket.parts.agents.adapters.acp.talk import Failure
from becket.parts.agents.adapters.lenient_json import Object, mapping, number, text
from becket.parts.agents.adapters.trouble import recognise

_ERROR_AS_TEXT = re.compile(
    r"(?ix)^\W{0,8}(?:api\ error|error\b|http\ ?\d{3}|status\ \d{3}|\d{3}\b|unexpected\ status|exceeded\ retry\ limit"
    r"|stream\ (?:disconnected|error|closed)|rate\ limit|quota\ exceeded|you.{0,3}ve\ (?:hit|reached)\ your"
    r"|usage\ limit|request\ failed|failed\ to\ (?:authenticate|connect|fetch)|not\ logged\ in|invalid\ api\ key"
    r"|authentication\ (?:failed|required)|internal\ server\ error)"
)
_LONGEST_ERROR = 2_000
_STOPS = {
    "refusal": (AgentOutcome.refused, "it refused"),
    "max_tokens": (AgentOutcome.limit_reached, "its model came to its own limit of tokens"),
    "max_turn_requests": (AgentOutcome.limit_reached, "it came to its own limit of turns"),
    "cancelled": (AgentOutcome.cancelled, "it was cancelled, and not by Becket"),
}


@dataclass(frozen=True, slots=True)
class AcpEnding:
    """`ended`: the agent itself said that its turn is over."""

    ended: bool
    error: str = ""
    hint: AgentOutcome | None = None
    until: float | None = None


def by_stop(result: Object, said: str, worked: bool, now: float, cut: bool = False) -> AcpEnding:
    """By the prompt's answer. Words are taken for an error only if they begin like one and nothing was done.

    `cut`: the agent's own records say that its model's last answer has no end.
    """
    reason = text(result, "stopReason")
    if reason in _STOPS:
        hint, error = _STOPS[reason]
        return AcpEnding(True, error, hint)
    if reason != "end_turn":
        return AcpEnding(
            True, f"it stopped for a reason that Becket does not know: {reason!r}", AgentOutcome.model_error
        )
    last = said.strip().rpartition("\n\n")[2]
    unanswered = _without_an_answer(result)
    if unanswered or (not worked and len(said) < _LONGEST_ERROR and _ERROR_AS_TEXT.search(last)):
        trouble = recognise(last, now)
        if trouble is not None:
            return AcpEnding(True, last, trouble.outcome, trouble.until)
    if unanswered or cut:
        return AcpEnding(True, f"its model gave no whole answer; last: {last or 'nothing'}", AgentOutcome.model_error)
    return AcpEnding(True)


def _without_an_answer(result: Object) -> bool:
    """Gemini ends its turn well after a cut stream, codex-acp after an error of the server. Both count a prompt's
    tokens, and have counted none then.
    """
    if not mapping(result, "_meta", "quota"):
        return False
    counted = mapping(result, "_meta", "quota", "token_count")
    return not any(number(counted, name) for name in counted) and not mapping(result, "usage")


def by_failure(failure: Failure, now: float) -> AcpEnding:
    """By an error that it answered with: its words tell more than its code."""
    trouble = recognise(str(failure), now, status=failure.status)
    if trouble is not None and not (failure.asks_for_login and trouble.outcome is AgentOutcome.model_error):
        return AcpEnding(True, str(failure), trouble.outcome, trouble.until)
    outcome = AgentOutcome.auth_missing if failure.asks_for_login else AgentOutcome.model_error
    return AcpEnding(True, str(failure), outcome)


def by_limit(passed: tuple[str, ...]) -> AcpEnding:
    return AcpEnding(False, f"it passed its limit ({'; '.join(passed)})", AgentOutcome.limit_reached)


def by_length(cap: int) -> AcpEnding:
    return AcpEnding(False, f"it said more than {cap // 1_000_000} MB", AgentOutcome.limit_reached)


_ITS_MODEL = (AgentOutcome.auth_missing, AgentOutcome.quota_wait, AgentOutcome.model_error)


def model_unreachable(last_words: str, now: float) -> bool:
    """Whether what it printed last says that it cannot reach a model, or not get it to work."""
    trouble = recognise(last_words, now) if last_words else None
    return trouble is not None and trouble.outcome in _ITS_MODEL


def by_loss(reason: str, result: ChildResult, last_words: str, spoke: bool, now: float) -> AcpEnding:
    """It gave no answer. Where its model never spoke, what it printed last may say why: no login, or a quota or a model
    that it waits for by itself.
    """
    if result.end is ChildEnd.not_started:
        return AcpEnding(False, result.message or "it could not be started", AgentOutcome.crashed)
    hint, error = AgentOutcome.crashed, reason
    if result.end is ChildEnd.timeout:
        hint, error = AgentOutcome.limit_reached, f"it did not end within its time ({result.seconds:.0f} s)"
    elif result.end is ChildEnd.exited:
        error = f"it ended with exit code {result.exit_code} before its answer"
    shown = f"{error}: {last_words}" if last_words else error
    trouble = None if spoke or not last_words else recognise(last_words, now)
    # Whoever went by itself may have printed the like for any reason.
    because = _ITS_MODEL[:2] if result.end is ChildEnd.exited else _ITS_MODEL
    if trouble is not None and trouble.outcome in because:
        return AcpEnding(False, shown, trouble.outcome, trouble.until)
    return AcpEnding(False, shown, hint)
