"""Durations, sizes, digests and identifiers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from becket.kernel.contract.base import (
    BadDuration,
    BadSize,
    Duration,
    Record,
    Size,
    canonical,
    digest_of,
    new_id,
    parse_duration,
    parse_size,
    show_duration,
    show_size,
)


class Bounded(Record):
    wait: Duration
    most: Size = 1


@given(st.integers(min_value=0, max_value=100 * 365 * 86_400_000))
@settings(deadline=None)
def test_every_duration_reads_back_from_its_own_text(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert parse_duration(show_duration(seconds)) == parse_duration(seconds) == seconds


@given(st.floats() | st.integers() | st.text(max_size=12) | st.from_regex(r"[0-9.]{1,20}(ms|s|m|h|d|w)+"))
@settings(deadline=None)
def test_anything_is_a_sane_duration_or_refused(value: object) -> None:
    try:
        seconds = parse_duration(value)
    except BadDuration:
        return
    assert math.isfinite(seconds)
    assert seconds >= 0
    assert parse_duration(show_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300ms", 0.3),
        ("30s", 30),
        ("10m", 600),
        ("1h30m", 5400),
        ("7d", 604800),
        ("2w", 1209600),
        ("1.5h", 5400),
        (0, 0),
    ],
)
def test_durations_as_people_write_them(text: object, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "value",
    ["", "5", "5 m", "m", "-5s", "5M", "1hour", "٣s", True, None, [], -1, math.nan, math.inf, 10**400, -(10**400)],
)
def test_what_is_no_duration_says_how_to_write_one(value: object) -> None:
    with pytest.raises(BadDuration, match=r"write it like|between"):
        parse_duration(value)


@pytest.mark.parametrize(("text", "size"), [("0B", 0), ("500KB", 500_000), ("5 MB", 5_000_000), ("0.1KB", 100), (7, 7)])
def test_sizes_as_people_write_them(text: object, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("value", ["", "5", "5mb", "5TB", True, 1.5, -1, 10**30, "9" * 400 + "GB", "999999999GB"])
def test_what_is_no_size_says_how_to_write_one(value: object) -> None:
    with pytest.raises(BadSize, match=r"write it like|between"):
        parse_size(value)


def test_records_keep_durations_as_seconds_and_write_them_as_text() -> None:
    record = Bounded(wait="1h30m", most="5MB")
    assert (record.wait, record.most) == (5400.0, 5_000_000)
    assert record.model_dump(mode="json") == {"wait": "1h30m", "most": 5_000_000}
    assert Bounded.model_validate_json(record.model_dump_json()) == record


def test_records_are_frozen_and_refuse_unknown_fields() -> None:
    """L45: a typo is an error."""
    with pytest.raises(ValidationError):
        Bounded(wait=1, wiat=2)
    with pytest.raises(ValidationError):
        Bounded(wait=1).wait = 2


def test_the_digest_does_not_depend_on_the_order_of_keys() -> None:
    assert digest_of({"a": 1, "b": [1, "é"]}) == digest_of({"b": [1, "é"], "a": 1})
    assert digest_of({"a": 1}) != digest_of({"a": "1"})
    assert canonical({"b": 1, "a": "é"}) == '{"a":"é","b":1}'


def test_identifiers_are_short_unique_and_carry_their_kind() -> None:
    made = {new_id("run") for _ in range(2000)}
    assert len(made) == 2000
    assert all(name.startswith("run_") and len(name) == 20 for name in made)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (10_000_000, "10 MB"), (4_000_000_000, "4 GB")]
)
def test_a_size_is_shown_as_people_write_it(size: int, text: str) -> None:
    assert show_size(size) == text
