"""A fake `codex exec --json`, as version 0.166.0 behaves."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
import uuid
from pathlib import Path
from typing import Any

from becket_lab.clis.codex_errors import Failed, failure_of
from becket_lab.clis.codex_options import Options, Provider, Usage, codex_home
from becket_lab.clis.codex_patch import read_patch
from becket_lab.clis.codex_thread import Thread
from becket_lab.clis.runtime import (
    Commands,
    Dropped,
    HttpError,
    Json,
    complain,
    die_of,
    emit,
    frames,
    home,
    on_signal,
    post,
    skills,
)

VERSION = "codex-cli 0.166.0"
COMMANDS = Commands()
LETTERS = {"add": "A", "update": "M", "delete": "D"}


class Turn:
    def __init__(self, thread: Thread, provider: Provider, model: str, cwd: str) -> None:
        self.thread = thread
        self.provider = provider
        self.model = model
        self.cwd = cwd
        self.count = 0
        self.said = ""

    def run(self, prompt: str, sandbox: str) -> None:
        if not self.thread.items:
            self.thread.add(message("developer", instructions(sandbox)))
            context = f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
            self.thread.add(message("user", context))
        self.thread.begin(self.model)
        self.thread.add(message("user", prompt))
        while calls := [item for item in self.ask() if item["type"] in {"function_call", "custom_tool_call"}]:
            for call in calls:
                self.take(call)

    def item(self, kind: str, event: str = "item.completed", ident: str | None = None, **fields: object) -> str:
        ident = ident or f"item_{self.count}"
        self.count += event == "item.completed"
        emit({"type": event, "item": {"id": ident, "type": kind, **fields}})
        return ident

    def ask(self) -> list[Json]:
        for attempt in range(self.provider.stream_retries + 1):
            try:
                return self.request()
            except Failed as failure:
                if not failure.again or attempt == self.provider.stream_retries:
                    raise
                emit(
                    {
                        "type": "error",
                        "message": f"Reconnecting... {attempt + 1}/{self.provider.stream_retries} ({failure})",
                    }
                )
                time.sleep(failure.after or 0.2 * 2**attempt)
        raise AssertionError("unreachable")

    def request(self) -> list[Json]:
        body = {
            "model": self.model, "stream": True, "store": False, "input": self.thread.items,
            "tools": tools(self.model), "tool_choice": "auto", "parallel_tool_calls": True,
            "include": ["reasoning.encrypted_content"], "prompt_cache_key": self.thread.id,
        }  # fmt: skip
        headers = {"Authorization": f"Bearer {self.provider.key()}", "Accept": "text/event-stream"}
        for attempt in range(self.provider.request_retries + 1):
            try:
                return self.read(post(self.provider.url, body, headers))
            except HttpError as error:
                if error.status < 500 or attempt == self.provider.request_retries:
                    raise failure_of(error, self.provider.url) from None
            except Dropped as drop:
                detail = "Transport error: network error: error decoding response body"
                text = detail if drop.begun else "error sending request"
                raise Failed(f"stream disconnected before completion: {text}", again=True) from None
            time.sleep(0.2 * 2**attempt)
        raise AssertionError("unreachable")

    def read(self, response: Any) -> list[Json]:
        items: list[Json] = []
        for frame in frames(response):
            if frame["type"] == "response.output_item.done":
                items.append(frame["item"])
                self.show(frame["item"])
            elif frame["type"] == "response.failed":
                text = frame["response"]["error"]["message"]
                raise Failed(f"stream disconnected before completion: {text}", again=True)
            elif frame["type"] == "response.incomplete":
                reason = frame["response"]["incomplete_details"]["reason"]
                raise Failed(f"Incomplete response returned, reason: {reason}")
            elif frame["type"] == "response.completed":
                if frame["response"].get("usage"):
                    self.thread.spend(frame["response"]["usage"])
                for item in items:
                    self.thread.add(item)
                return items
        raise Dropped(begun=True)

    def show(self, item: Json) -> None:
        if item["type"] == "reasoning":
            self.item("reasoning", text="\n".join(part["text"] for part in item["summary"]))
        elif item["type"] == "message":
            # A refusal is dropped without a word, as the real one does.
            texts = [part["text"] for part in item["content"] if part["type"] == "output_text"]
            if texts:
                self.said = "".join(texts)
                self.item("agent_message", text=self.said)

    def take(self, item: Json) -> None:
        if item["name"] == "exec_command":
            output = self.execute(item)
        elif item["name"] == "apply_patch" and item["type"] == "custom_tool_call":
            output = self.patch(item["input"])
        else:
            output = f"unsupported call: {item['name']}"
        self.thread.add({"type": f"{item['type']}_output", "call_id": item["call_id"], "output": output})

    def execute(self, item: Json) -> str:
        command = json.loads(item["arguments"]).get("cmd")
        if not isinstance(command, str):
            return "failed to parse function arguments: missing field `cmd`"
        fields: Json = {"command": f"/bin/bash -lc {shlex.quote(command)}", "aggregated_output": ""}
        ident = self.item("command_execution", "item.started", **fields, exit_code=None, status="in_progress")
        code, output = COMMANDS.run(command, self.cwd)
        fields["aggregated_output"] = output
        status = "failed" if code else "completed"
        self.item("command_execution", ident=ident, **fields, exit_code=code, status=status)
        return f"Wall time: 0.0000 seconds\nProcess exited with code {code}\nOutput:\n{output}"

    def patch(self, text: str) -> str:
        try:
            changes = read_patch(text, self.cwd)
        except (ValueError, OSError) as error:
            return f"apply_patch verification failed: {error}"
        shown = [{"path": str(path), "kind": kind} for path, kind, _ in changes]
        ident = self.item("file_change", "item.started", changes=shown, status="in_progress")
        for path, kind, new in changes:
            if kind == "delete":
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(new)
        self.item("file_change", ident=ident, changes=shown, status="completed")
        listed = "".join(f"{LETTERS[kind]} {path.relative_to(self.cwd)}\n" for path, kind, _ in changes)
        return f"Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess. Updated the following files:\n{listed}"


def message(role: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def instructions(sandbox: str) -> str:
    found = [*skills(codex_home() / "skills"), *skills(home() / ".agents" / "skills")]
    listed = "".join(f"- {name}: {about} (file: {file})\n" for name, about, file in found)
    known = f"<skills_instructions>\n### Available skills\n{listed}</skills_instructions>\n" if listed else ""
    return f"You are a coding agent.\n{known}`sandbox_mode` is `{sandbox}`"


def tools(model: str) -> list[Json]:
    schema = {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}
    found: list[Json] = [
        {"type": "function", "name": "exec_command", "description": "Runs a command", "parameters": schema}
    ]
    if model.startswith("gpt-"):
        found.append({"type": "custom", "name": "apply_patch", "format": {"type": "grammar", "syntax": "lark"}})
    return found


def find_thread(words: list[str], keep: bool) -> Thread:
    """The one to go on with, or a new one. A name that is no id silently begins a new one, as the real one does."""
    if words[:1] == ["resume"] and len(words) > 1 and re.fullmatch(r"[0-9a-f-]{36}", words[1]):
        thread = Thread(words[1], keep)
        if not thread.known:
            raise Usage(
                f"Error: thread/resume: thread/resume failed: no rollout found for thread id {words[1]} (code -32600)"
            )
        return thread
    return Thread(str(uuid.uuid4()), keep)


def prompt_of(words: list[str]) -> str:
    given = words[2:] if words[:1] == ["resume"] else words
    if given and given[0] != "-":
        extra = "" if sys.stdin.isatty() else sys.stdin.read().strip()
        return f"{given[0]}\n\n<stdin>\n{extra}\n</stdin>" if extra else given[0]
    text = sys.stdin.read().strip()
    if not text:
        raise Usage("Reading prompt from stdin...\nNo prompt provided via stdin.")
    return text


def in_git(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.parents))


def execute(options: Options) -> int:
    cwd = str(Path(options.values.get("cd", ".")).resolve())
    sandbox = options.values.get("sandbox", "read-only")
    if "--skip-git-repo-check" not in options.flags and not in_git(Path(cwd)):
        return complain("Not inside a trusted directory and --skip-git-repo-check was not specified.", 1)
    try:
        prompt = prompt_of(options.words)
        settings = options.settings()
        provider = Provider(settings)
        thread = find_thread(options.words, keep="--ephemeral" not in options.flags)
    except Usage as error:
        return complain(str(error), 1)
    model = options.values.get("model") or settings.get("model", "gpt-6.1-sol")
    COMMANDS.hidden = settings.get("shell_environment_policy", {}).get("exclude", [])
    emit({"type": "thread.started", "thread_id": thread.id})
    turn = Turn(thread, provider, model, cwd)
    if not model.startswith("gpt-"):
        text = f"Model metadata for `{model}` not found. Defaulting to fallback metadata"
        turn.item("error", message=f"{text}; this can degrade performance and cause issues.")
    emit({"type": "turn.started"})
    try:
        turn.run(prompt, sandbox)
    except Failed as failure:
        emit({"type": "error", "message": str(failure)})
        emit({"type": "turn.failed", "error": {"message": str(failure)}})
        return 1
    emit({"type": "turn.completed", "usage": thread.used})
    if "last" in options.values:
        Path(options.values["last"]).write_text(turn.said)
    return 0


def main(arguments: list[str]) -> int:
    if arguments[:1] in (["--version"], ["-V"]):
        print(VERSION)
        return 0
    if arguments[:1] != ["exec"]:
        return complain("this fake knows only `codex exec`", 2)
    on_signal(15, COMMANDS, lambda: die_of(15))
    on_signal(2, COMMANDS, lambda: os._exit(1))
    try:
        return execute(Options(arguments[1:]))
    except Usage as error:
        return complain(str(error), 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
