"""One case of the crash matrix: a story in a folder of its own, killed any number of times and then seen through."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import crash_world
from crash_compare import Doubt, compare, no_stray_process
from crash_world import STORIES

from becket.kernel.contract.base import Json
from becket.testing.crashes import Nursery, ProcessLife
from becket.testing.receiver import Answer, Receiver

HERE = Path(__file__).parent


@dataclass
class Case:
    """One story in one folder, killed any number of times and then seen through."""

    story: str
    folder: Path
    nursery: Nursery
    receiver: Receiver
    arguments: dict[str, Json] = field(default_factory=dict)
    doubts: dict[str, Doubt] = field(default_factory=dict)
    paid: set[str] = field(default_factory=set)
    deaths: list[str] = field(default_factory=list)

    def killed(self, at: str) -> ProcessLife:
        """A life that is to end at a crash point."""
        life = self.nursery.live(self.folder, at, story=self.story, **self.arguments)
        self._buried(at)
        return life

    def killed_when(self, ready: Callable[[], object], what: str) -> ProcessLife:
        """A life that is killed from outside, as soon as `ready` returns."""
        pid = self.nursery.begin(self.folder, story=self.story, **self.arguments)
        ready()
        os.kill(pid, signal.SIGKILL)  # not reaped before `end`: the id is still its own
        life = self.nursery.end()
        self._buried(what)
        return life

    def killed_after(self, seconds: float) -> ProcessLife:
        return self.killed_when(lambda: time.sleep(seconds), f"{seconds:.3f} s")

    def _buried(self, how: str) -> None:
        self.deaths.append(how)
        for key, class_, deferred, target in ask_journal(self.folder, UNSETTLED):
            self.doubts[key] = Doubt(key, class_, bool(deferred), target.startswith("command:"))
        self.paid |= {subject for (subject,) in ask_journal(self.folder, PAID)}

    def through(self) -> dict[str, Any]:
        """The life after the last kill, to its end; what the world then looks like."""
        life = self.nursery.live(self.folder, story=self.story, **self.arguments)
        assert life.code == 0, f"the next life failed (exit code {life.code}): {life.said or self._unfinished()}"
        return self.seen(life)

    def _unfinished(self) -> str:
        questions = (
            "SELECT subject, status, iteration, waiting_on FROM runs",
            "SELECT name, target, state, attempts, reason FROM effects",
            "SELECT run_id, kind, data FROM events ORDER BY at DESC LIMIT 15",
        )
        return "\n".join(str(row) for question in questions for row in ask_journal(self.folder, question))

    def seen(self, life: ProcessLife) -> dict[str, Any]:
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

    def with_case(
        self, story: str, play: Callable[[Case], Any], trouble: tuple[Answer, ...] | None = None, **arguments: Json
    ) -> Any:
        self._cases += 1
        folder = self._folder / f"{self._cases}"
        folder.mkdir()
        with Receiver() as receiver:
            receiver.script(*(STORIES[story].trouble if trouble is None else trouble))
            crash_world.prepare(folder, STORIES[story].loops, receiver.url)
            try:
                return play(Case(story, folder, self.nursery, receiver, arguments))
            finally:
                receiver.release()
                no_stray_process(folder)

    def baseline(self, story: str) -> tuple[ProcessLife, dict[str, Any]]:
        """Told once per test session, however many processes it has."""
        file = self._shared / f"crash-baseline-{story}.json"
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not file.exists():
                file.write_text(json.dumps(self.with_case(story, self._unharmed)))
        life, view = json.loads(file.read_text())
        return ProcessLife(**life), view

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

    def see_through(self, case: Case) -> None:
        """Start it again, and compare with what happens when nobody is killed."""
        try:
            compare(self.baseline(case.story)[1], case.through(), case.doubts.values(), case.paid)
        except AssertionError as error:
            error.add_note(f"{case.story} was killed at {case.deaths}; under way: {list(case.doubts.values())}")
            raise

    def check(
        self, story: str, point: str, nth: int, trouble: tuple[Answer, ...] | None = None, **arguments: Json
    ) -> None:
        """Kill at the nth hit, start again, compare."""

        def play(case: Case) -> ProcessLife:
            life = case.killed(f"{point}@{nth}")
            if life.killed:
                self.see_through(case)
            return life

        life = self.with_case(story, play, trouble, **arguments)
        if not life.killed and life.code == 0 and 0 < life.hits.get(point, 0) < nth:
            self.check(story, point, life.hits[point])  # how often it looks around is a matter of timing
            return
        assert life.killed, f"{story} was not killed at {point}@{nth}: exit code {life.code}\n{life.said}"
