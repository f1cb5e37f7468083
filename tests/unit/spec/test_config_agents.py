"""Agents in becket.yaml: what cannot work is refused at its place, with what to write, and no secret is repeated."""

from __future__ import annotations

import pytest

from becket.app.sections import load_config
from becket.kernel.contract.errors import Finding, InvalidDocument


def only(text: str) -> Finding:
    with pytest.raises(InvalidDocument) as caught:
        load_config(f"version: 1\n{text}\n", "becket.yaml", {})
    (finding,) = caught.value.findings
    return finding


def agent(text: str) -> Finding:
    return only(f"agents:\n  a: {{driver: codex, {text}}}")


@pytest.mark.parametrize(
    "host",
    ["https://x.org/y", "*.x.org", "", "x.org:0", "x.org:65536", "x.org:http", "x.org, y.org", "b\u00fccher.org", "-x"],
)
def test_a_host_is_one_place(host: str) -> None:
    """L24: an allow-list that means something else than it says protects nobody."""
    found = agent(f"hosts: ['{host}']")
    assert repr(host) in found.message
    assert "without wildcard, scheme and path" in found.fix
    assert found.line == 3


@pytest.mark.parametrize("host", ["x.org", "x.org:8443", "127.0.0.1:80", "[::1]:80", "[::1]", "localhost", "my_host"])
def test_names_and_addresses_are_hosts(host: str) -> None:
    config = load_config(f"version: 1\nagents: {{a: {{driver: codex, hosts: ['{host}']}}}}\n", "becket.yaml", {})
    assert config.agents["a"].hosts == (host,)


@pytest.mark.parametrize(
    "address", ["localhost:11434/v1", "", "ftp://x.org", "http://", "http://x.org:abc", "http://x:0"]
)
def test_an_endpoint_is_an_address(address: str) -> None:
    found = agent(f"endpoint: '{address}'")
    assert found.message == "`endpoint` is no address"
    assert "write it like https://" in found.fix


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("key: sk-proj-SECRET", "`key` is the name of a variable"),
        ("key: $SECRET", "`key` is the name of a variable"),
        ("env: [KEY=SECRET]", "`env` lists names of variables"),
        ("set: {'KEY=SECRET': x}", "`set` has names of variables"),
        ("endpoint: 'http://ann:SECRET@x.org/v1'", "`endpoint` holds a login"),
    ],
)
def test_a_secret_that_stands_in_the_wrong_place_is_not_repeated(text: str, said: str) -> None:
    """L25."""
    found = agent(text)
    assert said in found.message
    assert "SECRET" not in f"{found.message} {found.fix}"


@pytest.mark.parametrize("text", ["set: {HOME: /elsewhere}", "env: [HOME]"])
def test_its_home_stays_its_own(text: str) -> None:
    assert "HOME is the agent's own folder" in agent(text).message


@pytest.mark.parametrize("name", ["''", "--yolo", "'a b'"])
def test_a_model_is_no_option_of_the_program(name: str) -> None:
    assert "`model` is no name of a model" in agent(f"model: {name}").message


@pytest.mark.parametrize("place", ["../x", "/etc/x", "''", "a/../../x"])
def test_a_credential_goes_below_home(place: str) -> None:
    assert "`as` leads out of the agent's HOME" in agent(f"credentials: [{{file: /etc/hostname, as: {place}}}]").message


def test_a_call_has_some_time_and_a_command_some_words() -> None:
    assert "more than 0" in agent("limits: {time: 0s}").message
    assert "needs `run`" in only("agents: {a: {driver: command, run: '  '}}").message


def test_the_agent_of_heal_is_one_of_the_agents() -> None:
    found = only("agents: {a: {driver: codex}}\nheal: {agent: fixer}")
    assert "heal.agent names 'fixer'" in found.message
    assert found.fix == "name one of a"
    assert found.line == 3
