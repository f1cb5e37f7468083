"""What may not even be stored: the guard keeps it out of the repository, tells the agent once, and then a person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from heal_stage import GOOD, HealStage

from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes

TOKEN = "ghp_" + "Zk3Qw9Lm2Xv7Bn5Tc8Rf1Hd6Js4Py0Ga2VuE7"
REPAIRS = Act(writes("calc.py", GOOD))


def with_a_dump(tree: Path) -> None:
    writes("calc.py", GOOD)(tree)
    with (tree / "core.12345").open("wb") as file:
        file.truncate(3 << 30)


def with_a_token(tree: Path) -> None:
    writes("calc.py", GOOD)(tree)
    writes("settings.py", f'KEY = "{TOKEN}"\n')(tree)
    writes(f"notes/{TOKEN}.txt", "seen\n")(tree)
    (tree / "leads").symlink_to(f"notes/{TOKEN}.txt")


LARGE = (with_a_dump, "core.12345: large-file: the file has 3,221,225,472 bytes; the limit is 5,000,000")
SECRET = (with_a_token, "settings.py:1: secret-added: a GitHub token stands in the line")
EACH = pytest.mark.parametrize(("deed", "words"), [LARGE, SECRET], ids=["large", "secret"])


class Stage:
    def __init__(self, folder: Path, *acts: Act) -> None:
        self.agent = ScriptedAgent(acts)
        self.heal = HealStage(folder, self.agent)
        asyncio.run(self.heal.heal())
        self.bad = self.heal.break_it()

    def run(self) -> Run:
        return asyncio.run(self.heal.heal())

    def stored(self) -> list[str]:
        """Whatever holds the token or is large: objects of the repository, artifacts, the journal, folders of runs."""
        home = self.heal.world.root
        sizes = self.heal.git("cat-file", "--batch-check", "--batch-all-objects").splitlines()
        blobs = [line.split(" ")[0] for line in sizes if " blob " in line]
        found = [line for line in sizes if int(line.split(" ")[2]) > 1_000_000]
        found += [blob for blob in blobs if TOKEN in self.heal.git("cat-file", "blob", blob)]
        files = [path for path in (home / ".git").rglob("*") if path.is_file()]
        return found + [str(path) for path in files if path.stat().st_size > 1 << 30 or TOKEN.encode() in read(path)]


def read(path: Path) -> bytes:
    return path.read_bytes() if path.stat().st_size < 100_000_000 else b""


def test_the_agent_is_told_and_its_next_try_is_promoted(tmp_path: Path) -> None:
    stage = Stage(tmp_path, Act(with_a_dump), REPAIRS)
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert LARGE[1] in stage.agent.briefs[1]
    assert stage.heal.git("rev-parse", "main^") == stage.bad
    assert stage.stored() == []


@EACH
def test_a_second_time_it_is_a_persons_and_the_rest_of_the_work_is_saved(
    tmp_path: Path, deed: Callable[[Path], None], words: str
) -> None:
    stage = Stage(tmp_path, Act(deed), Act(deed))
    run = stage.run()
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "candidate.guard_refused"), run.detail
    assert any(words in told for told in run.detail["against"]), run.detail
    assert stage.heal.git("for-each-ref", "refs/becket/candidate") == ""
    (saved, *_) = stage.heal.git("for-each-ref", "--format=%(refname)", "refs/becket/rescue").splitlines()
    assert stage.heal.git("diff", "--name-only", "main", saved) == "calc.py"
    assert stage.stored() == []


def test_it_is_told_whatever_came_before(tmp_path: Path) -> None:
    """A try without a change was in vain; this one was not."""
    stage = Stage(tmp_path, Act(), Act(with_a_token), REPAIRS)
    run = stage.run()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert SECRET[1] in stage.agent.briefs[2]
