"""One conversation of the fake gemini, and the client it talks with."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import time
from typing import Any

from becket_lab.clis.gemini_record import Record, settings
from becket_lab.clis.gemini_tools import EDITS, TOOLS, Deed, Tools
from becket_lab.clis.runtime import Commands, Dropped, Flight, HttpError, Json, emit, frames, home, post, skills

OPTIONS = [
    {"optionId": "proceed_always", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
]


class Refusal(Exception):
    """The answer to a request is an error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Cancelled(Exception):
    """The client cancelled the turn."""


class Peer:
    """The other side of the pipe: what we ask it and what it answers."""

    def __init__(self) -> None:
        self._answers: dict[int, queue.Queue[Json]] = {}

    def notify(self, session: str, update: Json) -> None:
        params = {"sessionId": session, "update": update}
        emit({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def ask(self, method: str, params: Json) -> queue.Queue[Json]:
        ident = len(self._answers)
        self._answers[ident] = queue.Queue()
        emit({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        return self._answers[ident]

    def answered(self, message: Json) -> None:
        if message.get("id") in self._answers:
            self._answers[message["id"]].put(message)


class Session:
    """One conversation. A prompt runs in a thread of its own, so that a cancel can arrive."""

    def __init__(self, ident: str, cwd: str, model: str, mode: str, peer: Peer) -> None:
        self.id = ident
        self.mode = mode
        self._model = model
        self._peer = peer
        self._cwd = cwd
        self._commands = Commands()
        self._tools = Tools(cwd, self._commands)
        self._history: list[Json] = []
        self._cancelled = threading.Event()
        self._flight = Flight()
        self._used: Json = {}
        self._always: set[str] = set()
        self._record = Record(ident, cwd)
        self._attempts = int(settings().get("general", {}).get("maxAttempts", 10))

    @property
    def is_empty(self) -> bool:
        return not self._history

    def replay(self) -> None:
        """Take up what was said before, and tell the client, as the protocol demands."""
        self._history = self._record.recalled()
        for content in self._history:
            kind = "user_message_chunk" if content["role"] == "user" else "agent_message_chunk"
            for part in content["parts"]:
                if "text" in part:
                    self.say(kind, part["text"])

    def ready(self) -> None:
        """Before a prompt's thread starts: a cancel that follows at once must not be forgotten."""
        self._cancelled.clear()

    def cancel(self) -> None:
        self._cancelled.set()
        self._flight.abort()
        self._commands.kill()

    def prompt(self, text: str) -> Json:
        self._used = {"input_tokens": 0, "output_tokens": 0}
        before = len(self._history)
        self._history.append({"role": "user", "parts": [{"text": text}]})
        self._record.add("user", self._history[-1]["parts"])
        try:
            while calls := self._ask():
                results = [self._do(at, call) for at, call in enumerate(calls)]
                self._history.append({"role": "user", "parts": results})
                self._record.add("user", results)
        except Cancelled:
            del self._history[before:]
            return {"stopReason": "cancelled"}
        listed = [{"model": self._model, "token_count": self._used}] if any(self._used.values()) else []
        quota = {"token_count": self._used, "model_usage": listed}
        return {"stopReason": "end_turn", "_meta": {"quota": quota}}

    def say(self, kind: str, text: str) -> None:
        self._peer.notify(self.id, {"sessionUpdate": kind, "content": {"type": "text", "text": text}})

    def _ask(self) -> list[Json]:
        for attempt in range(self._attempts):
            try:
                return self._request()
            except HttpError as error:
                if (error.status < 500 and not is_rate(error)) or attempt == self._attempts - 1:
                    raise refusal_of(error) from None
                delay = retry_delay(error) or min(0.5 * 2**attempt, 30)
            except Dropped:
                if attempt == min(3, self._attempts - 1):
                    return []  # and the turn ends as if all were well
                delay = 0.1
            if self._cancelled.wait(delay):
                raise Cancelled
        return []

    def _request(self) -> list[Json]:
        base = os.environ.get("GOOGLE_GEMINI_BASE_URL", "https://generativelanguage.googleapis.com").rstrip("/")
        self._flight = Flight()
        if self._cancelled.is_set():
            raise Cancelled
        body = {
            "contents": self._history,
            "systemInstruction": {"role": "user", "parts": [{"text": instructions(self._cwd)}]},
            "tools": [{"functionDeclarations": TOOLS}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
        }
        headers = {"x-goog-api-key": os.environ.get("GEMINI_API_KEY", "")}
        url = f"{base}/v1beta/models/{self._model}:streamGenerateContent?alt=sse"
        try:
            return self._read(self._posted(url, body, headers))
        except (Dropped, HttpError):
            if self._cancelled.is_set():
                raise Cancelled from None
            raise

    def _posted(self, url: str, body: Json, headers: dict[str, str]) -> Any:
        """In another thread: a server that never answers must not keep a cancel waiting."""
        box: queue.Queue[Any] = queue.Queue()

        def work() -> None:
            try:
                box.put(post(url, body, headers, self._flight))
            except (Dropped, HttpError) as error:
                box.put(error)

        threading.Thread(target=work, daemon=True).start()
        while not self._cancelled.is_set():
            with contextlib.suppress(queue.Empty):
                found = box.get(timeout=0.02)
                if isinstance(found, Exception):
                    raise found
                return found
        raise Cancelled

    def _read(self, response: Any) -> list[Json]:
        parts: list[Json] = []
        usage: Json = {}
        with contextlib.suppress(Dropped):
            for frame in frames(response):
                if "error" in frame:
                    raise HttpError(int(frame["error"]["code"]), json.dumps(frame), {})
                candidate, usage = frame["candidates"][0], frame["usageMetadata"]
                for part in candidate.get("content", {}).get("parts", []):
                    self._show(part)
                    parts += [part] if part.get("text") != "" and not part.get("thought") else []
                if "finishReason" in candidate:
                    if not parts and candidate["finishReason"] != "STOP":
                        break  # an empty answer that has no good end is asked for again
                    self._spend(usage)
                    self._keep(parts or [{"text": " "}], usage)
                    return [part["functionCall"] for part in parts if "functionCall" in part]
        if parts and "functionResponse" in self._history[-1]["parts"][0] and not self._cancelled.is_set():
            self._keep(parts, usage)  # after a tool call, what came is taken for an answer
            return []
        raise Dropped(begun=True)

    def _show(self, part: Json) -> None:
        if part.get("text"):
            thought = part.get("thought") is True
            self.say("agent_thought_chunk" if thought else "agent_message_chunk", part["text"])

    def _spend(self, usage: Json) -> None:
        self._used["input_tokens"] += usage["promptTokenCount"]
        self._used["output_tokens"] += usage["candidatesTokenCount"] + usage.get("thoughtsTokenCount", 0)

    def _keep(self, parts: list[Json], usage: Json) -> None:
        self._history.append({"role": "model", "parts": parts})
        names = {"input": "promptTokenCount", "output": "candidatesTokenCount", "cached": "cachedContentTokenCount"}
        tokens = {name: usage.get(field, 0) for name, field in names.items()}
        tokens |= {"thoughts": usage.get("thoughtsTokenCount", 0), "total": usage["totalTokenCount"]}
        self._record.add("gemini", parts, tokens=tokens, model=self._model)

    def _do(self, at: int, call: Json) -> Json:
        if self._cancelled.is_set():
            raise Cancelled
        name, arguments = call["name"], call.get("args", {})
        deed = self._tools.deed(name, arguments)
        if deed is None:
            return response(name, {"error": f'Tool "{name}" not found in registry.'})
        ident = f"{name}__{name}_{time.time_ns() // 1_000_000}_{at}"
        if self._must_ask(deed):
            if not self._allowed(ident, deed):
                text = f'[Operation Cancelled] Reason: User denied execution of tool "{name}".'
                return response(name, {"error": text})
        else:
            self._peer.notify(self.id, {"sessionUpdate": "tool_call", **shown(ident, "in_progress", deed, begun=True)})
        wrong, text = deed.do()
        status = "failed" if wrong else "completed"
        update = {"sessionUpdate": "tool_call_update", **shown(ident, status, deed)}
        if wrong or self._cancelled.is_set():
            said = text if wrong else "Command cancelled by user."
            update["content"] = [{"type": "content", "content": {"type": "text", "text": said}}]
        if wrong:
            del update["title"], update["locations"]
        self._peer.notify(self.id, update)
        if self._cancelled.is_set():
            raise Cancelled
        return response(name, {"error" if wrong else "output": text})

    def _must_ask(self, deed: Deed) -> bool:
        if self.mode == "yolo" or deed.harmless or deed.tool in self._always:
            return False
        return not (self.mode == "autoEdit" and deed.tool in EDITS)

    def _allowed(self, ident: str, deed: Deed) -> bool:
        params = {"sessionId": self.id, "options": OPTIONS, "toolCall": shown(ident, "pending", deed)}
        answers = self._peer.ask("session/request_permission", params)
        while not self._cancelled.is_set():
            with contextlib.suppress(queue.Empty):
                outcome = answers.get(timeout=0.05).get("result", {}).get("outcome", {})
                chosen = outcome.get("optionId") if outcome.get("outcome") == "selected" else "cancel"
                self._always |= {deed.tool} if chosen == "proceed_always" else set()
                return chosen in {"proceed_always", "proceed_once"}
        raise Cancelled


def shown(ident: str, status: str, deed: Deed, begun: bool = False) -> Json:
    content = deed.content
    if (begun and deed.tool in EDITS) or (status == "completed" and deed.tool not in EDITS):
        content = []
    common = {"toolCallId": ident, "status": status, "title": deed.title}
    return {**common, "content": content, "locations": deed.locations, "kind": deed.kind}


def response(name: str, result: Json) -> Json:
    return {"functionResponse": {"name": name, "response": result}}


def is_rate(error: HttpError) -> bool:
    """A limit per minute is waited for; a day's quota is not, nor what takes more than five minutes."""
    return error.status == 429 and "PerDay" not in error.body and (retry_delay(error) or 0) <= 300


def retry_delay(error: HttpError) -> float | None:
    found = [one["retryDelay"] for one in error.error.get("details", []) if "retryDelay" in one]
    return float(found[0].rstrip("s")) if found else None


def refusal_of(error: HttpError) -> Refusal:
    if error.status == 429 and "PerDay" in error.body:
        return Refusal(429, "You have exhausted your daily quota on this model.")
    if error.status == 429 and not is_rate(error):
        return Refusal(429, f"{error.message}\nSuggested retry after {retry_delay(error):g}s.")
    return Refusal(error.status, error.body)


def instructions(cwd: str) -> str:
    listed = "".join(
        f"  <skill>\n    <name>{name}</name>\n    <description>{about}</description>\n"
        f"    <location>{file}</location>\n  </skill>\n"
        for name, about, file in skills(home() / ".gemini" / "skills")
    )
    known = f"<available_skills>\n{listed}</available_skills>\n" if listed else ""
    return f"You are an interactive CLI agent.\n{known}- **Workspace Directories:**\n  - {cwd}\n"
