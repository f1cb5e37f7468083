"""Contract of the agents' drivers: what an agent is given, and everything else, which it neither sees nor touches."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import pytest
from agent_stage import (
    CLAUDE,
    CODEX,
    GEMINI,
    IN_LANDLOCK,
    AgentStage,
    asks_the_proxy_for_elsewhere,
    kinds,
    make_stage,
    model,
    repairs,
    shell,
    stage,
)

from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.errors import UsageError
from becket.testing.model import Delay, Edit, Say

__all__ = ["model", "stage"]

ALL = kinds(CODEX, CLAUDE, GEMINI)
EVERYWHERE = kinds(CODEX, CLAUDE, GEMINI, *IN_LANDLOCK)
SKILL = "---\nname: heron\ndescription: When a heron is mentioned, stand still.\n---\nStand still.\n"
ODD = "$(touch planted) `touch planted` \0 \u2028 ☃ " + "x" * 200_000
JUNK = """\
not json at all
{"type": "item.completed", "item": null}
{"type": "assistant", "message": {"content": [{"type": "hologram"}], "usage": "none"}}
{"type": "result"
{"type": "a.thing.of.tomorrow", "payload": [1, 2, {"x": null}]}
[]
"lone"
{"jsonrpc": "2.0", "method": "session/update", "params": {"update": {"sessionUpdate": "dream"}}}
{"jsonrpc": "2.0", "method": "vendor/surprise", "params": 7}
"""


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_no_secret_of_the_daemon_or_the_person_reaches_the_agent(stage: AgentStage) -> None:
    """L12, L25: what its commands see is dumped into its own checkout, and looked through."""
    env, netrc = stage.root / ".env", stage.home / ".netrc"
    dump = f"env > dump.txt; cat /proc/[0-9]*/environ >> dump.txt; cat {env} {netrc} ~/.netrc .env >> dump.txt; true"
    done = stage.call(*shell(f"({dump}) 2>&1"))
    assert done.judged.changed_paths == ("dump.txt",), done.report
    dumped = (stage.tree / "dump.txt").read_bytes()
    assert f"SUITE_MARK={stage.mark}".encode() in dumped  # it is no empty dump
    for secret in ("daemon", "netrc", "dotenv"):
        assert f"{secret}-{stage.mark}".encode() not in dumped, secret
    if stage.kind.program == "codex":  # only codex can keep its key from the commands that it runs
        assert b"key-of-the-model" not in dumped.split(b"\0")[0]


@pytest.mark.parametrize("kind", ALL)
def test_its_home_is_private_and_holds_the_chosen_credentials_only(stage: AgentStage) -> None:
    chosen = [{"file": "~/.codex/auth.json", "as": ".config/chosen.json"}]
    look = "cp ~/.config/chosen.json seen.txt; find ~ -name .netrc -o -name letter.txt -o -name auth.json > found.txt"
    done = stage.call(*shell(f"{look}; stat -c %a ~/.config/chosen.json > mode.txt"), credentials=chosen)
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert json.loads((stage.tree / "seen.txt").read_text()) == {"token": "of the person"}
    assert (stage.tree / "mode.txt").read_text() == "600\n"
    assert (stage.tree / "found.txt").read_text() == ""
    assert not (stage.agent_home / ".config" / "chosen.json").exists()


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_nothing_is_written_outside_of_the_checkout(stage: AgentStage) -> None:
    """By a command; the stage looks at its decoys after every other test as well."""
    places = [
        Path(place, stage.mark) for place in (stage.decoy, stage.home, stage.root, "/tmp", "/var/tmp", "/dev/shm")
    ]
    tries = "; ".join(f"echo x > {place}" for place in places)
    before = vendors_files()
    done = stage.call(*shell(f"({tries}; unlink {stage.decoy}/letter.txt; echo tried > tried.txt) 2>/dev/null"))
    assert done.judged.changed_paths == ("tried.txt",), done.report
    assert [place for place in places if place.exists()] == []
    assert vendors_files() <= before


def vendors_files() -> set[str]:
    """What the programs like to leave in the common temporary folders."""
    names = ("claude", "codex", "gemini", "cc-socks", ".codex", "node-compile-cache")
    return {
        str(path) for folder in ("/tmp", "/var/tmp") for path in Path(folder).iterdir() if path.name.startswith(names)
    }


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_it_reaches_its_model_and_no_other_port(stage: AgentStage) -> None:
    with socket.create_server(("127.0.0.1", 0)) as decoy:
        decoy.setblocking(False)
        port = decoy.getsockname()[1]
        stage.call(*shell(f"bash -c 'echo hello > /dev/tcp/127.0.0.1/{port}' 2>/dev/null; echo tried > tried.txt"))
        assert (stage.tree / "tried.txt").exists()
        with pytest.raises(BlockingIOError):
            decoy.accept()


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_a_host_that_is_not_allowed_is_denied_and_named(stage: AgentStage) -> None:
    done = stage.call(*asks_the_proxy_for_elsewhere())
    assert " 403 " in (stage.tree / "told.txt").read_text()
    assert "elsewhere.test:443" in done.report.denied


@pytest.mark.parametrize("kind", ALL)
def test_the_model_is_told_of_the_skills(stage: AgentStage) -> None:
    own = stage.root / ".becket" / "skills" / "heron"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(SKILL)
    stage.call(*repairs(), skills=["heron", "test-driven-development"])
    asked = json.dumps([request.body for request in stage.model.requests])
    assert "When a heron is mentioned" in asked
    assert "test-driven-development" in asked
    assert "verify-before-complete" not in asked


@pytest.mark.parametrize("kind", kinds(fakes=("codex",)))
def test_a_skill_that_is_not_there_is_a_usage_error(stage: AgentStage) -> None:
    with pytest.raises(UsageError, match="no skill is called egret; there is"):
        stage.call(skills=["egret"])


@pytest.mark.parametrize("kind", kinds())
def test_events_that_nobody_knows_are_kept_and_never_break_a_call(stage: AgentStage) -> None:
    program = stage.folder / "bin" / stage.kind.program
    program.rename(program.with_suffix(".quiet"))
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{JUNK}EOF\nexec {program}.quiet \"$@\"\n")
    program.chmod(0o755)
    done = stage.call(*repairs())
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert done.report.unknown_events >= 3
    assert "a.thing.of.tomorrow" in stage.files.raw.read_text()


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, GEMINI, fakes=("codex",)))
def test_a_checkout_whose_name_is_unusual_is_no_trouble(stage: AgentStage) -> None:
    odd = stage.folder / "a tree with 'quotes' and ümlauts"
    stage.tree.rename(odd)
    stage.tree = odd
    done = stage.call(*repairs())
    assert done.judged.outcome is AgentOutcome.changed, done.report


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, GEMINI))
@pytest.mark.parametrize(
    "brief",
    ["--help\n/clear is no command", "$(touch planted) `touch planted` \0 \u2028 ☃ " + "x" * 200_000],
    ids=["dash", "odd"],
)
def test_any_brief_reaches_the_model_as_text(stage: AgentStage, brief: str) -> None:
    """Not as an option, not as a command of the program, not through a shell."""
    done = stage.call(*repairs(), brief=f"{brief}\nEND-OF-BRIEF")
    assert done.judged.changed_paths == ("value.txt",), done.report
    assert stage.model.saw("END-OF-BRIEF")
    assert stage.model.saw("/clear is no command" if brief[0] == "-" else "$(touch planted)")


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE, GEMINI, fakes=("codex",)))
def test_much_output_that_is_no_text_is_no_trouble(stage: AgentStage) -> None:
    command = "head -c 2000000 /dev/urandom; printf '\\033[31mred\\033[0m'; echo good > value.txt"
    done = stage.call(*shell(command))
    assert done.judged.outcome is AgentOutcome.changed, done.report
    assert max(len(event.text) for event in done.events) <= 4_000


@pytest.mark.parametrize("kind", kinds(CODEX, CLAUDE))
def test_two_at_once_do_not_get_into_each_others_way(stage: AgentStage, monkeypatch: pytest.MonkeyPatch) -> None:
    (stage.folder / "second").mkdir()
    other = make_stage(stage.folder / "second", stage.kind, stage.model, monkeypatch)
    for name in ("one", "two"):
        steps = Delay(0.2), Edit("value.txt", "bad\n", f"{name}\n"), Say(f"{name} is done.")
        stage.model.script(*steps, prompt=f"task {name}")

    async def story() -> None:
        first, second = await asyncio.gather(stage.work("task one"), other.work("task two"))
        assert (first.report.said, second.report.said) == ("one is done.", "two is done.")
        assert (first.report.usage.tokens, second.report.usage.tokens) == (220, 220)
        assert first.report.session != second.report.session

    asyncio.run(story())
    assert (stage.tree / "value.txt").read_text() == "one\n"
    assert (other.tree / "value.txt").read_text() == "two\n"
