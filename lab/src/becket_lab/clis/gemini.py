"""A fake `gemini --acp`, as version 0.61.0 behaves: JSON-RPC over standard input and output."""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid

from becket_lab.clis.gemini_record import settings
from becket_lab.clis.gemini_session import Peer, Refusal, Session
from becket_lab.clis.runtime import Commands, Json, complain, emit, on_signal

VERSION = "0.61.0"
PLAIN = {"--acp", "--experimental-acp", "--skip-trust", "-y", "--yolo", "--debug", "-d"}
VALUED = {"-m": "model", "--model": "model", "--approval-mode": "mode", "--include-directories": "dirs"}
MODES = {"default": "default", "auto_edit": "autoEdit", "yolo": "yolo", "plan": "plan"}


class Agent:
    def __init__(self, model: str, mode: str) -> None:
        self._model = model
        self._mode = mode
        self._peer = Peer()
        self._sessions: dict[str, Session] = {}

    def serve(self) -> int:
        """Until the client closes the pipe."""
        for line in sys.stdin:
            message = json.loads(line)
            if "method" not in message:
                self._peer.answered(message)
            elif message["method"] == "session/prompt":
                session = self._sessions.get(message["params"].get("sessionId", ""))
                if session is not None:
                    session.ready()
                threading.Thread(target=self._answer, args=(message,), daemon=True).start()
            else:
                self._answer(message)
        self.stop()
        return 0

    def stop(self) -> None:
        for session in self._sessions.values():
            session.cancel()

    def leave(self) -> None:
        self.stop()
        os._exit(0)

    def _answer(self, message: Json) -> None:
        answer: Json = {"jsonrpc": "2.0", "id": message.get("id")}
        try:
            answer["result"] = self._handle(message["method"], message.get("params", {}))
        except Refusal as refusal:
            answer["error"] = refusal.error
        if "id" in message:
            emit(answer)

    def _handle(self, method: str, params: Json) -> Json | None:
        if method == "initialize":
            prompts = {"image": True, "audio": True, "embeddedContext": True}
            able = {"loadSession": True, "promptCapabilities": prompts, "mcpCapabilities": {"http": True, "sse": True}}
            info = {"name": "gemini-cli", "title": "Gemini CLI", "version": VERSION}
            ways = [{"id": "gemini-api-key", "name": "Gemini API key", "description": "Use an API key"}]
            return {"protocolVersion": 1, "authMethods": ways, "agentInfo": info, "agentCapabilities": able}
        if method == "authenticate":
            return {}
        if method == "session/new":
            return self._new(params)
        if method == "session/load":
            return self._load(params)
        if not method.startswith("session/") or method.partition("/")[2] not in {"prompt", "cancel", "set_mode"}:
            raise Refusal(-32601, f'"Method not found": {method}', {"method": method})
        return self._in_session(method, params)

    def _load(self, params: Json) -> Json:
        if not settings().get("security", {}).get("auth", {}).get("selectedType"):
            raise Refusal(-32000, "Authentication required.")
        session = self._open(params["sessionId"], params["cwd"])
        session.replay()
        if session.is_empty:
            del self._sessions[session.id]
            raise Refusal(-32603, "Internal error", {"details": "No previous sessions found for this project."})
        return self._state()

    def _new(self, params: Json) -> Json:
        session = self._open(str(uuid.uuid4()), params["cwd"])
        return {"sessionId": session.id, **self._state()}

    def _open(self, ident: str, cwd: str) -> Session:
        if not os.environ.get("GEMINI_API_KEY"):
            raise Refusal(-32000, "Gemini API key is missing or not configured.")
        self._sessions[ident] = Session(ident, cwd, self._model, self._mode, self._peer)
        return self._sessions[ident]

    def _state(self) -> Json:
        modes = [{"id": one, "name": one} for one in MODES.values()]
        models = [{"modelId": self._model, "name": self._model}]
        return {
            "modes": {"availableModes": modes, "currentModeId": self._mode},
            "models": {"availableModels": models, "currentModelId": self._model},
        }

    def _in_session(self, method: str, params: Json) -> Json | None:
        session = self._sessions.get(params.get("sessionId", ""))
        if session is None:
            raise Refusal(-32602, f"Session not found: {params.get('sessionId')}")
        if method == "session/prompt":
            return session.prompt("\n".join(part.get("text", "") for part in params["prompt"]))
        if method == "session/set_mode":
            session.mode = params["modeId"]
            session.say("agent_message_chunk", f"[MODE_UPDATE] {session.mode}")
            return {}
        session.cancel()
        return None


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["--version"], ["-v"]):
        print(VERSION)
        return 0
    values = {"model": "gemini-2.5-pro", "mode": "default"}
    flags = set()
    left = list(arguments)
    while left:
        name, joined, value = left.pop(0).partition("=")
        if name in VALUED and (joined or left):
            values[VALUED[name]] = value if joined else left.pop(0)
        elif name in PLAIN:
            flags.add(name)
        else:
            return complain(f"Unknown argument: {name.lstrip('-')}", 1)
    if not flags & {"--acp", "--experimental-acp"}:
        return complain("this fake knows only `gemini --acp`", 1)
    if values["mode"] not in MODES:
        return complain(f'Invalid values:\n  Argument: approval-mode, Given: "{values["mode"]}"', 1)
    agent = Agent(values["model"], "yolo" if flags & {"-y", "--yolo"} else MODES[values["mode"]])
    for number in (2, 15):
        on_signal(number, Commands(), agent.leave)
    return agent.serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
