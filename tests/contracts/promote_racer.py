"""A person who never rests: commits, amends, switches and edits until standard input ends. Run as a program.

Writes one JSON line for everything that git told them was done.
"""

from __future__ import annotations

import json
import random
import select
import subprocess
import sys
from pathlib import Path
from typing import Any


class Racer:
    def __init__(self, home: Path, seed: int, habits: str) -> None:
        self.home = home
        self.chance = random.Random(seed)
        self.habits = habits.split(",")
        self.number = 0
        self.waiting: list[str] = []  # staged or edited, but git would not commit it yet

    def live(self) -> None:
        while not select.select([sys.stdin], [], [], self.chance.choice([0, 0, 0.01, 0.03]))[0]:
            getattr(self, self.chance.choice(self.habits))()
        self.say(did="end", waiting=self.waiting)

    def commit(self) -> None:
        """`git add` and `git commit`; what fails is tried again with the next one."""
        self.number += 1
        name = f"racer/{self.number}"
        self.write(name, f"{name}\n")
        if not self.git("add", name):
            self.write(name, None)
            return
        self.waiting.append(name)
        self.committed("commit", "--quiet", "--no-edit", "-m", f"racer {' '.join(self.waiting)}")

    def commit_all(self) -> None:
        self.number += 1
        self.write("racer/tracked", f"{self.number}\n")
        self.committed("commit", "--quiet", "--all", "-m", f"racer tracked {self.number} {' '.join(self.waiting)}")

    def amend(self) -> None:
        head = self.git("log", "-1", "--format=%an%n%s")
        if head and head.splitlines()[0] == "Racer":
            self.number += 1
            words = head.splitlines()[1]
            self.committed(
                "commit", "--quiet", "--amend", "-m", f"{words} {' '.join(self.waiting)} again-{self.number}"
            )

    def switch(self) -> None:
        self.git("switch", "--quiet", self.chance.choice(["main", "main", "side"]))

    def edit(self) -> None:
        self.number += 1
        self.write("racer/dirty", f"{self.number}\n")
        self.say(did="edit", text=f"{self.number}\n")

    def look(self) -> None:
        """As an editor does all the time; it writes the index where it may."""
        self.git("status", "--porcelain")

    def committed(self, *command: str) -> None:
        if self.git(*command) is not None:
            self.say(did=command[0], files=self.waiting, amend="--amend" in command)
            self.waiting = []

    def git(self, *command: str) -> str | None:
        ended = subprocess.run(["git", *command], cwd=self.home, capture_output=True, text=True, check=False)
        self.say(did="ran", command=command[0], code=ended.returncode, stderr=ended.stderr[-300:])
        return ended.stdout if ended.returncode == 0 else None

    def write(self, name: str, text: str | None) -> None:
        path = self.home / name
        if text is None:
            path.unlink()
            return
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)

    @staticmethod
    def say(**what: Any) -> None:
        print(json.dumps(what), flush=True)


if __name__ == "__main__":
    Racer(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).live()
