"""What agents are given stays out of what is kept and shown, whatever it looks like (L25)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from becket.app.secrets import given_secrets
from becket.app.sections import config_model
from becket.kernel.contract.agent import Agents
from becket.kernel.contract.base import Json
from becket.kernel.contract.config import Config
from becket.kernel.engine.redact import Redactor
from becket.parts.agents.secrets import agent_secrets
from becket.testing.world import World


def redacted(home: Path, said: str, environ: dict[str, str] | None = None, **agent: Json) -> str:
    config = config_model().model_validate({"version": 1, "agents": {"fixer": {"driver": "codex"} | agent}})
    return Redactor(agent_secrets(config, environ or {}, home)).text(said)


def test_a_key_is_known_by_its_value_under_whatever_name(tmp_path: Path) -> None:
    said = redacted(tmp_path, "I saw plain-gateway-word-99 there", {"GATEWAY": "plain-gateway-word-99"}, key="GATEWAY")
    assert said == "I saw [redacted:agents.fixer.GATEWAY] there"


def test_variables_are_known_by_their_values_unless_they_say_that_they_are_none(tmp_path: Path) -> None:
    environ = {"WORD": "open-sesame-4711", "LANG": "en_US.UTF-8", "OTHER": "not-given-at-all-1"}
    given: dict[str, Json] = {"PIN": "sesame-close-99", "SMALL_MODEL": "model-4-mini", "PLACE": "/opt/lang-8"}
    said = "open-sesame-4711 en_US.UTF-8 not-given-at-all-1 sesame-close-99 model-4-mini /opt/lang-8"
    told = redacted(tmp_path, said, environ, driver="command", run="cat", env=["WORD", "LANG"], set=given)
    assert told == (
        "[redacted:agents.fixer.WORD] en_US.UTF-8 not-given-at-all-1 [redacted:agents.fixer.PIN] model-4-mini "
        "/opt/lang-8"
    )


def test_what_a_build_is_given_is_redacted_like_what_a_step_is(tmp_path: Path) -> None:
    build: Json = {"run": "make", "env": ["PULL_TOKEN"]}
    config = config_model().model_validate({"version": 1, "services": {"main": {"start": "true", "build": build}}})
    secrets = given_secrets(config, tmp_path, {"PULL_TOKEN": "open-sesame-4711"})
    assert Redactor(secrets).text("got open-sesame-4711") == "got [redacted:services.main.build.PULL_TOKEN]"


HIDDEN = {
    "PHRASE": "open the door", "NUMBER": "4711081512", "ROOTED": "/aB3xQ9+kz7", "DOTTED": ".aB3xQ9kz7",
    "HOMELY": "~aB3xQ9kz", "DB_OPTIONS": "-c word=Zq7", "APP_NAME": "Zq7-named-app", "API_VERSION": "Zq7-versioned",
    "LOWER": "sunflower", "UPPER": "SUNFLOWERS",
}  # fmt: skip
SHOWN = {
    "NODE_ENV": "production", "APP_ENV": "development", "POSTGRES_DB": "postgres", "PORT": "8080", "DAY": "20260131",
    "TOOL": "22.10.0", "PLACE": "/opt/sdk-8/lib", "PLACES": "~/bin:/usr/lib/x86_64-linux-gnu",
    "INDEX": "https://a.org/simple", "DB_HOST": "db.example.org", "AWS_REGION": "eu-central-1", "LANG": "en_US.UTF-8",
    "SETTINGS_MODULE": "shop.settings", "PACKAGE": "calculator", "CI": "true", "PYTHONHASHSEED": "0",
}  # fmt: skip


@pytest.mark.parametrize("by_file", [False, True])
def test_what_a_step_is_given_is_hidden_unless_it_is_ordinary(tmp_path: Path, by_file: bool) -> None:
    """As docs/howto/heal.md says it, for variables and for files of them."""
    (tmp_path / "src/calculator").mkdir(parents=True)
    (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in (HIDDEN | SHOWN).items()))
    step: dict[str, Json] = {"name": "unit", "run": "true"}
    step |= {"env_file": ".env"} if by_file else {"env": [*HIDDEN], "set": dict(SHOWN)}
    config = config_model().model_validate({"version": 1, "gates": {"fast": [step]}})
    redactor = Redactor(given_secrets(config, tmp_path, HIDDEN))
    for value in HIDDEN.values():
        assert "[redacted:" in redactor.text(f"it is {value}, or not"), value
    for value in SHOWN.values():
        assert redactor.text(f"it is {value}, or not") == f"it is {value}, or not"


def test_ordinary_settings_hide_nothing_of_real_logs(tmp_path: Path) -> None:
    config = config_model().model_validate(
        {"version": 1, "gates": {"fast": [{"name": "unit", "run": "true", "set": SHOWN}]}}
    )
    redactor, bare = Redactor(given_secrets(config, tmp_path, {})), Redactor({})
    logs = [path for path in (Path(__file__).parents[1] / "verifiers/data").rglob("*") if path.is_file()]
    assert len(logs) > 20
    for log in logs:
        text = log.read_text(errors="replace")
        assert redactor.text(text) == bare.text(text), log.name


def test_what_a_login_holds_is_known_without_its_other_words(tmp_path: Path) -> None:
    """A renewing token has no shape that a pattern could know."""
    held = {"auth_mode": "chatgpt-login", "tokens": {"refresh_token": "1//0gAbc-def_ghi", "account": "ada@example.org"}}
    (tmp_path / "auth.json").write_text(json.dumps(held))
    said = redacted(tmp_path, "1//0gAbc-def_ghi chatgpt-login ada@example.org", credentials=["~/auth.json"])
    assert said == "[redacted:agents.fixer.auth.json.tokens.refresh_token] chatgpt-login ada@example.org"


@pytest.mark.parametrize("text", ["q7-zebra-quilt-88\n", "export API_KEY='q7-zebra-quilt-88'\n", '"q7-zebra-quilt-88"'])
def test_a_file_that_is_no_object_is_known_too(tmp_path: Path, text: str) -> None:
    (tmp_path / "key").write_text(text)
    assert "zebra" not in redacted(tmp_path, "it is q7-zebra-quilt-88", credentials=["~/key"])


def test_a_login_that_is_not_there_is_no_trouble_here(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    assert redacted(tmp_path, "fine", credentials=["~/none.json", "~/folder"]) == "fine"


def configured(world: World, agents: str) -> Config:
    world.write("becket.yaml", f"version: 1\nagents: {agents}\n")
    return world.app.config


def test_an_agent_that_comes_into_becket_yaml_later_is_known_without_a_restart(tmp_path: Path) -> None:
    """L25: whoever holds the redactor already, such as the engine and the door, hides the new secret too."""
    world = World(tmp_path)
    redact = world.app.redactor.text
    configured(world, "{old: {driver: command, run: cat, set: {GATE_KEY: old-plain-word-1}}}")
    assert redact("old-plain-word-1 new-plain-word-2") == "[redacted:agents.old.GATE_KEY] new-plain-word-2"

    configured(world, "{newer: {driver: command, run: cat, set: {GATE_KEY: new-plain-word-2}}}")
    assert redact("old-plain-word-1 new-plain-word-2") == (
        "[redacted:agents.old.GATE_KEY] [redacted:agents.newer.GATE_KEY]"
    )


def test_a_login_that_renewed_itself_is_known_before_the_next_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    login = tmp_path / "login.json"
    login.write_text('{"token": "former-plain-word-1"}')
    world = World(tmp_path)
    redact = world.app.redactor.text
    configured(world, "{fixer: {driver: command, run: cat, credentials: [~/login.json]}}")
    login.write_text('{"token": "renewed-plain-word-2"}')

    world.app.port(Agents).get("fixer")
    assert "plain-word" not in redact("former-plain-word-1 renewed-plain-word-2")
