"""What codex says when the model's service fails."""

from __future__ import annotations

from datetime import datetime
from http import HTTPStatus

from becket_lab.clis.runtime import HttpError


class Failed(Exception):
    """The turn failed."""

    def __init__(self, message: str, again: bool = False, after: float = 0.0) -> None:
        super().__init__(message)
        self.again = again
        self.after = after  # seconds, where the server told them; the real one does not show them


_FIXED = {
    "insufficient_quota": "Quota exceeded. Check your plan and billing details.",
    "server_is_overloaded": "Selected model is at capacity. Please try a different model.",
}
_ADS = "Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more"


def failure_of(error: HttpError, url: str) -> Failed:
    kind, code = error.error.get("type"), error.error.get("code")
    if kind == "usage_limit_reached":
        return Failed(
            f"You’ve hit your usage limit. {_ADS} credits or try again at {moment(error.error['resets_at'])}."
        )
    if code in _FIXED:
        return Failed(_FIXED[code])
    if error.status in {400, 404}:
        return Failed(error.body if error.status == 400 else error.message)
    after = float(error.headers.get("retry-after") or 0)
    return Failed(_of_status(error, url), again=error.status >= 500 or (error.status == 429 and after > 0), after=after)


def _of_status(error: HttpError, url: str) -> str:
    request = f"request id: {error.headers.get('x-request-id', '')}"
    known = error.status in {one.value for one in HTTPStatus}
    phrase = HTTPStatus(error.status).phrase if known else "<unknown status code>"
    if error.status == 429:
        return f"exceeded retry limit, last status: 429 {phrase}, {request}"
    if error.status == 500:
        return "We’re currently experiencing high demand, which may cause temporary errors."
    return f"unexpected status {error.status} {phrase}: {error.message}, url: {url}, {request}"


def moment(when: float) -> str:
    """The local time, and the day unless it is today's."""
    then, now = datetime.fromtimestamp(when).astimezone(), datetime.now().astimezone()
    clock = then.strftime("%I:%M %p").lstrip("0")
    if then.date() == now.date():
        return clock
    ending = "th" if 4 <= then.day <= 20 or 24 <= then.day <= 30 else ("st", "nd", "rd")[then.day % 10 - 1]
    return f"{then:%b} {then.day}{ending}, {then.year} {clock}"
