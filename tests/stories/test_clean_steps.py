"""Each step of a gate is judged by its commit: nothing that another one left is there, and nothing of its own stays."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from heal_stage import HealStage

from becket.kernel.contract.run import Run, RunStatus

SANDBOX = "sandbox: {use: none, without: [files, processes, network]}\n"
SECRET = "Plain-but-Ours-77"


def steps(*written: str) -> str:
    listed = "".join(f"    - {{{step}}}\n" for step in written)
    return f"version: 1\ngates:\n  fast:\n{listed}{SANDBOX}"


def healed(stage: HealStage) -> Run:
    return asyncio.run(stage.heal())


def with_secret(folder: Path, *written: str) -> HealStage:
    stage = HealStage(folder, config=steps(*written))
    stage.world.write("config/own.env", f"TOKEN={SECRET}\n")
    stage.world.write("config/.gitignore", "own.env\n")
    stage.world.commit({"config/plain.txt": "x\n"}, "settings")
    return stage


def secrets_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


USES = "grep -q TOKEN config/own.env"


def test_a_step_that_moves_its_env_file_elsewhere_removes_nothing_there(tmp_path: Path) -> None:
    """L12: its folder is a link when the step has ended."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "own.env").write_text("mine\n")
    away = f"{USES}; mv config gone; ln -s {outside} config"
    stage = with_secret(tmp_path / "stage", f'name: away, run: "{away}", env_file: config/own.env')
    healed(stage)
    assert (outside / "own.env").read_text() == "mine\n"
    assert not secrets_below(stage.world.root / ".worktrees")


@pytest.mark.parametrize(
    "plant",
    [
        "rm -rf config; mkdir config; echo theirs > config/own.env",
        "mkdir -p config/own.env/inner",
        "ln -s own.env config/own.env",
        "rm -rf config; ln -s config config",
        "rm -rf config; touch config",
    ],
    ids=["file", "folder", "loop", "loop above", "file above"],
)
@pytest.mark.parametrize("when", ["before", "during"])
def test_whatever_takes_the_place_of_an_env_file_is_gone(tmp_path: Path, plant: str, when: str) -> None:
    """L12: the step after it, which names no env_file, finds none. A changed tree is no green, and breaks no run."""
    put = f"rm -rf config/own.env; {plant}" if when == "during" else plant
    first = plant if when == "before" else "true"
    second = f"{USES}; {put}" if when == "during" else USES
    stage = with_secret(
        tmp_path,
        f'name: first, run: "{first}"',
        f'name: uses, run: "{second}", env_file: config/own.env',
        'name: last, run: "test ! -e config/own.env; test -f config/plain.txt"',
    )
    made = asyncio.run(stage.world.store.receipts(healed(stage).run_id))
    colors = {str(one.receipt.body["step"]): one.receipt.body["color"] for one in made if one.receipt.kind == "gate"}
    assert colors["uses"] == "green", colors
    assert colors["last"] == "green", colors
    assert not secrets_below(stage.world.root / ".worktrees")


def test_an_env_file_in_the_place_of_a_committed_file_is_refused(tmp_path: Path) -> None:
    """The commit would not be what is judged."""
    stage = HealStage(tmp_path, config=steps('name: uses, run: "true", env_file: config/plain.txt'))
    stage.world.commit({"config/plain.txt": "x\n"}, "settings")
    run = healed(stage)
    assert (run.status, run.reason) == (RunStatus.ready_for_handoff, "environment_broken"), (run.reason, run.detail)
    assert "the commit has config/plain.txt in that place" in str(run.detail["problems"])


PLANTS = "mkdir -p app; touch app/__init__.py"


def test_a_green_that_needs_what_the_step_before_left_is_none(tmp_path: Path) -> None:
    """L5, L11: untracked and ignored files, and what is in the tree's own `.git`."""
    leaves = f"{PLANTS}; touch left.pyc; git tag here"
    finds = 'test ! -e app -a ! -e left.pyc; test -z \\"$(git tag -l here)\\"'
    stage = HealStage(tmp_path, config=steps(f'name: first, run: "{leaves}"', f'name: second, run: "{finds}"'))
    run = healed(stage)
    assert run.status is RunStatus.completed, (run.reason, run.detail)


def test_a_trial_remembers_no_green_of_a_tree_that_its_first_step_changed(tmp_path: Path) -> None:
    """With `inputs` it would stand for every later commit of these files."""
    needs = 'name: unit, run: "test -e app/__init__.py", inputs: [calc.py]'
    stage = HealStage(tmp_path, config=steps(needs))
    head = stage.main()
    stage.world.write("becket.yaml", steps(f'name: first, run: "{PLANTS}"', needs))
    asyncio.run(stage.world.run("trial", inputs={"at": head}))
    stage.git("checkout", "--quiet", "becket.yaml")
    run = healed(stage)
    assert run.status is not RunStatus.completed, run.detail
    assert asyncio.run(stage.world.store.recorded_by("proven", f"main@{head}")) is None


def test_steps_at_the_same_time_do_not_see_each_other(tmp_path: Path) -> None:
    """Each waits until the other has written, and looks then."""
    meet = tmp_path / "meet"
    meet.mkdir()

    def looks(mine: str, other: str) -> str:
        waits = f"until test -e {meet}/{other}; do sleep 0.02; done"
        run = f"touch left-{mine} {meet}/{mine}; {waits}; test ! -e left-{other}"
        return f'name: {mine}, run: "{run}", parallel: true, timeout: 20s'

    stage = HealStage(tmp_path / "stage", config=steps(looks("one", "two"), looks("two", "one")))
    run = healed(stage)
    assert run.status is RunStatus.completed, (run.reason, run.detail)


def test_a_green_does_not_outlive_the_tool_it_was_made_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """L16: the variable by which a toolchain is found is part of the environment."""
    for name in ("one", "two"):
        (tmp_path / name / "bin").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "one"))
    stage = HealStage(tmp_path / "stage", config=steps('name: unit, run: "test ${JAVA_HOME##*/} = one"'))
    assert healed(stage).status is RunStatus.completed
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "two"))
    assert healed(stage).status is not RunStatus.completed
