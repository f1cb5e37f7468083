"""`becket guard explain` by the real program: any commit of any repository, without a run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_stage import Stage

APP = "def add(a, b):\n    return a - b\n"
TESTS = "from app import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Somebody's repository that has never heard of Becket."""
    made = Stage(tmp_path / "repo")
    made.git("rm", "--quiet", "becket.yaml")
    made.write("app.py", APP)
    made.write("tests/test_app.py", TESTS)
    made.commit("an application")
    return made


def repair(stage: Stage) -> None:
    stage.write("app.py", APP.replace("a - b", "a + b"))


def head(stage: Stage, name: str = "HEAD") -> str:
    return stage.git("rev-parse", "--short=12", name).strip()


def test_head_is_told_against_its_parent_without_becket_yaml(stage: Stage) -> None:
    repair(stage)
    stage.commit("add adds")
    told = stage.becket("guard", "explain").out
    assert f"{head(stage)} against {head(stage, 'HEAD~1')}: 1 file" in told
    assert "plain: nothing but logic" in told
    assert "the guard, the crossing proof and every gate" in told
    assert "the defaults: no becket.yaml" in told
    assert not stage.state.exists()


def test_a_changed_test_is_named_with_rule_file_and_line(stage: Stage) -> None:
    stage.write("tests/test_app.py", TESTS.replace("== 5", "== -1"))
    stage.commit("agree with the bug")
    told = stage.json("guard", "explain", "HEAD")
    assert told["test_side"] == ["tests/test_app.py"]
    (refusal,) = told["refusals"]
    assert (refusal["rule"], refusal["path"], refusal["line"]) == ("test-changed", "tests/test_app.py", 5)
    assert told["needs"][0].startswith("a person approves exactly this change")


def test_the_first_commit_is_compared_with_nothing(stage: Stage) -> None:
    first = stage.git("rev-list", "--max-parents=0", "HEAD").strip()
    told = stage.json("guard", "explain", first)
    assert (told["old"], told["new"], told["files"]) == ("nothing", first[:12], 1)


def test_a_range_is_compared_from_end_to_end(stage: Stage) -> None:
    repair(stage)
    stage.commit("add adds")
    stage.write("tests/test_more.py", "def test_more():\n    assert True\n")
    stage.commit("another test")
    told = stage.json("guard", "explain", "HEAD~2..HEAD")
    assert (told["files"], told["test_side"], told["refusals"]) == (2, ["tests/test_more.py"], [])
    assert stage.json("guard", "explain", "HEAD~2..")["new"] == told["new"]
    assert stage.json("guard", "explain", "HEAD..HEAD")["files"] == 0
    assert "Nothing differs." in stage.becket("guard", "explain", "HEAD..HEAD").out


def test_what_is_staged_is_read_and_nothing_is_left_behind(stage: Stage) -> None:
    repair(stage)
    stage.git("add", "app.py")
    stage.write("app.py", "not staged\n")
    before = (stage.root / ".git" / "index").read_bytes(), stage.git("count-objects", "-v"), stage.git("status", "-s")
    told = stage.json("guard", "explain", "--staged")
    assert (told["old"], told["new"], told["files"]) == (head(stage), "the index", 1)
    assert told["class"] == "plain"
    after = (stage.root / ".git" / "index").read_bytes(), stage.git("count-objects", "-v"), stage.git("status", "-s")
    assert before == after


def test_what_is_staged_before_the_first_commit(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    made = Stage(folder)
    made.git("update-ref", "-d", "HEAD")
    told = made.json("guard", "explain", "--staged")
    assert (told["old"], told["files"]) == ("nothing", 1)
    assert "names no commit" in made.becket("guard", "explain", code=2).err


def test_the_rules_are_those_of_the_older_side(stage: Stage) -> None:
    stage.write("becket.yaml", 'version: 1\nguard: {protected: ["app.py"], promote: powerful}\n')
    stage.commit("protect it")
    repair(stage)
    stage.write("becket.yaml", "version: 1\n")
    stage.commit("add adds")
    told = stage.becket("guard", "explain").out
    assert "app.py: protected-path" in told
    assert "it would be refused" in told
    assert "guard.promote is powerful: the tests alone decide; nobody looks at what a change can do" in told


def test_a_becket_yaml_that_cannot_be_read_is_told_and_the_defaults_count(stage: Stage) -> None:
    stage.write("becket.yaml", "version: 7\n")
    stage.commit("from the future")
    repair(stage)
    stage.commit("add adds")
    assert "cannot be read" in stage.becket("guard", "explain").out


PROVING = """
version: 1
gates: {fast: [{name: unit, run: "true"}]}
sandbox: {use: none, without: [files, processes, network]}
"""


def test_what_a_commit_brings_back_from_the_last_proven_one_is_nothing_new_as_in_a_run(stage: Stage) -> None:
    share = "def share(part):\n    return part / 100\n"
    stage.write("becket.yaml", PROVING)
    stage.write("share.py", share)
    stage.commit("a share")
    stage.becket("run", "heal")
    stage.write("share.py", share.replace("100", "250"))
    stage.commit("a wrong share")
    assert stage.json("guard", "explain")["class"] == "ordinary"
    stage.write("share.py", share)
    stage.commit("the share again")
    told = stage.json("guard", "explain")
    assert (told["class"], told["reading"]["findings"]) == ("plain", [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("no-such-branch",), "names no commit"),
        (("HEAD:app.py",), "names no commit"),
        (("HEAD...main",), "three dots"),
        (("a..b..c",), "names no commit"),
        (("HEAD", "--staged"), "--staged compares the index with HEAD"),
        (("",), "the commit is empty"),
        (("--", "-x"), "names no commit"),
    ],
)
def test_bad_input_is_exit_code_2_with_advice(stage: Stage, arguments: tuple[str, ...], said: str) -> None:
    assert said in stage.becket("guard", "explain", *arguments, code=2).err


def test_outside_of_a_repository_it_says_so(tmp_path: Path, stage: Stage) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    told = stage.becket("-C", os.fspath(folder), "guard", "explain", code=2)
    assert "is not in a git repository" in told.err


def test_conflicts_in_the_index_are_told(stage: Stage) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@localhost")
    stage.git("checkout", "--quiet", "-b", "other")
    stage.write("app.py", "other = 1\n")
    stage.commit("other")
    stage.git("checkout", "--quiet", "main")
    stage.write("app.py", "mine = 1\n")
    stage.commit("mine")
    with pytest.raises(Exception, match="merge"):
        stage.git(*who, "merge", "other")
    assert "are there conflicts" in stage.becket("guard", "explain", "--staged", code=2).err


def test_a_bare_repository_is_read_too(tmp_path: Path, stage: Stage) -> None:
    stage.git("clone", "--quiet", "--bare", ".", os.fspath(tmp_path / "bare.git"))
    there = ("-C", os.fspath(tmp_path / "bare.git"), "guard", "explain")
    assert "against" in stage.becket(*there).out
    assert "has no index" in stage.becket(*there, "--staged", code=2).err
