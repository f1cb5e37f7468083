"""The test tree and rescued work, by the real program."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from cli_stage import CONFIG, PROGRAM, Stage

GATES = """\
gates:
  fast:
    - {name: unit, run: "true", env_file: .env}
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path / "repo")
    stage.write("app.py", "x = 1\n")
    stage.commit("app")
    return stage


def sha(stage: Stage, revision: str = "main") -> str:
    return stage.git("rev-parse", revision).strip()


def rescued(stage: Stage, name: str, files: dict[str, str], on: str = "main") -> None:
    """What a run leaves: files beyond a commit, saved below refs/becket/rescue."""
    branch = stage.git("rev-parse", "--abbrev-ref", "HEAD").strip()
    stage.git("checkout", "--quiet", "--detach", on)
    for path, text in files.items():
        stage.write(path, text)
    stage.commit(f"becket: what {name} left")
    stage.git("update-ref", f"refs/becket/rescue/{name}", "HEAD")
    stage.git("checkout", "--quiet", branch)


def test_the_test_tree_is_made_reset_and_told(stage: Stage) -> None:
    """L4, L5, L9: at the exact commit, clean, and out of the way of `git status`."""
    tree = stage.root / ".worktrees/base"
    assert "becket worktree ensure" in stage.becket("worktree", "status").out
    first = sha(stage)
    told = stage.becket("worktree", "ensure").out
    assert f"Made {tree} at main@{first[:8]}" in told
    assert (tree / "app.py").read_text() == "x = 1\n"
    assert stage.git("status", "--porcelain") == ""
    stage.write("app.py", "x = 2\n")
    stage.commit("second")
    assert f"; main is at {sha(stage)[:8]}" in stage.becket("worktree", "status").out
    found = stage.json("worktree", "ensure")
    assert (found["sha"], found["made"], found["saved"], found["env"]) == (sha(stage), False, "", [])
    assert stage.json("worktree", "ensure", "--at", "HEAD~1")["sha"] == first
    seen = stage.json("worktree", "status")
    assert (seen["sha"], seen["branch_sha"], seen["clean"]) == (first, sha(stage), True)


def test_only_commits_of_the_branch_come_into_the_tree(stage: Stage) -> None:
    """L9: never another branch by accident."""
    rescued(stage, "elsewhere", {"evil.py": ""})
    assert "is not on main" in stage.becket("worktree", "ensure", "--at", "refs/becket/rescue/elsewhere", code=2).err
    assert "no such commit" in stage.becket("worktree", "ensure", "--at", "nope", code=2).err
    stage.write("becket.yaml", CONFIG.replace("branch: main", "branch: gone"))
    assert "no branch gone" in stage.becket("worktree", "ensure", code=2).err
    assert not (stage.root / ".worktrees").exists()


def test_somebody_elses_folder_is_left_alone(stage: Stage) -> None:
    """L9"""
    stage.write(".worktrees/base/precious", "mine\n")
    assert "did not make" in stage.becket("worktree", "ensure", code=1).err
    assert "none can be made" in stage.becket("worktree", "status").out
    assert "did not make" in stage.json("worktree", "status")["in_the_way"]
    assert (stage.root / ".worktrees/base/precious").read_text() == "mine\n"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_file_or_a_link_where_the_tree_belongs_is_named_everywhere_and_heal_hands_over(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    """L9, L13: nothing that is tried again would help, and no agent is called."""
    stage.write("becket.yaml", CONFIG + 'gates: {fast: [{name: unit, run: "true"}]}\n')
    stage.commit("gates")
    place = stage.root / ".worktrees"
    if kind == "file":
        place.write_text("mine\n")
    else:
        place.symlink_to(tmp_path / "nowhere")
    assert tree_checks(stage) == [("error", f"mv -- {place} {place}.mine")]
    assert f"{place} is not a folder" in stage.becket("worktree", "status").out
    assert f"{place} is not a folder" in stage.becket("worktree", "ensure", code=1).err
    if kind == "file":
        run = stage.json("run", "heal", code=1)["run"]
        assert (run["reason"], run["iteration"]) == ("environment_broken", 1)
        assert f"{place} is not a folder" in json.dumps(run["detail"])
        assert place.read_text() == "mine\n"


def test_a_tree_whose_git_was_removed_is_named_and_mended(stage: Stage) -> None:
    """By whatever ran in it: a gate's step may do so."""
    tree = stage.root / ".worktrees/base"
    stage.becket("worktree", "ensure")
    assert tree_checks(stage) == [("ok", None)]
    shutil.rmtree(tree / ".git")
    assert tree_checks(stage) == [("warn", "becket worktree ensure")]
    assert "not as Becket made it" in stage.becket("worktree", "status").out
    assert "whole again" in stage.becket("worktree", "ensure").out
    assert tree_checks(stage) == [("ok", None)]
    assert stage.json("worktree", "status")["clean"]
    shutil.rmtree(tree)
    stage.write(".worktrees/base/precious", "mine\n")
    assert tree_checks(stage) == [("warn", "becket worktree ensure")]
    stage.becket("worktree", "ensure")
    (aside,) = (stage.root / ".worktrees").glob("base.aside-*")
    assert (aside / "precious").read_text() == "mine\n"
    assert tree_checks(stage) == [("ok", None), ("warn", f"rm -rf -- {aside}")]


def tree_checks(stage: Stage) -> list[tuple[str, str | None]]:
    """What the doctor says of the tree; other checks depend on the machine."""
    done = subprocess.run([*PROGRAM, "doctor", "--json"], cwd=stage.root, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["diagnoses"]
    return [(item["level"], item["mend"]) for item in found if item["name"] == "tree"]


def test_what_somebody_left_in_the_tree_is_saved_once(stage: Stage) -> None:
    """L7, L25: but never a copied secret."""
    stage.write("becket.yaml", CONFIG + GATES)
    stage.commit("gates")
    stage.write(".env", "TOKEN=secret\n")
    stage.becket("worktree", "ensure")
    for _ in range(2):
        stage.write(".worktrees/base/note.txt", "mine\n")
        saved = stage.json("worktree", "ensure")["saved"]
        assert not (stage.root / ".worktrees/base/note.txt").exists()
    (found,) = stage.json("rescue", "list")
    assert (found["name"], found["paths"]) == (saved, ["note.txt"])
    assert stage.git("for-each-ref", "refs/becket/worktree") == ""


def test_the_env_file_is_copied_only_where_it_is_declared(stage: Stage) -> None:
    """L12: and as committed, not as it stands in the working copy."""
    stage.write(".env", "TOKEN=secret\n")
    copy = stage.root / ".worktrees/base/.env"
    stage.write("becket.yaml", CONFIG + GATES)
    told = stage.becket("worktree", "ensure").out
    assert "Did not copy .env: no gate step and no service" in told
    assert not copy.exists()
    stage.git("add", "becket.yaml")
    stage.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "--quiet", "-m", "gates")
    assert "Copied .env." in stage.becket("worktree", "ensure").out
    assert copy.read_text() == "TOKEN=secret\n"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stage.json("worktree", "status")["clean"]
    stage.write(".env", "TOKEN=newer\n")
    stage.becket("worktree", "ensure")
    assert copy.read_text() == "TOKEN=newer\n"
    (stage.root / ".env").unlink()
    assert "is not there" in stage.becket("worktree", "ensure").out
    assert not copy.exists()


@pytest.mark.parametrize("name", ["/etc/hostname", "../outside"])
def test_a_file_outside_of_the_repository_is_refused_when_it_is_read(stage: Stage, name: str) -> None:
    """L12, L25"""
    stage.write("becket.yaml", CONFIG + GATES.replace("env_file: .env", f"env_file: {name}"))
    stage.commit("evil")
    assert "is not a path below the repository" in stage.becket("worktree", "ensure", code=2).err


def test_a_commit_does_not_choose_which_file_of_the_machine_is_copied(stage: Stage) -> None:
    """L12, L25"""
    (stage.root / "link").symlink_to("/etc")
    stage.write("becket.yaml", CONFIG + GATES.replace("env_file: .env", "env_file: link/hostname"))
    stage.commit("evil")
    (found,) = stage.json("worktree", "ensure")["env"]
    assert (found["copied"], found["why"]) == (False, "it leads out of the work tree")


def test_rescued_work_is_listed_and_shown(stage: Stage, tmp_path: Path) -> None:
    """L7"""
    assert "Nothing was rescued" in stage.becket("rescue", "list").err
    rescued(stage, "run_1", {"app.py": "x = 2\n", "new.py": "n = 1\n"})
    (found,) = stage.json("rescue", "list")
    assert (found["name"], found["paths"], found["parent"]) == ("run_1", ["app.py", "new.py"], sha(stage))
    row = stage.becket("rescue", "list").out.splitlines()[1]
    assert "becket: what run_1 left" in row
    assert "app.py, new.py" in row
    patch = stage.becket("rescue", "show", "run").out
    assert stage.json("rescue", "show", "run_1")["patch"] == patch
    (tmp_path / "patch").write_text(patch)
    stage.git("apply", str(tmp_path / "patch"))
    assert (stage.root / "app.py").read_text() == "x = 2\n"


def test_rescued_work_comes_back_uncommitted(stage: Stage) -> None:
    rescued(stage, "run_1", {"app.py": "x = 2\n", "new.py": "n = 1\n"})
    stage.write("other.txt", "elsewhere\n")
    stage.write("app.py", (stage.root / "app.py").read_text())  # touched, not changed
    before = sha(stage)
    told = stage.becket("rescue", "apply", "run_1").out
    assert "2 paths, staged and not committed" in told
    assert (stage.root / "app.py").read_text() == "x = 2\n"
    assert stage.git("status", "--porcelain").splitlines() == ["M  app.py", "A  new.py", "?? other.txt"]
    assert sha(stage) == before
    assert stage.json("rescue", "list") != []


@pytest.mark.parametrize("obstacle", ["conflict", "dirty", "untracked"])
def test_rescued_work_that_does_not_fit_changes_nothing(stage: Stage, obstacle: str) -> None:
    """L6: no conflict markers, no half of it, and nobody's work is overwritten."""
    rescued(stage, "run_1", {"app.py": "x = 2\n", "first.py": "f = 1\n", "new.py": "n = 1\n"})
    if obstacle == "conflict":
        stage.write("app.py", "x = 3\n")
        stage.commit("moved")
    else:
        stage.write("app.py" if obstacle == "dirty" else "new.py", "mine\n")
    state = stage.git("status", "--porcelain"), stage.git("ls-files", "--stage"), sha(stage)
    text = {path.name: path.read_text() for path in stage.root.glob("*.py")}
    answer = stage.becket("rescue", "apply", "run_1", code=1)
    assert "was not applied" in answer.err
    assert ("new.py" if obstacle == "untracked" else "app.py") in answer.err
    assert state == (stage.git("status", "--porcelain"), stage.git("ls-files", "--stage"), sha(stage))
    assert text == {path.name: path.read_text() for path in stage.root.glob("*.py")}
    assert stage.json("rescue", "apply", "run_1", code=1)["error"]["kind"] == "CannotApply"


def test_rescued_work_fits_beside_newer_commits_and_into_another_work_tree(stage: Stage, tmp_path: Path) -> None:
    lines = "".join(f"line {number}\n" for number in range(20))
    stage.write("long.txt", lines)
    stage.commit("long")
    rescued(stage, "run_1", {"long.txt": lines.replace("line 19", "LAST")})
    stage.write("long.txt", lines.replace("line 0\n", "FIRST\n"))
    stage.commit("moved")
    linked = tmp_path / "linked"
    stage.git("worktree", "add", "--quiet", "-b", "side", str(linked))
    assert stage.json("rescue", "apply", "run_1", "--to", str(linked))["applied_to"] == str(linked)
    assert (linked / "long.txt").read_text().splitlines()[::19] == ["FIRST", "LAST"]
    assert stage.git("status", "--porcelain") == ""
    other = tmp_path / "other"
    shutil.copytree(stage.root, other)
    assert (
        "not a work tree of this repository" in stage.becket("rescue", "apply", "run_1", "--to", str(other), code=2).err
    )


def test_dropped_work_can_still_be_brought_back(stage: Stage) -> None:
    """L7"""
    rescued(stage, "run_1", {"new.py": "n = 1\n"})
    rescued(stage, "run_2", {"new.py": "n = 2\n"})
    assert "2 rescues" in stage.becket("rescue", "drop", "run", code=2).err
    assert "no rescue 'x'" in stage.becket("rescue", "drop", "x", code=2).err
    command = stage.becket("rescue", "drop", "run_1").out.splitlines()[-1].split()
    assert [item["name"] for item in stage.json("rescue", "list")] == ["run_2"]
    stage.git(*command[1:])
    assert {item["name"] for item in stage.json("rescue", "list")} == {"run_1", "run_2"}


def test_a_rescue_tells_its_size_its_end_and_what_was_left_out(stage: Stage) -> None:
    stage.becket("worktree", "ensure")
    tree = stage.root / ".worktrees/base"
    (tree / "new.py").write_text("n = 1\n")
    (tree / ".env.local").write_text("A=1\n")
    with (tree / "huge.bin").open("wb") as file:
        os.truncate(file.fileno(), 3_000_000_000)
    assert stage.json("worktree", "ensure")["saved"]
    (found,) = stage.json("rescue", "list")
    assert found["paths"] == ["new.py"]
    assert {item["path"]: item["size"] for item in found["left_out"]} == {".env.local": 4, "huge.bin": 3_000_000_000}
    assert 0 < found["size"] < 2000
    assert found["expires_at"] - found["at"] == 30 * 86400
    told = stage.becket("rescue", "list")
    assert "1 rescue, " in told.err
    assert "dropped 30d after it was saved" in told.err
    shown = stage.becket("rescue", "show", found["name"])
    assert "left out: huge.bin (3 GB): larger than 10 MB" in shown.err
    assert shown.out.startswith("diff --git a/new.py")


def test_doctor_finds_broken_refs_of_ours_and_removes_them_on_request(stage: Stage) -> None:
    stage.write(".git/refs/becket/candidate/run_1/1-1", "1" * 40 + "\n")
    (found,) = [item for item in stage.json("doctor", code=1)["diagnoses"] if item["name"] == "refs"]
    assert (found["level"], found["where"]) == ("error", "refs/becket/candidate/run_1/1-1")
    assert found["mend"] == "becket doctor --fix"
    told = stage.becket("doctor", "--fix", code=1).out  # there is no gate
    assert f"removed refs/becket/candidate/run_1/1-1, which was at {'1' * 40}" in told
    assert "everything that Becket keeps in the repository is whole" in told
    stage.git("gc", "--quiet", "--prune=now")


def test_a_tree_whose_commit_was_pruned_is_named_saved_and_mended(stage: Stage) -> None:
    stage.becket("worktree", "ensure")
    tree, gone = stage.root / ".worktrees/base", sha(stage)
    (tree / "notes.txt").write_text("what I saw\n")
    stage.write("app.py", "x = 2\n")
    stage.git("commit", "--quiet", "--all", "--amend", "--message=other")
    stage.git("reflog", "expire", "--expire=now", "--all")
    stage.git("gc", "--quiet", "--prune=now")
    told = stage.becket("worktree", "status").out
    assert "The repository no longer has that commit" in told
    assert "It holds more than its commit: notes.txt" in told
    (diagnosis,) = [each for each in stage.json("doctor", code=1)["diagnoses"] if each["name"] == "tree"]
    assert (diagnosis["level"], diagnosis["mend"]) == ("warn", "becket worktree ensure")
    ready = stage.json("worktree", "ensure")
    assert (ready["sha"], ready["saved"]) == (sha(stage), "test")
    assert stage.git("rev-parse", "refs/becket/rescue/test^").strip() == gone
    assert stage.git("diff", "--name-only", gone, "refs/becket/rescue/test").split() == ["notes.txt"]
    seen = stage.json("worktree", "status")
    assert (seen["sha"], seen["pruned"], seen["clean"]) == (sha(stage), False, True)


def test_links_of_a_set_up_are_nobodys_work(stage: Stage) -> None:
    gate = 'gates: {fast: [{name: unit, run: "test -e .dep/lib"}]}\n'
    setup = 'setup: {run: "mkdir .dep && touch .dep/lib", key: [app.py]}\n'
    alone = "sandbox: {use: none, without: [files, processes, network]}\n"
    stage.write("becket.yaml", CONFIG + gate + setup + alone)
    stage.commit("a set-up")
    stage.becket("run", "heal")
    tree = stage.root / ".worktrees/base"
    assert (tree / ".dep").is_symlink()
    (tree / "mine.txt").write_text("mine\n")
    assert stage.json("worktree", "ensure")["saved"] == "test"
    assert stage.git("diff", "--name-only", "main", "refs/becket/rescue/test").split() == ["mine.txt"]
    stage.becket("run", "heal")
    assert stage.json("worktree", "ensure")["saved"] == ""


def test_the_report_of_a_gate_is_nobodys_work(stage: Stage) -> None:
    step = '{name: unit, run: "true", report: "junit:out/*.xml"}'
    stage.write("becket.yaml", CONFIG + f"gates: {{fast: [{step}]}}\n")
    stage.commit("gates")
    stage.becket("worktree", "ensure")
    stage.write(".worktrees/base/out/report.xml", "<testsuite/>\n")
    assert stage.json("worktree", "ensure")["saved"] == ""
    stage.write(".worktrees/base/out/report.xml", "<testsuite/>\n")
    stage.write(".worktrees/base/mine.xml", "mine\n")
    assert stage.json("worktree", "ensure")["saved"] == "test"
    assert stage.git("diff", "--name-only", "main", "refs/becket/rescue/test").split() == ["mine.xml"]
