"""Anthropic's Messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from becket.testing.model.exchange import (
    Block,
    Frame,
    Json,
    ModelRequest,
    Offered,
    Reply,
    Stop,
    Text,
    Thought,
    WireName,
    pieces,
)
from becket.testing.model.steps import Status
from becket.testing.model.wires.openai import bearer, wait_of
from becket.testing.model.wires.reading import items, mapping, text_of

_STOP = {Stop.done: "end_turn", Stop.tools: "tool_use", Stop.length: "max_tokens", Stop.refusal: "refusal"}
_KNOWN = {
    400: ("invalid_request_error", "Invalid request"),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "There is an issue with your billing or payment information."),
    403: ("permission_error", "Your API key does not have permission to use the specified resource."),
    404: ("not_found_error", "model: not found"),
    413: ("request_too_large", "Request exceeds the maximum size"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    500: ("api_error", "Internal server error"),
    529: ("overloaded_error", "Overloaded"),
}


class Messages:
    name = WireName.messages

    def key(self, path: str, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key") or bearer(headers)

    def unauthorized(self, given: bool) -> Status:
        return Status(401)

    def read(self, path: str, headers: Mapping[str, str], body: Json) -> ModelRequest:
        ask = ModelRequest(model=str(body.get("model", "")), stream=body.get("stream") is True)
        ask.wants_thinking = mapping(body.get("thinking")).get("type") in {"enabled", "adaptive"}
        if "anthropic-version" not in headers:
            ask.wrong.append("anthropic-version: header is required")
        needed = ["model", "messages"] if path.endswith("/count_tokens") else ["model", "max_tokens", "messages"]
        ask.wrong += [f"{name}: Field required" for name in needed if body.get(name) in (None, [], "")]
        _read_tools(items(body.get("tools")), ask)
        form = mapping(mapping(body.get("output_config")).get("format"))
        ask.answer_schema = mapping(form.get("schema")) or None
        if body.get("system"):
            ask.prompts.append(text_of(body["system"]))
        _read_messages(items(body.get("messages")), ask)
        return ask

    def whole(self, reply: Reply) -> dict[str, Any]:
        return {
            **_message(reply),
            "content": [_content(block) for block in reply.blocks],
            "stop_reason": _STOP[reply.stop],
            "usage": _usage(reply, reply.usage.output),
        }

    def stream(self, reply: Reply, ask: ModelRequest) -> Iterator[Frame]:
        def frame(kind: str, **data: object) -> Frame:
            return Frame({"type": kind, **data}, event=kind)

        yield frame("message_start", message={**_message(reply), "usage": _usage(reply, 1)})
        for at, block in enumerate(reply.blocks):
            yield frame("content_block_start", index=at, content_block=_begun(block))
            for delta in _deltas(block):
                yield frame("content_block_delta", index=at, delta=delta)
            yield frame("content_block_stop", index=at)
        ending = {"stop_reason": _STOP[reply.stop], "stop_sequence": None}
        yield frame("message_delta", delta=ending, usage=_usage(reply, reply.usage.output))
        yield frame("message_stop")

    def error(self, status: Status) -> tuple[dict[str, str], dict[str, Any]]:
        headers = {"request-id": "req_scripted"}
        wait = wait_of(status)
        if wait is not None:
            headers["retry-after"] = str(wait)
        if status.code == 429 and status.resets_at is not None:
            reset = datetime.fromtimestamp(status.resets_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            headers |= {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-requests-reset": reset,
            }
            if status.kind == "usage_limit":
                headers |= {
                    "anthropic-ratelimit-unified-status": "rejected",
                    "anthropic-ratelimit-unified-reset": str(int(status.resets_at)),
                    "anthropic-ratelimit-unified-representative-claim": "five_hour",
                }
        return headers, self._error(status)

    def error_frame(self, status: Status) -> Frame:
        return Frame(self._error(status), event="error")

    def _error(self, status: Status) -> dict[str, Any]:
        kind, message = _KNOWN.get(status.code, ("api_error", f"Error {status.code}"))
        if status.kind == "quota":
            kind, message = "invalid_request_error", "Your credit balance is too low to access the Anthropic API."
        error = {"type": kind, "message": status.message or message}
        return {"type": "error", "error": error, "request_id": "req_scripted"}

    def models(self, names: tuple[str, ...]) -> dict[str, Any]:
        listed = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"} for name in names
        ]
        return {"data": listed, "has_more": False, "first_id": names[0], "last_id": names[-1]}

    def count(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}


def _read_tools(tools: list[Json], ask: ModelRequest) -> None:
    for place, tool in enumerate(tools):
        if not tool.get("name"):
            ask.wrong.append(f"tools.{place}.name: Field required")
        elif "input_schema" in tool:
            ask.tools.append(Offered(str(tool["name"]), mapping(tool["input_schema"])))
        elif tool.get("type", "custom") == "custom":
            ask.wrong.append(f"tools.{place}.custom.input_schema: Field required")
    names = [tool.name for tool in ask.tools]
    if len(set(names)) < len(names):
        ask.wrong.append("tools: Tool names must be unique.")


def _read_messages(messages: list[Json], ask: ModelRequest) -> None:
    open_calls: list[str] = []
    if messages and messages[0].get("role") == "assistant":
        ask.wrong.append('messages: first message must use the "user" role')
    for place, message in enumerate(messages):
        content = message.get("content")
        blocks = items(content)
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        _match(place, open_calls, results, ask)
        open_calls = []
        if message.get("role") == "assistant":
            open_calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
        else:
            ask.prompts.append(text_of(content))
            ask.results += [text_of(block.get("content")) for block in blocks if block.get("type") == "tool_result"]
        if not content:
            ask.wrong.append(f"messages.{place}: all messages must have non-empty content")
    _match(len(messages), open_calls, [], ask)


def _match(place: int, calls: list[str], results: list[str], ask: ModelRequest) -> None:
    lost = [call for call in calls if call not in results]
    if lost:
        ask.wrong.append(
            f"messages.{place - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(lost)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
            "message."
        )
    for one in results:
        if one not in calls:
            ask.wrong.append(
                f"messages.{place}.content: unexpected `tool_use_id` found in `tool_result` blocks: {one}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )


def _message(reply: Reply) -> dict[str, Any]:
    return {
        "id": f"msg_{reply.id}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
    }


def _usage(reply: Reply, output: int) -> dict[str, Any]:
    used = reply.usage
    return {
        "input_tokens": used.input - used.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": used.cached,
        "output_tokens": output,
    }


def _content(block: Block) -> dict[str, Any]:
    if isinstance(block, Thought):
        return {"type": "thinking", "thinking": block.text, "signature": "scripted"}
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.arguments)}


def _begun(block: Block) -> dict[str, Any]:
    empty: dict[str, Any] = {"thinking": "", "text": "", "input": {}, "signature": ""}
    return {name: empty.get(name, value) if name != "type" else value for name, value in _content(block).items()}


def _deltas(block: Block) -> Iterator[dict[str, Any]]:
    if isinstance(block, Thought):
        for part in pieces(block.text):
            yield {"type": "thinking_delta", "thinking": part}
        yield {"type": "signature_delta", "signature": "scripted"}
    elif isinstance(block, Text):
        for part in pieces(block.text):
            yield {"type": "text_delta", "text": part}
    else:
        for part in pieces(json.dumps(dict(block.arguments)), 40):
            yield {"type": "input_json_delta", "partial_json": part}
