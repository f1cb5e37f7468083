"""A program that speaks as one of the agents does, and says far too much meanwhile. Run by name: chatty."""

from __future__ import annotations

import json
import os
import sys

MILLION = 1_000_000


def say(*messages: object) -> None:
    for message in messages:
        os.write(1, (message if isinstance(message, str) else json.dumps(message)).encode() + b"\n")


def flood(kind: str, megabytes: str) -> None:
    line = b"y\n" if kind == "text" else EVENTS[os.environ["CHATTY_AS"]]
    block = line * (65536 // len(line))
    left = int(megabytes) * MILLION if megabytes else None
    while left is None or left > 0:
        written = os.write(1, block)
        left = None if left is None else left - written


EVENTS = {
    "command": b"{}\n",
    "codex": b'{"type":"item.completed","item":{"type":"agent_message","text":"y"}}\n',
    "claude": b'{"type":"assistant","message":{"content":[{"type":"text","text":"y"}]}}\n',
    "acp": b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk",'
    b'"content":{"type":"text","text":"y"}}}}\n',
}


def command(chat: tuple[str, str]) -> None:
    flood(*chat)
    say("the last word")


def codex(chat: tuple[str, str]) -> None:
    say({"type": "thread.started", "thread_id": "0199-chatty"}, {"type": "turn.started"})
    flood(*chat)
    last = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "the last word"}}
    say("", last, {"type": "turn.completed", "usage": {"input_tokens": 70, "output_tokens": 7}})


def claude(chat: tuple[str, str]) -> None:
    say({"type": "system", "subtype": "init", "session_id": "chatty", "model": "claude-sonnet-4-6"})
    flood(*chat)
    used = {"claude-sonnet-4-6": {"inputTokens": 70, "outputTokens": 7, "costUSD": 0.01}}
    end = {"type": "result", "subtype": "success", "is_error": False, "result": "the last word", "session_id": "chatty"}
    say("", {**end, "modelUsage": used, "total_cost_usd": 0.01})


def acp(chat: tuple[str, str]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, object] = {}
        if asked["method"] == "initialize":
            answer = {"protocolVersion": 1, "agentCapabilities": {}}
        elif asked["method"] == "session/new":
            answer = {"sessionId": "chatty"}
        elif asked["method"] == "session/prompt":
            flood(*chat)
            said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "the last word"}}
            say("", {"jsonrpc": "2.0", "method": "session/update", "params": {"update": said}})
            answer = {"stopReason": "end_turn", "usage": {"inputTokens": 70, "outputTokens": 7}}
        if "id" in asked:
            say({"jsonrpc": "2.0", "id": asked["id"], "result": answer})


def main() -> None:
    with open("value.txt", "w") as file:  # noqa: PTH123, pathlib would double the time of its start
        file.write("good\n")
    speak = {"command": command, "codex": codex, "claude": claude, "acp": acp}[os.environ["CHATTY_AS"]]
    speak((os.environ["CHATTY_WITH"], os.environ["CHATTY_MEGABYTES"]))


if __name__ == "__main__":
    main()
