"""What an agent's program has around it, to the last variable and the last file in its HOME."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from pydantic import ValidationError

from becket.kernel.contract.agent import AgentOutcome, CallContext, CallFiles
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec, Network, SandboxKind
from becket.kernel.process import choose
from becket.parts.agents.adapters.call_environment import (
    CallEnvironment,
    CallImpossible,
    DriverContext,
    ProgramNeeds,
    package_of,
)
from becket.parts.agents.adapters.prices import prices_with


class Wardrobe:
    """A user's home with a login, skills, a program, and a run's folder."""

    def __init__(self, folder: Path) -> None:
        self.users = folder / "users"
        self.run = folder / "run"
        self.login = self.users / ".codex" / "auth.json"
        self.login.parent.mkdir(parents=True)
        self.login.write_text('{"token": "old"}')
        (self.users / ".netrc").write_text("a secret that nobody chose")
        self.program = folder / "opt" / "node_modules" / "@openai" / "codex" / "bin" / "codex.js"
        self.program.parent.mkdir(parents=True)
        self.program.write_text("#!/bin/sh\n")
        self.program.chmod(0o755)
        (folder / "bin").mkdir()
        (folder / "bin" / "codex").symlink_to(self.program)
        skill = folder / "skills" / "tdd"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("first the test")
        self.driver_context = DriverContext(
            processes=choose(SandboxKind.none),
            hidden=(self.users,),
            skills={"tdd": skill},
            prices=prices_with({}),
            environ={"PATH": str(folder / "bin"), "KEY": "sesame", "DAEMON_TOKEN": "never"},
            home=self.users,
        )
        self.home = self.run / "home" / "fixer-1"
        self.call_context = CallContext(files=CallFiles(self.run / "call"), home=self.home)

    def environment(self, wants: ProgramNeeds | None = None, **config: Json) -> CallEnvironment:
        with self.driver_context.prepare(
            AgentConfig.model_validate({"driver": "codex"} | config), wants or WANTS, self.call_context
        ) as environment:
            return environment

    def files(self) -> dict[str, str]:
        found = sorted(path for path in self.home.rglob("*") if not path.is_dir())
        return {str(path.relative_to(self.home)): path.read_text() for path in found}


VENDOR = ("api.example.org:443",)
WANTS = ProgramNeeds(program="codex", skills=".agents/skills", hosts=("api.example.org",), env={"QUIET": "1"})


@pytest.fixture
def wardrobe(tmp_path: Path) -> Wardrobe:
    return Wardrobe(tmp_path)


def spec_of(environment: CallEnvironment, tree: Path) -> ChildSpec:
    return environment.child(("true",), tree, 5.0)


def test_the_environment_is_what_is_named_and_nothing_else(wardrobe: Wardrobe, tmp_path: Path) -> None:
    """L25: the daemon's own variables do not reach the agent."""
    environment = wardrobe.environment(env=["KEY"], set={"QUIET": "0", "LEVEL": "3"})
    assert spec_of(environment, tmp_path).env == {"QUIET": "0", "LEVEL": "3", "KEY": "sesame"}
    assert wardrobe.environment().env == {"QUIET": "1"}


def test_a_key_is_given_under_the_names_that_the_program_knows(wardrobe: Wardrobe) -> None:
    assert wardrobe.environment(key="KEY").env == {"QUIET": "1", "KEY": "sesame"}
    assert wardrobe.environment(ProgramNeeds(keys=("VENDOR_KEY",)), key="KEY").env == {"VENDOR_KEY": "sesame"}


@pytest.mark.parametrize("config", [{"env": ["GONE"]}, {"key": "GONE"}])
def test_a_variable_that_is_not_there_is_a_missing_login(wardrobe: Wardrobe, config: dict[str, Json]) -> None:
    with pytest.raises(CallImpossible, match="GONE must be set") as unfit:
        wardrobe.environment(**config)
    report = unfit.value.report()
    assert (report.ended, report.outcome_hint) == (False, AgentOutcome.auth_missing)


def test_home_holds_the_chosen_credentials_and_skills_only(wardrobe: Wardrobe) -> None:
    """L25: a private HOME; the copy is for the agent's eyes only, and is taken back after the call."""
    config = AgentConfig.model_validate({"driver": "codex", "credentials": [".codex/auth.json"]})
    with wardrobe.driver_context.prepare(config, WANTS, wardrobe.call_context):
        assert wardrobe.files() == {
            ".agents/skills/tdd/SKILL.md": "first the test",
            ".codex/auth.json": '{"token": "old"}',
        }
        copy = wardrobe.home / ".codex" / "auth.json"
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert stat.S_IMODE(wardrobe.home.stat().st_mode) == 0o700
        (wardrobe.home / "session").write_text("kept for the next call")
    assert wardrobe.files() == {".agents/skills/tdd/SKILL.md": "first the test", "session": "kept for the next call"}


def test_a_credential_may_lie_elsewhere_and_be_named_otherwise(wardrobe: Wardrobe, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    given = {"credentials": [{"file": str(tmp_path / "token"), "as": ".vendor/token"}], "skills": []}
    config = AgentConfig.model_validate({"driver": "codex"} | given)
    with wardrobe.driver_context.prepare(config, WANTS, wardrobe.call_context):
        assert wardrobe.files() == {".vendor/token": "t"}
    with pytest.raises(UsageError, match="`as`"):
        wardrobe.environment(credentials=[str(tmp_path / "token")])
    with pytest.raises(ValidationError, match="`as` leads out"):
        wardrobe.environment(credentials=[{"file": ".codex/auth.json", "as": "../../escape"}])


def test_a_login_that_is_not_there_is_told_before_anything_starts(wardrobe: Wardrobe) -> None:
    with pytest.raises(CallImpossible, match="log in there first") as unfit:
        wardrobe.environment(credentials=["~/.claude/.credentials.json"])
    assert unfit.value.outcome is AgentOutcome.auth_missing


@pytest.mark.parametrize(
    ("left", "kept"),
    [
        ('{"token": "new"}', '{"token": "new"}'),
        ("garbage", '{"token": "old"}'),
        ("", '{"token": "old"}'),
        (json.dumps("x" * 70_000), '{"token": "old"}'),
    ],
)
def test_only_a_sound_renewed_login_goes_back(wardrobe: Wardrobe, left: str, kept: str) -> None:
    config = AgentConfig.model_validate(
        {"driver": "codex", "credentials": [{"file": ".codex/auth.json", "write_back": True}]}
    )
    with wardrobe.driver_context.prepare(config, WANTS, wardrobe.call_context):
        (wardrobe.home / ".codex" / "auth.json").write_text(left)
    assert wardrobe.login.read_text() == kept
    assert stat.S_IMODE(wardrobe.login.stat().st_mode) in (0o600, 0o644)


def test_a_login_is_not_written_back_unasked_nor_over_a_newer_one(wardrobe: Wardrobe) -> None:
    for write_back, newer in ((False, False), (True, True)):
        given = [{"file": ".codex/auth.json", "write_back": write_back}]
        config = AgentConfig.model_validate({"driver": "codex", "credentials": given})
        with wardrobe.driver_context.prepare(config, WANTS, wardrobe.call_context):
            (wardrobe.home / ".codex" / "auth.json").write_text('{"token": "agent"}')
            if newer:
                wardrobe.login.write_text('{"token": "person"}')
        assert wardrobe.login.read_text() == ('{"token": "person"}' if newer else '{"token": "old"}')


def test_links_that_an_agent_left_lead_nowhere(wardrobe: Wardrobe, tmp_path: Path) -> None:
    """L21, L24: Becket writes with more rights than the agent has; a planted link must not borrow them."""
    outside = tmp_path / "outside"
    (outside / "skills" / "tdd").mkdir(parents=True)
    (outside / "secret.json").write_text('{"a": "secret of the host"}')
    wardrobe.home.mkdir(parents=True)
    (wardrobe.home / ".codex").symlink_to(outside)
    (wardrobe.home / ".agents").symlink_to(outside)
    given = [{"file": ".codex/auth.json", "write_back": True}]
    config = AgentConfig.model_validate({"driver": "codex", "credentials": given})
    with wardrobe.driver_context.prepare(config, WANTS, wardrobe.call_context):
        copy = wardrobe.home / ".codex" / "auth.json"
        copy.unlink()
        copy.symlink_to(outside / "secret.json")
    assert wardrobe.login.read_text() == '{"token": "old"}'
    assert sorted(path.name for path in outside.rglob("*")) == ["secret.json", "skills", "tdd"]


@pytest.mark.parametrize("in_the_way", [".codex/.auth.json.becket/d", ".codex/auth.json/d", ".agents/skills/tdd/d"])
def test_folders_that_an_agent_left_in_the_way_are_removed(wardrobe: Wardrobe, in_the_way: str) -> None:
    """L24: what an agent does to its HOME does not break the call after it, nor close it."""
    config: dict[str, Json] = {"credentials": [{"file": "~/.codex/auth.json", "write_back": True}]}
    wardrobe.environment(**config)
    (wardrobe.home / in_the_way).mkdir(parents=True)
    for closed in (wardrobe.home / ".codex", wardrobe.home):
        closed.chmod(0)
    with wardrobe.driver_context.prepare(
        AgentConfig.model_validate({"driver": "codex"} | config), WANTS, wardrobe.call_context
    ):
        assert wardrobe.files()[".codex/auth.json"] == '{"token": "old"}'
    assert wardrobe.home.stat().st_mode & 0o777 == 0o700
    assert (wardrobe.home / ".codex").stat().st_mode & 0o777 == 0o700


def test_skills_are_fresh_in_every_call_and_only_the_chosen_ones(wardrobe: Wardrobe) -> None:
    wardrobe.environment()
    (wardrobe.home / ".agents/skills/tdd/SKILL.md").write_text("skip the test")
    (wardrobe.home / ".agents/skills/own").mkdir()
    wardrobe.environment()
    assert wardrobe.files() == {".agents/skills/tdd/SKILL.md": "first the test"}
    wardrobe.environment(skills=[])
    assert wardrobe.files() == {}
    with pytest.raises(UsageError, match="no skill is called magic; there is: tdd"):
        wardrobe.environment(skills=["magic"])


@pytest.mark.parametrize(
    ("config", "network", "reach"),
    [
        ({}, Network.none, ("api.example.org:443",)),
        ({"hosts": ["a.example", "127.0.0.1:5"]}, Network.none, (*VENDOR, "a.example:443", "127.0.0.1:5")),
        ({"endpoint": "http://127.0.0.1:11434/v1"}, Network.none, ("127.0.0.1:11434",)),
        ({"endpoint": "https://gateway.example/v1"}, Network.none, ("gateway.example:443",)),
        ({"endpoint": "http://gateway.example"}, Network.none, ("gateway.example:80",)),
        ({"endpoint": "http://[::1]:80"}, Network.none, ("[::1]:80",)),
        ({"network": "full"}, Network.full, ()),
        ({"network": "none"}, Network.none, ()),
    ],
)  # fmt: skip
def test_the_only_ways_out_are_its_model_and_the_named_hosts(
    wardrobe: Wardrobe, tmp_path: Path, config: dict[str, Json], network: Network, reach: tuple[str, ...]
) -> None:
    spec = spec_of(wardrobe.environment(**config), tmp_path)
    assert (spec.network, spec.reach) == (network, reach)


def test_a_program_without_a_vendor_reaches_nothing_but_the_named_hosts(wardrobe: Wardrobe) -> None:
    assert (wardrobe.environment(ProgramNeeds()).network, wardrobe.environment(ProgramNeeds()).reach) == (
        Network.none,
        (),
    )
    assert wardrobe.environment(ProgramNeeds(), hosts=["a.example"]).reach == ("a.example:443",)


def test_an_endpoint_that_is_none_is_the_users_error(wardrobe: Wardrobe) -> None:
    with pytest.raises(ValidationError, match="is no address"):
        wardrobe.environment(endpoint="gateway")


def test_the_child_sees_its_package_and_not_the_home_of_the_user(wardrobe: Wardrobe, tmp_path: Path) -> None:
    spec = spec_of(wardrobe.environment(), tmp_path)
    assert spec.readable == (tmp_path / "opt" / "node_modules",)
    assert spec.hidden == (wardrobe.users,)
    assert spec.home == wardrobe.home
    assert (spec.output, spec.stdout) == (wardrobe.call_context.files.log, wardrobe.call_context.files.raw)  # type: ignore[union-attr]


def test_a_program_in_a_home_does_not_open_that_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for place, expected in ((home / "claude", home / "claude"), (home / "bin" / "claude", home / "bin")):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("")
        assert package_of(place, home) == (expected,)
    (tmp_path / "top").write_text("")
    assert package_of(tmp_path / "top", home) == (tmp_path / "top",)


def test_a_program_that_is_not_installed_is_told_with_the_way_to_install_it(wardrobe: Wardrobe) -> None:
    with pytest.raises(
        CallImpossible, match="claude is not installed; npm install -g @anthropic-ai/claude-code@"
    ) as unfit:
        wardrobe.environment(ProgramNeeds(program="claude"))
    assert unfit.value.outcome is AgentOutcome.not_found
    with pytest.raises(CallImpossible, match="/no/where is no program"):
        wardrobe.environment(program="/no/where")


def test_without_a_run_nothing_is_left_behind(wardrobe: Wardrobe) -> None:
    with wardrobe.driver_context.prepare(AgentConfig(driver="codex"), WANTS, CallContext()) as environment:
        assert environment.home.is_dir()
        assert environment.files.folder.is_dir()
    assert not environment.home.exists()
    assert not environment.files.folder.exists()
