"""Lines, inbox, versions, prices and the watch: what every driver is made of."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallFiles, Limits, PriceSource, Usage
from becket.kernel.contract.config import AgentConfig, AgentLimits
from becket.kernel.contract.errors import UsageError
from becket.parts.agents.adapters import inbox, versions
from becket.parts.agents.adapters.inbox import Inbox, Message
from becket.parts.agents.adapters.lines import LARGEST, LineReader, lines_of, read_plain
from becket.parts.agents.adapters.prices import built_in, priced, prices_with, refuse_blind_limit
from becket.parts.agents.adapters.reports import last_usage
from becket.parts.agents.adapters.watch import MOST_EVENTS, TEXT_LIMIT, Watch
from becket.parts.agents.section import Price


async def _followed(path: Path, pieces: list[bytes]) -> list[str]:
    ended = asyncio.Event()

    async def read() -> list[str]:
        return [line async for batch in LineReader(path, ended).batches() for line in batch]

    reading = asyncio.ensure_future(read())
    with path.open("wb", buffering=0) as file:
        for piece in pieces:
            file.write(piece)
            await asyncio.sleep(0)
    ended.set()
    return await reading


@given(st.lists(st.binary(max_size=20), max_size=6))
def test_a_growing_file_gives_each_line_once_and_keeps_the_last_one(pieces: list[bytes]) -> None:
    """L20: a terminal event without a newline is still one."""
    whole = b"".join(pieces)
    expected = [line.decode("utf-8", "replace").rstrip("\r") for line in whole.split(b"\n")]
    if not whole or whole.endswith(b"\n"):
        expected.pop()
    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(_followed(Path(folder, "raw.jsonl"), pieces)) == expected


def test_a_file_that_never_comes_has_no_lines(tmp_path: Path) -> None:
    async def nothing() -> list[str]:
        ended = asyncio.Event()
        asyncio.get_running_loop().call_later(0.02, ended.set)
        return [line async for batch in LineReader(tmp_path / "none", ended).batches() for line in batch]

    assert asyncio.run(nothing()) == []
    assert lines_of(tmp_path / "none") == []


def test_messages_are_taken_oldest_first_and_once(tmp_path: Path) -> None:
    files = CallFiles(tmp_path)
    box = Inbox(files)
    assert box.take() is None
    inbox.put(tmp_path / "inbox", "first", by="ada")
    inbox.put(tmp_path / "inbox", "second", by="../../etc")
    assert box.waiting()
    assert box.take() == Message("first", "ada")
    assert [path.read_text() for path in files.heard.iterdir()] == ["first"]
    assert [message.text for message in box.left()] == ["second"]
    second = box.take()
    assert second is not None
    assert not box.waiting()
    assert list(files.inbox.iterdir()) == []
    box.give_back(second)
    assert box.left() == (second,)


def test_only_whole_text_files_are_messages(tmp_path: Path) -> None:
    """L24: a draft, a folder, a link out and an empty file are none; bytes that are no text do not break it."""
    files = CallFiles(tmp_path)
    files.inbox.mkdir()
    (files.inbox / ".1-ada.txt").write_text("draft")
    (files.inbox / "2-folder").mkdir()
    (tmp_path / "secret").write_text("secret")
    (files.inbox / "3-link.txt").symlink_to(tmp_path / "secret")
    (files.inbox / "4-eve.txt").write_bytes(b"  \n")
    (files.inbox / "5-bob.txt").write_bytes(b"\xff say")
    assert Inbox(files).left() == (Message("� say", "bob"),)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("codex-cli 0.166.0\n", "0.166.0"),
        ("2.1.325 (Claude Code)", "2.1.325"),
        ("v1.18.33", "1.18.33"),
        ("WARNING: something\ngemini 0.61.0-preview.1", "0.61.0-preview.1"),
        ("no version at all", ""),
    ],
)
def test_versions_are_read_from_what_programs_print(text: str, version: str) -> None:
    assert versions.parse(text) == version


def test_a_version_outside_of_what_is_tested_is_warned_of() -> None:
    assert versions.warning("codex", "0.166.3") == ""
    assert versions.warning("codex", "") == ""
    assert versions.warning("unheard-of", "1.0") == ""
    assert versions.warning("codex", "0.1660.0")
    assert "npm install -g @anthropic-ai/claude-code@2.1.325" in versions.warning("claude", "3.0.1")


def test_the_package_tells_the_version_without_running_anything(tmp_path: Path) -> None:
    package = tmp_path / "node_modules" / "codex"
    (package / "bin").mkdir(parents=True)
    (package / "bin" / "codex.js").write_text("")
    (package / "package.json").write_text(json.dumps({"version": "0.166.0"}))
    link = tmp_path / "codex"
    link.symlink_to(package / "bin" / "codex.js")
    assert versions.of_package(link) == "0.166.0"
    (package / "package.json").write_text("[broken")
    assert versions.of_package(link) == ""
    assert versions.of_package(tmp_path / "versions" / "2.1.325") == "2.1.325"


def test_the_users_price_wins_and_snapshots_cost_what_their_model_costs() -> None:
    own = Price(input=1, output=2)
    prices = prices_with({"gpt-5.5": own, "local": Price(input=0, output=0)})
    assert prices("gpt-5.5") == own
    assert prices("gpt-5.5-2026-08-01") == own
    assert prices("local-llama") == Price(input=0, output=0)
    assert prices("claude-sonnet-4-5-20250929") == built_in()["claude-sonnet-4-5"]
    assert prices("claude-opus-4-6[1m]") == built_in()["claude-opus-4-6"]


@pytest.mark.parametrize("model", ["", "gpt-5.4-unknown", "claude-opus-5-5", "scripted", "gpt"])
def test_another_model_is_not_priced_by_its_name_alone(model: str) -> None:
    assert prices_with({})(model) is None


def test_money_by_the_table_counts_cached_tokens_once() -> None:
    usage = Usage(input_tokens=1_000_000, cached_tokens=400_000, cache_write_tokens=100_000, output_tokens=100_000)
    price = Price(input=10, output=50, cached=1, cache_write=20)
    assert priced(usage, price).usd == pytest.approx(5 + 0.4 + 2 + 5)
    assert priced(usage, Price(input=10, output=50)).usd == pytest.approx(10 + 5)
    assert priced(usage, price).priced is PriceSource.table
    assert priced(usage, None).priced is PriceSource.unknown
    assert priced(Usage(turns=3), price).priced is PriceSource.unknown
    told = usage.model_copy(update={"usd": 0.5, "priced": PriceSource.vendor})
    assert priced(told, price) == told


def test_a_limit_in_money_that_nobody_can_hold_is_refused() -> None:
    """The user must not believe in a limit that is none."""
    limits = AgentLimits(usd=1.0)
    codex = AgentConfig(driver="codex", model="local", limits=limits)
    with pytest.raises(UsageError, match=r"prices: \{local"):
        refuse_blind_limit("fixer", codex, None)
    refuse_blind_limit("fixer", codex, Price(input=1, output=1))
    with pytest.raises(UsageError, match=r"leave `limits\.usd` away"):
        refuse_blind_limit("fixer", AgentConfig(driver="command", run="x", limits=limits), Price(input=1, output=1))


def _events(files: CallFiles) -> list[AgentEvent]:
    return [AgentEvent.model_validate_json(line) for line in files.events.read_text().splitlines()]


def test_every_event_is_stamped_written_and_told_at_once(tmp_path: Path) -> None:
    files, heard, times = CallFiles(tmp_path), list[AgentEvent](), iter(range(100))
    watch = Watch(Limits(seconds=9), files, heard.append, Price(input=1, output=1), clock=lambda: float(next(times)))
    watch.take(AgentEvent(kind=AgentEventKind.message, text="x" * 10_000))
    assert len(_events(files)) == 1
    watch.take(AgentEvent(kind=AgentEventKind.usage, usage=Usage(turns=2, input_tokens=1_000_000)))
    watch.finish("cancelled")
    watch.finish("twice")
    assert heard == _events(files)
    message, usage, end = heard
    assert len(message.text) == TEXT_LIMIT
    assert message.at > 0
    assert usage.usage is not None
    assert (usage.usage.usd, usage.usage.priced) == (1.0, PriceSource.table)
    assert (end.kind, end.text) == (AgentEventKind.end, "cancelled")
    assert end.usage is not None
    assert end.usage.turns == 2


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(seconds=0), ()),
        (Limits(seconds=9, turns=3), ()),
        (Limits(seconds=9, turns=2), ("turns: 3 of 2",)),
        (Limits(seconds=9, tokens=10, usd=0.001), ("tokens: 1500 of 10", "usd: 0.0015 of 0.001")),
    ],
)
def test_the_watch_says_which_limit_is_passed(tmp_path: Path, limits: Limits, words: tuple[str, ...]) -> None:
    """L19, L23: limits are held by us; time is the sandbox's to hold."""
    watch = Watch(limits, CallFiles(tmp_path), price=Price(input=1, output=1))
    assert watch.passed == ()
    watch.tally(Usage(turns=3, input_tokens=1_000, output_tokens=500))
    assert watch.passed == words
    watch.finish()


def test_a_flood_of_events_is_cut_but_still_ends(tmp_path: Path) -> None:
    files = CallFiles(tmp_path)
    watch = Watch(Limits(seconds=9), files)
    for _ in range(MOST_EVENTS + 50):
        watch.take(AgentEvent(kind=AgentEventKind.thinking))
    watch.finish()
    lines = files.events.read_text().splitlines()
    assert len(lines) == MOST_EVENTS + 1
    assert json.loads(lines[-1])["kind"] == "end"
    assert json.loads(lines[-2])["kind"] == "error"


def test_a_long_silence_leaves_its_time_behind(tmp_path: Path) -> None:
    """L23: whoever reads the files after a crash of ours sees how long a silent program had been at work."""
    now, files = [0.0], CallFiles(tmp_path)
    watch = Watch(Limits(seconds=9), files, clock=lambda: now[0])
    for now[0] in (0.5, 0.9, 1.5, 1.9, 600.0, 620.0):
        watch.tally(Usage())
    assert [json.loads(line) for line in files.events.read_text().splitlines()] == [{"at": 1.5}, {"at": 600.0}]
    assert last_usage(files) == Usage(seconds=600.0)
    watch.finish()


def test_a_record_that_an_agent_made_a_pipe_or_a_link_holds_nothing(tmp_path: Path) -> None:
    """L24: the agent works while its records are read; a pipe in their place would stop the whole daemon."""
    (tmp_path / "real").write_text("one\ntwo\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    assert lines_of(tmp_path / "real") == ["one", "two"]
    assert read_plain(tmp_path / "real", 4) == b"two\n"
    assert [read_plain(tmp_path / name, 0) for name in ("link", "pipe", "none", ".")] == [b"", b"", b"", b""]


def test_a_record_without_an_end_is_read_within_reason(tmp_path: Path) -> None:
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert len(read_plain(tmp_path / "huge", 0)) == LARGEST


def test_what_is_told_of_a_call_is_without_secrets_and_holds_no_half_of_one(tmp_path: Path) -> None:
    """L25: whoever attaches from another terminal does not know the daemon's secrets."""
    files, heard = CallFiles(tmp_path), list[AgentEvent]()
    watch = Watch(Limits(seconds=9), files, heard.append, redact=lambda text: text.replace("sesame", "[redacted:KEY]"))
    watch.take(AgentEvent(kind=AgentEventKind.message, text="x" * (TEXT_LIMIT - 6) + "sesame"))
    watch.finish("open sesame")
    assert "ses" not in files.events.read_text()
    assert heard[-1].text == "open [redacted:KEY]"


def test_the_last_words_of_a_call_hold_no_half_of_a_secret(tmp_path: Path) -> None:
    watch = Watch(Limits(seconds=9), CallFiles(tmp_path), redact=lambda text: text.replace("sesame", "[redacted:KEY]"))
    words = watch.last_words("open sesame" + "x" * 3_997)
    watch.finish()
    assert len(words) == 4_000
    assert words.startswith("EY]x")


def test_a_full_disk_ends_what_is_told_of_a_call_and_not_the_call(tmp_path: Path) -> None:
    files, heard = CallFiles(tmp_path), list[AgentEvent]()
    files.events.symlink_to("/dev/full")
    watch = Watch(Limits(seconds=9), files, heard.append)
    watch.take(AgentEvent(kind=AgentEventKind.message, text="still at work"))
    watch.finish()
    assert [event.kind for event in heard] == [AgentEventKind.message, AgentEventKind.end]
