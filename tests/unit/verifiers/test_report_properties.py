"""Whatever a step wrote: reading it ends in a report, within bounds, and losing a part of it never makes red green."""

from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from report_stage import all_names, read, stored

from becket.parts.gates.ports.report import EXCERPT_CAP, MESSAGE_CAP, Color, TestReport
from becket.parts.gates.reports.environment import mentions_environment
from becket.parts.gates.reports.verdict import verdict_of

NAMES = all_names()
KINDS = ["junit", "pytest", "go", "cargo", "tap"]
PIECES = [
    *(b"ok 1|not ok|1..9|---|...|# TODO|    |Bail out!|::|[|]| - |{|}".split(b"|")),
    *(b"<testcase|/>|<![CDATA[|]]>|&#27;|&a;|<!DOCTYPE x>".split(b"|")),
    *(b"=== FAILURES ===|____ a ____|FAILED a.py::b - c|1 passed in 0.01s".split(b"|")),
    *(b"running 3 tests|test a ... |failures:|---- a stdout ----|FAIL\tp [build failed]".split(b"|")),
    *(b'{"Action":"|"Package":"p"|\\ud800'.split(b"|")),
    b"test result: ok. 1 passed; 0 failed; 0 ignored;",
    *(b"\n", b"\r", b"\0", b"\xff", b"\x1b[31m", b"9" * 30),
]
patient = settings(deadline=None, max_examples=120, suppress_health_check=[HealthCheck.too_slow])


def holds_its_bounds(report: TestReport) -> None:
    ids = [case.id for case in report.cases]
    assert len(set(ids)) == len(ids)
    assert all(name.strip() for name in ids)
    assert all(len(case.message.encode()) <= MESSAGE_CAP for case in report.cases)
    assert all(len(case.excerpt.encode()) <= EXCERPT_CAP for case in report.cases)
    assert TestReport.model_validate_json(report.model_dump_json()) == report
    verdict_of(report, 0, 0)


@patient
@given(kind=st.sampled_from(KINDS), raw=st.binary(max_size=600))
def test_no_bytes_make_a_parser_raise(kind: str, raw: bytes) -> None:
    holds_its_bounds(read(f"{kind}/", raw))
    mentions_environment(raw, lambda _: None)


@patient
@given(kind=st.sampled_from(KINDS), pieces=st.lists(st.sampled_from(PIECES), max_size=40))
def test_no_mixture_of_marks_makes_a_parser_raise(kind: str, pieces: list[bytes]) -> None:
    holds_its_bounds(read(f"{kind}/", b"".join(pieces)))
    holds_its_bounds(read(f"{kind}/", b"\n".join(pieces)))


@patient
@given(name=st.sampled_from(NAMES), data=st.data())
def test_no_mutation_of_a_real_report_makes_a_parser_raise(name: str, data: st.DataObject) -> None:
    raw = bytearray(stored(name))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 400)))
        kind = data.draw(st.sampled_from(["cut", "piece", "double", "flip"]))
        if kind == "cut":
            del raw[start:end]
        elif kind == "piece":
            raw[start:start] = data.draw(st.sampled_from(PIECES))
        elif kind == "double":
            raw[start:start] = raw[start:end]
        elif start < len(raw):
            raw[start] ^= 1 << data.draw(st.integers(0, 7))
    holds_its_bounds(read(name, bytes(raw)))


def prefixes(raw: bytes) -> list[bytes]:
    """Cut at every line and at some places within lines."""
    at = {index + 1 for index, byte in enumerate(raw) if byte == 0x0A}
    at |= set(range(0, len(raw), max(1, len(raw) // 60))) | set(range(max(0, len(raw) - 40), len(raw)))
    ordered = sorted(at)
    return [raw[:end] for end in ordered[:: max(1, len(ordered) // 100)]]


RED = [name for name in NAMES if name != "go/all.txt" and verdict_of(read(name), 0, 0).color is Color.red]


@pytest.mark.parametrize("name", RED)
def test_a_report_cut_short_never_turns_green(name: str) -> None:
    """With exit code 0: the report alone must tell. In each of these the failure is in the first package or binary."""
    assert [
        len(prefix) for prefix in prefixes(stored(name)) if verdict_of(read(name, prefix), 0, 0).color is Color.green
    ] == []


@pytest.mark.parametrize("name", [name for name in NAMES if verdict_of(read(name), 0, 0).color is Color.green])
def test_a_green_report_cut_short_is_red_until_its_last_word(name: str) -> None:
    whole = stored(name).rstrip()
    last = whole.rpartition(b"\n")[0] if not name.startswith("junit") else whole[: len(whole) - 1]
    # The plan of TAP and the last event of go stand before lines that say nothing more.
    end = {"tap": whole.find(b"\n1.."), "go": whole.rfind(b'{"Time"'), "cargo": whole.find(b"test result")}
    limit = end.get(name.partition("/")[0], len(last))
    found = [
        len(cut) for cut in prefixes(whole[: max(0, limit)]) if verdict_of(read(name, cut), 0, 0).color is Color.green
    ]
    assert found == []


def test_red_steps_make_up_most_of_the_stored_reports() -> None:
    assert len(RED) > 50


HOSTILE = {
    "one long line": b"a" * 3_000_000,
    "colons": b"a::" * 500_000,
    "separators": b" - " * 500_000,
    "brackets": b"FAILED a.py::b[" + b" - " * 300_000,
    "words": b"a.py::b PASSED (" * 100_000,
    "underscores": b"_ " * 800_000,
    "titles": b"=== FAILURES ===\n" + b"____ a ____\nE   x\n" * 20_000,
    "summaries": b"1 passed in 0.01s\n" * 60_000,
    "places": b"=== FAILURES ===\n____ a ____\n" + b"x.py:1: y\n" * 100_000 + b"1 failed in 0.1s\n",
    "points": b"not ok 1 - a\n" * 30_000,
    "deep points": b"".join(b"    " * (n % 45) + b"ok\n" for n in range(30_000)),
    "hashes": b"ok 1 - " + b"# skip" * 300_000,
    "dots": b"running 9 tests\n" + b"test a ... " * 200_000,
    "tests": b"running 9 tests\n" + b"test a ... ok\n" * 100_000,
    "events": b'{"Action":"pass","Package":"p","Test":"t"}\n' * 60_000,
    "many tests": b"".join(b'{"Action":"pass","Package":"p","Test":"t/%d"}\n' % n for n in range(40_000)),
    "openings": b'{"Action":' * 200_000,
    "cases": b"<testsuite>" + b'<testcase name="a"/>' * 20_000 + b"</testsuite>",
    "attribute": b'<testsuite><testcase name="' + b"x" * 3_000_000 + b'"/></testsuite>',
    "slashes": b'<testsuite><testcase name="/' + b"a/" * 500_000 + b'"><failure>x</failure></testcase></testsuite>',
    "frames": b'<testsuite><testcase name="a"><failure>' + b"at a.b" * 400_000 + b"</failure></testcase></testsuite>",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_output_is_read_in_bounded_time(kind: str, name: str) -> None:
    begin = time.process_time()
    holds_its_bounds(read(f"{kind}/", HOSTILE[name]))
    mentions_environment(HOSTILE[name])
    assert time.process_time() - begin < 8
