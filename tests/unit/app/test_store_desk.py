"""What `becket store` tells of a journal that is damaged in whatever way, or cannot be looked at."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from becket.app.compose import App
from becket.app.state import StateFolder, find_state
from becket.app.store_desk import backup, check, restore
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store.damage import read_only

PAGE = 4096
LOOP = """
version: 1
loop_id: note
goal: Something is noted.
trigger: [{manual: {}}]
subject: "note/{text}"
inputs: {text: {type: string}}
max_iterations: 1
deadline: 10m
stop_conditions: [fine.pass]
phases: {verify: {objective: Look., verifiers: [{id: fine, run: "true", in: scratch}]}}
"""


def repository(folder: Path) -> StateFolder:
    subprocess.run(["git", "init", "-q", "-b", "main", str(folder)], check=True)
    loops = folder / ".becket" / "loops"
    loops.mkdir(parents=True)
    (loops / "note.yaml").write_text(LOOP)
    author = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    subprocess.run(["git", *author, "commit", "-qm", "x", "--allow-empty"], cwd=folder, check=True)
    return find_state(folder)


async def note(state: StateFolder, *texts: str) -> list[str]:
    app = App.open(state)
    try:
        asked = [StartRequest(loop_id="note", trigger="manual", inputs={"text": text}) for text in texts]
        return [run.run_id for ask in asked if (run := (await app.intake.start(ask)).run) is not None]
    finally:
        await app.store.close()


def in_one_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def flip(path: Path, seed: int) -> None:
    """Forty bytes of every page but the first."""
    rng, content = random.Random(seed), bytearray(path.read_bytes())
    for page in range(PAGE, len(content), PAGE):
        for _ in range(40):
            content[page + rng.randrange(PAGE)] ^= rng.randrange(1, 256)
    path.write_bytes(content)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_journal_of_flipped_bytes_is_restored_and_told_of(tmp_path: Path, seed: int) -> None:
    state = repository(tmp_path / "repo")
    kept = asyncio.run(note(state, "first"))
    backup(state)
    lost = set(asyncio.run(note(state, *(f"{'word ' * 20}{number}" for number in range(40)))))
    in_one_file(state.database)
    flip(state.database, seed)
    done = asyncio.run(restore(state, None))
    assert done.aside is not None
    assert set(done.lost_runs) <= lost
    with closing(read_only(state.database)) as raw:
        assert [row[0] for row in raw.execute("SELECT run_id FROM runs")] == kept


def test_a_run_whose_name_is_no_text_does_not_hide_the_others(tmp_path: Path) -> None:
    state = repository(tmp_path / "repo")
    asyncio.run(note(state, "first"))
    backup(state)
    bad, *good = asyncio.run(note(state, "a", "b", "c"))
    with closing(sqlite3.connect(state.database)) as raw:
        raw.execute("PRAGMA foreign_keys = OFF")
        raw.execute("UPDATE runs SET run_id = CAST(x'72756e5fff' AS TEXT) WHERE run_id = ?", (bad,))
        raw.commit()
    done = asyncio.run(restore(state, None))
    assert sorted(done.lost_runs) == sorted(good)


VERB = """
import asyncio, resource, sys
from pathlib import Path
from becket.app.state import find_state
from becket.app.record.status import take
from becket.app.store_desk import accept, check, restore
from becket.kernel.contract.errors import BecketError
state = find_state(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
for verb in (check, lambda one: restore(one, None), accept, lambda one: asyncio.to_thread(take, one)):
    try:
        print(f"it went well: {asyncio.run(verb(state))}")
    except BecketError as error:
        print(f"{type(error).__name__}: {error}")
"""


def test_a_journal_that_cannot_be_looked_at_is_neither_called_damaged_nor_replaced(tmp_path: Path) -> None:
    """Whoever restores then would replace a whole journal by an older one. Nothing can be written, as on a full disk:
    neither SQLite's index nor the name in a lock.
    """
    state = repository(tmp_path / "repo")
    asyncio.run(note(state, "first"))
    backup(state)
    asyncio.run(note(state, "second"))
    before = state.database.read_bytes()
    told = subprocess.run([sys.executable, "-c", VERB, str(state.root)], check=True, capture_output=True, text=True)
    lines = told.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("StoreUnavailable: "), line
        assert "nothing is known to be wrong with it" in line
        assert "becket store" not in line
    assert state.database.read_bytes() == before
    assert asyncio.run(check(state)).ok
