"""From what a child said and how it ended to the report of the call. The exit code alone decides nothing (L20)."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import ValidationError

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentOutcome, AgentReport, CallFiles, Usage
from becket.kernel.contract.process import ChildEnd, ChildResult
from becket.parts.agents.adapters import lenient_json
from becket.parts.agents.adapters.call_environment import CallEnvironment
from becket.parts.agents.adapters.dialect import Heard
from becket.parts.agents.adapters.lines import lines_of
from becket.parts.agents.adapters.trouble import recognise
from becket.parts.agents.adapters.watch import Watch

_TAIL = 8_192


def of(heard: Heard, result: ChildResult, stopped: str, watch: Watch, environment: CallEnvironment) -> AgentReport:
    if stopped and watch.passed:
        stopped = over(watch.passed)  # by now it may be further beyond
    ended, error, hint = _judged(heard, result, stopped)
    return AgentReport(
        ended=ended,
        error=error,
        outcome_hint=hint,
        until=heard.until if hint is AgentOutcome.quota_wait else None,
        said=watch.last_words(heard.said),
        usage=watch.usage,
        session=heard.session,
        model=heard.model,
        refusals=tuple(heard.refusals[:50]),
        unknown_events=heard.unknown,
        transcript=environment.files.raw,
    )


def tell_what_is_missing(watch: Watch, passed_over: int, capped: bool) -> None:
    """What is shown of a call is not all that it said: people are told so."""
    if passed_over:
        text = f"{passed_over} lines came too fast to be shown: they are in the transcript"
        watch.take(AgentEvent(kind=AgentEventKind.message, text=text, by="becket"))
    if capped:
        text = "it said more than is kept: of the transcript the middle is dropped"
        watch.take(AgentEvent(kind=AgentEventKind.message, text=text, by="becket"))


def over(passed: tuple[str, ...]) -> str:
    return f"it passed its limit ({'; '.join(passed)})"


def _judged(heard: Heard, result: ChildResult, stopped: str) -> tuple[bool, str, AgentOutcome | None]:
    if result.end is ChildEnd.not_started:
        return False, result.message or "it could not be started", AgentOutcome.crashed
    if heard.ended:
        return True, heard.error, heard.hint
    if heard.gave_up:
        return _broken(heard, result)
    if stopped:
        return False, stopped, AgentOutcome.limit_reached
    if result.end is ChildEnd.timeout:
        return _too_late(heard, result)
    return _broken(heard, result)


def _too_late(heard: Heard, result: ChildResult) -> tuple[bool, str, AgentOutcome | None]:
    """Where it only tried its model again and again, that is why: another agent may have a model that works."""
    error = f"it did not end within its time ({result.seconds:.0f} s)"
    if not heard.last_error:
        return False, error, AgentOutcome.limit_reached
    trouble = recognise(heard.last_error, time.time())
    heard.until = trouble.until if trouble is not None else None
    outcome = trouble.outcome if trouble is not None else AgentOutcome.limit_reached
    return False, f"{error}; last: {heard.last_error}", outcome


def _broken(heard: Heard, result: ChildResult) -> tuple[bool, str, AgentOutcome | None]:
    """It ended without a terminal event."""
    if result.output_capped:
        return False, "it printed more than is kept; its end was not seen", AgentOutcome.crashed
    how = f"exit code {result.exit_code}" if result.end is ChildEnd.exited else result.message or str(result.end)
    error = heard.error or heard.last_error
    trouble = recognise(error, time.time()) if error else None
    if trouble is not None:
        heard.until = trouble.until
    otherwise = AgentOutcome.model_error if heard.gave_up else AgentOutcome.crashed
    hint = heard.hint or (trouble.outcome if trouble is not None else otherwise)
    if heard.gave_up:
        return False, error, hint
    if not error:
        return False, f"it ended without a result ({how})", hint
    return False, error if how in error else f"{error} ({how})", hint


def tail_of(log: Path) -> str:
    """The last lines of a log that are no events of the program."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            begin = max(file.tell() - _TAIL, 0)
            file.seek(begin)
            lines = file.read(_TAIL).decode("utf-8", "replace").splitlines()[1 if begin else 0 :]
    except OSError:
        return ""
    return "\n".join(line for line in lines if line.strip() and not line.startswith("{"))


def last_usage(files: CallFiles) -> Usage:
    """What a call had used at the last event that was written, if nobody saw its end."""
    usage, seconds = Usage(), 0.0
    for event in map(lenient_json.parsed, lines_of(files.events)):
        seconds = max(seconds, lenient_json.number(event, "at"))
        try:
            usage = Usage.model_validate(lenient_json.mapping(event, "usage") or usage)
        except ValidationError:
            continue
    return usage.model_copy(update={"seconds": seconds})
