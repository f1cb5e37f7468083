"""A program that speaks ACP as its script says, well or badly. Standard library only; run by the driver's tests.

The script is a JSON file: `initialize`, `session` and `prompts`, the last a list of steps per prompt. Everything that
it is told goes to the file beside the script, `told.jsonl`.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

SESSION = "session-1"
HEARD: queue.Queue[dict[str, Any] | None] = queue.Queue()


def main() -> None:
    script_file = Path(sys.argv[1])
    script = json.loads(script_file.read_text())
    threading.Thread(target=listen, args=(script_file.with_name("told.jsonl"),), daemon=True).start()
    Program(script).work()


def listen(told: Path) -> None:
    with told.open("a") as file:
        for line in sys.stdin:
            file.write(line)
            file.flush()
            HEARD.put(json.loads(line))
    HEARD.put(None)


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(**told: Any) -> None:
    send(method="session/update", params={"sessionId": SESSION, "update": told})


class Program:
    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.prompts = iter(script.get("prompts", []))
        self.asked = 0

    def work(self) -> None:
        while (message := HEARD.get()) is not None:
            answer = {
                "initialize": self.initialize,
                "session/new": self.new,
                "session/load": self.load,
                "session/resume": self.resume,
                "session/prompt": self.prompt,
            }.get(message.get("method", ""))
            if answer is not None:
                answer(message)
            elif "id" in message and "method" in message:
                send(id=message["id"], result={})
        if self.script.get("stays"):
            time.sleep(60)

    def initialize(self, message: dict[str, Any]) -> None:
        how = self.script.get("initialize", {})
        self.steps(how.get("steps", []), message)
        can = {"loadSession": how.get("load", False)}
        if how.get("resume"):
            can["sessionCapabilities"] = {"resume": {}}
        send(
            id=message["id"],
            result={
                "protocolVersion": how.get("version", 1),
                "agentCapabilities": can,
                "agentInfo": {"name": "scripted", "version": "1.2.3"},
            },
        )

    def new(self, message: dict[str, Any]) -> None:
        if "error" in self.script.get("session", {}):
            send(id=message["id"], error=self.script["session"]["error"])
            return
        send(id=message["id"], result={"sessionId": SESSION, **self.script.get("session", {})})

    def load(self, message: dict[str, Any]) -> None:
        replay = self.script.get("replay")
        if replay is None:
            send(id=message["id"], error={"code": -32603, "message": "Internal error", "data": {"details": "gone"}})
            return
        send(id=message["id"], result=self.script.get("session", {}))
        for told in replay:  # after the answer, as gemini does it
            update(**told)

    def resume(self, message: dict[str, Any]) -> None:
        send(id=message["id"], result={})

    def prompt(self, message: dict[str, Any]) -> None:
        steps = next(self.prompts, [{"chunk": "Nothing more to do."}])
        if self.steps(steps, message):
            send(id=message["id"], result={"stopReason": "end_turn"})

    def steps(self, steps: list[dict[str, Any]], message: dict[str, Any]) -> bool:
        """False if the message is answered already, or is not to be."""
        return all(self.step(step, message) for step in steps)

    def step(self, step: dict[str, Any], message: dict[str, Any]) -> bool:
        (name, value), *_ = step.items()
        if name == "chunk":
            update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": value})
        elif name == "thought":
            update(sessionUpdate="agent_thought_chunk", content={"type": "text", "text": value})
        elif name == "update":
            update(**value)
        elif name == "write":
            Path(value[0]).write_text(value[1])
        elif name == "line":
            print(value, flush=True)
        elif name == "complain":
            print(value, file=sys.stderr, flush=True)
        elif name == "ask":
            return self.ask(value)
        elif name == "message":
            send(**value)
        else:
            return self.last(name, value, message)
        return True

    def last(self, name: str, value: Any, message: dict[str, Any]) -> bool:
        """Steps that are the end of a prompt."""
        if name == "result":
            send(id=message["id"], result=value)
        elif name == "error":
            send(id=message["id"], error=value)
        elif name == "die":
            os._exit(value)
        elif name == "loop":
            self.loop(message)
        elif name == "until_cancelled":
            self.until("session/cancel")
            if value:
                send(id=message["id"], result=value)
            else:
                time.sleep(60)
        elif name == "until_told_to_go":
            told = threading.Event()
            signal.signal(signal.SIGTERM, lambda *_: told.set())
            told.wait(60)
            send(id=message["id"], result=value)
        elif name == "hang":
            time.sleep(60)
        return False

    def ask(self, params: dict[str, Any]) -> bool:
        self.asked += 1
        send(id=f"ask-{self.asked}", method="session/request_permission", params={"sessionId": SESSION, **params})
        while (message := HEARD.get()) is not None:
            if message.get("id") == f"ask-{self.asked}":
                return True
        return False

    def loop(self, message: dict[str, Any]) -> None:
        """Calls a tool again and again until it is told to stop."""
        for turn in range(5_000):
            call = {"toolCallId": f"call-{turn}", "title": "again", "kind": "execute"}
            update(sessionUpdate="tool_call", status="in_progress", **call)
            update(sessionUpdate="tool_call_update", status="completed", **call)
            try:
                heard = HEARD.get(timeout=0.01)
            except queue.Empty:
                continue
            if heard is None or heard.get("method") == "session/cancel":
                break
        send(id=message["id"], result={"stopReason": "cancelled"})

    def until(self, method: str) -> None:
        while (message := HEARD.get()) is not None and message.get("method") != method:
            pass


if __name__ == "__main__":
    main()
