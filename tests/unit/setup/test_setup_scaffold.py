"""The written becket.yaml loads, explains itself, and replaces nothing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from becket.app.sections import load_config
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.spec import Autonomy, LoopSpec
from becket.parts.agents.section import PRICES
from becket.parts.gates.section import GATES, SET_UP, GateStep
from becket.parts.guard.section import GUARD, TEST_SIDE
from becket.parts.init.detect import Detected, detect
from becket.parts.init.ecosystem import Ecosystem, Tools
from becket.parts.init.scaffold import leave_out, person_key, render, write_config
from becket.parts.init.yamltext import quoted, scalar
from becket.parts.promote.section import REMOTE
from becket.parts.services.section import SERVICES

Tree = Callable[[Mapping[str, str]], Path]

LONG = "x" * 90
REPOS: dict[str, Mapping[str, str]] = {
    "empty": {},
    "python": {"pyproject.toml": "[tool.ruff]\n[tool.mypy]\n", "uv.lock": "", "tests/test_a.py": ""},
    "lint only": {"pyproject.toml": "[tool.ruff]\n"},
    "go": {"go.mod": "", "go.sum": "x\n", "a_test.go": ""},
    "maven": {"pom.xml": "<module>a</module>"},
    "make": {"Makefile": "test:\n\t./run\n"},
    "monorepo": {
        "api/requirements.txt": "pytest\n",
        "api/tests/test_a.py": "",
        "web/package.json": '{"scripts": {"test": "node --test"}}',
        "web/package-lock.json": "{}",
    },
    "awkward names": {
        f'{LONG} "it\'s" # {LONG}/go.mod': "",
        f'{LONG} "it\'s" # {LONG}/go.sum': "x\n",
        "日本 語/tests/test_a.py": "",
        "日本 語/requirements.txt": "pytest\n",
        ".github/workflows/ci.yml": "",
    },
}


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_a_person_should_know_of_a_step_stands_above_it(tree: Tree) -> None:
    root = tree({"package.json": '{"scripts": {"test": "npm run t", "t": "tape t.js", "posttest": "npx aud"}}'})
    text = render(root, detect(root, Tools("")), "main", "jane")
    assert load(text).gates["fast"][0].run == "npm run t"
    above = text[: text.index("    - name: npm_test")].splitlines()[-2:]
    assert above[0].startswith("    # `posttest` (npx aud) of package.json fetch")


def load(text: str) -> Config:
    return load_config(text, "becket.yaml", {"BECKET_DATABASE": "postgresql:///becket"})


@pytest.fixture(params=REPOS)
def repo(request: pytest.FixtureRequest, tree: Tree) -> Path:
    return tree(REPOS[request.param])


def test_the_written_file_loads_and_says_what_was_detected(repo: Path, tools: Callable[..., Tools]) -> None:
    detected = detect(repo, tools())
    text = write_config(repo, detected, "main", "jane").config.read_text()
    config = load(text)
    assert config.section(GATES).get("fast", ()) == detected.fast
    assert config.section(GATES).get("slow", ()) == detected.slow
    assert config.section(SET_UP) == detected.setup
    assert config.section(TEST_SIDE) == detected.test_side
    assert (config.branch, config.autonomy, config.handoff_to) == ("main", Autonomy.propose, "jane")
    assert "becket.yaml" in config.section(GUARD).protected


def test_every_line_is_short_enough_to_read(repo: Path, tools: Callable[..., Tools]) -> None:
    text = render(repo, detect(repo, tools()), "b" * 200, "p" * 200)
    assert [line for line in text.splitlines() if len(line) > 120] == []
    assert load(text).branch == "b" * 200


def test_every_key_has_its_line_of_comment(repo: Path, tools: Callable[..., Tools]) -> None:
    """What is unknown stands there commented out; nothing of the file's format is left unsaid."""
    lines = render(repo, detect(repo, tools()), "main", "jane").splitlines()
    for key in Config.model_fields:
        places = [number for number, line in enumerate(lines) if re.match(rf"#?{key}:", line)]
        if places:
            assert [lines[number - 1][:2] for number in places] == ["# "], key
        else:
            assert re.search(rf"Reserved.*\b{key}\b", lines[-1]), key
            assert Config.model_fields[key].annotation == dict[str, Json] | None, "what has a shape already works"


def test_the_commented_examples_load_too(repo: Path, tools: Callable[..., Tools]) -> None:
    text = render(repo, detect(repo, tools()), "main", "jane")
    config = load(re.sub(r"^#(?=[^ #]|  )", "", text, flags=re.MULTILINE))
    assert config.section(REMOTE)
    assert {agent.driver for agent in config.agents.values()} == {"claude", "codex", "acp", "command"}
    assert config.budgets.day.usd
    assert config.section(PRICES)
    assert config.section(SERVICES)
    assert config.alarms
    assert config.database
    assert set(config.section(GATES)) == {"fast", "slow"}
    assert config.section(SET_UP)
    assert config.section(TEST_SIDE)


@pytest.mark.parametrize("program", ["claude", "codex", "gemini", None])
def test_the_agent_that_is_there_is_proposed_and_never_enabled(tree: Tree, program: str | None) -> None:
    """Nothing that costs money is switched on by `becket init`."""
    text = render(tree({}), Detected(), "main", "jane", program)
    assert not load(text).agents
    offered = load(re.sub(r"^#(?=[^ #]|  )", "", text, flags=re.MULTILINE)).agents
    driver = {"claude": "claude", "codex": "codex", "gemini": "acp", None: "claude"}[program]
    assert offered["fixer"].driver == driver
    assert len(offered) == 4


@pytest.mark.parametrize("branch", ["main", "release/1.x", "true", "123", "#1", "yes", "feat-ü", "null", "1e3"])
def test_any_branch_name_survives(tree: Tree, branch: str) -> None:
    assert load(render(tree({}), Detected(), branch, "jane")).branch == branch


@pytest.mark.parametrize(
    ("person", "key"),
    [
        ("jane", "jane"),
        ("Jane.Doe", "jane_doe"),
        ("1000", "p_1000"),
        ("", "owner"),
        ("日本", "owner"),
        ("a" * 90, "a" * 60),
    ],
)
def test_any_user_becomes_a_valid_owner(tree: Tree, person: str, key: str) -> None:
    assert person_key(person) == key
    config = load(render(tree({}), Detected(), "main", person))
    assert config.handoff_to == key
    assert (config.people[key].role, config.people[key].os_user) == ("owner", person)


@given(st.text(), st.integers(0, 20), st.integers(0, 100))
def test_quoted_text_reads_back_exactly(text: str, indent: int, before: int) -> None:
    document = " " * indent + f"k: {quoted(text, indent, before)}\n"
    assert yaml.safe_load(document) == {"k": text}


@given(st.text(alphabet=" \\\"'#:ab", min_size=100, max_size=400))
def test_folded_text_reads_back_and_stays_narrow(text: str) -> None:
    document = f"k: {quoted(text, 0, 3)}"
    assert yaml.safe_load(document) == {"k": text}
    assert max(map(len, document.splitlines())) <= 120


@given(st.text())
def test_a_scalar_is_always_a_string(text: str) -> None:
    assert yaml.safe_load(f"k: {scalar(text)}\n") == {"k": text}


def test_an_existing_file_is_never_touched(tree: Tree) -> None:
    """L7: nothing is lost without being asked for, and the error says both ways out."""
    root = tree({"becket.yaml": "mine\n"})
    with pytest.raises(UsageError, match=r"exists already.*--force") as caught:
        write_config(root, Detected(), "main", "jane", with_example=True)
    assert caught.value.exit_code == 2
    assert names_in(root) == ["becket.yaml"]
    assert (root / "becket.yaml").read_text() == "mine\n"


@pytest.mark.parametrize("kind", ["dangling link", "folder"])
def test_something_else_of_that_name_is_not_touched_either(tree: Tree, kind: str) -> None:
    root = tree({})
    if kind == "folder":
        (root / "becket.yaml").mkdir()
    else:
        (root / "becket.yaml").symlink_to("elsewhere.yaml")
    with pytest.raises(UsageError):
        write_config(root, Detected(), "main", "jane", force=kind == "folder")
    assert names_in(root) == ["becket.yaml"]


def test_force_keeps_every_older_file(tree: Tree) -> None:
    """L7."""
    root = tree({"becket.yaml": "first\n"})
    assert write_config(root, Detected(), "main", "jane", force=True).backup == root / "becket.yaml.bak"
    (root / "becket.yaml").write_text("second\n")
    assert write_config(root, Detected(), "main", "jane", force=True).backup == root / "becket.yaml.bak2"
    assert (root / "becket.yaml.bak").read_text() == "first\n"
    assert (root / "becket.yaml.bak2").read_text() == "second\n"
    assert load((root / "becket.yaml").read_text()).version == 1
    assert names_in(root) == ["becket.yaml", "becket.yaml.bak", "becket.yaml.bak2"]


def test_force_without_an_old_file_makes_no_backup(tree: Tree) -> None:
    assert write_config(tree({}), Detected(), "main", "jane", force=True).backup is None


def test_nothing_else_is_added_to_the_tree(tree: Tree) -> None:
    root = tree({"a": ""})
    result = write_config(root, Detected(), "main", "jane")
    assert names_in(root) == ["a", "becket.yaml"]
    assert result.example is None
    assert result.config.stat().st_mode & 0o400


def test_a_folder_that_cannot_be_written_is_said() -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        write_config(Path("/proc/self"), Detected(), "main", "jane")


def test_nothing_found_is_said(tree: Tree) -> None:
    result = write_config(tree({}), Detected(notes=("odd",)), "main", "jane")
    assert result.notes[0] == "odd"
    assert "no test command" in result.notes[1]


def test_the_example_is_a_good_spec_and_is_kept_if_there(tree: Tree) -> None:
    root = tree({})
    result = write_config(root, Detected(), "main", "jane", with_example=True)
    assert result.example == root / ".becket/loops/hello.yaml"
    spec = LoopSpec.model_validate(yaml.safe_load(result.example.read_text()))
    actions = [action for phase in spec.phases.values() for action in phase.actions]
    verifiers = [verifier for phase in spec.phases.values() for verifier in phase.verifiers]
    raised = {ref for action in actions for ref in action.raises.values()}
    raised |= {f"{verifier.id}.{end}" for verifier in verifiers for end in ("pass", "fail", "undecided")}
    assert {*spec.stop_conditions, *spec.handoff_conditions} <= raised
    assert all(action.run for action in actions)
    assert spec.budget.wall
    made = {f"{action.id}.{name}" for action in actions for name in action.outputs}
    assert {name for phase in spec.phases.values() for name in phase.persist_outputs} <= made
    assert max(map(len, result.example.read_text().splitlines())) <= 120

    result.example.write_text("mine\n")
    again = write_config(root, Detected(), "main", "jane", force=True, with_example=True)
    assert again.example is None
    assert "was kept" in again.notes[-1]
    assert (root / ".becket/loops/hello.yaml").read_text() == "mine\n"


def test_the_examples_commands_do_what_the_spec_says(tree: Tree, tmp_path: Path) -> None:
    result = write_config(tree({}), Detected(), "main", "jane", with_example=True)
    assert result.example is not None
    spec = LoopSpec.model_validate(yaml.safe_load(result.example.read_text()))
    commands = [item.run for phase in spec.phases.values() for item in (*phase.actions, *phase.verifiers) if item.run]
    for command in commands:
        subprocess.run(["sh", "-euc", command], cwd=tmp_path, check=True, capture_output=True)


def test_a_step_that_is_left_out_becomes_a_comment_and_the_file_still_loads(tmp_path: Path) -> None:
    steps = tuple(GateStep(name=name, run=f"{name} ." * 20, timeout=60) for name in ("lint", "types"))
    found = Ecosystem(name="x", folder="", evidence="x", fast=(GateStep(name="unit", run="make"),), slow=steps)
    written = write_config(tmp_path, Detected(ecosystems=(found,)), "main", "ada").config
    leave_out(written, {"types": "types: not found"})
    gates = load_config(written.read_text(), "becket.yaml", {}).gates
    assert [step.name for step in gates["slow"]] == ["lint"]
    leave_out(written, {"lint": "it fails"})
    text = written.read_text()
    assert set(load_config(text, "becket.yaml", {}).gates) == {"fast"}
    assert "# left out by `becket init`: types: not found" in text
    assert "#    - name: types" in text


def test_gates_that_count_no_tests_are_told(tree: Tree) -> None:
    counting, plain = GateStep(name="unit", run="x", report="tap"), GateStep(name="make_test", run="make test")
    found = Ecosystem(name="make", folder="", evidence="Makefile", fast=(counting, plain), slow=(plain,))
    (note,) = write_config(tree({}), Detected(ecosystems=(found,)), "main", "jane").notes
    assert note.startswith("make_test: no tests are counted")
