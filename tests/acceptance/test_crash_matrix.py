"""Kill -9 at every named point, start again: the run ends as it would have ended, and the outside sees it once.

The matrix is made from the registry of crash points. A point that no story passes is a failure that names it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import crash_world
import pytest
from crash_compare import Doubt, compare, no_stray_process
from crash_world import STORIES

from becket.testing.crashes import Life, Nursery, every_point
from becket.testing.receiver import Receiver

POINTS = sorted(every_point())
HERE = Path(__file__).parent


@dataclass
class Case:
    """One story in one folder, killed any number of times and then seen through."""

    story: str
    folder: Path
    nursery: Nursery
    receiver: Receiver
    doubts: dict[str, Doubt] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)

    def killed(self, at: str) -> Life:
        """A life that is to end at a crash point."""
        life = self.nursery.live(self.folder, at, story=self.story)
        self.buried()
        return life

    def buried(self) -> None:
        for key, class_, deferred, target in ask_journal(self.folder, UNSETTLED):
            self.doubts[key] = Doubt(key, class_, bool(deferred), target.startswith("command:"))
        self.paid |= {subject for (subject,) in ask_journal(self.folder, PAID)}

    def through(self) -> dict[str, Any]:
        """The life after the last kill, to its end; what the world then looks like."""
        life = self.nursery.live(self.folder, story=self.story)
        assert life.code == 0, f"the next life failed (exit code {life.code}): {life.said or self._unfinished()}"
        return self.seen(life)

    def _unfinished(self) -> str:
        questions = (
            "SELECT subject, status, iteration, waiting_on FROM runs",
            "SELECT name, target, state, attempts, reason FROM effects",
            "SELECT run_id, kind, data FROM events ORDER BY at DESC LIMIT 15",
        )
        return "\n".join(str(row) for question in questions for row in ask_journal(self.folder, question))

    def seen(self, life: Life) -> dict[str, Any]:
        posts = {
            (delivery.path, delivery.key): delivery.body.decode() for delivery in self.receiver.deliveries
        }  # fmt: skip
        console = (self.folder / "console.log").read_text().splitlines()
        return {**life.value, "posts": sorted([path, body] for (path, _), body in posts.items()), "console": console}


UNSETTLED = """
SELECT key, class, defer, target FROM effects WHERE state IN ('intended', 'retrying') OR (
    state = 'done' AND json_extract(result, '$.observed') AND NOT EXISTS (
        SELECT 1 FROM steps WHERE steps.run_id = effects.run_id AND steps.iteration = effects.iteration
            AND steps.phase = effects.phase AND steps.id = effects.action_id))
"""
"""Effects under way, and those whose look-up is known to the row only: its receipt died with the process."""

PAID = """
SELECT DISTINCT runs.subject FROM spending JOIN runs USING (run_id) WHERE NOT EXISTS (
    SELECT 1 FROM steps WHERE spending.key LIKE
        steps.run_id || ':' || steps.iteration || ':' || steps.phase || ':' || steps.id || ':%')
"""
"""Runs that paid for a call whose outcome died with the process: what it cost counts, although it brought nothing."""


def ask_journal(folder: Path, question: str) -> list[tuple[Any, ...]]:
    """Read the journal as any program would."""
    file = folder / "repo" / ".git" / "becket" / "becket.db"
    if not file.exists():
        return []
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as journal:
        made = journal.execute("SELECT 1 FROM sqlite_master WHERE name = 'effects'").fetchone()
        return journal.execute(question).fetchall() if made else []


class Matrix:
    """The nursery, and what each story looks like when nobody is killed."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self._folder = folder
        self._shared = shared
        self._cases = 0
        self.nursery = Nursery("crash_world:play", paths=[HERE])

    def with_case(self, story: str, play: Callable[[Case], Any]) -> Any:
        self._cases += 1
        folder = self._folder / f"{self._cases}"
        folder.mkdir()
        with Receiver() as receiver:
            receiver.script(*STORIES[story].trouble)
            crash_world.prepare(folder, STORIES[story].loops, receiver.url)
            try:
                return play(Case(story, folder, self.nursery, receiver))
            finally:
                no_stray_process(folder)

    def baseline(self, story: str) -> tuple[Life, dict[str, Any]]:
        """Told once per test session, however many processes it has."""
        file = self._shared / f"crash-baseline-{story}.json"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_text(json.dumps(self.with_case(story, self._unharmed)))
        life, view = json.loads(file.read_text())
        return Life(**life), view

    @staticmethod
    def _unharmed(case: Case) -> tuple[dict[str, Any], dict[str, Any]]:
        life = case.nursery.live(case.folder, story=case.story)
        assert life.code == 0, life.said
        view = case.seen(life)
        assert (view["unproven"], view["leftovers"]) == ([], [])
        return asdict(life), view

    def stories_with(self, point: str, hits: int = 1) -> list[str]:
        """Those that pass a point often enough, the quickest first."""
        found = {story: self.baseline(story)[0] for story in STORIES}
        often = [story for story, life in found.items() if life.hits.get(point, 0) >= hits]
        return sorted(often, key=lambda story: found[story].seconds)

    def check(self, story: str, point: str, nth: int) -> None:
        """Kill at the nth hit, start again, compare with what happens when nobody is killed."""

        def play(case: Case) -> Life:
            life = case.killed(f"{point}@{nth}")
            try:
                if life.killed:
                    compare(self.baseline(story)[1], case.through(), case.doubts.values(), case.paid)
            except AssertionError as error:
                error.add_note(f"{story} was killed at {point}@{nth}; under way: {list(case.doubts.values())}")
                raise
            return life

        life = self.with_case(story, play)
        if not life.killed and life.code == 0 and 0 < life.hits.get(point, 0) < nth:
            self.check(story, point, life.hits[point])  # how often it looks around is a matter of timing
            return
        assert life.killed, f"{story} was not killed at {point}@{nth}: exit code {life.code}\n{life.said}"


@pytest.fixture(scope="session")
def matrix(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Matrix]:
    base = tmp_path_factory.getbasetemp()
    matrix = Matrix(tmp_path_factory.mktemp("crashes"), base.parent if hasattr(request.config, "workerinput") else base)
    with matrix.nursery:
        yield matrix


def test_there_are_enough_points_to_call_it_a_matrix() -> None:
    assert len(POINTS) >= 40


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_the_first_hit(point: str, matrix: Matrix) -> None:
    """L7, L31, L42: whatever was under way is done once, by whoever comes next."""
    stories = matrix.stories_with(point)
    assert stories, f"no story passes the crash point {point}; let one of tests/acceptance/crash_world.py do so"
    matrix.check(stories[0], point, 1)


@pytest.mark.slow
@pytest.mark.parametrize("which", ["first", "second", "last"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_hit_of_every_story(point: str, which: str, matrix: Matrix) -> None:
    """Rule 13 of the engine: a point that is harmless at its first hit may not be so at a later one."""
    stories = matrix.stories_with(point, 1 if which == "first" else 2)
    assert stories, f"no story passes the crash point {point} twice"
    for story in stories:
        hits = matrix.baseline(story)[0].hits[point]
        matrix.check(story, point, {"first": 1, "second": 2, "last": hits}[which])
