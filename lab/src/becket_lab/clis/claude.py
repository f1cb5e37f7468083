"""A fake `claude -p --output-format stream-json`, as version 2.1.325 behaves."""

from __future__ import annotations

import json
import os
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from becket_lab.clis.claude_options import Options, Usage
from becket_lab.clis.claude_session import Session
from becket_lab.clis.claude_tools import TOOLS, Denied, Tools
from becket_lab.clis.runtime import (
    Commands,
    Dropped,
    HttpError,
    Json,
    complain,
    emit,
    frames,
    home,
    on_signal,
    post,
    skills,
)

VERSION = "2.1.325 (Claude Code)"
CONTINUE = "Output token limit hit. Resume directly — no apology, no recap of what you were doing."
EMPTY = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
STOPPED = "Your response above was stopped by a safety classifier — this is not a tool or API error."
COMMANDS = Commands()
LONGEST_WAIT = 60.0  # seconds; a server that asks for more is not waited for


class ApiError(Exception):
    """The model cannot be had. Ends the run as an error that is called success."""

    def __init__(self, text: str, kind: str, reason: str | None = None, error: HttpError | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.reason = reason
        self.status = error.status if error else None
        self.resets_at = limit_reset(error) if error else None


class Limit(Exception):
    """A limit of the command line was reached."""

    def __init__(self, subtype: str, reason: str, text: str) -> None:
        super().__init__(text)
        self.subtype = subtype
        self.reason = reason


class Run:
    def __init__(self, options: Options, session: Session, cwd: str) -> None:
        self.options = options
        self.session = session
        self.model = options.values.get("--model", "claude-opus-5-5")
        self.tools = Tools(options.mode, options.tools, options.lists, cwd, COMMANDS)
        self.cwd = cwd
        self.turns = 1
        self.used = {
            "input_tokens": 0,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        }
        self.denials: list[Json] = []
        self.stop: str | None = None
        self.patience = {"max_tokens": 3, "refusal": 1, "empty": 1}

    def say(self, kind: str, **fields: object) -> None:
        emit({"type": kind, **fields, "session_id": self.session.id, "uuid": str(uuid.uuid4())})

    def tell(self, role: str, message: Json, **fields: object) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.say(role, message=message, parent_tool_use_id=None, timestamp=now, **fields)

    def begin(self, prompt: str) -> None:
        known = [name for name, _, _ in skills(home() / ".claude" / "skills")] if self.options.sees_skills else []
        self.say(
            "system", subtype="init", cwd=self.cwd, tools=self.options.tools, mcp_servers=[], model=self.model,
            permissionMode=self.options.mode, slash_commands=known, skills=known, agents=[], plugins=[],
            apiKeySource="ANTHROPIC_API_KEY", claude_code_version=VERSION.partition(" ")[0], output_style="default",
        )  # fmt: skip
        self.session.add({"role": "user", "content": [{"type": "text", "text": prompt}]})

    def work(self) -> str:
        """Until the model has no more calls. What it said last."""
        most = int(self.options.values.get("--max-turns", 10**9))
        asked = 0
        while True:
            reply = self.ask()
            asked += 1
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            self.check_budget(reply["usage"])
            if not calls:
                said = "".join(block["text"] for block in reply["content"] if block["type"] == "text")
                if self.is_last(reply, said):
                    return said
                continue
            self.session.add({"role": "user", "content": [self.do(call) for call in calls]})
            if asked >= most:
                raise Limit("error_max_turns", "max_turns", f"Reached maximum number of turns ({most})")

    def check_budget(self, usage: Json) -> None:
        """After the reply, so that it overshoots; and the reply that broke it is missing in the usage."""
        budget = float(self.options.values.get("--max-budget-usd", "inf"))
        if self.session.cost >= budget:
            text = f"Reached maximum budget (${budget:g})"
            raise Limit("error_max_budget_usd", "budget_exhausted", text)
        self.used = {name: before + usage.get(name, 0) for name, before in self.used.items()}

    def is_last(self, reply: Json, said: str) -> bool:
        reason = "empty" if not said and reply["stop_reason"] == "end_turn" else reply["stop_reason"]
        if reason not in self.patience:
            return True
        self.patience[reason] -= 1
        if self.patience[reason] < 0:
            if reason == "max_tokens":
                text = "API Error: Claude's response exceeded the 128000 output token maximum."
                raise ApiError(text, "max_output_tokens", "max_output_tokens")
            if reason == "refusal":
                self.say("system", subtype="model_refusal_no_fallback", original_model=self.model, content="")
                raise ApiError(f"API Error: {self.model}'s safeguards flagged this message.", "invalid_request")
            return True
        if reason == "refusal":
            text = f"{self.model}'s safeguards stopped the response above · continuing once with that noted"
            self.say("system", subtype="informational", content=text, level="notice")
        words = {"max_tokens": CONTINUE, "refusal": STOPPED, "empty": EMPTY}[reason]
        message: Json = {"role": "user", "content": [{"type": "text", "text": words}]}
        self.turns += reason != "empty"
        self.tell("user", message, isSynthetic=True)
        self.session.add(message)
        return False

    def do(self, call: Json) -> Json:
        self.turns += 1
        try:
            wrong, text = self.tools.use(call["name"], call["input"])
        except Denied as denial:
            wrong, text = True, str(denial)
            self.denials.append({"tool_name": call["name"], "tool_use_id": call["id"], "tool_input": call["input"]})
            if denial.announced:
                fields = {"tool_name": call["name"], "tool_use_id": call["id"], "message": text}
                self.say("system", subtype="permission_denied", decision_reason_type="mode", **fields)
        result = {"tool_use_id": call["id"], "type": "tool_result", "content": text, "is_error": wrong}
        self.tell("user", {"role": "user", "content": [result]}, tool_use_result=told(call, wrong, text))
        return result

    def ask(self) -> Json:
        """One reply, with the retries that the environment allows."""
        most = int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", "10"))
        bad, tries = 0, 0
        while True:
            try:
                return self.request()
            except HttpError as error:
                if error.status == 400 and bad < 5:
                    bad += 1
                    continue
                if error.status == 400 or tries >= most or asked_to_wait(error) > LONGEST_WAIT:
                    raise api_error(error) from None
                tries += 1
                self.wait(tries, most, error)
            except Dropped as drop:
                if tries >= most:
                    lost = "Connection to the API was lost" if drop.begun else "Connection dropped"
                    text = f"API Error: {lost} (ECONNRESET). This is usually temporary — try again."
                    raise ApiError(text, "server_error", "connection_failed") from None
                tries += 1
                self.wait(tries, most, None)

    def wait(self, attempt: int, most: int, error: HttpError | None) -> None:
        asked = asked_to_wait(error) if error else 0.0
        delay = asked or min(0.5 * 2 ** (attempt - 1), 30)
        status = error.status if error else None
        kind = "rate_limit" if status == 429 else "authentication_failed" if status == 401 else "server_error"
        retry = {"attempt": attempt, "max_retries": most, "retry_delay_ms": int(delay * 1000)}
        self.say("system", subtype="api_retry", **retry, error_status=status, error=kind)
        time.sleep(delay)

    def request(self) -> Json:
        """Streamed; what was cut is asked for once more, unstreamed."""
        try:
            reply = self.read(frames(self.post(stream=True)))
        except Dropped as drop:
            if not drop.begun:
                raise
            reply = self.whole()
        self.session.spend(self.model, reply["usage"])
        self.stop = reply["stop_reason"]
        if reply["content"]:
            self.session.add({"role": "assistant", "content": reply["content"]})
        return reply

    def post(self, stream: bool) -> Any:
        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com").rstrip("/")
        listed = "".join(f"- {name}: {text}\n" for name, text, _ in skills(home() / ".claude" / "skills"))
        known = f"The following skills are available for use with the Skill tool:\n\n{listed}"
        where = f"# Environment\n - Primary working directory: {self.cwd}\n"
        body = {
            "model": self.model, "max_tokens": 128000, "stream": stream, "messages": self.session.messages,
            "system": [{"type": "text", "text": where + (known if self.options.sees_skills and listed else "")}],
            "tools": [TOOLS[name] for name in self.options.tools], "thinking": {"type": "adaptive"},
        }  # fmt: skip
        auth = authorization()
        return post(f"{base}/v1/messages?beta=true", body, {"anthropic-version": "2023-06-01", **auth})

    def whole(self) -> Json:
        from http.client import HTTPException

        try:
            reply: Json = json.loads(self.post(stream=False).read())
        except (ValueError, OSError, HTTPException):
            raise Dropped(begun=True) from None
        for block in reply["content"]:
            self.tell("assistant", {**reply, "content": [block], "stop_reason": None})
        return reply

    def read(self, events: Iterator[Json]) -> Json:
        reply: Json = {}
        text = ""
        for event in events:
            kind = event["type"]
            if kind == "message_start":
                reply = event["message"]
                start = dict(reply["usage"])
            elif kind == "content_block_start":
                block, text = event["content_block"], ""
            elif kind == "content_block_delta":
                delta = event["delta"]
                text += next((delta[name] for name in ("text", "partial_json", "thinking") if name in delta), "")
                block["signature"] = delta.get("signature", block.get("signature"))
            elif kind == "content_block_stop":
                done = finished(block, text)
                if done.get("text") != "":
                    reply["content"].append(done)
                    self.tell("assistant", {**reply, "content": [done], "usage": start})
            elif kind == "message_delta":
                reply |= {"stop_reason": event["delta"]["stop_reason"], "usage": {**start, **event["usage"]}}
            elif kind == "message_stop":
                return reply
            elif kind == "error":
                break
        raise Dropped(begun=True)

    def result(self, subtype: str, **fields: object) -> None:
        self.say(
            "result", subtype=subtype, num_turns=self.turns, total_cost_usd=self.session.cost, usage=self.used,
            modelUsage=self.session.models, permission_denials=self.denials, duration_ms=1, duration_api_ms=1, **fields,
        )  # fmt: skip

    def fail(self, error: ApiError) -> None:
        if error.resets_at is not None:
            limit = {"status": "rejected", "resetsAt": error.resets_at, "rateLimitType": "five_hour"}
            self.say("rate_limit_event", rate_limit_info=limit)
        text = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": str(error)}]}
        why: Json = {"api_error": error.reason} if error.reason else {}
        told: Json = {"error": error.kind, "is_api_error_message": True, **why}
        if error.status is not None:
            told["api_error_status"] = error.status
        self.tell("assistant", text, **told)
        stop = "refusal" if self.stop == "refusal" else "stop_sequence"
        ends: Json = {"stop_reason": stop, "terminal_reason": "api_error", "api_error_status": error.status, **why}
        self.result("success", is_error=True, result=str(error), **ends)


def authorization() -> dict[str, str]:
    """The header that carries the login, or none."""
    stored = home() / ".claude" / ".credentials.json"
    token = os.environ.get("ANTHROPIC_AUTH_TOKEN") or os.environ.get("CLAUDE_CODE_OAUTH_TOKEN")
    key = os.environ.get("ANTHROPIC_API_KEY")
    if not token and not key and stored.is_file():
        token = json.loads(stored.read_text()).get("claudeAiOauth", {}).get("accessToken")
    if token:
        return {"Authorization": f"Bearer {token}"}
    return {"x-api-key": key} if key else {}


def told(call: Json, wrong: bool, text: str) -> object:
    """The result once more, as the programs that read the events get it."""
    if wrong:
        return f"Error: {text}"
    if call["name"] == "Bash":
        return {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
    return {"filePath": call["input"].get("file_path"), "userModified": False}


def finished(block: Json, text: str) -> Json:
    kind = block["type"]
    if kind == "tool_use":
        return {**{name: block[name] for name in ("type", "id", "name")}, "input": json.loads(text or "{}")}
    if kind == "thinking":
        return {"type": kind, "thinking": text, "signature": block["signature"]}
    return {"type": kind, "text": text}


def asked_to_wait(error: HttpError) -> float:
    return float(error.headers.get("retry-after") or 0)


def limit_reset(error: HttpError) -> int | None:
    """Of a subscription's limit, which only a login by token has."""
    told = error.headers.get("anthropic-ratelimit-unified-reset")
    return int(told) if told and "Authorization" in authorization() else None


def api_error(error: HttpError) -> ApiError:
    if error.status == 401:
        return ApiError("Invalid API key · Fix external API key", "authentication_failed", error=error)
    if error.status == 403:
        return ApiError(f"Failed to authenticate. API Error: 403 {error.message}", "authentication_failed", error=error)
    resets_at = limit_reset(error)
    if resets_at is not None:
        clock = datetime.fromtimestamp(resets_at, UTC).strftime("%-I:%M%p").lower()
        text = f"You've hit your 5-hour limit · resets {clock} (UTC)"
        return ApiError(text, "rate_limit", "usage_limit_reached", error)
    if error.status == 429:
        return ApiError(f"API Error: Request rejected (429) · {error.message}", "rate_limit", error=error)
    if error.status == 400:
        return ApiError(f"API Error: 400 {error.message}", "unknown", error=error)
    hint = "This is a server-side issue, usually temporary — try again in a moment."
    return ApiError(f"API Error: {error.status} {error.message}. {hint}", "server_error", error=error)


def execute(run: Run, prompt: str) -> int:
    run.begin(prompt)
    try:
        if not authorization():
            raise ApiError("Not logged in · Please run /login", "authentication_failed")
        said = run.work()
    except ApiError as error:
        run.fail(error)
        return 1
    except Limit as limit:
        ends: Json = {"stop_reason": run.stop, "terminal_reason": limit.reason, "errors": [str(limit)]}
        run.result(limit.subtype, is_error=True, **ends)
        return 1
    run.result(
        "success", is_error=False, result=said, stop_reason=run.stop, terminal_reason="completed", api_error_status=None
    )
    return 0


def start(options: Options) -> int:
    options.check()
    prompt = options.words[0] if options.words else "" if sys.stdin.isatty() else sys.stdin.read().strip()
    if not prompt:
        raise Usage("Error: Input must be provided either through stdin or as a prompt argument when using --print")
    cwd = str(Path.cwd())
    wanted = options.values.get("--resume")
    ident = wanted or options.values.get("--session-id") or str(uuid.uuid4())
    run = Run(options, Session(ident, cwd, keep="--no-session-persistence" not in options.flags), cwd)
    if wanted and not run.session.known:
        run.turns = 0
        text = f"No conversation found with session ID: {wanted}"
        run.result("error_during_execution", is_error=True, errors=[text])
        return complain(text, 1)
    on_signal(15, COMMANDS, lambda: os._exit(143))
    on_signal(2, COMMANDS, lambda: interrupted(run))
    return execute(run, prompt)


def interrupted(run: Run) -> None:
    """Without a result and with exit code 0, as the real one does."""
    run.tell("user", {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]})
    os._exit(0)


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["--version"], ["-v"]):
        print(VERSION)
        return 0
    try:
        return start(Options(arguments))
    except Usage as error:
        return complain(str(error), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
