"""A repository with a bug, an agent that mends it when told to, and the real `becket` beside it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import heal_world
from cli_stage import Answer, Stage, environment

from becket.app.state import StateFolder
from becket.cli.front import run
from becket.testing.world import IDENTITY, commit_all

WAIT = """touch "HERE/at"; while [ ! -e "HERE/go" ]; do sleep 0.05; done"""


class Shop(Stage):
    """`hold()` makes the agent wait until `release()`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        heal_world.prepare(folder)
        self.root = folder / "repo"
        config = (self.root / "becket.yaml").read_text()
        stop = heal_world.STOP.replace("KIND", "agent").replace("STOP", str(folder / "stop"))
        assert stop in config
        self.write("becket.yaml", config.replace(stop, WAIT.replace("HERE", str(folder))))
        commit_all(self.root, "it waits")
        self.release()

    @property
    def paths(self) -> StateFolder:
        return StateFolder(self.root, self.root / ".git")

    @property
    def main(self) -> str:
        return self.git("rev-parse", "main").strip()

    @property
    def agent_waits(self) -> bool:
        return (self.folder / "at").exists()

    def hold(self) -> None:
        for name in ("at", "go"):
            (self.folder / name).unlink(missing_ok=True)

    def release(self) -> None:
        (self.folder / "go").touch()

    def break_it(self, times: int = 1) -> None:
        """Main is red from now on."""
        (self.root / "it.py").write_text(heal_world.BAD + "\n" * times)
        (self.root / "lock.txt").write_text(f"{times}\n")
        subprocess.run(["git", "add", "--all"], cwd=self.root, check=True, env=environment())
        subprocess.run(
            ["git", "commit", "--quiet", "--allow-empty", "-m", "a thing to mend"], cwd=self.root, check=True,
            env=environment() | IDENTITY,
        )  # fmt: skip

    def here(self, *arguments: str) -> Answer:
        """The program within this process: for many calls in a row."""
        out, err, folder = io.StringIO(), io.StringIO(), Path.cwd()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run(["-C", str(self.root), *arguments])
        finally:
            os.chdir(folder)
        return Answer(code, out.getvalue(), err.getvalue())

    def promoted(self) -> list[str]:
        """The keys of all promotions that git tells of."""
        log = self.root / ".git" / "logs" / "refs" / "heads" / "main"
        said = [line.partition("\t")[2] for line in log.read_text().splitlines()]
        return [one.removeprefix("becket: promote ") for one in said if one.startswith("becket: promote ")]

    def recorded(self) -> set[str]:
        """The keys of all effects that the journal at its place tells of."""
        with closing(sqlite3.connect(f"file:{self.paths.database}?mode=ro", uri=True)) as raw:
            return {str(row[0]) for row in raw.execute("SELECT key FROM effects")}


def put_back(kept: Path, place: Path) -> None:
    shutil.rmtree(place)
    shutil.copytree(kept, place, symlinks=True)
