"""becket.yaml: `${VAR}` from the environment, never in gates, and no value of a variable in a finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.app.sections import load_config
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding, InvalidDocument
from becket.kernel.contract.spec import Autonomy
from becket.parts.gates.section import GATES
from becket.parts.guard.section import GUARD
from becket.parts.services.section import SERVICES

WHOLE = """\
version: 1
branch: main
remote: {name: origin, fetch: 30s, push: after_promote}
autonomy: merge
gates:
  fast:
    - {name: unit, run: "pytest -q", report: "junit:report.xml", rerun: "pytest {tests}", timeout: 10m, min_tests: 1}
  slow:
    - {name: lint, run: "ruff check ${PATHS}"}
setup: {run: "pip install -r requirements.lock", key: [requirements.lock], network: full}
test_side: ["tests/**", "conftest.py"]
guard: {protected: [".github/**"], max_deleted_share: 0.2, max_file: 5MB}
services:
  main:
    {build: make, start: run, port: "${PORT:-8080}", health: {url: "/health", samples: 5, soak: 10s}, env_file: .env}
agents: {fixer: {driver: command, run: "my-agent", limits: {time: 30m}}}
sandbox: auto
people: {owner: {role: approver, os_user: "${USER}"}}
handoff_to: owner
alarms: [{file: alarms.txt}]
retention: {artifacts: 7d}
effect_caps: {http.post: {count: 10, per: 1h}}
"""


def load(text: str, **env: str) -> Config:
    return load_config(text, "becket.yaml", env)


def findings(text: str, **env: str) -> tuple[Finding, ...]:
    with pytest.raises(InvalidDocument) as caught:
        load(text, **env)
    return caught.value.findings


def only(text: str, **env: str) -> Finding:
    (finding,) = findings(text, **env)
    return finding


def test_the_whole_file_of_the_design_loads() -> None:
    config = load(WHOLE, USER="ada")
    assert config.autonomy is Autonomy.merge
    assert config.people["owner"].os_user == "ada"
    assert config.section(SERVICES)["main"].port == 8080
    assert config.section(GUARD).max_file == 5_000_000


def test_gates_are_never_expanded() -> None:
    assert load(WHOLE, USER="ada", PATHS="secret").gates["slow"][0].run == "ruff check ${PATHS}"


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${A}", "one"),
        ("x${A}y${A}", "xoneyone"),
        ("${B:-two}", "two"),
        ("${EMPTY:-two}", "two"),
        ("${EMPTY}", ""),
        ("${B:-}", ""),
        ("$${A}", "${A}"),
        ("$A $$ {A}", "$A $$ {A}"),
        ("${NESTED}", "${A}"),
    ],
)
def test_how_variables_are_written(written: str, value: str) -> None:
    env = {"A": "one", "EMPTY": "", "NESTED": "${A}"}
    (target,) = load(f'version: 1\nalarms: [{{url: https://example.org, secret: "{written}"}}]\n', **env).alarms
    assert target.secret == value


@pytest.mark.parametrize(
    ("line", "rule", "column"),
    [
        ("branch: a/${GONE}", "undefined-variable", 11),
        ('branch: "${not a name}"', "bad-variable", 10),
        ("branch: ${OPEN", "bad-variable", 9),
        ("branch: ${A:-${B}}", "bad-variable", 9),
    ],
)
def test_a_variable_that_cannot_be_filled_is_told_where_it_stands(line: str, rule: str, column: int) -> None:
    finding = findings(f"version: 1\n{line}\n", A="one")[0]
    assert (finding.rule, finding.line, finding.column) == (rule, 2, column)


def test_all_undefined_variables_are_told_at_once() -> None:
    assert len(findings("version: 1\nbranch: ${A}\ntest_side: ['${B}', '${C}']\n")) == 3


@pytest.mark.parametrize(
    "line",
    [
        "remote: {fetch: '${TOKEN}'}",
        "autonomy: ${TOKEN}",
        "handoff_to: ${TOKEN}",
        "guard: {max_file: '${TOKEN}'}",
        "services: {main: {start: x, port: '${TOKEN}'}}",
        "people: {ada: {role: '${TOKEN}'}}",
    ],
)
def test_a_finding_never_shows_what_came_from_the_environment(line: str) -> None:
    """L25: the value of a variable may be a secret."""
    for token in ("sk-very-secret", "secret"):
        said = str(InvalidDocument(list(findings(f"version: 1\n{line}\n", TOKEN=token))))
        assert token not in said
        assert "${TOKEN}" in said


@pytest.mark.parametrize(
    ("line", "rule", "column"),
    [
        ("gates: {fast: [{name: a, run: x, report: xml}]}", "bad-value", 42),
        ("gates: {fast: [{name: a, run: x}, {name: a, run: y}]}", "bad-value", 36),
        ("agents: {fixer: {driver: command}}", "bad-value", 18),
        ("handoff_to: nobody", "bad-value", 1),
        ("sandbox: bwarp", "bad-value", 10),
        ("guard: {max_file: huge}", "bad-size", 19),
        ("remote: {fetch: often}", "bad-duration", 17),
        ("alarms: [{}]", "bad-value", 10),
        ("brnach: main", "unknown-key", 1),
        ("guard: {max_deleted_share: .nan}", "bad-value", 28),
        ("gates: {fast: []}", "bad-value", 15),
        ("gates: {fast: [{name: a, run: x, timeout: 0s}]}", "bad-value", 43),
        ("gates: {fast: [{name: a, run: x, report: 'junit:/etc/passwd'}]}", "bad-value", 42),
        ("gates: {fast: [{name: a, run: x, report: 'junit:../a.xml'}]}", "bad-value", 42),
        ("gates: {fast: [{name: a, run: x, env_file: /etc/passwd}]}", "bad-value", 44),
        ("gates: {fast: [{name: a, run: x, env_file: ~/.env}]}", "bad-value", 44),
        ("gates: {fast: [{name: a, run: x, parallel: yes}]}", "bad-value", 44),
        ("gates: {fast: [{name: a, run: x, parallel: 1}]}", "bad-value", 44),
        ("gates: {fast: [{name: a, run: x, report: go, min_tests: '1'}]}", "bad-value", 57),
        ("gates: {fast: [{name: a, run: x, min_tests: 1}]}", "bad-value", 34),
        ("gates: {fast: [{name: a, run: x, report: plain, min_tests: 1}]}", "bad-value", 49),
        ("gates: {fast: [{name: a, run: x, rerun: 'x {test}'}]}", "bad-value", 34),
        ('gates: {fast: [{name: a, run: "x\\0"}]}', "bad-character", 31),
        ("gates: {fast: [{name: a, run: x, env: [LD_PRELOAD]}]}", "bad-value", 40),
        ("gates: {fast: [{name: a, run: x, env: [CI_TOKEN, GIT_DIR]}]}", "bad-value", 50),
        ("gates: {fast: [{name: a, run: x, env: [PYTHONPATH]}]}", "bad-value", 40),
        ("gates: {fast: [{name: a, run: x, env: ['A=b']}]}", "bad-value", 40),
        ("gates: {fast: [{name: a, run: x, set: {PATH: /x}}]}", "bad-value", 40),
        ("setup: {run: x, key: [a], env: [BASH_ENV]}", "bad-value", 33),
        ("setup: {run: x, key: [a], set: {HOME: /x}}", "bad-value", 33),
        ("sandbox: {readable: [/]}", "bad-value", 22),
        ("sandbox: {readable: ['~/']}", "bad-value", 22),
        ("sandbox: {readable: [/opt/x, ~/.ssh]}", "bad-value", 30),
        ("sandbox: {readable: [~/.ssh/keys]}", "bad-value", 22),
        ("sandbox: {readable: [~/.cargo]}", "bad-value", 22),
        ("sandbox: {readable: [tools]}", "bad-value", 22),
        ("sandbox: {readable: [/proc/self]}", "bad-value", 22),
        ("sandbox: {readable: [/dev/shm/tool]}", "bad-value", 22),
        ("sandbox: {readable: [/opt/../root]}", "bad-value", 22),
        ("sandbox: {readable: [/src/x/.git/becket]}", "bad-value", 22),
        ("services: {a: {start: x, port: 80}, b: {start: x, port: 80}}", "bad-value", 51),
        ("services: {a: {start: x, health: {url: file:///etc/passwd}}}", "bad-value", 40),
        ("services: {a: {start: x, shared: [/var]}}", "bad-value", 35),
        ("people: {ada: {os_user: x}, bob: {os_user: x}}", "bad-value", 35),
        ("alarms: [{url: file:///etc/passwd}]", "bad-value", 16),
        ("alarms: [{url: 'https:///x'}]", "bad-value", 16),
        ("remote: {name: --upload-pack=touch}", "bad-value", 16),
        ("remote: {fetch: 0s}", "bad-value", 17),
        ("remote: {fetch: 999ms}", "bad-value", 17),
        ("retention: {artifacts: 0s}", "bad-value", 24),
        ("retention: {runs: 0s}", "bad-value", 19),
        ("prices: {'': {input: 1, output: 1}}", "bad-value", 10),
        ("alarms: [{file: a, secret: s}]", "bad-value", 20),
        ("alarms: [{file: ../a}]", "bad-value", 11),
        ("branch: a..b", "bad-value", 9),
        ("branch: -f", "bad-value", 9),
        ("branch: becket/x", "bad-value", 1),
        ("branch: refs/heads/main", "bad-value", 9),
        ("branch: 1.10", "bad-value", 9),
        ("test_side: ['tests/**', '[']", "bad-value", 25),
        ("test_side: ['{a,b']", "bad-value", 13),
        ("test_side: ['[z-a].py']", "bad-value", 13),
        ("guard: {protected: ['!a']}", "bad-value", 21),
        ("setup: {run: x, key: [../lock]}", "bad-value", 23),
        ("agents: {a: {driver: command, run: x, set: {'A=B': c}}}", "bad-value", 39),
        ("agents: {a: {driver: claude, fallback: [b]}}", "bad-value", 41),
        ("heal: {agent: nobody}", "bad-value", 8),
        ("heal: {attempts: '3'}", "bad-value", 18),
        ("heal: {attempts: 3.0}", "bad-value", 18),
        ("database: mongodb://x/y", "bad-value", 11),
        ("database: nonsense", "bad-value", 11),
        ("effect_caps: {http.post: {count: 1, per: 0s}}", "bad-value", 42),
    ],
)
def test_what_is_refused_and_where(line: str, rule: str, column: int) -> None:
    finding = only(f"version: 1\n{line}\n")
    assert (finding.rule, finding.line, finding.column) == (rule, 2, column)


def test_variables_and_places_are_given_by_name() -> None:
    step = "{name: a, run: x, env: [https_proxy, GIT_AUTHOR_NAME], set: {PYTHONPATH: src}}"
    text = f"version: 1\ngates: {{fast: [{step}]}}\nsandbox: {{readable: [~/.cargo/registry, /opt/tool]}}\n"
    config = load_config(text, "becket.yaml", {})
    given = config.section(GATES)["fast"][0].variables({"https_proxy": "p", "OTHER": "o"})
    assert given == {"https_proxy": "p", "PYTHONPATH": "src"}
    assert config.sandbox.places(Path("/repo/.git")) == (Path.home() / ".cargo/registry", Path("/opt/tool"))


def test_a_link_into_a_folder_of_logins_is_no_way_to_read_it(tmp_path: Path) -> None:
    (tmp_path / "tool").symlink_to(Path.home() / ".ssh")
    assert "~/.ssh" in only(f"version: 1\nsandbox: {{readable: ['{tmp_path}/tool']}}\n").message


@pytest.mark.parametrize("written", ["true", "1.0", '"1"', "2", "~"])
def test_the_version_is_the_number_one(written: str) -> None:
    assert only(f"version: {written}\n").column == 10


def test_an_unknown_key_deep_inside_suggests_its_siblings() -> None:
    assert only("version: 1\ngates: {fast: [{name: a, run: x, reprot: plain}]}\n").fix == "did you mean `report`?"
