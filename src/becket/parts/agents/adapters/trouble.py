"""What an error of an agent or its model means for us: its quota, its login, its model, its refusal."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime

from becket.kernel.contract.agent import AgentOutcome

LONGEST_WAIT = 8 * 86_400.0
_SHORTEST_WAIT = 1.0
_ROUNDED = timedelta(minutes=2)

_QUOTA_STATUS = frozenset({402, 429})
_AUTH_STATUS = frozenset({401, 403})
_QUOTA = re.compile(
    r"(?i)rate.?limit|usage.?limit|quota|too many requests|resource.?exhausted|limit (?:will )?resets?\b"
    r"|(?:hour|daily|weekly|monthly|session|opus|sonnet|spend\w*|credit) limit reached|hit your (?:[\w-]+ )?limit"
)
_UNPAID = re.compile(r"(?i)insufficient_quota|credit balance|billing|out of credits|payment required")
_AUTH = re.compile(
    r"(?i)not logged in|please run /login|log ?in again|unauthori[sz]ed|authentication|invalid.{0,12}api.?key"
    r"|incorrect api key|missing environment variable|missing.{0,12}api.?key"
    r"|api.?key.{0,24}(?:missing|not set|required|not valid|invalid|expired)"
    r"|token.{0,12}expired|refresh token|invalid auth method|permission_error|oauth"
)
_MODEL = re.compile(
    r"(?i)overloaded|internal server error|bad gateway|service unavailable|gateway time-?out|server_error|api_error"
    r"|stream (?:closed|disconnected|error|ended)|connection (?:error|refused|reset|closed|dropped)|econn\w+"
    r"|fetch failed|could(?:n.t| not) connect|socket hang up|unable to connect|at capacity|error sending request"
    r"|timed? ?out|(?:experiencing )?high demand|temporary errors"
)
_REFUSAL = re.compile(
    r"(?i)\brefusal\b|model refused|content.?(?:filter|policy)|safety (?:policy|filter)|usage policy|cyber_policy"
)
_STATUS = re.compile(
    r"(?i)(?:status(?: code)?[:= ]*|http[/ ]?(?:[\d.]+ )?|api error[:( ]*|error code[:= ]*|^)(4\d\d|5\d\d)\b"
)

_SPAN_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_SPAN_PART = re.compile(
    r"(?i)(\d{1,9}(?:\.\d{1,9})?)\s*(milliseconds?|ms|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)(?![a-z])"
)
_SPAN = re.compile(
    r"(?i)(?:try again|retry|resets?|available|wait)\b[^.\d]{0,40}?(?:in|after|for|:|=)\s*"
    r"((?:\d[\d.]*\s*[a-z]+[\s,]*(?:and\s+)?){1,4})"
)
_BARE_SECONDS = re.compile(r"(?i)retry.?after[\"':= ]{1,4}(\d{1,9}(?:\.\d{1,3})?)(?![\d:]|\s*[a-z])")
_EPOCH = re.compile(r"(?i)(?:reset\w*|limit reached|until)\D{0,16}(1\d{9}(?:\d{3})?)\b")
_ISO = re.compile(r"(?i)\b(\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?(?:\.\d{1,6})?\s?(?:Z|[+-]\d{2}:?\d{2})?)")
_DAY = re.compile(
    r"(?i)\b(?:reset\w*|try again|available|until)\b[^\d]{0,16}?"
    r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(\d{1,2})(?:st|nd|rd|th)?,?(?:\s+(\d{4}))?,?(?:\s+at)?\s+(\d{1,2})(?::(\d{2}))?\s*(am|pm)?"
    r"(?:\s*\(?(UTC|GMT|[A-Z][A-Za-z]+/[A-Za-z_/]+)\)?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"(?i)(?:reset\w*|try again|available|until)\b[^\d]{0,16}?(?:at\s+)?(\d{1,2})(?::(\d{2}))?\s*(am|pm)?\b"
    r"(?:\s*\(?(UTC|GMT|[A-Z][A-Za-z]+/[A-Za-z_/]+)\)?)?"
)


@dataclass(frozen=True, slots=True)
class AgentTrouble:
    """`until` only of quota_wait, where somebody told it: never in the past, never more than eight days off."""

    outcome: AgentOutcome
    until: float | None = None


def recognise(
    text: str,
    now: float,
    *,
    status: int | None = None,
    code: str = "",
    retry_after: str | float | None = None,
    resets_at: float | None = None,
) -> AgentTrouble | None:
    """What an error means, by its status, the vendor's code and its words; None if nothing in it is known.

    `retry_after` is the header's value or seconds; `resets_at` is in seconds since 1970.
    """
    text = text[:8_000]
    status = status or _status_in(text)
    words = f"{code} {text}"
    quota = _QUOTA.search(words) or _UNPAID.search(words)
    if status in _QUOTA_STATUS or (quota and status not in _AUTH_STATUS):
        told = told_time(text, now, retry_after, resets_at)
        return AgentTrouble(AgentOutcome.quota_wait, None if told is None else _bounded(told, now))
    if status in _AUTH_STATUS or _AUTH.search(words):
        return AgentTrouble(AgentOutcome.auth_missing)
    if _REFUSAL.search(words):
        return AgentTrouble(AgentOutcome.refused)
    if (status is not None and status >= 500) or _MODEL.search(words):
        # An overloaded model that says when to come back is a wait like any other.
        told = told_time(text, now, retry_after, resets_at)
        if told is not None and re.search("(?i)overloaded|capacity|unavailable", words):
            return AgentTrouble(AgentOutcome.quota_wait, _bounded(told, now))
        return AgentTrouble(AgentOutcome.model_error)
    return AgentTrouble(AgentOutcome.model_error) if status is not None else None


def told_time(
    text: str, now: float, retry_after: str | float | None = None, resets_at: float | None = None
) -> float | None:
    """When to come back, as far as the error says it, in seconds since 1970."""
    if resets_at and math.isfinite(resets_at):
        return resets_at / 1000 if resets_at > 1e11 else resets_at
    for read in (_by_header, _by_span, _by_epoch, _by_date, _by_day, _by_clock):
        told = read(text if read is not _by_header else _header(text, retry_after), now)
        if told is not None:
            return told
    return None


def _bounded(until: float, now: float) -> float:
    return min(max(until, now + _SHORTEST_WAIT), now + LONGEST_WAIT)


def _status_in(text: str) -> int | None:
    found = _STATUS.search(text)
    return int(found[1]) if found else None


def _header(text: str, retry_after: str | float | None) -> str:
    if retry_after is not None:
        return str(retry_after)
    found = _BARE_SECONDS.search(text)
    return found[1] if found else ""


def _by_header(value: str, now: float) -> float | None:
    """Retry-After is seconds, or a date in the form of mails."""
    if not value:
        return None
    try:
        seconds = float(value)
        return now + seconds if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _by_span(text: str, now: float) -> float | None:
    """`try again in 1h 20m`, `resets in 3 days and 2 hours`, `retry after 30s`."""
    found = _SPAN.search(text)
    parts = _SPAN_PART.findall(found[1]) if found else []
    if not parts:
        return None
    return now + sum(float(number) * _SPAN_UNITS[_unit(name)] for number, name in parts)


def _unit(name: str) -> str:
    name = name.lower()
    return "ms" if name == "ms" or name.startswith("milli") else name[0]


def _by_epoch(text: str, now: float) -> float | None:
    found = _EPOCH.search(text)
    if not found:
        return None
    return float(found[1]) / (1000 if len(found[1]) == 13 else 1)


def _by_date(text: str, now: float) -> float | None:
    found = _ISO.search(text)
    if not found:
        return None
    try:
        return datetime.fromisoformat(found[1].replace(" Z", "Z").upper()).timestamp()
    except (ValueError, OverflowError):
        return None


def _by_day(text: str, now: float) -> float | None:
    """`try again at Nov 18th, 2026 11:06 AM`, `resets Oct 3 at 9am (Europe/Berlin)`."""
    found = _DAY.search(text)
    if not found:
        return None
    here = datetime.fromtimestamp(now, _zone(found[7]))
    time_of_day = _time_of_day(found[4], found[5], found[6])
    if time_of_day is None:
        return None
    month, year = _MONTHS.index(found[1].lower()) + 1, int(found[3] or here.year)
    try:
        there = here.replace(year, month, int(found[2]), *time_of_day, second=0, microsecond=0)
        return (there if found[3] or _is_ahead(there, here) else there.replace(year + 1)).timestamp()
    except (ValueError, OverflowError):
        return None


def _by_clock(text: str, now: float) -> float | None:
    """`resets 3am`, `resets at 14:30 (UTC)`: the next time that a clock shows it; of this machine, if none is named."""
    found = _CLOCK.search(text)
    time_of_day = _time_of_day(found[1], found[2], found[3]) if found and (found[2] or found[3]) else None
    if not found or time_of_day is None:
        return None
    here = datetime.fromtimestamp(now, _zone(found[4]))
    hour, minute = time_of_day
    there = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
    return (there if _is_ahead(there, here) else there + timedelta(days=1)).timestamp()


def _is_ahead(there: datetime, here: datetime) -> bool:
    """A time without seconds is over when its minute is; and whoever told it may be a moment behind us."""
    return there + _ROUNDED > here


def _time_of_day(hour_text: str, minute_text: str | None, half: str | None) -> tuple[int, int] | None:
    hour, minute = int(hour_text), int(minute_text or 0)
    if half:
        hour = hour % 12 + (12 if half.lower() == "pm" else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None


def _zone(name: str | None) -> tzinfo | None:
    if not name:
        return None
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo("UTC" if name.upper() in ("UTC", "GMT") else name)
    except (KeyError, ValueError, OSError):
        return None
