"""The first line of `becket status`: is main green, at which commit, proven when. And the file that does not load."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from pathlib import Path

import pytest

from becket.app.record.main_now import GREEN, JUDGED_NOW, OPEN_QUESTION, QUEUED, RED, UNKNOWN, MainNow
from becket.app.record.overview import overview
from becket.app.record.status import take
from becket.cli.main_words import main_line
from becket.cli.plain import Paint
from becket.cli.status_screen import status_lines
from becket.kernel.contract.agent import AgentOutcome
from becket.testing.agent import Act, ScriptedAgent
from becket.testing.world import World

HEAD, OLD = "9efd980a" * 5, "abc12345" * 5
NOW = 10_000.0
CONFIG = """\
version: 1
sandbox: {use: none, without: [files, processes, network]}
gates: {fast: [{name: word, run: "grep good word.txt"}]}
"""


@pytest.mark.parametrize(
    ("main", "said"),
    [
        (MainNow("main", HEAD, GREEN, NOW - 190, "run_1", "heal"),
         "main is green at 9efd980a (proven 3 minutes ago by heal, run_1)"),
        (MainNow("main", HEAD, GREEN, NOW - 1, "run_1", "heal", repaired=True),
         "main is green at 9efd980a, repaired (proven just now by heal, run_1)"),
        (MainNow("main", HEAD, RED, NOW, "run_1", "heal", failing=2, owner="ada"),
         "main is red at 9efd980a: 2 failing tests; handed to ada"),
        (MainNow("main", HEAD, RED, NOW, "run_1", "heal", failing=1, owner="ada", ready=True, last_green=OLD, behind=1),
         ("main is red at 9efd980a: 1 failing test; a proven repair is ready: becket proposals show run_1 "
         "(last green abc12345, 1 commit ago)")),
        (MainNow("main", HEAD, RED, NOW, "run_1", "heal", failing=2, open="waiting"),
         "main is red at 9efd980a: 2 failing tests; run_1 waits: becket runs show run_1"),
        (MainNow("main", HEAD, RED, NOW, "run_1", "heal", failing=2, open="running"),
         "main is red at 9efd980a: 2 failing tests; run_1 is at work on it"),
        (MainNow("main", HEAD, RED, NOW, "run_1", "heal", failing=2, open="running", alone=True),
         "main is red at 9efd980a: 2 failing tests; nobody works on run_1: becket runs show run_1 --follow"),
        (MainNow("main", HEAD, JUDGED_NOW, NOW - 7200, "run_1", "heal"),
         "main at 9efd980a is being judged by run_1 (began 2 hours ago)"),
        (MainNow("main", HEAD, JUDGED_NOW, NOW, "run_1", "heal", alone=True),
         ("main at 9efd980a is not judged yet: run_1 was interrupted: nobody works on it; "
         "becket runs show run_1 --follow")),
        (MainNow("main", HEAD, QUEUED, NOW, "run_1", "heal", alone=True),
         ("main at 9efd980a is not judged yet: run_1 is queued and nobody works on it; "
         "becket runs show run_1 --follow")),
        (MainNow("main", HEAD, QUEUED, NOW, "run_1", "heal"),
         "main at 9efd980a waits for run_1 (began just now)"),
        (MainNow("main", HEAD, UNKNOWN, last_green=OLD, behind=2),
         "main at 9efd980a is not judged yet (last green abc12345, 2 commits ago)"),
    ],
)  # fmt: skip
def test_the_first_line_says_how_main_stands(main: MainNow, said: str) -> None:
    assert main_line(main, NOW) == said


def test_the_line_is_read_from_the_journal_and_both_readers_agree(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    green = world.commit({"becket.yaml": CONFIG, "word.txt": "good\n"})

    async def stand() -> MainNow:
        full = await overview(world.app)
        quick = take(world.state, full.now)
        assert quick.main == full.main
        assert quick.main is not None
        first = next(status_lines(quick, Paint(io.StringIO())))
        assert first.startswith("main ")
        return quick.main

    async def story() -> None:
        assert (await stand()).state == UNKNOWN
        await world.run("heal")
        now = await stand()
        assert (now.state, now.head, now.repaired) == (GREEN, green, False)
        world.commit({"word.txt": "bad\n"})
        now = await stand()
        assert (now.state, now.last_green, now.behind) == (UNKNOWN, green, 1)
        await world.start("heal")
        now = await stand()
        assert (now.state, now.alone) == (QUEUED, True)
        await world.settle()
        now = await stand()
        assert now.state in (RED, OPEN_QUESTION)
        assert now.owner == world.app.policy.owner()

    asyncio.run(story())


def test_what_is_red_is_red_while_its_run_waits(tmp_path: Path) -> None:
    agent = ScriptedAgent([Act(hint=AgentOutcome.quota_wait, error="usage limit")])
    world = World(tmp_path, store="sqlite", agents={"a": agent})
    agents = "agents: {a: {driver: command, run: 'true'}}\n"
    world.commit({"becket.yaml": CONFIG + agents, "word.txt": "good\n"})

    async def stand() -> MainNow | None:
        full = await overview(world.app)
        quick = take(world.state, full.now)
        assert quick.main == full.main
        return quick.main

    async def story() -> None:
        await world.run("heal")
        world.commit({"word.txt": "bad\n"})
        await world.run("heal")
        now = await stand()
        assert now is not None
        assert (now.state, now.open, now.alone) == (RED, "waiting", False)

    asyncio.run(story())


def becket(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "becket.cli", "-C", str(root), *arguments], capture_output=True, text=True, check=False
    )


def test_a_slip_in_the_file_takes_neither_brakes_nor_reading_and_status_names_it(tmp_path: Path) -> None:
    world = World(tmp_path, store="sqlite")
    world.commit({"becket.yaml": CONFIG + "autonomie: merge\n#database: x\n", "word.txt": "good\n"})
    for arguments in (("pause", "--note", "lunch"), ("runs", "list"), ("handoffs",)):
        done = becket(world.root, *arguments)
        assert done.returncode == 0, done.stderr
        assert "only reading and the brakes work" in done.stderr or arguments == ("runs", "list")  # reads no file
    status = becket(world.root, "status").stdout
    for part in ("lunch", "becket.yaml does not load", "autonomie"):
        assert part in status
    refused = becket(world.root, "run", "heal")
    assert refused.returncode == 2
    assert "autonomie" in refused.stderr
