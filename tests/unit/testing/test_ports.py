"""Which ports are taken for servers that a test starts later."""

from __future__ import annotations

import pytest

from becket.testing.ports import _outside


@pytest.mark.parametrize(
    ("low", "high", "ports"),
    [
        (32_768, 60_999, range(10_000, 32_768)),
        (15_000, 60_999, range(10_000, 15_000)),
        (10_000, 40_000, range(40_001, 65_536)),
        (1_024, 60_999, range(61_000, 65_536)),
        (60_000, 60_000, range(10_000, 60_000)),
        (1_024, 65_535, range(10_000, 60_000)),
        (1_024, 5_000, range(10_000, 65_536)),
    ],
    ids=["usual", "early", "from-the-first", "to-the-usual-end", "unknown", "all", "below-ours"],
)
def test_ports_lie_outside_those_the_kernel_gives_where_any_are_left(low: int, high: int, ports: range) -> None:
    assert _outside(low, high) == ports
