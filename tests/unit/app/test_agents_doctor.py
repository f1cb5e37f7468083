"""What the doctor knows of agents without calling them; it never opens what holds their logins."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from becket.app.sandboxes import Sandboxes
from becket.app.sections import config_model
from becket.kernel.contract.config import AgentConfig, Budgets
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import ContainedProcesses
from becket.parts.agents.doctor import AgentSearch, fact, version_of
from becket.parts.agents.unseen import unseen_program


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def search(folder: Path, agent: dict[str, Any], **environ: str) -> AgentSearch:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    config = config_model().model_validate({"version": 1, "sandbox": "none", "agents": {"a": agent}})
    return AgentSearch(config, folder, {"PATH": f"{folder / 'bin'}:{os.defpath}", **environ}, home)


def test_program_version_and_ways_out_are_found(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "codex", "echo codex-cli 0.166.0")
    found = fact(search(tmp_path, {"driver": "codex"}), "a")
    assert (found.program, found.path, found.version, found.untested) == ("codex", path, "0.166.0", "")
    assert "api.openai.com:443" in found.ways


def test_a_version_outside_the_tested_ones_is_told_with_the_way_back(tmp_path: Path) -> None:
    program(tmp_path / "bin", "claude", "echo '9.9.9 (Claude Code)'")
    found = fact(search(tmp_path, {"driver": "claude"}), "a")
    assert "claude 9.9.9 is not tested" in found.untested
    assert found.install.startswith("npm install")


def test_a_version_is_asked_for_without_our_environment_and_with_an_empty_home(tmp_path: Path) -> None:
    """L25: the daemon's secrets and the person's files are not there to be read."""
    asked = program(tmp_path, "nosy", 'env > "$0.env"; ls -A "$HOME" > "$0.home"; echo 1.2.3')
    assert version_of(asked, {"PATH": os.defpath, "SECRET": "s3cret"}) == "1.2.3"
    assert "s3cret" not in asked.with_name("nosy.env").read_text()
    assert asked.with_name("nosy.home").read_text() == ""


def test_a_program_that_never_answers_is_ended_with_all_it_started(tmp_path: Path) -> None:
    slow = program(tmp_path, "slow", 'sleep 300 & echo $! > "$0.new"; mv "$0.new" "$0.pid"; wait')
    for seconds in (0.5, 2.0, 8.0, 32.0):  # as long as it takes to begin
        assert version_of(slow, {"PATH": os.defpath}, seconds=seconds) == ""
        if slow.with_name("slow.pid").exists():
            break
    child = int(slow.with_name("slow.pid").read_text())
    end = time.monotonic() + 60
    while alive(child):
        assert time.monotonic() < end, "it lives on"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_logins_are_looked_for_and_never_opened(tmp_path: Path) -> None:
    """L25: opening a pipe that nobody writes would wait for ever."""
    agent = {"driver": "codex", "credentials": ["~/pipe", "~/auth.json", "~/empty", "~/none"], "key": "K", "env": ["E"]}
    place = search(tmp_path, agent, K="k")
    os.mkfifo(place.home / "pipe")
    (place.home / "auth.json").write_text("{}")
    (place.home / "empty").write_text("")
    found = {login.what: (login.there, login.trouble) for login in fact(place, "a").logins}
    assert found == {
        "~/pipe": (True, "it is no file"),
        "~/auth.json": (True, ""),
        "~/empty": (True, "it is empty"),
        "~/none": (False, "no such file or directory"),
        "$K": (True, ""),
        "$E": (False, "it is not set here"),
    }


def test_a_limit_in_money_that_nobody_can_hold_is_found(tmp_path: Path) -> None:
    blind = fact(search(tmp_path, {"driver": "codex", "limits": {"usd": 1}}), "a")
    assert "`limits.usd` cannot be held" in blind.unpriced
    known = fact(search(tmp_path, {"driver": "codex", "model": "gpt-5.4", "limits": {"usd": 1}}), "a")
    assert known.unpriced == ""
    told = fact(search(tmp_path, {"driver": "acp", "run": "claude-agent-acp", "limits": {"usd": 1}}), "a")
    assert told.unpriced == ""  # its program says itself what it cost


def test_a_budget_in_money_that_nobody_can_hold_is_found(tmp_path: Path) -> None:
    """Whatever loop it is for: the doctor does not know which one calls the agent."""
    place = search(tmp_path, {"driver": "codex", "model": "local"})
    assert fact(place, "a").why_unenforceable == ""
    budgets = Budgets.model_validate({"month": {"usd": 9}, "loops": {"heal": {"day": {"usd": 1}}}})
    bound = replace(place, config=place.config.model_copy(update={"budgets": budgets}))
    assert fact(bound, "a").why_unenforceable.startswith(
        "agents.a: `budgets.month.usd` and `budgets.loops.heal.day.usd` cannot be held, the price of 'local' is not"
    )


def test_what_can_never_be_called_is_found(tmp_path: Path) -> None:
    agent = {"driver": "codex", "skills": ["none-such"], "credentials": ["/etc/hostname"]}
    outside, unknown = fact(search(tmp_path, agent), "a").wrong
    assert "is not below your home" in outside
    assert "no skill is called none-such; there is: " in unknown
    fine = {"driver": "codex", "credentials": [{"file": "/etc/hostname", "as": ".codex/auth.json"}]}
    assert fact(search(tmp_path, fine), "a").wrong == ()


@pytest.mark.parametrize("run", ["npx some-agent --acp", "sh -c x", "python3 agent.py"])
def test_a_launcher_is_not_asked_for_its_own_version(tmp_path: Path, run: str) -> None:
    for name in ("npx", "sh", "python3"):
        program(tmp_path / "bin", name, "echo 7.7.7")
    assert fact(search(tmp_path, {"driver": "acp", "run": run}), "a").version == ""


def test_a_command_is_never_started_to_be_looked_at(tmp_path: Path) -> None:
    program(tmp_path / "bin", "agent", 'touch "$0.started"; echo 1.0.0')
    found = fact(search(tmp_path, {"driver": "command", "run": "agent --go"}), "a")
    assert found.path is not None
    assert not (tmp_path / "bin" / "agent.started").exists()


HELD = ContainedProcesses(SandboxKind.landlock)


@pytest.mark.parametrize("run", ["{path}", "exec {path} --now", "sh {path}", "FAST=1 python3 {path} --now"])
def test_a_program_that_contained_ones_do_not_see_is_told_with_the_line_to_write(tmp_path: Path, run: str) -> None:
    path = program(tmp_path / "agents", "fix.sh", "true")
    agent = AgentConfig.model_validate({"driver": "command", "run": run.format(path=path)})

    def told(processes: ContainedProcesses, *readable: str) -> str:
        return unseen_program(agent, processes, {"PATH": os.defpath}, tmp_path / "home", readable)

    assert told(HELD) == (
        f"{path} is there, but contained programs do not see it; in becket.yaml: sandbox: {{readable: [{path.parent}]}}"
    )
    assert told(HELD, "/opt/other").endswith(f"readable: [/opt/other, {path.parent}]}}")
    assert told(HELD, str(path.parent)) == ""
    assert told(ContainedProcesses(SandboxKind.none)) == ""


def test_a_program_named_by_its_home_is_not_there_for_an_agent(tmp_path: Path) -> None:
    """Its HOME is a private one, so showing the place is not enough."""
    path = program(tmp_path / "home" / "agents", "fix.sh", "true")
    agent = AgentConfig.model_validate({"driver": "command", "run": "~/agents/fix.sh"})
    told = unseen_program(agent, HELD, {"PATH": os.defpath}, tmp_path / "home", ())
    assert "HOME is another folder there" in told
    assert f"write {path} in its `run`" in told
    assert f"readable: [{path.parent}]" in told


@pytest.mark.parametrize("run", ["sh -c x", "cd tools && ./fix.sh", "no-such-program", "/no/such/program", "$AGENT"])
def test_of_a_program_that_is_not_known_to_be_hidden_nothing_is_told(tmp_path: Path, run: str) -> None:
    agent = AgentConfig.model_validate({"driver": "command", "run": run})
    assert unseen_program(agent, HELD, {"PATH": os.defpath}, tmp_path / "home", ()) == ""


def test_the_weakest_sandbox_of_all_agents_counts() -> None:
    """L18: an agent outside every sandbox caps what loops may do, whatever the others are in."""
    agents = {"a": {"driver": "command", "run": "x"}, "b": {"driver": "command", "run": "x", "sandbox": "none"}}
    config = config_model().model_validate({"version": 1, "agents": agents})
    assert Sandboxes().missing(config)
    given_up = config_model().model_validate(
        {"version": 1, "agents": agents, "sandbox": {"use": "auto", "without": ["files", "processes", "network"]}}
    )
    assert not Sandboxes().missing(given_up)
