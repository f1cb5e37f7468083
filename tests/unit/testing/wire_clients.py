"""Four small clients, written from the vendors' descriptions and not from our server: one per wire."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from becket.testing.model import ScriptedModel

Json = dict[str, Any]
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass
class Seen:
    """A reply as a client understands it. `calls` are (id, name, arguments)."""

    text: str = ""
    thoughts: str = ""
    calls: list[tuple[str, str, Json]] = field(default_factory=list)
    stop: str = ""
    used: tuple[int, int, int] = (0, 0, 0)  # input with cached, cached, output


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def json(self) -> Json:
        found: Json = json.loads(self.text)
        return found

    @property
    def frames(self) -> list[Json]:
        lines = [line[6:] for line in self.text.splitlines() if line.startswith("data: ")]
        return [json.loads(line) for line in lines if line != "[DONE]"]


def send(model: ScriptedModel, path: str, headers: Mapping[str, str], body: object, method: str = "POST") -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", model.port, timeout=60)
    try:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        text = response.read().decode()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, text)
    finally:
        connection.close()


class Client(Protocol):
    name: str
    stops: ClassVar[Mapping[str, str]]

    def path(self, stream: bool) -> str: ...
    def headers(self, key: str) -> dict[str, str]: ...
    def begin(self, prompt: str, tools: bool = True) -> Json: ...
    def read(self, answer: Answer, stream: bool) -> Seen: ...
    def go_on(self, body: Json, seen: Seen, result: str | None) -> Json:
        """The next request; without a result, the one that a careless client sends."""
        ...


def ask(client: Client, model: ScriptedModel, body: Json, stream: bool = True, key: str = "k") -> Answer:
    streamed = {} if client.name == "gemini" else {"stream": stream}
    return send(model, client.path(stream), client.headers(key), {**body, **streamed})


def talk(client: Client, model: ScriptedModel, body: Json, stream: bool = True, key: str = "k") -> Seen:
    answer = ask(client, model, body, stream, key)
    assert answer.status == 200, answer.text
    return client.read(answer, stream)


class ResponsesClient:
    name = "responses"
    stops: ClassVar[Mapping[str, str]] = {"length": "incomplete", "refusal": "completed"}

    def path(self, stream: bool) -> str:
        return "/v1/responses"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def begin(self, prompt: str, tools: bool = True) -> Json:
        offered = [{"type": "function", "name": "shell", "parameters": SCHEMA}] if tools else []
        message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
        return {"model": "m", "input": [message], "tools": offered}

    def read(self, answer: Answer, stream: bool) -> Seen:
        response = answer.frames[-1]["response"] if stream else answer.json
        if stream:
            done = [frame["item"] for frame in answer.frames if frame["type"] == "response.output_item.done"]
            assert done == response["output"]
        seen = Seen(stop=response["status"])
        for item in response["output"]:
            if item["type"] == "message":
                seen.text += "".join(part.get("text", part.get("refusal")) for part in item["content"])
            elif item["type"] == "reasoning":
                seen.thoughts += item["summary"][0]["text"]
            else:
                seen.calls.append((item["call_id"], item["name"], json.loads(item["arguments"])))
        usage = response["usage"]
        seen.used = (usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"])
        return seen

    def go_on(self, body: Json, seen: Seen, result: str | None) -> Json:
        more: list[Json] = []
        for call, name, arguments in seen.calls:
            more.append({"type": "function_call", "call_id": call, "name": name, "arguments": json.dumps(arguments)})
            if result is not None:
                more.append({"type": "function_call_output", "call_id": call, "output": result})
        return {**body, "input": [*body["input"], *more]}


class ChatClient:
    name = "chat"
    stops: ClassVar[Mapping[str, str]] = {"length": "length", "refusal": "stop"}

    def path(self, stream: bool) -> str:
        return "/v1/chat/completions"

    def headers(self, key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    def begin(self, prompt: str, tools: bool = True) -> Json:
        offered = [{"type": "function", "function": {"name": "shell", "parameters": SCHEMA}}] if tools else []
        messages = [{"role": "user", "content": prompt}]
        return {"model": "m", "messages": messages, "tools": offered, "stream_options": {"include_usage": True}}

    def read(self, answer: Answer, stream: bool) -> Seen:
        if not stream:
            choice = answer.json["choices"][0]
            return self._seen(choice["message"], choice["finish_reason"], answer.json["usage"])
        message: Json = {"content": "", "refusal": "", "reasoning_content": "", "tool_calls": []}
        finish = ""
        for frame in answer.frames[:-1]:
            delta = frame["choices"][0]["delta"]
            finish = frame["choices"][0]["finish_reason"] or finish
            for name in ("content", "refusal", "reasoning_content"):
                message[name] += delta.get(name) or ""
            for call in delta.get("tool_calls", []):
                if call["index"] == len(message["tool_calls"]):
                    message["tool_calls"].append(call)
                else:
                    message["tool_calls"][call["index"]]["function"]["arguments"] += call["function"]["arguments"]
        assert answer.text.rstrip().endswith("data: [DONE]")
        return self._seen(message, finish, answer.frames[-1]["usage"])

    def _seen(self, message: Json, finish: str, usage: Json) -> Seen:
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", [])
        ]
        used = (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"])
        text = message["content"] or message["refusal"] or ""
        return Seen(text, message.get("reasoning_content", ""), calls, finish, used)

    def go_on(self, body: Json, seen: Seen, result: str | None) -> Json:
        calls = [
            {"id": call, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call, name, arguments in seen.calls
        ]
        more: list[Json] = [{"role": "assistant", "content": None, "tool_calls": calls}]
        if result is not None:
            more += [{"role": "tool", "tool_call_id": call, "content": result} for call, _, _ in seen.calls]
        return {**body, "messages": [*body["messages"], *more]}


class MessagesClient:
    name = "messages"
    stops: ClassVar[Mapping[str, str]] = {"length": "max_tokens", "refusal": "refusal"}

    def path(self, stream: bool) -> str:
        return "/v1/messages?beta=true"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def begin(self, prompt: str, tools: bool = True) -> Json:
        offered = [{"name": "Bash", "input_schema": SCHEMA}] if tools else []
        messages = [{"role": "user", "content": [{"type": "text", "text": prompt}]}]
        thinking = {"type": "adaptive"}
        return {"model": "m", "max_tokens": 9, "messages": messages, "tools": offered, "thinking": thinking}

    def read(self, answer: Answer, stream: bool) -> Seen:
        message = self._gathered(answer.frames) if stream else answer.json
        seen = Seen(stop=message["stop_reason"])
        for block in message["content"]:
            if block["type"] == "tool_use":
                seen.calls.append((block["id"], block["name"], block["input"]))
            seen.text += block.get("text", "")
            seen.thoughts += block.get("thinking", "")
        usage = message["usage"]
        cached = usage["cache_read_input_tokens"]
        seen.used = (usage["input_tokens"] + cached, cached, usage["output_tokens"])
        return seen

    def _gathered(self, frames: list[Json]) -> Json:
        message: Json = frames[0]["message"]
        parts = ""
        for frame in frames[1:]:
            if frame["type"] == "content_block_start":
                message["content"].append(frame["content_block"])
                parts = ""
            elif frame["type"] == "content_block_delta":
                delta = frame["delta"]
                parts += delta.get("partial_json", "")
                for name in ("text", "thinking", "signature"):
                    if name in delta:
                        message["content"][-1][name] += delta[name]
            elif frame["type"] == "content_block_stop" and message["content"][-1]["type"] == "tool_use":
                message["content"][-1]["input"] = json.loads(parts)
            elif frame["type"] == "message_delta":
                message |= {"stop_reason": frame["delta"]["stop_reason"], "usage": frame["usage"]}
        assert frames[-1]["type"] == "message_stop"
        return message

    def go_on(self, body: Json, seen: Seen, result: str | None) -> Json:
        calls = [{"type": "tool_use", "id": call, "name": name, "input": given} for call, name, given in seen.calls]
        results = [{"type": "tool_result", "tool_use_id": call, "content": result} for call, _, _ in seen.calls]
        after = results if result is not None else [{"type": "text", "text": "well?"}]
        more = [{"role": "assistant", "content": calls}, {"role": "user", "content": after}]
        return {**body, "messages": [*body["messages"], *more]}


class GeminiClient:
    name = "gemini"
    stops: ClassVar[Mapping[str, str]] = {"length": "MAX_TOKENS", "refusal": "SAFETY"}

    def path(self, stream: bool) -> str:
        return f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def headers(self, key: str) -> dict[str, str]:
        return {"x-goog-api-key": key}

    def begin(self, prompt: str, tools: bool = True) -> Json:
        declared = [{"name": "run_shell_command", "parametersJsonSchema": SCHEMA}] if tools else []
        contents = [{"role": "user", "parts": [{"text": prompt}]}]
        config = {"thinkingConfig": {"includeThoughts": True}}
        return {"contents": contents, "tools": [{"functionDeclarations": declared}], "generationConfig": config}

    def read(self, answer: Answer, stream: bool) -> Seen:
        seen = Seen()
        for chunk in answer.frames if stream else [answer.json]:
            candidate = chunk["candidates"][0]
            for part in candidate["content"]["parts"]:
                if "functionCall" in part:
                    seen.calls.append(("", part["functionCall"]["name"], part["functionCall"]["args"]))
                elif part.get("thought"):
                    seen.thoughts += part["text"]
                else:
                    seen.text += part["text"]
            seen.stop = candidate.get("finishReason", "")
            usage = chunk["usageMetadata"]
            cached, output = usage["cachedContentTokenCount"], usage["candidatesTokenCount"]
            seen.used = (usage["promptTokenCount"], cached, output + usage["thoughtsTokenCount"])
        return seen

    def go_on(self, body: Json, seen: Seen, result: str | None) -> Json:
        calls = [{"functionCall": {"name": name, "args": arguments}} for _, name, arguments in seen.calls]
        results = [{"functionResponse": {"name": name, "response": {"output": result}}} for _, name, _ in seen.calls]
        after = results if result is not None else [{"text": "well?"}]
        more = [{"role": "model", "parts": calls}, {"role": "user", "parts": after}]
        return {**body, "contents": [*body["contents"], *more]}


CLIENTS: tuple[Client, ...] = (ResponsesClient(), ChatClient(), MessagesClient(), GeminiClient())
