"""Every trouble, seeded one at a time into a healthy repository, is found with its cure; the healthy one has none."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from becket.app.sections import config_model
from becket.kernel.checks import doctor, host
from becket.kernel.checks.doctor import CHECKS, exit_code, to_json
from becket.kernel.checks.facts import (
    AgentFact,
    ContentFacts,
    Diagnosis,
    DoctorFacts,
    InotifyFacts,
    Level,
    LockFact,
    LoginFact,
    RefsFacts,
    SandboxFact,
    StoreFacts,
    TreeFact,
)
from becket.kernel.contract.candidate import BrokenRef
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding, InvalidDocument, StoreDamaged, StoreUnavailable
from becket.kernel.contract.git import TreeHealth
from becket.kernel.contract.process import Holds, SandboxKind
from becket.kernel.contract.spec import Autonomy
from becket.kernel.contract.store import WorkerInfo
from becket.parts.doctor.doctor import of_parts

NOW = 1_700_000_000.0


def examine(facts: DoctorFacts) -> tuple[Diagnosis, ...]:
    return doctor.examine(facts, of_parts=of_parts())


CONFIG = """\
version: 1
gates:
  fast:
    - {name: unit, run: "make test"}
people: {jane: {role: owner}}
handoff_to: jane
"""
BWRAP = Holds(kind=SandboxKind.bwrap, files=True, processes=True, network=True)
LANDLOCK = Holds(kind=SandboxKind.landlock, files=True, processes=False, network=False)
NONE = Holds(kind=SandboxKind.none, files=False, processes=False, network=False)
ONLY_NONE = (
    SandboxFact(BWRAP, False, "bwrap is not installed"),
    SandboxFact(LANDLOCK, False, "the kernel has no landlock"),
    SandboxFact(NONE, True),
)
ONLY_LANDLOCK = (ONLY_NONE[0], SandboxFact(LANDLOCK, True), ONLY_NONE[2])


def load(text: str) -> Config:
    """As strict as the real loader, with the place of the first finding only."""
    try:
        return config_model().model_validate(yaml.safe_load(text))
    except ValidationError as error:
        problem = error.errors()[0]
        key = str(problem["loc"][0])
        line = next((n for n, line in enumerate(text.splitlines(), 1) if line.startswith(key)), 1)
        finding = Finding("becket.yaml", line, 1, "value", problem["msg"], f"correct `{key}`")
        raise InvalidDocument([finding]) from error


def git(root: Path, *arguments: str) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    end = subprocess.run(["git", *identity, *arguments], cwd=root, env=env, check=True, capture_output=True, text=True)
    return end.stdout


def daemon(number: int, **changes: Any) -> WorkerInfo:
    values = {"role": "daemon", "version": "1", "host": "h", "started_at": NOW + number, "beat_at": NOW, "dead": False}
    return WorkerInfo(**{"worker_id": f"w{number}", "pid": number, **values, **changes})


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> DoctorFacts:
    """A real repository with a committed becket.yaml, read by the real probes where they are the machine's.

    Facts are frozen and no check changes the repository, so one serves all tests.
    """
    root = tmp_path_factory.mktemp("repo")
    git(root, "init", "-q")
    (root / "becket.yaml").write_text(CONFIG)
    git(root, "add", "becket.yaml")
    git(root, "commit", "-q", "-m", "first")
    state = root / ".git" / "becket"
    return DoctorFacts(
        git_version=git(root, "--version"),
        git_minimum=(2, 30),
        python_version=sys.version_info[:3],
        root=root,
        state=state,
        socket=Path("/run/becket.sock"),
        working_text=(root / "becket.yaml").read_text(),
        committed_text=git(root, "show", "HEAD:becket.yaml"),
        load_config=load,
        sandboxes=(SandboxFact(BWRAP, True), SandboxFact(NONE, True)),
        open_store=lambda: StoreFacts(NOW, (daemon(1),)),
        now=lambda: NOW,
        locks=(LockFact(state / "engine.lock", os.getpid()),),
        alive=host.process_alive,
        disk_free=lambda _: 50_000_000_000,
        write_problem=host.write_problem,
        which=shutil.which,
        inotify=lambda: InotifyFacts(True, 65_536, 128, 10, 1),
        lint_loops=lambda: (),
        look_at_tree=lambda: TreeFact(root / ".worktrees/base", TreeHealth.good),
    )


def test_a_healthy_repository_has_no_error_and_no_warning(healthy: DoctorFacts) -> None:
    found = examine(healthy)
    assert [item for item in found if item.level is not Level.ok] == []
    assert exit_code(found) == 0
    assert {item.name for item in found} == {*CHECKS, *of_parts()}


def raises(error: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> Any:
        raise error

    return fail


def config(more: str = "", base: str = CONFIG) -> dict[str, Any]:
    """The same text in the work tree and in HEAD."""
    return {"working_text": base + more, "committed_text": base + more}


def looks(**found: Any) -> dict[str, Any]:
    """An agent `a` that is there, changed as said."""
    known: dict[str, Any] = {"name": "a", "program": "codex", "path": Path("/usr/bin/codex"), "version": "1.2.3"}
    fact = AgentFact(**known | found)
    return {"look_at_agents": lambda _: (fact,)}


ERROR, WARN = Level.error, Level.warn
SEEDED: dict[str, tuple[dict[str, Any], str, Level, str, str]] = {
    # what is changed -> check, level, words of what, words of mend
    "python too old": ({"python_version": (3, 10, 9)}, "python", ERROR, "3.10.9 is too old", "Python 3.11"),
    "git too old": ({"git_version": "git version 2.25.1"}, "git", ERROR, "2.25.1 is too old; 2.30", "install -y git"),
    "git of a vendor": ({"git_version": "git version 2.9.3 (Apple Git-75)"}, "git", ERROR, "2.9.3", "git"),
    "no git": ({"git_version": None}, "git", ERROR, "not found", "install -y git"),
    "odd git": ({"git_version": "git version unknown"}, "git", WARN, "cannot be read", "git --version"),
    "no repository": ({"root": None}, "repository", ERROR, "not inside", "git init"),
    "no becket.yaml": ({"working_text": None}, "config", ERROR, "no becket.yaml", "becket init"),
    "no test command": (config(base="version: 1\n"), "gates", ERROR, "no test command", "gates: {fast:"),
    "no fast gate": (
        config(base='version: 1\ngates: {slow: [{name: a, run: "make"}]}\n'), "gates", WARN, "gates.fast", "gates",
    ),
    "toothless gate": (
        config(base='version: 1\ngates: {fast: [{name: a, run: "make test || true"}]}\n'),
        "gates", WARN, "can never fail", "exit code",
    ),
    "not committed": ({"committed_text": None}, "committed", ERROR, "not committed", "git commit"),
    "committed one broken": ({"committed_text": "version: 9\n"}, "committed", ERROR, "cannot be used", "git commit"),
    "no owner": (config(base=CONFIG.replace("handoff_to: jane\n", "")), "people", WARN, "no owner", "handoff_to: jane"),
    "nobody at all": (
        config(base=CONFIG.partition("people")[0]), "people", WARN, "no owner", "people: {owner: {role: owner",
    ),
    "tests alone": (
        config("guard: {promote: powerful}\n"), "trust", WARN,
        "guard.promote is powerful: the tests alone decide; nobody looks at what a change can do",
        "guard: {promote: ordinary}",
    ),
    "nobody writes hold-out checks": (
        config(
            "autonomy: merge\nagents: {a: {driver: command, run: make}}\n",
            CONFIG.replace('"make test"', '"make test", report: tap'),
        ), "trust", WARN, "autonomy is merge, and no agent writes hold-out checks", "heal: {hold_out: a}",
    ),
    "hold-out checks cannot help where nothing names tests": (
        config("autonomy: merge\nagents: {a: {driver: command, run: make}}\n"), "trust", WARN,
        "hold-out checks cannot change that here: every gate step has `report: plain`", "guard: {promote: plain}",
    ),
    "hold-out checks cannot help in a language that has none": (
        config(
            "autonomy: merge\nagents: {a: {driver: command, run: make}}\n",
            CONFIG.replace('"make test"', '"make test", report: tap'),
        ) | {"not_held_out": lambda: "hold-out checks are not supported for Ruby"},
        "trust", WARN, "not supported for Ruby", "guard: {promote: plain}",
    ),
    "missing tool": (
        config(base=CONFIG.replace("make test", "cd web && CI=1 frobnicate --all")),
        "tools", ERROR, "frobnicate, which gates.fast.unit starts", "install frobnicate",
    ),
    "known missing tool": (
        {**config(base=CONFIG.replace("make test", "go test ./...")), "which": lambda _: None},
        "tools", ERROR, "go, which", "golang-go",
    ),
    "missing file": (config(base=CONFIG.replace("make test", "./gone")), "tools", ERROR, "./gone", "chmod +x gone"),
    "no shell": (config(base=CONFIG.replace('"make test"', "\"echo 'x\"")), "tools", ERROR, "quotation", "quotes"),
    "a page that others reach without TLS": (
        config("web: {enabled: true, host: 0.0.0.0}\n"), "web", WARN, "others reach", "reverse proxy",
    ),
    "a command to notify by that is not there": (
        config("notify: {command: 'frob \"$BECKET_TITLE\"'}\n"), "notify", ERROR, "frob, which notify", "frob",
    ),
    "set-up tool": (config('setup: {run: "frob sync", key: [x]}\n'), "tools", ERROR, "frob, which setup", "frob"),
    "missing agent": (config("agents: {a: {driver: command, run: nobody}}\n"), "agents", WARN, "agents.a", "nobody"),
    "unseen agent": (
        {**config("agents: {a: {driver: command, run: /tmp/agents/fix.sh}}\n"), **looks(unseen="it is there, but; do")},
        "agents", ERROR, "agents.a: it is there, but", "do",
    ),
    "agent without run": (config("agents: {a: {driver: acp}}\n"), "config", ERROR, "needs `run`", "correct `agents`"),
    "agent that is no shell": (
        config("agents: {a: {driver: acp, run: \"x 'y\"}}\n"), "agents", ERROR, "agents.a is not a shell", "quotes",
    ),
    "agent not installed": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(path=None, install="npm install x")},
        "agents", WARN, "codex, which agents.a starts, was not found", "npm install x",
    ),
    "agent of another version": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(untested="codex 9: not tested", install="npm install x")},
        "agents", WARN, "agents.a: codex 9: not tested", "npm install x",
    ),
    "agent without its file": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(logins=(LoginFact("~/.codex/auth.json", False),))},
        "agents", WARN, "given ~/.codex/auth.json: it is not there", "log in with the program",
    ),
    "agent without its variable": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(logins=(LoginFact("$KEY", False, "it is not set"),))},
        "agents", WARN, "given $KEY: it is not set", "export KEY=",
    ),
    "agent without a login": (
        {**config("agents: {a: {driver: codex}}\n"), **looks()},
        "agents", WARN, "no credentials and no key", "`key: OPENAI_API_KEY`",
    ),
    "agent whose money cannot be counted": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(unpriced="it cannot be held. Name its price")},
        "agents", ERROR, "it cannot be held", "Name its price",
    ),
    "agent for which a budget in money cannot be held": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(why_unenforceable="it cannot be held. Say its price")},
        "agents", WARN, "it cannot be held", "Say its price",
    ),
    "agent that can never be called": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(wrong=("no skill is called x; there is: y",))},
        "agents", ERROR, "no skill is called x", "there is: y",
    ),
    "agent without a way to its model": (
        {**config("agents: {a: {driver: codex, network: none}}\n"), **looks(network="none")},
        "agents", WARN, "cannot reach its model", "remove `network`",
    ),
    "agent whose file has a short name": (
        {**config("agents: {a: {driver: codex}}\n"), **looks(logins=(LoginFact("auth.json", False),))},
        "agents", WARN, "given auth.json: it is not there", "log in with the program",
    ),
    "undefined secret": (
        config('alarms: [{url: "http://x", secret: "${SECRET}"}]\n'),
        "variables", ERROR, "${SECRET} is used but not defined", "export SECRET=",
    ),
    "env file": (
        config("services: {main: {start: ./x, env_file: .env}}\n"),
        "variables", WARN, "services.main reads .env", "create .env",
    ),
    "nothing contained": ({"sandboxes": ONLY_NONE}, "sandbox", WARN, "none holds nothing", "bubblewrap"),
    "autonomy above the sandbox": (
        {**config("autonomy: merge\n"), "sandboxes": ONLY_LANDLOCK},
        "sandbox", ERROR, "only `propose` counts", "without: [processes, network]",
    ),
    "sandbox not there": (
        {**config("sandbox: bwrap\n"), "sandboxes": ONLY_NONE},
        "sandbox", ERROR, "bwrap cannot be used here (bwrap is not installed)", "bubblewrap",
    ),
    "agent's sandbox not there": (
        {**config("agents: {a: {driver: command, run: make, sandbox: landlock}}\n"), "sandboxes": ONLY_NONE},
        "sandbox", ERROR, "agents.a.sandbox: landlock cannot be used", "sandbox: auto",
    ),
    "no sandbox known": ({"sandboxes": ()}, "sandbox", ERROR, "no such sandbox", "bubblewrap"),
    "database down": (
        {**config("database: postgresql://localhost/b\n"), "open_store": raises(StoreUnavailable("no answer"))},
        "database", ERROR, "no answer", "start the database",
    ),
    "journal out of reach": (
        {"open_store": raises(StoreUnavailable("cannot open"))}, "database", ERROR, "cannot open", "let this user",
    ),
    "journal damaged": (
        {"open_store": raises(StoreDamaged("the journal is gone")), "last_backup": lambda: "monday.db"},
        "database", ERROR, "is gone", "becket store restore",
    ),
    "journal damaged, no backup": (
        {"open_store": raises(StoreDamaged("the journal is gone"))},
        "database", ERROR, "is gone", "becket store accept",
    ),
    "database newer": (
        {"open_store": raises(StoreUnavailable("the database is of a newer version (9)"))},
        "database", ERROR, "newer version", "pip install --upgrade becket",
    ),
    "a program that contained ones do not see": (
        {"unseen": lambda _, word: Path(f"/home/a/opt/x/bin/{word}")}, "tools", ERROR, "/home/a/opt/x/bin/",
        "readable: [/home/a/opt/x]",
    ),
    "a program that says what it lacks": (
        {"trouble": lambda *_: "pyenv: git: command not found"}, "tools", ERROR, "pyenv: git:", "install the version",
    ),
    "a place to read that is not there": (
        config("sandbox: {readable: [/opt/not/there]}\n"), "toolchains", WARN, "/opt/not/there", "correct it",
    ),
    "a variable to pass on that is not set": (
        config("setup: {run: git, key: [a], env: [NOBODY_HAS_THIS]}\n"), "variables", WARN, "NOBODY_HAS_THIS", "export",
    ),
    "a remote that git does not know": (
        {**config("remote: {name: upstream}\n"), "remotes": lambda: ("origin",)},
        "remote", ERROR, "git knows no remote upstream", "there is origin",
    ),
    "every file protected": (
        config("guard: {promote: plain, protected: [LICENSE, '**']}\n"), "patterns", WARN,
        "`guard.protected` names every file with **: no repair", "guard.protected: [LICENSE]",
    ),
    "every file a test": (
        config("test_side: ['./*']\n"), "patterns", WARN, "`test_side` names every file with ./*", "[tests/**]",
    ),
    "an alarm file without a folder": (
        config("alarms: [{file: not/there/alarms.log}]\n"), "alarms", ERROR, "not/there/alarms.log", "make the folder",
    ),
    "an alarm file that is a folder": (
        config("alarms: [{file: /tmp}]\n"), "alarms", ERROR, "cannot be written to /tmp", "correct the path",
    ),
    "an alarm file that no alarm could reach": (
        config("alarms: [{file: ../alarms.log}]\n"), "config", ERROR, "could not be written there", "alarms",
    ),
    "submodules that are not here": (
        {"contents": lambda: ContentFacts(submodules=("lib/a",))}, "contents", WARN, "lib/a", "git submodule update",
    ),
    "large files": (
        {"contents": lambda: ContentFacts(large=("a.bin",))}, "contents", WARN, "a.bin", "git lfs pull",
    ),
    "large files without git-lfs": (
        {"contents": lambda: ContentFacts(large=(".gitattributes",), lfs=False)},
        "contents", WARN, "not installed", "apt-get install -y git-lfs",
    ),
    "two daemons": (
        {"open_store": lambda: StoreFacts(NOW, (daemon(11), daemon(12)))},
        "daemons", ERROR, "pid 11 on h, pid 12 on h", "kill 12",
    ),
    "silent daemon": (
        {"open_store": lambda: StoreFacts(NOW, (daemon(11, beat_at=NOW - 3600),))},
        "daemons", WARN, "no longer responds", "becket up",
    ),
    "clock ahead": ({"now": lambda: NOW + 60}, "clock", WARN, "1m ahead of", "timedatectl"),
    "clock behind": ({"now": lambda: NOW - 7200}, "clock", ERROR, "2h behind", "timedatectl"),
    "disk low": ({"disk_free": lambda _: 999_999_999}, "disk", WARN, "only 1.00 GB", "df -h"),
    "disk full": ({"disk_free": lambda _: 199_999_999}, "disk", ERROR, "only 0.20 GB", "df -h"),
    "state not writable": ({"state": Path("/proc/becket")}, "state", ERROR, "cannot be written", "chown"),
    "state on a read-only disk": (
        {"write_problem": lambda _: "Read-only file system"}, "state", ERROR, "Read-only", "findmnt -T",
    ),
    "socket too long": (
        {"socket": Path("/" + "é" * 54)}, "socket", ERROR, "109 bytes; the system allows 107", "2 bytes shorter",
    ),
    "empty lock": ({"locks": (LockFact(Path("/x y"), None),)}, "locks", WARN, "names no process", "rm -- '/x y'"),
    "a damaged tree": (
        {"look_at_tree": lambda: TreeFact(Path("/t"), TreeHealth.damaged)}, "tree", WARN, "not as Becket made it",
        "becket worktree ensure",
    ),
    "a tree whose commit was pruned": (
        {"look_at_tree": lambda: TreeFact(Path("/t"), TreeHealth.pruned)}, "tree", WARN, "no longer has the commit",
        "becket worktree ensure",
    ),
    "files in the tree's place": (
        {"look_at_tree": lambda: TreeFact(Path("/a b"), TreeHealth.foreign)}, "tree", ERROR, "did not make",
        "mv -- '/a b' '/a b'.mine",
    ),
    "no inotify": ({"inotify": lambda: InotifyFacts(False)}, "inotify", WARN, "poll every 30 s", "container"),
    "inotify instances used up": (
        {"inotify": lambda: InotifyFacts(False, 65_536, 128, 5, 128)},
        "inotify", WARN, "cannot be used", "max_user_instances=512",
    ),
    "few watches": (
        {"inotify": lambda: InotifyFacts(True, 8_191, 128)},
        "inotify", WARN, "max_user_watches is 8191", "sudo sysctl -w fs.inotify.max_user_watches=524288",
    ),
    "few instances": (
        {"inotify": lambda: InotifyFacts(True, 65_536, 32)}, "inotify", WARN, "max_user_instances is 32", "sysctl",
    ),
    "watches nearly used": (
        {"inotify": lambda: InotifyFacts(True, 1_000_000, 128, 900_000, 1)},
        "inotify", WARN, "900000 of 1000000", "max_user_watches=2000000",
    ),
    "network file system": (
        {"inotify": lambda: InotifyFacts(True, blind_mount="nfs4")}, "inotify", WARN, "nfs4", "local disk",
    ),
    "loop with findings": (
        {"lint_loops": lambda: [Finding("a.yaml", 3, 5, "no-bound", "no deadline", "add `deadline: 1h`")]},
        "loops", ERROR, "no-bound: no deadline", "add `deadline: 1h`",
    ),
    "loop that cannot be read": (
        {"lint_loops": raises(InvalidDocument([Finding("a.yaml", 1, 1, "yaml", "a tab", "use spaces")]))},
        "loops", ERROR, "yaml: a tab", "use spaces",
    ),
}  # fmt: skip


def test_a_missing_pnpm_is_the_one_that_package_json_names(healthy: DoctorFacts, tmp_path: Path) -> None:
    def mend(package: str) -> str:
        (tmp_path / "package.json").write_text(package)
        facts = dataclasses.replace(
            healthy, root=tmp_path, which=lambda _: None, **config(base=CONFIG.replace("make test", "pnpm test"))
        )
        return next(item.mend for item in examine(facts) if item.name == "tools" and "gates.fast" in item.what)

    assert mend('{"packageManager": "pnpm@10.14.0-0+sha512.ab"}') == "npm install --global pnpm@10.14.0-0"
    for other in ("{}", "[]", "{", '{"packageManager": "pnpm@latest; rm x"}', '{"packageManager": "yarn@4.1.0"}'):
        assert mend(other) == "npm install --global pnpm"


def test_of_two_commands_that_begin_alike_each_is_told_with_its_own_line(healthy: DoctorFacts) -> None:
    long = "FROBNICATE_SETTINGS_OF_THE_PROJECT=everything frobnicate"
    steps = "".join(f'    - {{name: {name}, run: "{long} {name}"}}\n' for name in ("unit", "lint"))
    text = f"version: 1\ngates:\n  fast:\n{steps}"
    found = [item.where for item in examine(dataclasses.replace(healthy, **config(base=text))) if item.name == "tools"]
    assert found == ["becket.yaml:4", "becket.yaml:5"]


@pytest.mark.parametrize("trouble", SEEDED)
def test_each_trouble_is_found_with_its_cure(healthy: DoctorFacts, trouble: str) -> None:
    changes, name, level, what, mend = SEEDED[trouble]
    found = [item for item in examine(dataclasses.replace(healthy, **changes)) if item.name == name]
    worst = [item for item in found if item.level is level and what in item.what]
    assert worst, found
    assert mend in (worst[0].mend or "")
    assert bool(exit_code(found)) is (level is Level.error)


def only(found: Iterable[Diagnosis], name: str) -> Diagnosis:
    (item,) = [item for item in found if item.name == name]
    return item


def test_a_wrong_value_is_shown_with_its_line(healthy: DoctorFacts) -> None:
    """L37: configuration errors are loud, and point at the place."""
    broken = CONFIG + "autonomy: sometimes\n"
    found = examine(dataclasses.replace(healthy, working_text=broken))
    item = only(found, "config")
    assert (item.level, item.where, item.mend) == (Level.error, "becket.yaml:7:1", "correct `autonomy`")
    assert {"gates", "committed", "tools"}.isdisjoint(item.name for item in found)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("gates", CONFIG.replace("make test", "make all")),
        ("setup", CONFIG + "setup: {run: make, key: [x]}\n"),
        ("test_side", CONFIG + "test_side: ['t/**']\n"),
        ("guard", CONFIG + "guard: {max_file: 1MB}\n"),
        ("services", CONFIG + "services: {a: {start: make}}\n"),
    ],
)
def test_what_differs_from_the_committed_file_is_named_with_its_line(healthy: DoctorFacts, key: str, text: str) -> None:
    item = only(examine(dataclasses.replace(healthy, working_text=text)), "committed")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(key))
    assert (item.level, item.where) == (Level.warn, f"becket.yaml:{line}")
    assert item.what.startswith(f"{key} differ")


def test_an_agent_is_told_with_version_sandbox_ways_out_and_fallback(healthy: DoctorFacts) -> None:
    more = "agents: {a: {driver: codex, fallback: [b]}, b: {driver: command, run: make, sandbox: none}}\n"
    given = LoginFact("~/.codex/auth.json", there=True)
    facts = looks(ways=("api.example.org:443",), logins=(given,))
    found = examine(dataclasses.replace(healthy, **config(more), **facts))
    told, login = [item.what for item in found if item.name == "agents"]
    assert told == (
        "agents.a: codex, codex 1.2.3 (/usr/bin/codex); contained by bwrap; reaches api.example.org:443 and nothing "
        "else; falls back to b"
    )
    assert "not checked: only `becket doctor --probe` tells" in login
    weak = [item for item in found if item.name == "sandbox" and item.level is Level.warn]
    assert "agents.b.sandbox: none holds nothing" in weak[0].what


@pytest.mark.parametrize(
    ("more", "network", "reaches"),
    [
        ("", "none", "reaches nothing: `hosts` in becket.yaml names what it may"),
        (", network: none", "none", "reaches nothing"),
        (", network: full", "full", "reaches every host (`network: full`)"),
        (", sandbox: none", "none", "is given no network, but not kept from using one: `hosts` in becket.yaml names"),
    ],
)
def test_what_an_agent_can_reach_is_told_where_no_host_is_named(
    healthy: DoctorFacts, more: str, network: str, reaches: str
) -> None:
    agents = config(f"agents: {{a: {{driver: command, run: make{more}}}}}\n")
    found = examine(dataclasses.replace(healthy, **agents, **looks(network=network)))
    assert reaches in next(item.what for item in found if "agents.a: command" in item.what)
    (sight,) = json.loads(json.dumps(to_json(found)))["agents"]
    assert (sight["agent"], sight["network"], sight["hosts"]) == ("a", network, [])
    assert (sight["sandbox"], sight["held"]) == (("none", False) if "sandbox" in more else ("bwrap", True))


def test_ways_out_that_nothing_enforces_are_not_called_a_limit(healthy: DoctorFacts) -> None:
    facts = looks(ways=("api.example.org:443",))
    loose = config("agents: {a: {driver: codex, sandbox: none}}\n")
    found = examine(dataclasses.replace(healthy, **loose, **facts))
    (told,) = [item.what for item in found if "agents.a: codex" in item.what]
    assert "in none, which does not contain files, processes, network" in told
    assert "not kept from reaching others" in told
    assert "nothing else" not in told


@pytest.mark.parametrize(
    "more", ["autonomy: observe\n", "# a comment\n", "agents: {a: {driver: command, run: make}}\n"]
)
def test_what_counts_as_in_the_working_copy_may_differ(healthy: DoctorFacts, more: str) -> None:
    item = only(examine(dataclasses.replace(healthy, working_text=CONFIG + more)), "committed")
    assert item.level is Level.ok


def test_the_committed_file_may_be_missing_in_a_real_repository(healthy: DoctorFacts, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q")
    with pytest.raises(subprocess.CalledProcessError):
        git(fresh, "show", "HEAD:becket.yaml")
    item = only(examine(dataclasses.replace(healthy, root=fresh, committed_text=None)), "committed")
    assert item.level is Level.error


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ('alarms: [{file: "${DB}"}]\n', "becket.yaml:7:18"),
        ("# database: ${DB}\n", None),
        ("autonomy: propose # ${DB}\n", None),
        ("alarms: [{file: 'a#${DB}'}]\n", "becket.yaml:7:20"),
        ("database: ${HOME}\n", None),
        ("database: $DB\n", None),
        ("database: $${DB}\n", None),
        ("database: ${DB:-sqlite}\n", None),
    ],
)
def test_undefined_variables_are_found_where_they_expand(healthy: DoctorFacts, text: str, where: str | None) -> None:
    base = CONFIG.replace("make test", "make ${NEVER_IN_GATES}")
    facts = dataclasses.replace(healthy, env={"HOME": "/h"}, **config(text, base))
    found = [item.where for item in examine(facts) if item.name == "variables" and item.level is not Level.ok]
    assert found == ([where] if where else [])


def test_a_variable_that_the_loader_refused_is_told_once(healthy: DoctorFacts) -> None:
    finding = Finding("becket.yaml", 7, 11, "undefined-variable", "DB is not defined", "set DB")
    facts = dataclasses.replace(
        healthy, load_config=raises(InvalidDocument([finding])), working_text=CONFIG + "database: ${DB}\n"
    )
    assert [item.name for item in examine(facts) if "DB" in item.what] == ["config"]


@pytest.mark.parametrize(
    ("sandboxes", "more", "most", "level"),
    [
        ((SandboxFact(BWRAP, True),), "autonomy: release\n", "release", Level.ok),
        (ONLY_LANDLOCK, "", "propose", Level.warn),
        (ONLY_LANDLOCK, "sandbox: {use: auto, without: [network]}\n", "propose", Level.warn),
        (ONLY_LANDLOCK, "sandbox: {without: [network, processes]}\nautonomy: merge\n", "release", Level.ok),
        (ONLY_LANDLOCK, "sandbox: none\n", "propose", Level.warn),
        (
            ONLY_NONE,
            "sandbox: {use: none, without: [files, network, processes]}\nautonomy: merge\n",
            "release",
            Level.ok,
        ),
        (ONLY_NONE, "autonomy: release\n", "propose", Level.error),
    ],
)
def test_the_sandbox_in_use_and_what_it_caps_autonomy_to(
    healthy: DoctorFacts, sandboxes: tuple[SandboxFact, ...], more: str, most: str, level: Level
) -> None:
    """L18: how far loops go is explicit, and never further than the sandbox holds."""
    item = only(examine(dataclasses.replace(healthy, sandboxes=sandboxes, **config(more))), "sandbox")
    assert (item.level, f"autonomy up to `{most}`" in item.what) == (level, True), item.what
    assert Autonomy(most)


def test_a_tool_that_the_set_up_makes_is_not_missing(healthy: DoctorFacts) -> None:
    text = CONFIG.replace("make test", ".venv/bin/python -m pytest")
    assert only(examine(dataclasses.replace(healthy, **config(base=text))), "tools").level is Level.error
    text += "setup: {run: make venv, key: [becket.yaml]}\n"
    assert only(examine(dataclasses.replace(healthy, **config(base=text))), "tools").level is Level.ok


def test_a_stale_lock_is_told_from_a_held_one(healthy: DoctorFacts, tmp_path: Path) -> None:
    """L31: the process behind a lock is looked at, not the file alone."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    path = tmp_path / "engine lock"
    path.write_text(f"{child.pid}\n")
    lock = host.read_lock(path)
    assert lock is not None
    facts = dataclasses.replace(healthy, locks=(lock,))
    assert only(examine(facts), "locks").level is Level.ok
    child.communicate(b"\n")
    item = only(examine(facts), "locks")
    assert (item.level, item.mend, item.where) == (Level.warn, f"rm -- '{path}'", str(path))
    assert f"process {child.pid}, which is gone" in item.what


@pytest.mark.parametrize(
    "workers",
    [
        (),
        (daemon(1), daemon(2, dead=True)),
        (daemon(1), daemon(2, role="run")),
        (daemon(1), daemon(2, beat_at=NOW - 31)),
    ],
)
def test_one_live_daemon_or_none_is_well(healthy: DoctorFacts, workers: tuple[WorkerInfo, ...]) -> None:
    facts = dataclasses.replace(healthy, open_store=lambda: StoreFacts(NOW, workers))
    assert only(examine(facts), "daemons").level is Level.ok


def test_no_database_yet_is_well(healthy: DoctorFacts) -> None:
    found = examine(dataclasses.replace(healthy, open_store=lambda: None))
    assert only(found, "database").level is Level.ok
    assert {"daemons", "clock"}.isdisjoint(item.name for item in found)


def test_a_password_in_a_message_is_hidden(healthy: DoctorFacts) -> None:
    """L25."""
    error = StoreUnavailable("cannot reach postgresql://me:s3cret@db.example.org/becket")
    text = json.dumps(to_json(examine(dataclasses.replace(healthy, open_store=raises(error)))))
    assert "s3cret" not in text
    assert "postgresql://***@db.example.org/becket" in text


@pytest.mark.parametrize(
    ("field", "name"),
    [
        ("load_config", "config"),
        ("open_store", "database"),
        ("alive", "locks"),
        ("disk_free", "disk"),
        ("write_problem", "state"),
        ("which", "tools"),
        ("inotify", "inotify"),
        ("lint_loops", "loops"),
        ("look_at_tree", "tree"),
        ("now", "database"),
    ],
)
def test_a_check_that_breaks_is_an_error_and_hides_no_other(healthy: DoctorFacts, field: str, name: str) -> None:
    found = examine(dataclasses.replace(healthy, **{field: raises(RuntimeError("boom"))}))
    broken = [item for item in found if "boom" in item.what]
    assert [(item.name, item.level) for item in broken] == [(name, Level.error)]
    assert "RuntimeError" in broken[0].what
    assert broken[0].mend
    assert {"python", "git", "sandbox"} <= {item.name for item in found}


def test_a_file_that_cannot_be_read_is_told_by_one_check(healthy: DoctorFacts) -> None:
    """Whatever else needs becket.yaml is silent about it."""
    unread = raises(InvalidDocument([Finding("becket.yaml", 2, 9, "bad-value", "nobody drives that", "drive it")]))
    facts = dataclasses.replace(healthy, load_config=unread, open_store=unread, lint_loops=unread)
    assert [item.name for item in examine(facts) if "nobody" in item.what] == ["config"]


def test_the_json_form_is_complete_and_plain(healthy: DoctorFacts) -> None:
    facts = dataclasses.replace(healthy, git_version=None, disk_free=lambda _: 500_000_000)
    data = json.loads(json.dumps(to_json(examine(facts))))
    assert (data["ok"], data["errors"], data["warnings"]) == (False, 1, 1)
    assert {"name", "level", "what", "mend", "where"} == set(data["diagnoses"][0])


def test_outside_a_repository_only_the_machine_is_examined(healthy: DoctorFacts) -> None:
    facts = dataclasses.replace(
        healthy, root=None, state=None, socket=None, working_text=None, committed_text=None, open_store=lambda: None
    )
    errors = [item.name for item in examine(facts) if item.level is Level.error]
    assert errors == ["repository"]


def test_what_could_not_be_removed_is_told_beside_the_tree(healthy: DoctorFacts) -> None:
    fact = TreeFact(Path("/t"), TreeHealth.good, (Path("/t.aside-1"),))
    found = [item for item in examine(dataclasses.replace(healthy, look_at_tree=lambda: fact)) if item.name == "tree"]
    assert [(item.level, item.mend) for item in found] == [(Level.ok, None), (Level.warn, "rm -rf -- /t.aside-1")]


def test_broken_refs_are_errors_and_much_saved_work_is_a_warning(healthy: DoctorFacts) -> None:
    broken = BrokenRef(ref="refs/becket/candidate/run_1/1", sha="1" * 40, missing="missing tree object '22'")
    facts = dataclasses.replace(healthy, refs=lambda: RefsFacts((broken,), 3, 4_000_000_000))
    found = [item for item in examine(facts) if item.name == "refs"]
    assert [(item.level, item.mend) for item in found] == [
        (Level.error, "becket doctor --fix"), (Level.warn, "becket rescue list, then becket rescue drop NAME")
    ]  # fmt: skip
    assert "missing tree object '22'" in found[0].what
    assert "3 rescues take 4 GB" in found[1].what
