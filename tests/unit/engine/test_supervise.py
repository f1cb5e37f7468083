"""The restart policy on a clock that stands still: a thousand ways to die, and a limit that holds (L28)."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from becket.parts.services import supervise
from becket.parts.services.ports import RestartHistory, ServiceObservation
from becket.parts.services.section import HealthConfig
from becket.parts.services.supervise import RestartAction, Rules
from becket.testing.clock import ManualClock

RULES = Rules(samples=5, soak=10.0, ready_within=30.0)
SHAPES = 1000
HOUR = 3600.0
PACE = 1.0
LOOK_EVERY = 5.0

KINDS = (
    "dies_at_once", "dies_while_starting", "dies_in_the_soak", "dies_at_the_end_of_the_soak", "dies_just_after",
    "dies_later", "dies_and_dies_not_again", "never_answers", "flaps", "goes_deaf", "stranger", "stranger_later",
    "well",
)  # fmt: skip


@dataclass(frozen=True)
class Shape:
    """How one start of a service goes on: ready after, ill spells, and the end, in seconds from the start."""

    kind: str
    ready: float
    dies: float | None = None
    ill: tuple[tuple[float, float], ...] = ()
    stranger: float | None = None
    mends: int = 10**9  # from this start on it is well

    def sight(self, age: float, start: int) -> ServiceObservation:
        mended = start >= self.mends
        if self.dies is not None and age >= self.dies and not mended:
            return ServiceObservation.gone
        if self.stranger is not None and age >= self.stranger and not mended:
            return ServiceObservation.stranger
        if age < self.ready or (not mended and any(begin <= age < end for begin, end in self.ill)):
            return ServiceObservation.unready
        return ServiceObservation.healthy


def shape(number: int) -> Shape:
    """The same number is the same shape, on every machine."""
    chance = random.Random(number)
    kind, ready, soak = KINDS[number % len(KINDS)], chance.uniform(0, 20), RULES.soak
    made = {
        "dies_at_once": Shape(kind, ready, dies=0.0),
        "dies_while_starting": Shape(kind, ready, dies=chance.uniform(0, ready)),
        "dies_in_the_soak": Shape(kind, ready, dies=ready + chance.uniform(0, soak)),
        "dies_at_the_end_of_the_soak": Shape(kind, ready, dies=ready + soak - chance.uniform(0, 0.01)),
        "dies_just_after": Shape(kind, ready, dies=ready + soak + chance.uniform(PACE, 5)),
        "dies_later": Shape(kind, ready, dies=ready + soak + chance.uniform(5, 900)),
        "dies_and_dies_not_again": Shape(kind, ready, dies=chance.uniform(0, 60), mends=chance.randint(1, 5)),
        "never_answers": Shape(kind, HOUR * 100),
        "flaps": Shape(kind, ready, ill=tuple((at, at + 2) for at in range(0, 7200, chance.randint(3, 9)))),
        "goes_deaf": Shape(kind, ready, ill=((ready + soak + chance.uniform(2, 500), HOUR * 100),)),
        "stranger": Shape(kind, ready, stranger=chance.uniform(0, ready + soak)),
        "stranger_later": Shape(kind, ready, stranger=ready + soak + chance.uniform(2, 500)),
        "well": Shape(kind, ready),
    }
    return made[kind]


@dataclass
class Simulated:
    """The supervisor's life with one service: the same calls in the same order, without processes."""

    shape: Shape
    rules: Rules = RULES
    clock: ManualClock = field(default_factory=ManualClock)
    life: RestartHistory = field(default_factory=RestartHistory)
    starts: list[float] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)  # as they were, and the least they had to be
    alarms: int = 0
    proven_at: list[float] = field(default_factory=list)

    def start(self) -> None:
        self.starts.append(self.clock())
        self.life = supervise.started(self.life, self.clock(), self.rules)

    def look(self, *, trial: bool) -> RestartAction:
        sight = self.shape.sight(self.clock() - self.starts[-1], len(self.starts) - 1)
        self.life, do = supervise.seen(self.life, sight, self.clock(), self.rules, trial=trial)
        if do is RestartAction.keep:
            self.proven_at.append(self.clock())
        return do

    def trial(self) -> RestartAction:
        self.start()
        while (do := self.look(trial=True)) is RestartAction.wait:
            self.clock.advance(PACE)
            assert self.clock() - self.starts[-1] < 200, "a trial that never ends"
        return do

    def attend(self, seconds: float) -> None:
        until = self.clock() + seconds
        while self.clock() < until:
            if self.life.started_at is None:
                self._start_when_due()
            elif self.look(trial=False) is RestartAction.restart:
                self.life = supervise.ended(self.life, self.clock(), struck=True)
            else:
                self.clock.advance(LOOK_EVERY if self.life.proven else PACE)

    def _start_when_due(self) -> None:
        due = supervise.due(self.life, self.clock(), self.rules)
        if due.storm and not self.life.stormed:
            self.life = supervise.stormed(self.life)
            self.alarms += 1
        if self.clock() < due.at:
            self.clock.set(due.at)
        least = min(RULES.first_pause * RULES.growth ** (self.life.strikes - 1), RULES.longest_pause)
        self.pauses.append((self.clock() - self.life.ended_at, least))
        self.start()

    def most_starts_in_a_window(self) -> int:
        window = self.rules.window
        return max(sum(0 <= at - begin < window for at in self.starts) for begin in self.starts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_shapes(kind: str) -> None:
    """L28, L29: none that dies inside the soak is kept; later deaths meet the restart limit, which holds."""
    for number in range(SHAPES):
        if KINDS[number % len(KINDS)] != kind:
            continue
        told = Simulated(shape(number))
        kept = told.trial() is RestartAction.keep
        _judge_trial(told, number, kept)
        if not kept:  # as for an old release that is started again: it is under the policy as well
            told.life = supervise.ended(told.life, told.clock(), struck=True)
        told.attend(2.5 * RULES.window)
        _judge_life(told, number)


def _judge_trial(told: Simulated, number: int, kept: bool) -> None:
    now, began, made = told.clock(), told.starts[0], told.shape
    needed = made.ready + RULES.soak
    if kept:
        assert made.dies is None or made.mends == 0 or began + made.dies > now, number
        assert made.stranger is None or began + made.stranger > now, number
        assert now - began >= needed, number
        assert told.life.samples >= RULES.samples
    hopeless = {"dies_at_once", "dies_while_starting", "dies_in_the_soak", "dies_at_the_end_of_the_soak", "stranger"}
    if made.kind in hopeless | {"never_answers"}:
        assert not kept, number
    if made.kind in ("well", "dies_later", "goes_deaf", "stranger_later"):
        assert kept, f"{number}: an honest release was not kept"


def _judge_life(told: Simulated, number: int) -> None:
    assert told.most_starts_in_a_window() <= RULES.starts, number
    assert all(was >= least - 1e-6 for was, least in told.pauses), f"{number}: started before its pause was over"
    if told.shape.kind in ("dies_at_once", "dies_in_the_soak", "dies_just_after"):
        assert told.alarms >= 1, f"{number}: nobody was told of a storm"
    if told.shape.kind == "well":
        assert (len(told.starts), told.alarms) == (1, 0)
    if told.shape.kind == "dies_and_dies_not_again" and told.shape.mends <= 4:
        assert told.life.proven, f"{number}: it is well and was not started again"
        assert told.life.strikes == 0


def test_a_service_that_dies_right_after_every_soak_meets_the_limit_although_it_was_healthy() -> None:
    """L28: a child that dies after the health check. Proven health forgives strikes, never starts."""
    told = Simulated(Shape("dies_just_after", ready=0.0, dies=RULES.soak + 2))
    assert told.trial() is RestartAction.keep
    told.attend(HOUR)
    assert told.most_starts_in_a_window() <= RULES.starts
    assert told.alarms >= 1
    assert told.life.strikes <= 1


def test_the_limit_counts_starts_of_an_earlier_watchdog_and_a_clock_that_went_back_forgives_none_for_ever() -> None:
    clock = ManualClock()
    life = RestartHistory(starts=tuple(clock() - age for age in range(RULES.starts)))
    assert supervise.due(life, clock(), RULES).storm
    back = clock() - HOUR
    ahead = supervise.due(RestartHistory(strikes=1, ended_at=clock()), back, RULES)
    assert ahead.at <= back + RULES.longest_pause


def test_an_adopted_process_must_prove_its_health_again_and_is_no_start() -> None:
    life = supervise.adopted(RestartHistory(starts=(1.0,), strikes=3), 10.0)
    assert (life.starts, life.strikes, life.proven, life.healthy_since) == ((1.0,), 3, False, None)


def test_one_bad_answer_begins_the_soak_anew() -> None:
    life = RestartHistory(started_at=0.0)
    for second in range(10):
        sight = ServiceObservation.unready if second == 9 else ServiceObservation.healthy
        life, do = supervise.seen(life, sight, float(second), RULES, trial=True)
        assert do is RestartAction.wait
    for second in range(10, 20):
        life, do = supervise.seen(life, ServiceObservation.healthy, float(second), RULES, trial=True)
        assert do is RestartAction.wait
    assert supervise.seen(life, ServiceObservation.healthy, 20.0, RULES, trial=True)[1] is RestartAction.keep


def test_a_proven_service_is_not_restarted_for_one_bad_answer() -> None:
    life = RestartHistory(started_at=0.0, proven=True)
    life, do = supervise.seen(life, ServiceObservation.unready, 100.0, RULES, trial=False)
    assert do is RestartAction.wait
    life, do = supervise.seen(life, ServiceObservation.unready, 101.0, RULES, trial=False)
    life, do = supervise.seen(life, ServiceObservation.unready, 111.0, RULES, trial=False)
    assert do is RestartAction.restart


def test_samples_and_soak_are_those_of_the_service() -> None:
    assert Rules().of(HealthConfig(samples=2, soak=3)).model_dump(include={"samples", "soak"}) == {
        "samples": 2,
        "soak": 3.0,
    }
