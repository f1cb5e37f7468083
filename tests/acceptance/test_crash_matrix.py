"""Kill -9 at every named point, start again: the run ends as it would have ended, and the outside sees it once.

The matrix is made from the registry of crash points. A point that no story passes is a failure that names it.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from crash_cases import Case, Matrix, ask_journal
from crash_world import STORIES, Clock

from becket.testing.crashes import every_point
from becket.testing.receiver import Answer

WIDE = os.environ.get("BECKET_MATRIX") == "wide"
"""Every point in every story that passes it takes an hour; by default each is taken in one story."""

ELSEWHERE = (
    "backup",
    "candidate",
    "fix",
    "gate",
    "history",
    "holdout",
    "keeper",
    "launch",
    "mark",
    "objects",
    "promote",
    "proof",
    "release",
    "restore",
    "schema",
    "service",
    "setup",
)
"""Rooms with a matrix of their own: the heal loop's, the services', the journal's migrations and its backups."""
POINTS = sorted(point for point in every_point() if not point.startswith(tuple(f"{room}." for room in ELSEWHERE)))
DOOR = [point for point in POINTS if point.startswith("door.")]
BOOT = ["serve.locked", "serve.recovered", "store.join.after_commit", "store.requeue_lost.after_commit"]
STORE = sorted({point.split(".")[1] for point in POINTS if point.startswith("store.")})
LEFT_TO_SLOW = {f"store.{name}.{('before', 'after')[number % 2]}_commit" for number, name in enumerate(STORE)}
"""Of each pair around a commit one is enough for every day; `test_killed_at_any_hit_of_every_story` has both."""


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Matrix]:
    base = tmp_path_factory.getbasetemp()
    matrix = Matrix(tmp_path_factory.mktemp("crashes"), base.parent if hasattr(request.config, "workerinput") else base)
    with matrix.nursery:
        yield matrix


def test_there_are_enough_points_to_call_it_a_matrix() -> None:
    assert len(POINTS) >= 40


@pytest.mark.parametrize("point", [point for point in POINTS if point not in LEFT_TO_SLOW])
def test_killed_at_the_first_hit(point: str, matrix: Matrix) -> None:
    """L7, L31, L42: whatever was under way is done once, by whoever comes next."""
    stories = matrix.stories_with(point)
    assert stories, f"no story passes the crash point {point}; let one of tests/acceptance/crash_world.py do so"
    matrix.check(stories[0], point, 1)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["first", "second", "last"] if WIDE else ["second", "last"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_later_hit(point: str, which: str, matrix: Matrix) -> None:
    """Rule 13 of the engine: a point that is harmless at its first hit may not be so at a later one."""
    stories = matrix.stories_with(point, 1 if which == "first" else 2)
    assert stories, f"no story passes the crash point {point} twice"
    for story in stories if WIDE else stories[-1:]:
        hits = matrix.baseline(story)[0].hits[point]
        matrix.check(story, point, {"first": 1, "second": 2, "last": hits}[which])


@pytest.mark.parametrize("point", BOOT)
def test_killed_again_while_it_recovers(point: str, matrix: Matrix) -> None:
    """L31: the process that cleans up after a dead one may die of the same; the third one ends it."""

    def play(case: Case) -> None:
        assert case.killed("store.child_started.after_commit@2").killed
        assert case.killed(point).killed
        matrix.see_through(case)

    matrix.with_case("sending", play)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("story", "first"),
    [
        ("sending", "door.after_perform@2"),
        ("shipping", "store.child_started.after_commit@2"),
        ("doubting", "store.settle.after_commit@2"),
        ("asking", "store.wait.after_commit@2"),
        ("ringing", "store.signal.after_commit@2"),
        ("mending", "store.next_iteration.before_commit"),
        ("fanning", "store.end.after_commit"),
        ("keeping_house", "store.fire.after_commit@3"),
    ],
)
def test_killed_twice(story: str, first: str, matrix: Matrix) -> None:
    """Whatever the second life does, it may be killed at it as well."""

    def count(case: Case) -> dict[str, int]:
        assert case.killed(first).killed
        life = case.nursery.live(case.folder, story=story)
        assert life.code == 0, life.said
        return life.hits

    def play(case: Case, second: str) -> None:
        assert case.killed(first).killed
        case.killed(second)
        matrix.see_through(case)

    hits = sorted(matrix.with_case(story, count))
    for second in hits if WIDE else random.Random(story).sample(hits, 5):
        matrix.with_case(story, lambda case, second=second: play(case, second))


@pytest.mark.slow
@pytest.mark.parametrize("point", DOOR)
def test_killed_at_the_door_with_a_slow_receiver(point: str, matrix: Matrix) -> None:
    """Rule 4: the receiver acts after the client has given up, and perhaps after the restart; once all the same."""
    story = "doubting" if point.endswith("look_up") else "sending"
    matrix.check(story, point, 1, trouble=(Answer(delay=1.0), Answer(delay=1.0)), timeout=0.4)


@pytest.mark.parametrize("nth", [1, 3], ids=["part of the work", "a notice"])
def test_killed_while_the_receiver_holds_the_request(nth: int, matrix: Matrix) -> None:
    """Rule 4: restarted at once, the door waits until the attempt has settled, and the key makes two posts one."""

    def play(case: Case) -> None:
        case.receiver.script(*[Answer()] * (nth - 1), Answer(hold=True))
        assert case.killed_when(lambda: case.receiver.wait_for(deliveries=nth), "a request in flight").killed
        held = case.receiver.deliveries[nth - 1].key
        ((settled,),) = ask_journal(case.folder, f"SELECT settle_at FROM effects WHERE key = '{held}'")
        case.nursery.begin(case.folder, story=case.story)
        seen = nth
        while sum(delivery.key == held for delivery in case.receiver.deliveries) < 2:
            seen += 1
            assert case.receiver.wait_for(deliveries=seen)
        assert Clock(case.folder)() >= settled
        case.receiver.release()
        assert case.nursery.end().code == 0
        matrix.see_through(case)
        assert case.receiver.effects == 4

    matrix.with_case("sending", play)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(6 if WIDE else 2))
@pytest.mark.parametrize("story", STORIES)
def test_killed_at_any_moment(story: str, seed: int, matrix: Matrix) -> None:
    """Between the points there are git commands, threads and half-written answers: a kill does not ask for names."""
    chance = random.Random(f"{story} {seed}")

    def play(case: Case) -> None:
        for _ in range(1 + seed % 3):
            case.killed_after(chance.uniform(0, matrix.baseline(story)[0].seconds))
        matrix.see_through(case)

    matrix.with_case(story, play)
