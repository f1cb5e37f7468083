"""What errors of agents mean: quota, login, model, refusal; and when a quota is back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becket.kernel.contract.agent import AgentOutcome
from becket.parts.agents.adapters.trouble import LONGEST_WAIT, recognise

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC).timestamp()
HOUR, DAY = 3600.0, 86_400.0


@pytest.fixture
def utc() -> Iterator[None]:
    """A clock time without a zone is one of this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "unexpected status 401 Unauthorized: Incorrect API key provided, url: http://127.0.0.1:1/v1/responses",
        "Missing environment variable: `OPENAI_API_KEY`.",
        "Not logged in · Please run /login",
        "Invalid API key · Fix external API key",
        "Failed to authenticate. API Error: 401 bad key",
        "API Error: 403 {\"type\":\"permission_error\"}",
        "OAuth token has expired. Please obtain a new token",
        "Your refresh token was already used. Please log out and sign in again.",
        "Invalid auth method selected.",
        "the API key is not set",
    ],
)  # fmt: skip
def test_a_missing_or_wrong_login_is_no_model_error(text: str) -> None:
    """L23: no retry helps, a person does."""
    assert recognise(text, NOW) is not None
    assert recognise(text, NOW).outcome is AgentOutcome.auth_missing  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("rate limit exceeded: Rate limit reached. Please try again in 11.054s.", 11.054),
        ("Rate limit reached for gpt-5.5. Please try again in 250ms. Visit", 1.0),
        ("You've hit your usage limit. Try again in 1h 20m.", 4800),
        ("usage limit reached, try again in 3 days 4 hours 5 minutes", 3 * DAY + 4 * HOUR + 300),
        ("You’ve hit your usage limit. Upgrade or try again at Nov 18th, 2026 11:06 AM.", 2 * DAY - 54 * 60),
        ("You’ve hit your usage limit. Upgrade or try again at 12:00 PM.", 1.0),  # of this very minute, not of tomorrow
        ("You've hit your limit · resets 3am", 15 * HOUR),
        ("You've hit your limit · resets 3pm (UTC)", 3 * HOUR),
        ("You've hit your weekly limit · resets Nov 19 at 10am (America/New_York)", 3 * DAY + 3 * HOUR),
        ("5-hour limit reached ∙ resets 14:30", 2.5 * HOUR),
        ("Claude AI usage limit reached|1794830400", 1794830400 - NOW),
        ("Claude AI usage limit reached|1794830400000", 1794830400 - NOW),
        ("quota exceeded, resets at 2026-11-16T12:10:00Z", 600),
        ("quota exceeded; retryDelay: retry after 39s", 39),
        ("Resource has been exhausted (RESOURCE_EXHAUSTED). retry-after: 120", 120),
        ("You exceeded your current quota, please check your plan and billing details.", None),
        ("Your credit balance is too low to access the API", None),
        ("usage limit, try again in 400 days", LONGEST_WAIT),
        ("usage limit, resets at 2020-01-01T00:00:00Z", 1.0),
    ],
)
@pytest.mark.usefixtures("utc")
def test_a_quota_is_waited_for_until_it_is_back(text: str, seconds: float | None) -> None:
    """L23: usage limits pause a run; never into the past, never for more than eight days. What nobody told stays so."""
    found = recognise(text, NOW)
    assert found is not None
    assert found.outcome is AgentOutcome.quota_wait
    assert found.until == (None if seconds is None else pytest.approx(NOW + seconds, abs=1.0))


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("7", 7), (90.5, 90.5), ("Mon, 16 Nov 2026 12:01:00 GMT", 60), ("nan", 0), ("soon", 0)],
)
def test_the_header_says_it_best(retry_after: str | float, seconds: float) -> None:
    found = recognise("slow down, try again in 9h", NOW, status=429, retry_after=retry_after)
    assert found is not None
    expected = 9 * HOUR if retry_after in ("nan", "soon") else seconds
    assert found.until == pytest.approx(NOW + expected)


def test_a_reset_by_the_vendor_may_be_in_milliseconds() -> None:
    for told in (NOW + 50, (NOW + 50) * 1000):
        found = recognise("no", NOW, status=429, resets_at=told)
        assert found is not None
        assert found.until == pytest.approx(NOW + 50)


@pytest.mark.parametrize(
    "text",
    [
        "API Error: 500 boom. This is a server-side issue, usually temporary",
        "API Error: 529 Overloaded",
        "Selected model is at capacity. Please try a different model.",
        "stream disconnected before completion: stream closed before response.completed",
        "Reconnecting... waiting for network (Connection failed: error sending request)",
        "connect ECONNREFUSED 127.0.0.1:1",
        "fetch failed",
        "connection refused",
        "API Error: Couldn't connect through your proxy (ERR_PROXY_TUNNEL) — the proxy refused the tunnel",
        "unexpected status 503 Service Unavailable: overloaded",
        "unexpected status 404 Not Found: no such model",
    ],
)
def test_a_failing_model_is_a_model_error(text: str) -> None:
    found = recognise(text, NOW)
    assert found is not None
    assert found.outcome is AgentOutcome.model_error
    assert found.until is None


def test_an_overloaded_model_that_says_when_to_come_back_is_waited_for() -> None:
    found = recognise("529 overloaded, please retry after 30s", NOW)
    assert found is not None
    assert found.outcome is AgentOutcome.quota_wait
    assert found.until == pytest.approx(NOW + 30)


@pytest.mark.parametrize("text", ["stop: refusal", "blocked by content_filter", "This violates our usage policy"])
def test_a_refusal_is_told_apart(text: str) -> None:
    found = recognise(text, NOW)
    assert found is not None
    assert found.outcome is AgentOutcome.refused


@pytest.mark.parametrize(
    "text",
    ["", "Incomplete response returned, reason: max_output_tokens", "context limit reached", "bad thing", "exit 1"],
)
def test_what_is_not_known_is_not_guessed(text: str) -> None:
    assert recognise(text, NOW) is None


def test_the_status_counts_more_than_the_words() -> None:
    found = recognise("rate limit page not available", NOW, status=401)
    assert found is not None
    assert found.outcome is AgentOutcome.auth_missing


@given(
    st.text(max_size=300), st.one_of(st.none(), st.text(max_size=20), st.floats()), st.one_of(st.none(), st.floats())
)
def test_no_text_breaks_it_and_no_wait_is_endless(
    text: str, retry_after: str | float | None, resets_at: float | None
) -> None:
    found = recognise(f"429 {text}", NOW, retry_after=retry_after, resets_at=resets_at)
    assert found is not None
    assert found.until is None or NOW < found.until <= NOW + LONGEST_WAIT


@pytest.mark.parametrize(
    "piece", ["try again in 1", "1a", "wait: 1 ", "resets nov 1 ", "retry after", "9" * 50, "a b, "]
)
def test_long_texts_are_read_in_no_time(piece: str) -> None:
    """L24: whoever writes an error text must not be able to stop the loop with it."""
    begin = time.process_time()
    recognise("429 " + piece * (8_000 // len(piece)), NOW)
    assert time.process_time() - begin < 1.0
