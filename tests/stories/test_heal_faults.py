"""When the machine fails instead of the code: each fault has a result of its own that says what to do, nothing is lost,
and the next commit works once the fault is gone.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from heal_stage import CONFIG, GOOD, HealStage
from small_disk import disk, fill, make_room, mount

from becket.app.record.verify import verify_run
from becket.kernel.contract.action import ActionContext, Result
from becket.kernel.contract.errors import StoreUnavailable
from becket.kernel.contract.removal import remove
from becket.kernel.contract.run import Run, RunStatus
from becket.testing.agent import Act, ScriptedAgent, writes
from becket.testing.world import World

REPAIRS = Act(writes("calc.py", GOOD))


def problems_of(run: Run) -> str:
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "environment_broken"), (run.reason, run.detail)
    return str(run.detail["problems"])


def calls(stage: HealStage) -> int:
    assert isinstance(stage.agent, ScriptedAgent)
    return len(stage.agent.briefs)


async def the_next_commit_works(stage: HealStage) -> None:
    bad = stage.world.commit({"notes.txt": "more\n"}, "somebody goes on")
    run = await stage.heal()
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert stage.git("rev-parse", "main^") == bad
    assert stage.git("show", "main:calc.py") == GOOD.strip()
    assert stage.git("status", "--porcelain") == ""
    assert not [item for item in await verify_run(stage.world.app, run.run_id, rerun=False) if not item.ok]


def test_a_missing_env_file_is_the_machines_fault(tmp_path: Path) -> None:
    """L13: the handoff names the file and what to do; no agent is called. With the file there it is green."""
    config = CONFIG.replace("min_tests: 1", "min_tests: 1, env_file: .env")
    stage = HealStage(tmp_path, ScriptedAgent([]), config=config)
    stage.world.commit({".gitignore": "__pycache__/\n*.pyc\nreport.xml\n.env\n"}, "keep the secrets out")

    async def story() -> None:
        run = await stage.heal()
        said = problems_of(run)
        assert str(stage.world.root / ".env") in said
        assert "make it, or take env_file out of becket.yaml" in said
        assert run.counted == 1
        stage.world.write(".env", "TOKEN=1\n")
        run = await stage.heal()
        assert run.status is RunStatus.completed, (run.reason, run.detail)

    asyncio.run(story())


def test_a_branch_that_is_only_another_name_is_told_before_anybody_is_called(tmp_path: Path) -> None:
    """L13: promote would refuse to move it, after all the work."""
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]))
    asyncio.run(stage.heal())
    bad = stage.break_it()
    stage.git("branch", "--move", "main", "trunk")
    stage.git("symbolic-ref", "refs/heads/main", "refs/heads/trunk")
    run = asyncio.run(stage.heal())
    assert "write `branch: trunk` in becket.yaml" in problems_of(run)
    assert (run.counted, calls(stage), stage.main()) == (1, 0, bad)


@pytest.mark.parametrize("during", ["service.smoke", "heal.way"])
def test_main_is_moved_back_while_a_repair_is_proven(during: str, tmp_path: Path) -> None:
    """L3, L7: the repair was of a commit that nobody wants any more. It is kept as a ref, and main stays where it was
    put; what is there now is proven instead.
    """
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]))
    asyncio.run(stage.heal())
    bad = stage.break_it()
    replace_action(stage.world, during, lambda: stage.git("reset", "--hard", "--quiet", stage.green))
    run = asyncio.run(stage.heal())
    assert run.status is RunStatus.completed, (run.reason, run.detail)
    assert run.detail["main_proven"]["sha"] == stage.main() == stage.green
    kept = stage.git("for-each-ref", "--format=%(objectname)", f"refs/becket/candidate/{run.run_id}").splitlines()
    assert [stage.git("rev-parse", f"{sha}^") for sha in kept] == [bad]
    assert "becket" not in stage.git("reflog", "show", "main")


def replace_action(world: World, name: str, deed: Callable[[], object]) -> None:
    """The same action, and somebody does something beside it."""
    definition = world.app.registry.actions[name]
    done: list[object] = []

    async def run(context: ActionContext, params: object) -> Result:
        if not done:
            done.append(deed())
        return await definition.run(context, params)  # type: ignore[arg-type]  # the parameters of the action itself

    world.action(replace(definition, run=run))


class ReadOnly:
    """Makes a repository's git directory read-only, with or without the state folder in it. Needs root."""

    def __init__(self, root: Path, aside: Path) -> None:
        self._git = root / ".git"
        self._aside = aside
        self._mounted: list[Path] = []

    def begin(self, *, state_too: bool) -> None:
        state = self._git / "becket"
        if not state_too:
            self._aside.mkdir()
            self._mount(self._aside, "--bind", str(state))
        self._mount(self._git, "--bind", str(self._git))
        mount("-o", "remount,bind,ro", str(self._git))
        if not state_too:
            self._mount(state, "--bind", str(self._aside))

    def end(self) -> None:
        while self._mounted:
            subprocess.run(["umount", "--lazy", str(self._mounted.pop())], check=True)

    def _mount(self, target: Path, *arguments: str) -> None:
        mount(*arguments, str(target))
        self._mounted.append(target)


@pytest.mark.slow
def test_a_repository_that_cannot_be_written_is_told_before_anybody_is_called(tmp_path: Path) -> None:
    """L13: not a fault of the code, so no agent is called, and it is not tried three times."""
    stage = HealStage(tmp_path, ScriptedAgent([REPAIRS]))
    read_only = ReadOnly(stage.world.root, tmp_path / "aside")

    async def story() -> None:
        await stage.heal()
        bad = stage.break_it()
        read_only.begin(state_too=True)
        try:
            run = await stage.heal()
            assert "Read-only file system" in problems_of(run)
            assert "make the repository writable again" in problems_of(run)
            assert (run.counted, calls(stage), stage.main()) == (1, 0, bad)
            with pytest.raises(StoreUnavailable, match=r"becket\.db"):
                await World(tmp_path, store="sqlite").store.list_runs()
        finally:
            read_only.end()
        await the_next_commit_works(stage)

    asyncio.run(story())


@pytest.mark.slow
def test_a_repository_that_becomes_read_only_while_the_agent_works(tmp_path: Path) -> None:
    """L7: its work cannot become a commit. It stays in its checkout until it can be saved, which a restart does."""
    read_only: list[ReadOnly] = []

    def repairs_too_late(tree: Path) -> None:
        writes("calc.py", GOOD)(tree)
        read_only[0].begin(state_too=False)

    stage = HealStage(tmp_path, ScriptedAgent([Act(repairs_too_late), REPAIRS]))
    read_only.append(ReadOnly(stage.world.root, tmp_path / "aside"))

    async def story() -> None:
        await stage.heal()
        bad = stage.break_it()
        try:
            run = await stage.heal()
            assert "make the repository writable again" in problems_of(run)
            assert (calls(stage), stage.main()) == (1, bad)
        finally:
            read_only[0].end()
        await stage.world.restart()
        saved = stage.git("for-each-ref", "--format=%(refname)", f"refs/becket/rescue/{run.run_id}*").splitlines()
        assert [stage.git("show", f"{ref}:calc.py") for ref in saved] == [GOOD.strip()]
        assert not (stage.world.state.runs / run.run_id).exists()
        await the_next_commit_works(stage)

    asyncio.run(story())


@pytest.mark.slow
def test_a_disk_that_is_full_is_told_before_anybody_is_called(tmp_path: Path) -> None:
    """L13: the handoff says which disk; with room on it the next commit is repaired."""

    async def story(folder: Path) -> None:
        stage = HealStage(folder, ScriptedAgent([REPAIRS]))
        await stage.heal()
        bad = stage.break_it()
        fill(folder)
        run = await stage.heal()
        assert "No space left on device; make room on that disk" in problems_of(run)
        assert (run.counted, calls(stage), stage.main()) == (1, 0, bad)
        with pytest.raises(StoreUnavailable, match="disk"):
            await World(folder, store="sqlite").start("heal")
        make_room(folder)
        await the_next_commit_works(stage)

    with disk(tmp_path / "disk") as folder:
        asyncio.run(story(folder))


@pytest.mark.slow
def test_an_agent_that_fills_the_disk_under_the_journal(tmp_path: Path) -> None:
    """L7, L44: what cannot be written is written as soon as there is room; the log says what is waited for."""
    waiting = asyncio.Event()
    filled: list[Path] = []

    class Told(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "disk is full" in record.getMessage():
                waiting.set()

    async def story(folder: Path) -> None:
        def repairs_and_fills(tree: Path) -> None:
            writes("calc.py", GOOD)(tree)
            if not filled:
                filled.append(tree)
                fill(folder)

        agent = ScriptedAgent([Act(repairs_and_fills), Act(repairs_and_fills), REPAIRS])
        stage = HealStage(folder, agent)
        stage.world = World(folder, store="sqlite", agents={"fixer": agent})
        await stage.heal()
        bad = stage.break_it()
        healing = asyncio.create_task(stage.heal())
        await asyncio.wait_for(waiting.wait(), 60)
        assert stage.main() == bad
        make_room(folder)
        run = await asyncio.wait_for(healing, 60)
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert stage.git("rev-parse", "main^") == bad
        assert not [item for item in await verify_run(stage.world.app, run.run_id, rerun=False) if not item.ok]
        await stage.world.store.close()

    told = Told()
    logging.getLogger("becket.engine").addHandler(told)
    try:
        with disk(tmp_path / "disk") as folder:
            asyncio.run(story(folder))
    finally:
        logging.getLogger("becket.engine").removeHandler(told)


def with_submodule(stage: HealStage, folder: Path) -> None:
    """`lib/part`, whose file the tests need."""
    part = World(folder).root
    World(folder).commit({"value.py": "VALUE = 5\n"}, "a part")
    stage.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(part), "lib/part")
    needs = "import pathlib\n\n\ndef test_part():\n    assert list(pathlib.Path('lib/part').iterdir())\n"
    stage.world.commit({"tests/test_part.py": needs}, "use a part")


def forget_submodule(stage: HealStage) -> None:
    stage.git("submodule", "--quiet", "deinit", "--force", "lib/part")
    remove(stage.world.root / ".git/modules")


def test_a_submodule_that_is_gone_is_the_machines_fault(tmp_path: Path) -> None:
    """L13: no agent is called and no commit is blamed; with it there the same commit is green."""
    stage = HealStage(tmp_path / "stage", ScriptedAgent([REPAIRS]))

    async def story() -> None:
        with_submodule(stage, tmp_path / "part")
        assert (await stage.heal()).status is RunStatus.completed
        forget_submodule(stage)
        stage.world.commit({"notes.txt": "more\n"}, "somebody goes on")
        said = problems_of(await stage.heal())
        assert "lib/part is not there; run `git submodule update --init --recursive`" in said
        assert calls(stage) == 0
        stage.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init", "--recursive")
        run = await stage.heal()
        assert run.status is RunStatus.completed, (run.reason, run.detail)

    asyncio.run(story())


def test_a_commit_of_a_submodule_that_nobody_fetched_is_the_machines_fault(tmp_path: Path) -> None:
    """L13: the last proven commit is green without it."""
    stage = HealStage(tmp_path / "stage", ScriptedAgent([REPAIRS]))

    async def story() -> None:
        with_submodule(stage, tmp_path / "part")
        assert (await stage.heal()).status is RunStatus.completed
        stage.git("update-index", "--cacheinfo", f"160000,{'1' * 40},lib/part")
        stage.git("commit", "--quiet", "--message", "a newer part")
        assert "run `git submodule update" in problems_of(await stage.heal())
        assert calls(stage) == 0

    asyncio.run(story())


def test_a_submodule_that_no_step_needs_hides_no_bug(tmp_path: Path) -> None:
    stage = HealStage(tmp_path / "stage", ScriptedAgent([REPAIRS]))

    async def story() -> None:
        with_submodule(stage, tmp_path / "part")
        stage.world.commit({"tests/test_part.py": "def test_part():\n    assert True\n"}, "without it")
        forget_submodule(stage)
        assert (await stage.heal()).status is RunStatus.completed
        stage.break_it()
        run = await stage.heal()
        assert run.status is RunStatus.completed, (run.reason, run.detail)
        assert calls(stage) == 1

    asyncio.run(story())


def needing(place: Path) -> str:
    return f"import os\n\n\ndef test_place():\n    assert os.path.exists({str(place)!r})\n"


def test_no_code_is_blamed_where_the_last_proven_commit_is_red_too(tmp_path: Path) -> None:
    """L13: nothing in the log tells of the machine."""
    place = tmp_path / "place"
    place.touch()
    stage = HealStage(tmp_path / "stage", ScriptedAgent([REPAIRS]))

    async def story() -> None:
        proven = stage.world.commit({"tests/test_place.py": needing(place)}, "a test that needs a place")
        assert (await stage.heal()).status is RunStatus.completed
        place.unlink()
        stage.world.commit({"notes.txt": "more\n"}, "somebody goes on")
        said = problems_of(await stage.heal())
        assert f"the last proven commit {proven[:12]} is red now too" in said
        assert f"becket gates try fast/unit --at {proven[:12]}" in said
        assert calls(stage) == 0

    asyncio.run(story())


def test_a_proven_commit_that_is_red_with_other_variables_is_the_machines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its greens were made with others, so it is judged anew; and nothing of it has changed."""
    place = tmp_path / "place"
    place.touch()
    monkeypatch.setenv("TOOLS", "one")
    config = CONFIG.replace("name: unit,", "name: unit, env: [TOOLS],")
    stage = HealStage(tmp_path / "stage", ScriptedAgent([REPAIRS]), config=config)

    async def story() -> None:
        proven = stage.world.commit({"tests/test_place.py": needing(place)}, "a test that needs a place")
        assert (await stage.heal()).status is RunStatus.completed
        place.unlink()
        monkeypatch.setenv("TOOLS", "another")
        said = problems_of(await stage.heal())
        assert f"the last proven commit {proven[:12]} is red now too" in said
        assert calls(stage) == 0

    asyncio.run(story())


def test_a_step_that_is_new_says_nothing_of_the_machine(tmp_path: Path) -> None:
    """Where the last proven commit is red by it too: it was never proven there."""
    more = "      - {name: strict, run: \"! grep -q '/ len' calc.py\"}\ntest_side:".replace("      -", "    -")
    stage = HealStage(tmp_path, ScriptedAgent([Act(writes("calc.py", GOOD.replace("/ len", "// len")))]))

    async def story() -> None:
        assert (await stage.heal()).status is RunStatus.completed
        text = (stage.world.root / "becket.yaml").read_text()
        stage.world.commit({"becket.yaml": text.replace("test_side:", more)}, "be strict")
        run = await stage.heal()
        assert run.reason != "environment_broken", run.detail

    asyncio.run(story())
