"""Every class of effect at every place where things go wrong: what the world sees, and what the journal says of it."""

from __future__ import annotations

from contextlib import suppress

import pytest
from door_outside import CALL, Crashed, House, crash_at, crashing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from becket.kernel.contract import crash
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import EffectFailed
from becket.kernel.contract.spec import EffectClass

Q, K, B, R = EffectClass.queryable, EffectClass.keyed, EffectClass.blind, EffectClass.repeatable
POINTS = sorted(name for name in crash.points() if name.startswith("door."))

# class -> (state, how often it happened)
NOT_ACTED = {Q: ("done", 1), K: ("done", 1), R: ("done", 1), B: ("unknown", 0)}
ACTED = {Q: ("done", 1), K: ("done", 1), R: ("done", 2), B: ("unknown", 1)}
FINE = {Q: ("done", 1), K: ("done", 1), R: ("done", 1), B: ("done", 1)}


@pytest.mark.parametrize("class_", EffectClass)
@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("door.before_intent", FINE),
        ("door.after_intent", NOT_ACTED),
        ("door.before_perform", NOT_ACTED),
        ("door.after_perform", ACTED),
        ("door.before_settle", ACTED),
        ("door.after_settle", FINE),
    ],
)
def test_a_crash_at_the_door(class_: EffectClass, point: str, expected: dict[EffectClass, tuple[str, int]]) -> None:
    """L42 and the door's rule: nothing is lost, nothing that may not be doubled is doubled."""
    runtime = House(class_)
    with crashing(crash_at(point)):
        with pytest.raises(Crashed):
            runtime.perform()
        report = runtime.perform()
    assert (report.state, runtime.outside.happened) == expected[class_]
    assert runtime.perform() == report
    assert runtime.outside.happened == expected[class_][1]


@pytest.mark.parametrize("class_", EffectClass)
@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ("crash_before", NOT_ACTED),
        ("crash_after", ACTED),
        ("slow", ACTED),
        ("dropped", NOT_ACTED),
        ("lost", ACTED),
        ("breaks", ACTED),
        ("busy", FINE),
    ],
)
def test_trouble_in_the_middle(class_: EffectClass, trouble: str, expected: dict[EffectClass, tuple[str, int]]) -> None:
    """A crash in mid-request, an answer that never came, a busy outside: by class, as after any doubt."""
    runtime = House(class_, trouble)
    report = runtime.perform_until_it_ends()
    assert (report.state, runtime.outside.happened) == expected[class_]
    assert runtime.perform() == report
    assert runtime.outside.happened == expected[class_][1]


@pytest.mark.parametrize("class_", EffectClass)
def test_a_final_no_is_not_repeated(class_: EffectClass) -> None:
    runtime = House(class_, "no")
    for _ in range(2):
        with pytest.raises(EffectFailed, match="no such room"):
            runtime.perform()
    assert (runtime.state(), runtime.outside.asked, runtime.slept) == (EffectState.failed, 1, [])


def test_a_slow_receiver_is_waited_for_before_it_is_asked() -> None:
    """Rule 4: killed in mid-request and restarted at once, a look-up would say "not seen" and the post be doubled."""
    runtime = House(Q, "slow")
    with pytest.raises(Crashed):
        runtime.perform()
    report = runtime.perform()
    assert report.result == {"observed": True}
    assert runtime.slept == [12.0]  # the adapter's time-out and the grace
    assert (runtime.outside.asked, runtime.outside.looked_up) == (1, 1)


def test_every_point_of_the_door_is_passed_by_the_crash_matrix() -> None:
    """A point that no test passes proves nothing."""
    passed: set[str] = set()
    with crashing(passed.add):
        House(Q, "busy", "dropped").perform()
    assert passed >= set(POINTS)
    assert len(POINTS) >= 9


@pytest.mark.parametrize("class_", EffectClass)
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
def test_a_crash_on_a_long_way(point: str, nth: int, class_: EffectClass) -> None:
    """Rule 13: later hits of a point too, on a way with a busy outside and a lost answer."""
    runtime = House(class_, "busy", "lost")
    with crashing(crash_at(point, nth)):
        report = runtime.perform_until_it_ends()
    _is_honest(runtime, report.state)
    if class_ in {Q, K}:
        assert (report.state, runtime.outside.happened) == ("done", 1)


troubles = st.lists(
    st.sampled_from(["ok", "busy", "no", "lost", "dropped", "breaks", "crash_before", "crash_after", "slow"]),
    max_size=6,
)
crashes = st.lists(st.sampled_from(POINTS), max_size=4)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(class_=st.sampled_from(EffectClass), script=troubles, points=crashes, defer=st.booleans())
def test_the_journal_never_lies(class_: EffectClass, script: list[str], points: list[str], defer: bool) -> None:
    """Whatever goes wrong, in whatever order: `done` only of what happened, `failed` only of what did not."""
    runtime = House(class_, *script)
    left = list(points)

    def hook(hit: str) -> None:
        if left and hit == left[0]:
            left.pop(0)
            raise Crashed(hit)

    call = CALL.model_copy(update={"defer": defer})
    with crashing(hook):
        with suppress(EffectFailed):
            runtime.perform_until_it_ends(call)
        _resume_until_settled(runtime)
    _is_honest(runtime, runtime.state())


def _resume_until_settled(runtime: House) -> None:
    for _ in range(100):
        runtime.clock.advance(3600)
        if not runtime.due():
            return
        try:
            runtime.resume()
        except Crashed:
            continue
    raise AssertionError("it does not end")


def _is_honest(runtime: House, state: str) -> None:
    happened = runtime.outside.happened
    if state == "done":
        assert happened >= 1
    if state == "failed":
        assert happened == 0
    assert state in {"done", "failed", "unknown"}
    if runtime.outside.class_ is not R:
        assert happened <= 1
