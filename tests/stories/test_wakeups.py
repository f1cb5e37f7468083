"""Lost wake-ups: signals, deadlines, kills and restarts in any order, and no run sleeps past its signal (L42).

A signal may come before a run waits, while it falls asleep, and after; the engine may die between any two lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from wakeup_stage import APPROVAL_LIFE, DEADLINE, POLL, WAIT_FOR, House, InFiles, InMemory, InPostgres, Journal, Stage

from becket.kernel.contract.run import RunStatus
from becket.testing.crashes import Crashed, every_point

KILLABLE = sorted(
    name
    for name in every_point()
    if name.startswith(("walk.", "step.", "advance."))
    or name.split(".")[1] in {"claim", "record", "wait", "end", "start_run", "ask_approval", "use_approval"}
)
SENDER_DIES = ["store.signal.before_commit", "store.signal.after_commit"]
LOOKER_DIES = ["store.wake_due.before_commit", "store.wake_due.after_commit", "store.requeue_lost.after_commit"]
BETWEEN = [name for name in KILLABLE if not name.endswith("before_commit")]
"""Where another process may write: not inside a transaction of ours."""

numbers = st.integers(0, 7)
loops = st.sampled_from(["gather", "gather", "gather", "ask", "ask", "fan"])
seconds = st.sampled_from([1.0, 31.0, POLL + 1, APPROVAL_LIFE + 1, WAIT_FOR + 1, DEADLINE + 1])
STEPS = 14
DEEDS = ("signal", "signal", "time", "cancel", "hold", "answer", "oust")


class Wakeups(RuleBasedStateMachine):
    """People, senders and engines take turns; the clock moves only when told."""

    house: ClassVar[House]
    journal: ClassVar[Journal]

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(self.house, self.journal)

    def _pick(self, number: int) -> str | None:
        runs = self.stage.now(self.stage.runs())
        return runs[number % len(runs)].run_id if runs else None

    @initialize(first=loops, second=loops, needed=st.integers(1, 3), asleep=st.booleans())
    def begin(self, first: str, second: str, needed: int, asleep: bool) -> None:
        self.start(first, needed)
        self.start(second, 1)
        if asleep:
            self.stage.settled()

    @rule(loop=loops, needed=st.integers(1, 3))
    def start(self, loop: str, needed: int) -> None:
        self.stage.now(self.stage.start(loop, needed))

    @rule(number=numbers)
    def advance(self, number: int) -> None:
        self.stage.now(self.stage.advance(number))

    @rule(number=numbers, point=st.sampled_from(KILLABLE), nth=st.integers(1, 2))
    def advance_and_die(self, number: int, point: str, nth: int) -> None:
        self.stage.until_killed(self.stage.advance(number), at(point, nth, die))

    @precondition(lambda self: not self.journal.awaits)
    @rule(
        number=numbers, point=st.sampled_from(BETWEEN), nth=st.integers(1, 3), deed=st.sampled_from(DEEDS), whom=numbers
    )
    def advance_meanwhile(self, number: int, point: str, nth: int, deed: str, whom: int) -> None:
        """Somebody does something between two lines of an engine at work."""
        run_id = self._pick(whom)
        if run_id is not None:
            act = at(point, nth, lambda: at_once(self._do(deed, run_id, whom)))
            self.stage.until_killed(self.stage.advance(number), act)

    @rule(deed=st.sampled_from(DEEDS), whom=numbers, number=numbers)
    def do(self, deed: str, whom: int, number: int) -> None:
        run_id = self._pick(whom)
        if run_id is not None:
            self.stage.now(self._do(deed, run_id, number))

    async def _do(self, deed: str, run_id: str, number: int) -> None:
        stage = self.stage
        match deed:
            case "signal":
                name = "go" if number else "other"
                await stage.signal(run_id, name, f"{run_id}:{name}:{number % 4}")
            case "time":
                stage.clock.advance(31.0)
            case "cancel":
                await stage.cancel(run_id)
            case "hold":
                await stage.hold(run_id, on=bool(number % 2))
            case "answer":
                await stage.answer(run_id, approve=bool(number % 2))
            case _:
                await stage.oust()

    @rule(whom=numbers, point=st.sampled_from(SENDER_DIES))
    def signal_and_die(self, whom: int, point: str) -> None:
        """The sender is killed, does not know whether it was heard, and says the same again."""
        run_id = self._pick(whom)
        if run_id is not None:
            self.stage.now(self.stage.signal_twice(run_id, f"{run_id}:go:again", at(point, 1, die)))

    @rule(by=seconds, settled=st.booleans())
    def pass_time(self, by: float, settled: bool) -> None:
        self.stage.clock.advance(by)
        if settled:
            self.stage.settled()

    @rule(point=st.sampled_from([*LOOKER_DIES, ""]))
    def look(self, point: str) -> None:
        self.stage.until_killed(self.stage.look(), at(point, 1, die))

    @rule()
    def restart(self) -> None:
        self.stage.restart()

    @rule()
    def settle(self) -> None:
        self.stage.settled()

    def teardown(self) -> None:
        """In the end everything that somebody holds is let go, and the last deadline passes: every run has ended."""
        try:
            self.stage.settled()
            self.stage.let_go()
            self.stage.settled()
            self.stage.clock.advance(DEADLINE + 1)
            self.stage.settled()
            self.stage.now(self.stage.check_end())
        finally:
            self.stage.close()


def die() -> None:
    raise Crashed


def at(point: str, nth: int, deed: Callable[[], None]) -> Callable[[str], None]:
    """A hook that does something at the nth hit of a point, once."""
    left = nth

    def hook(hit: str) -> None:
        nonlocal left
        if hit == point:
            left -= 1
            if left == 0:
                deed()

    return hook


def at_once(work: Coroutine[None, None, None]) -> None:
    """Run to its end what never waits: a store in this process does not."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


def explore(house: House, journal: Journal, examples: int, number: int = 0) -> None:
    """The same interleavings for the same number, so that a red suite stays red; BECKET_SEED looks at others."""
    machine = type("Wakeups", (Wakeups,), {"house": house, "journal": journal})
    run_state_machine_as_test(
        seed(1000 * int(os.environ.get("BECKET_SEED", "0")) + number)(machine),
        settings=settings(
            max_examples=examples, stateful_step_count=STEPS, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), print_blob=True,
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return House(tmp_path_factory.mktemp("wakeups"))


def test_no_run_sleeps_past_its_signal(house: House) -> None:
    explore(house, InMemory(), 120)


def test_no_run_sleeps_past_its_signal_on_a_file(house: House, tmp_path: Path) -> None:
    explore(house, InFiles(tmp_path), 20)


def test_an_approval_that_is_seen_too_late_has_expired(house: House) -> None:
    """Given in time, but the engine looked only after its end: one clear handoff, no failed step."""
    stage = Stage(house, InMemory())
    try:
        run_id = stage.now(stage.start("ask", 1))
        stage.settled()
        stage.now(stage.answer(run_id, approve=True))
        stage.clock.advance(APPROVAL_LIFE + 1)
        stage.now(stage.advance(0))
        run = stage.now(stage.store.get_run(run_id))
        assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "approval.expired")
    finally:
        stage.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("shard", range(10))
def test_thousands_of_interleavings(house: House, shard: int) -> None:
    explore(house, InMemory(), int(os.environ.get("BECKET_EXAMPLES", "400")), number=1 + shard)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_run_sleeps_past_its_signal_on_postgres(house: House, request: pytest.FixtureRequest) -> None:
    sys.path.append(str(Path(__file__).parents[1] / "contracts"))
    from store_worlds import postgres_of

    explore(house, InPostgres(postgres_of(request.config).fresh_database), 20)
