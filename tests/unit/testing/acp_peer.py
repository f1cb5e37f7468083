"""A small ACP client for the fake gemini and the real one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fake_stage import Stage

Json = dict[str, Any]


class Peer:
    """A client that answers every permission request in one way and keeps what it is told."""

    def __init__(self, running: subprocess.Popen[str], option: str) -> None:
        assert running.stdin is not None
        assert running.stdout is not None
        self._in = running.stdin
        self._out = running.stdout
        self._option = option
        self._number = 100
        self.updates: list[Json] = []
        self.asked: list[Json] = []

    def send(self, message: Json) -> None:
        self._in.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._in.flush()

    def call(self, method: str, **params: object) -> Json:
        self._number += 1
        self.send({"id": self._number, "method": method, "params": params})
        return self.answer(self._number)

    def answer(self, number: int) -> Json:
        for line in self._out:
            message: Json = json.loads(line)
            if message.get("method") == "session/update":
                self.updates.append(message["params"]["update"])
            elif message.get("method") == "session/request_permission":
                self.asked.append(message["params"]["toolCall"])
                chosen = {"outcome": {"outcome": "selected", "optionId": self._option}}
                self.send({"id": message["id"], "result": chosen})
            elif message.get("id") == number:
                return message
        raise AssertionError("it went away")

    def begin(self, stage: Stage) -> str:
        self.call("initialize", protocolVersion=1, clientCapabilities={})
        return str(self.call("session/new", cwd=str(stage.tree), mcpServers=[])["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> Json:
        return self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    @property
    def kinds(self) -> list[str]:
        return [update["sessionUpdate"] for update in self.updates]

    @property
    def said(self) -> str:
        chunks = [one for one in self.updates if one["sessionUpdate"] == "agent_message_chunk"]
        return "".join(one["content"]["text"] for one in chunks)


@contextmanager
def gemini(stage: Stage, *options: str, option: str = "proceed_once", **env: str) -> Iterator[Peer]:
    command = [str(stage.programs / "gemini"), "--acp", "--skip-trust", *options]
    with stage.started(command, **env) as running:
        yield Peer(running, option)
