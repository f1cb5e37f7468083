"""Green in five minutes: init tries what it proposes, `gates try` tries it again, `shell` looks around."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from cli_stage import PROGRAM, Stage, environment

from becket.parts.init.scaffold import CONFIG_FILE

MAKEFILE = "test:\n\tgrep -q good state.txt\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "repo")
    (stage.root / CONFIG_FILE).unlink()
    stage.write("Makefile", MAKEFILE)
    stage.write("state.txt", "good\n")
    stage.commit("a project")
    return stage


def test_init_tries_its_proposal_at_head_and_says_what_comes_next(stage: Stage) -> None:
    """What is not committed is not tried: HEAD is the tree, the new becket.yaml the definition."""
    stage.write("state.txt", "not committed\n")
    told = stage.becket("init").out
    head = stage.git("rev-parse", "HEAD")[:8]
    assert f"green at {head}: fast/make_test" in told
    assert told.rstrip().splitlines()[-2:][0].strip().startswith("git add becket.yaml .becket && git commit")
    assert "becket run heal" in told
    assert not list(stage.state.glob("runs/*"))
    assert stage.json("handoffs", "list") == []


def test_init_ends_with_what_the_doctor_knows_of_this_repository(stage: Stage) -> None:
    """A submodule that is not here, a program that is missing, and that nobody repairs."""
    head = stage.git("rev-parse", "HEAD").strip()
    stage.write(".gitmodules", '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n')
    stage.write("Makefile", "test: \n\tgrep -q good state.txt\n")
    stage.write("svc/go.mod", "module x\n")
    stage.write("svc/a_test.go", "package x\n")
    stage.git("update-index", "--add", "--cacheinfo", f"160000,{head},lib")
    (stage.root / "lib").mkdir()
    stage.commit("with a submodule")
    path = stage.root.parent / "bin"
    path.mkdir()
    for name in ("git", "make", "grep", "sh", "python3"):
        (path / name).symlink_to(shutil.which(name) or name)
    env = {"PATH": str(path)}
    told = stage.becket("init", "--no-try", "--force", env=env).out.splitlines()
    submodule = next(number for number, line in enumerate(told) if "submodules that are not here" in line)
    assert told[submodule].endswith("lib")
    assert "git submodule update --init --recursive" in told[submodule + 1]
    assert any("go, which gates.fast.go_test_svc starts, was not found" in line for line in told)
    assert any("no agent is configured" in line for line in told)
    assert told[-1].strip() == "becket doctor"
    remarks = stage.becket("init", "--no-try", "--force", "--json", env=env).json["remarks"]
    assert {one["name"] for one in remarks} >= {"tools", "contents", "agents"}
    assert all(one["mend"] for one in remarks)


MANIFEST = """\
test:
\t@for file in $$(git ls-files); do grep -qx $$file MANIFEST || { echo "$$file is not in MANIFEST"; exit 1; }; done
"""


def test_the_projects_own_checks_see_what_init_wrote_before_it_is_committed(stage: Stage) -> None:
    """Else they would be red for the first time once becket.yaml is committed."""
    stage.write("Makefile", MANIFEST)
    stage.write(".gitignore", ".becket/own/\n")
    stage.git("add", "--all")
    stage.write("MANIFEST", stage.git("ls-files") + "MANIFEST\n")
    stage.commit("checks its files")
    told = stage.becket("init", code=1).out
    assert "is not in MANIFEST" in told
    assert "which Becket wrote: leave becket.yaml and .becket out" in told
    stage.write(".becket/own/secret", "ignored files are not taken")
    stage.write("MANIFEST", (stage.root / "MANIFEST").read_text() + "becket.yaml\n.becket/loops/hello.yaml\n")
    stage.git("commit", "--quiet", "-m", "names them", "MANIFEST")
    tried = stage.json("gates", "try")
    assert (tried["green"], tried["sha"]) == (True, stage.git("rev-parse", "HEAD").strip())
    assert stage.git("for-each-ref", "refs/becket/trial") == ""
    assert stage.git("diff", "--cached", "--name-only") == ""
    assert stage.json("gates", "try", "--at", "HEAD")["green"]


def test_what_is_red_comes_with_its_log_and_the_key_to_change_and_is_tried_again_by_hand(stage: Stage) -> None:
    stage.write("Makefile", "test:\n\tno-such-program --fast\n")
    stage.commit("needs a program")
    told = stage.becket("init", code=1).out
    assert "red    fast/make_test" in told
    assert "no-such-program" in told
    written = (stage.root / CONFIG_FILE).read_text().splitlines()
    line = next(number for number, text in enumerate(written, 1) if text.strip().startswith('run: "make test"'))
    assert f"look at `gates.fast[0].run` in becket.yaml (line {line})" in told
    assert told.rstrip().endswith("becket gates try")
    (stage.root / CONFIG_FILE).write_text("\n".join(written).replace("make test", "grep -q good state.txt"))
    assert "green at" in stage.becket("gates", "try", "make_test").out
    tried = stage.json("gates", "try", "fast/make_test", "--at", "HEAD~1")
    assert (tried["green"], tried["sha"]) == (True, stage.git("rev-parse", "HEAD~1").strip())
    assert "the steps are fast/make_test" in stage.becket("gates", "try", "nope", code=2).err
    assert stage.json("gates", "list")["steps"][0]["name"] == "make_test"


def test_a_red_try_leaves_no_copy_of_its_set_up_behind_and_the_next_one_finds_it(stage: Stage) -> None:
    """Without any daemon. Where the sandbox holds no files, a set-up is nobody else's and goes with its run."""
    stage.write("lock", "one\n")
    stage.commit("a lock")
    setup = 'setup: {run: "mkdir deps && cp lock deps", key: [lock]}'
    stage.write(CONFIG_FILE, f'version: 1\n{setup}\ngates: {{fast: [{{name: unit, run: "exit 1"}}]}}\n')
    kept = []
    for number in range(3):
        stage.becket("gates", "try", code=1)
        kept.append([path.name for path in (stage.state / "setups").iterdir() if path.is_dir()])
        stage.write(CONFIG_FILE, (stage.root / CONFIG_FILE).read_text().replace("exit ", f"exit {number}"))
    assert kept[0] == kept[1] == kept[2]
    assert len(kept[0]) <= 1


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="only bubblewrap can show a tree elsewhere")
def test_a_try_and_a_run_see_their_tree_at_the_same_place_that_misleads_no_tool(stage: Stage) -> None:
    """jest finds nothing below `.git`, and node takes every file below `test` for a test."""
    step = '{name: place, run: "test $(pwd) = /run/becket/tree && test $(git rev-parse --show-toplevel) = $(pwd)"}'
    sandbox = "sandbox: {use: bwrap}"
    stage.write(CONFIG_FILE, f"version: 1\nbranch: main\nautonomy: observe\n{sandbox}\ngates: {{fast: [{step}]}}\n")
    assert "green at" in stage.becket("gates", "try").out
    stage.commit("gates")
    assert "main is green" in stage.becket("run", "heal").out
    assert (stage.root / ".worktrees/base/state.txt").exists()
    assert stage.becket("shell", "--", "pwd").out == "/run/becket/tree\n"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="it shows what a set-up made as read-only, to root as well")
@pytest.mark.parametrize("place", ["node_modules/tool", "/run/becket/tree/node_modules/tool"])
def test_a_write_into_what_the_set_up_made_is_not_blamed_on_the_code(stage: Stage, place: str) -> None:
    stage.write("lock", "one\n")
    stage.commit("a lock")
    step = f'{{name: unit, run: "seq 30; touch {place}/cache || true; seq 30; exit 1"}}'
    stage.write(
        CONFIG_FILE,
        f"version: 1\nsandbox: {{use: bwrap}}\ngates: {{fast: [{step}]}}\n"
        'setup: {run: "mkdir -p node_modules/tool && cp lock node_modules/tool", key: [lock]}\n',
    )
    told = stage.becket("gates", "try", code=1).out
    assert "fast/unit: environment" in told
    assert told.count("Read-only file system") >= 2  # in the excerpt and in the advice
    assert "turn off what writes there" in told


def test_init_without_a_commit_or_a_wish_to_try_only_writes(stage: Stage, tmp_path: Path) -> None:
    told = stage.json("init", "--no-try")
    assert told["tried"] is None
    empty = tmp_path / "empty"
    empty.mkdir()
    subprocess.run(["git", "init", "--quiet", str(empty)], check=True, env=environment())
    (empty / "Makefile").write_text(MAKEFILE)
    assert "there is no commit yet" in stage.becket("-C", str(empty), "init").out
    assert "there is no commit yet" in stage.becket("-C", str(empty), "gates", "try", code=2).err


def test_a_shell_sees_what_a_step_sees_and_leaves_nothing(stage: Stage) -> None:
    stage.becket("init", "--no-try")
    stage.write("state.txt", "not committed\n")
    told = stage.becket("shell", "--", "cat state.txt; echo $CI; git rev-parse HEAD; exit 3", code=3).out
    assert told.split() == ["good", "true", stage.git("rev-parse", "HEAD").strip()]
    done = stage.becket("shell", "--json", "--", "echo hi; exit 3", code=3).json
    assert (done["output"], done["exit_code"]) == ("hi\n", 3)
    piped = subprocess.run(
        [*PROGRAM, "shell", "--at", "HEAD~1"], cwd=stage.root, env=environment(), input=b"ls -A; exit 4\n",
        capture_output=True, check=False,
    )  # fmt: skip
    assert (piped.returncode, b"becket.yaml" in piped.stdout) == (4, True)
    assert not list(stage.state.glob("shell-*"))
    assert "there is no commit" in stage.becket("shell", "--at", "nowhere", code=2).err


def test_what_keeps_a_step_from_being_tried_is_named(stage: Stage) -> None:
    step = "{name: unit, run: make test, env_file: keys/unit.env}"
    stage.write(CONFIG_FILE, f"version: 1\ngates: {{fast: [{step}]}}\n")
    stage.commit("variables from a file that nobody made")
    assert "could not be tried: " in (told := stage.becket("gates", "try", code=1).err)
    assert "keys/unit.env" in told
    assert "env_file keys/unit.env is not there" in stage.becket("shell", "--", "true", code=1).err


def test_a_key_file_that_git_ignores_is_told_as_such(stage: Stage) -> None:
    stage.write(".gitignore", "deps.lock\n")
    stage.commit("ignores its lock")
    stage.write("deps.lock", "one\n")
    setup = 'setup: {run: "cp deps.lock made", key: [deps.lock]}'
    stage.write(CONFIG_FILE, f'version: 1\n{setup}\ngates: {{fast: [{{name: unit, run: "true"}}]}}\n')
    told = stage.becket("gates", "try", code=1).out
    assert "deps.lock: here, but git ignores it" in told
    assert "name every file that its command reads" not in told


@pytest.mark.parametrize("ignored", [True, False])
def test_init_proposes_no_lock_file_that_only_lies_in_the_folder(stage: Stage, ignored: bool) -> None:
    stage.write("Cargo.toml", "[package]\nname = 'x'\nversion = '1.0.0'\n[dependencies]\ny = '1'\n")
    stage.write(".gitignore", "Cargo.lock\n" if ignored else "")
    stage.commit("a crate without a lock file")
    stage.write("Cargo.lock", '[[package]]\nname = "y"\nsource = "registry"\n')
    stage.becket("init", "--no-try")
    assert "Cargo.lock" not in (stage.root / CONFIG_FILE).read_text()
    stage.git("add", "--force", "Cargo.lock")
    stage.becket("init", "--no-try", "--force")
    assert "Cargo.lock" in (stage.root / CONFIG_FILE).read_text()


def test_where_nothing_is_proposed_the_last_words_say_what_to_write(stage: Stage) -> None:
    stage.write("Makefile", "all:\n\ttrue\n")
    stage.commit("no tests")
    told = stage.becket("init").out
    after = told[told.index("Next:") :]
    assert after.index('gates: {fast: [{name: unit, run: "YOUR TEST COMMAND"}]}') < after.index("git add")
    assert "becket gates try" in after
