"""guard.check: base's rules decide about a candidate, and the evidence says why (L21)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from becket.app.project import CommittedProjects
from becket.app.sections import config_model
from becket.kernel.contract.action import ActionContext, Result
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.git import Git
from becket.kernel.contract.project import Projects
from becket.kernel.git.candidates import GitCandidates
from becket.kernel.git.repository import discover
from becket.parts.guard.actions.guard import ACTIONS, CLASSES, NAMES, GuardParams, check
from becket.parts.guard.actions.side import gate_commands

Port = TypeVar("Port")

CONFIG = """\
version: 1
gates:
  fast:
    - {name: unit, run: "sh ci/gate.sh", rerun: "pytest {tests}"}
guard: {protected: ["LICENSE"]}
"""
FILES = {
    "becket.yaml": CONFIG,
    "LICENSE": "free\n",
    "ci/gate.sh": "pytest\n",
    "app.py": "def add(a, b):\n    return a - b\n",
    "tests/test_app.py": "from app import add\n\n\ndef test_add():\n    assert add(21, 22) == 43\n",
}
FIX = {"app.py": "def add(a, b):\n    return a + b\n"}


class Context:
    """What guard.check uses of a context."""

    def __init__(self, root: Path) -> None:
        git = discover(root)
        self.kept: dict[str, bytes] = {}
        self.facts: set[tuple[str, str]] = set()
        self._ports: dict[type, object] = {
            Git: git,
            Candidates: GitCandidates(git),
            Projects: CommittedProjects(git, lambda: config_model()(version=1)),
        }

    def port(self, kind: type[Port]) -> Port:
        return cast("Port", self._ports[kind])

    async def known(self, fact: str, subject: str) -> bool:
        return (fact, subject) in self.facts

    async def keep(self, content: bytes | Path, name: str, most: int = 0) -> str:
        assert isinstance(content, bytes)
        self.kept[name] = content
        return f"digest of {name}"


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.base = self.commit(FILES)
        self.context = Context(root)

    def git(self, *words: str) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        env |= {f"GIT_{who}_{what}": "ada@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(
            ["git", *words], cwd=self.root, env=env, capture_output=True, text=True, check=True
        ).stdout

    def commit(self, files: Mapping[str, str | None]) -> str:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink() if text is None else path.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", "change")
        return self.git("rev-parse", "HEAD").strip()

    def checked(self, files: Mapping[str, str | None], **more: Any) -> Result:
        params = GuardParams(base=self.base, candidate=self.commit(files), **more)
        return asyncio.run(check(cast("ActionContext", self.context), params))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repo")


def said(result: Result) -> str:
    condition, classed = result.conditions
    assert (condition.group, classed.group) == (NAMES, CLASSES)
    return condition.ref


def rules(result: Result) -> list[str]:
    return [refusal["rule"] for refusal in cast("Any", result.outputs["refusals"])]


def test_an_honest_repair_is_let_through(repository: Repository) -> None:
    result = repository.checked({**FIX, "tests/test_more.py": "def test_more():\n    assert True\n"})
    assert said(result) == "candidate.guard_ok"
    assert result.outputs["refusals"] == []


def test_a_changed_test_is_asked_about(repository: Repository) -> None:
    """L21: every refusal is one that a person may approve."""
    result = repository.checked({"tests/test_app.py": FILES["tests/test_app.py"].replace("43", "-1")})
    assert said(result) == "candidate.test_change_asked"
    assert rules(result) == ["test-changed"]


def test_one_refusal_that_nobody_may_approve_decides(repository: Repository) -> None:
    result = repository.checked({"tests/test_app.py": None, "LICENSE": "mine\n"}, of="repair")
    assert said(result) == "repair.guard_refused"
    assert set(rules(result)) == {"test-deleted", "protected-path"}


def test_the_rules_are_those_of_base(repository: Repository) -> None:
    """L21: a candidate that rewrites becket.yaml is still judged by the one in base, and refused for it."""
    result = repository.checked({"becket.yaml": "version: 1\n", "LICENSE": "mine\n"})
    assert said(result) == "candidate.guard_refused"
    assert set(rules(result)) == {"gate-definition", "protected-path"}


def test_a_script_that_a_gate_runs_is_part_of_the_gate(repository: Repository) -> None:
    assert rules(repository.checked({"ci/gate.sh": "true\n"})) == ["gate-definition"]


def test_what_a_gates_target_does_is_a_persons_matter(repository: Repository) -> None:
    """Emptying the target that the gate calls is asked about before anything is run to prove it."""
    gate = CONFIG.replace("sh ci/gate.sh", "make test")
    repository.base = repository.commit({"becket.yaml": gate, "Makefile": "test:\n\tsh ci/gate.sh\n"})
    result = repository.checked({"Makefile": "test:\n\t@true\n"})
    assert (said(result), rules(result)) == ("candidate.test_change_asked", ["gate-definition"])
    assert result.outputs["asks"] == "May this repair change what the gate runs?"
    assert "this change rewrites what the gate runs" in str(result.outputs["question"])


def test_a_script_behind_a_target_is_part_of_the_gate(repository: Repository) -> None:
    gate = CONFIG.replace("sh ci/gate.sh", "make test")
    repository.base = repository.commit({"becket.yaml": gate, "Makefile": "test: deps\n\t@sh ci/gate.sh\n\ndeps:\n"})
    assert rules(repository.checked({"ci/gate.sh": "true\n"})) == ["gate-definition"]


SETUP = CONFIG + 'setup: {run: "npm ci", key: [package.json, "locks/*.txt"], network: full, env: [NPM_TOKEN]}\n'


@pytest.mark.parametrize("name", ["package.json", "locks/new.txt"])
def test_a_person_comes_before_a_set_up_of_changed_files(repository: Repository, name: str) -> None:
    repository.base = repository.commit({"becket.yaml": SETUP, "package.json": "{}\n", "locks/a.txt": "a\n"})
    result = repository.checked({**FIX, name: '{"scripts": {"preinstall": "env"}}\n'})
    assert said(result) == "candidate.test_change_asked"
    assert "setup-files" in rules(result)
    assert result.outputs["asks"] == "May the set-up be built from the files that this repair changes?"


def test_evidence_tells_each_refusal_and_how_to_mend_it(repository: Repository) -> None:
    result = repository.checked({"tests/test_app.py": FILES["tests/test_app.py"].replace("43", "-1")})
    evidence = result.conditions[0].evidence
    (refusal,) = cast("Any", evidence["refusals"])
    assert (refusal["path"], refusal["line"]) == ("tests/test_app.py", 5)
    assert refusal["message"]
    assert refusal["fix"]
    assert evidence["full"] == "digest of guard.json"
    kept = json.loads(repository.context.kept["guard.json"])
    assert kept["refusals"] == result.outputs["refusals"]
    assert kept["digest"] == result.outputs["digest"]


def test_evidence_is_capped_and_counts_the_rest(repository: Repository) -> None:
    links = {f"docs/{number}/.gitattributes": "* text\n" for number in range(39)}
    result = repository.checked({**links, "LICENSE": "mine\n", "becket.yaml": "version: 1\n", ".becket/x": "y\n"})
    evidence = result.conditions[0].evidence
    assert len(cast("Any", evidence["refusals"])) == 40
    assert evidence["refusals_left_out"] == 2
    assert len(rules(result)) == 42


def test_the_class_says_which_lines_made_it_so(repository: Repository) -> None:
    """L21: special-casing the test's inputs is no plain change."""
    special = {"app.py": "def add(a, b):\n    if a == 21:\n        return 43\n    return a - b\n"}
    result = repository.checked(special)
    assert said(result) == "candidate.guard_ok"
    assert result.outputs["class"] == "ordinary"
    assert result.conditions[1].ref == "candidate.ordinary"
    first = cast("Any", result.conditions[1].evidence["findings"])[0]
    assert (first["path"], first["line"], first["shown"]) == ("app.py", 2, "if a == 21:")


def test_an_edit_of_logic_is_plain(repository: Repository) -> None:
    result = repository.checked(FIX)
    assert result.conditions[1].ref == "candidate.plain"
    assert result.conditions[1].evidence["findings"] == []


def test_the_very_file_of_the_last_proven_commit_is_plain_although_it_has_a_power(repository: Repository) -> None:
    proven = {"app.py": "import os\n\n\ndef add(a, b):\n    return a + b + len(os.environ)\n"}
    repository.context.facts.add(("proven", f"main@{repository.commit(proven)}"))
    repository.base = repository.commit({"app.py": FILES["app.py"]})
    assert repository.checked(proven).conditions[1].name == "powerful"
    repository.git("reset", "--hard", "--quiet", repository.base)
    assert repository.checked(proven, branch="main").conditions[1].name == "plain"


def test_the_digest_names_base_and_what_the_candidate_holds(repository: Repository) -> None:
    """Two commits of the same tree are the same change; another tree is another."""
    one = repository.checked(FIX)
    other = repository.checked({"app.py": "def add(a, b):\n    return b + a\n"})
    again = repository.checked(FIX)
    assert one.outputs["digest"] != other.outputs["digest"]
    assert one.outputs["digest"] == again.outputs["digest"]


def test_a_change_is_known_again_on_another_base_and_by_every_byte(repository: Repository) -> None:
    """A yes is bound to this: the same change carried over is the same, one byte more is another."""
    first = repository.checked(FIX).outputs["change"]
    repository.git("reset", "--quiet", "--hard", repository.base)
    repository.base = repository.commit({"notes.txt": "meanwhile\n"})
    assert repository.checked(FIX).outputs["change"] == first
    repository.git("reset", "--quiet", "--hard", repository.base)
    assert repository.checked({"app.py": FIX["app.py"] + "\n"}).outputs["change"] != first
    repository.git("reset", "--quiet", "--hard", repository.base)
    (repository.root / "app.py").chmod(0o755)
    assert repository.checked(FIX).outputs["change"] != first


def test_commands_of_gates_and_set_up_count() -> None:
    config = config_model().model_validate(
        {
            "version": 1,
            "gates": {"fast": [{"name": "unit", "run": "a.sh", "rerun": "b.sh {tests}"}]},
            "setup": {"run": "c.sh", "key": ["x"]},
        }
    )
    assert gate_commands(config) == ("a.sh", "b.sh {tests}", "c.sh")


def test_it_declares_what_it_raises() -> None:
    (action,) = ACTIONS
    group, classes = action.groups(GuardParams(of="repair", base="a", candidate="b"))
    assert group.refs == tuple(f"repair.{name}" for name in NAMES)
    assert classes.refs == ("repair.plain", "repair.ordinary", "repair.powerful")
