"""What Gemini CLI keeps below HOME: its settings, and its records of sessions.

Over ACP it tells tokens only when a prompt ends, and of a cancelled one never; its records tell them at once.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from becket.kernel.contract.agent import Usage
from becket.parts.agents.adapters.dialect import plus
from becket.parts.agents.adapters.lenient_json import count, mapping, parsed, text
from becket.parts.agents.adapters.lines import few_lines, lines_of, read_plain

_STAMP = re.compile(r"session-\d{4}-\d\d-\d\dT\d\d-\d\d-")
_TOKENS = re.compile(rb'"tokens"')
_LONG_AGO = "session-2000-01-01T00-{minute:02d}-"


class GeminiLedger:
    """Reads what was added to the session's record since this was made. The record is the agent's to write: what is
    not as expected in it is passed over.
    """

    def __init__(self, home: Path, session: str) -> None:
        self._home = home
        self._session = session
        self._read: dict[Path, int] = {}
        self._steps: dict[str, Usage] = {}
        self._answered = False
        self.model = ""
        self._look()
        self._before = frozenset(self._steps)
        self._prompted = len(self._steps)

    def prompt(self) -> None:
        """The next prompt begins."""
        self._look()
        self._prompted = len(self._steps)

    def ends_cut(self, counted: int) -> bool:
        """Whether the prompt's last answer has no end. `counted` is the prompt's input, as told when it was over.

        What came of a stream that was cut after a tool call is recorded like any other answer, but it is not counted.
        """
        self._look()
        given = [usage.input_tokens for usage in self._steps.values()][self._prompted :]
        return bool(given) and sum(given) - counted >= given[-1] > 0

    @property
    def ends_answered(self) -> bool:
        """Whether the last thing recorded is an answer, if only an empty one: after a tool call gemini takes that for
        a good end. What it does not take for an answer it does not record.
        """
        self._look()
        return self._answered

    @property
    def used(self) -> Usage:
        """Of all requests to the model since then."""
        self._look()
        total = Usage()
        for key, usage in self._steps.items():
            if key not in self._before:
                total = plus(total, usage)
        return total

    def _look(self) -> None:
        for path in records_of(self._home, self._session):
            begin = self._read.get(path, 0)
            whole, newline, _ = read_plain(path, begin).rpartition(b"\n")
            self._read[path] = begin + len(whole) + len(newline)
            for line in few_lines(whole, _TOKENS):
                self._step(line.decode("utf-8", "replace"))

    def _step(self, line: str) -> None:
        record = parsed(line)
        tokens = mapping(record, "tokens")
        if text(record, "type"):
            self._answered = bool(tokens)
        if not tokens:
            return
        self.model = text(record, "model") or self.model
        self._steps[text(record, "id")] = Usage(
            input_tokens=count(tokens, "input"),
            cached_tokens=min(count(tokens, "cached"), count(tokens, "input")),
            output_tokens=count(tokens, "output") + count(tokens, "thoughts"),
        )


def settle(home: Path, env: Mapping[str, str]) -> None:
    """Settings for a HOME that has none. Its own ten attempts would hide for minutes that a quota is used up; without a
    chosen login it cannot load a session; and a terminal for its commands is not to be had in every sandbox.
    """
    folder, path = home / ".gemini", home / ".gemini" / "settings.json"
    if folder.is_symlink() or path.is_symlink() or path.exists():
        return
    login = "gemini-api-key" if env.get("GEMINI_API_KEY") else ""
    if not login and (folder / "oauth_creds.json").is_file():
        login = "oauth-personal"
    settings = {
        "general": {"maxAttempts": 2, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
        "tools": {"shell": {"enableInteractiveShell": False}},
        **({"security": {"auth": {"selectedType": login}}} if login else {}),
    }
    with contextlib.suppress(OSError):
        folder.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings, indent=2))


def make_room(home: Path, session: str) -> None:
    """Date the session's records back and remove the empty ones, so that it can be loaded, and more than once.

    Gemini 0.61 names a record by minute and session, and on loading begins a new one first. Within the same minute it
    so overwrites what it is about to load; later, cleaning up the empty one, it removes the other with it.
    """
    for minute, path in enumerate(sorted(records_of(home, session))):
        with contextlib.suppress(OSError):
            _date_back(path, minute)


def _date_back(path: Path, minute: int) -> None:
    if any(text(parsed(line), "type") == "gemini" for line in lines_of(path, _TOKENS)):
        path.rename(path.with_name(_STAMP.sub(_LONG_AGO.format(minute=minute % 60), path.name, count=1)))
    else:
        path.unlink()


def records_of(home: Path, session: str) -> Iterator[Path]:
    """The files of a session. None that a link leads out of HOME to."""
    mark = session[:8]
    if not mark.isalnum():
        return
    for path in home.glob(f".gemini/tmp/*/chats/session-*-{mark}.jsonl"):
        if _STAMP.match(path.name) and path.is_file() and path.resolve().is_relative_to(home.resolve()):
            yield path
