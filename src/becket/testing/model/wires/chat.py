"""OpenAI's Chat Completions API, which many other servers speak too."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from becket.testing.model.exchange import (
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
from becket.testing.model.wires import openai
from becket.testing.model.wires.reading import items, mapping, missing, text_of

_FINISH = {Stop.done: "stop", Stop.tools: "tool_calls", Stop.length: "length", Stop.refusal: "stop"}


class Chat:
    name = WireName.chat

    def key(self, path: str, headers: Mapping[str, str]) -> str | None:
        return openai.bearer(headers)

    def unauthorized(self, given: bool) -> Status:
        return Status(401)

    def read(self, path: str, headers: Mapping[str, str], body: Json) -> ModelRequest:
        ask = ModelRequest(model=str(body.get("model", "")), stream=body.get("stream") is True)
        ask.wants_stream_usage = mapping(body.get("stream_options")).get("include_usage") is True
        ask.wrong += missing(body, ["model", "messages"])
        for tool in items(body.get("tools")):
            function = mapping(tool.get("function"))
            if tool.get("type") != "function" or not function.get("name"):
                ask.wrong.append("Missing required parameter: 'tools[].function.name'.")
                continue
            ask.tools.append(Offered(str(function["name"]), mapping(function.get("parameters"))))
        form = mapping(mapping(body.get("response_format")).get("json_schema"))
        ask.answer_schema = mapping(form.get("schema")) or None
        _read_messages(items(body.get("messages")), ask)
        return ask

    def whole(self, reply: Reply) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
        if reply.stop is Stop.refusal:
            message |= {"content": None, "refusal": reply.text}
        if reply.calls:
            message["tool_calls"] = [_call(reply, at) for at in range(len(reply.calls))]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _FINISH[reply.stop]}
        return {**_frame(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)}

    def stream(self, reply: Reply, ask: ModelRequest) -> Iterator[Frame]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> Frame:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            return Frame({**_frame(reply, "chat.completion.chunk"), "choices": [choice]})

        yield chunk({"role": "assistant", "content": ""})
        said = "refusal" if reply.stop is Stop.refusal else "content"
        for block in reply.blocks:
            if isinstance(block, Text | Thought):
                name = said if isinstance(block, Text) else "reasoning_content"
                for part in pieces(block.text):
                    yield chunk({name: part})
        for at in range(len(reply.calls)):
            call = _call(reply, at)
            arguments = call["function"]["arguments"]
            call["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": at, **call}]})
            for part in pieces(arguments, 40):
                yield chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]})
        yield chunk({}, _FINISH[reply.stop])
        if ask.wants_stream_usage:
            yield Frame({**_frame(reply, "chat.completion.chunk"), "choices": [], "usage": _usage(reply)})
        yield Frame("[DONE]")

    def error(self, status: Status) -> tuple[dict[str, str], dict[str, Any]]:
        return openai.error(status)

    def error_frame(self, status: Status) -> Frame:
        return Frame({"error": openai.error_of(status)})

    def models(self, names: tuple[str, ...]) -> dict[str, Any]:
        return openai.models(names)

    def count(self, tokens: int) -> dict[str, Any]:
        return {"input_tokens": tokens}


def _read_messages(messages: list[Json], ask: ModelRequest) -> None:
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call = str(message.get("tool_call_id"))
            ask.results.append(text_of(message.get("content")))
            if call not in open_calls:
                ask.wrong.append(
                    f"messages with role 'tool' must be a response to a preceding message with 'tool_calls': {call}"
                )
            open_calls = [one for one in open_calls if one != call]
            continue
        _close(open_calls, ask)
        open_calls = []
        if role == "assistant":
            open_calls = [str(call.get("id")) for call in items(message.get("tool_calls"))]
        elif role in {"system", "developer", "user"}:
            ask.prompts.append(text_of(message.get("content")))
        else:
            ask.wrong.append(f"Invalid value for 'messages[{place}].role': {role!r}.")
    _close(open_calls, ask)


def _close(open_calls: list[str], ask: ModelRequest) -> None:
    if open_calls:
        ask.wrong.append(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(open_calls)}"
        )


def _frame(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": kind, "created": 1700000000, "model": reply.model}


def _call(reply: Reply, at: int) -> dict[str, Any]:
    call = reply.calls[at]
    arguments = json.dumps(dict(call.arguments))
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(reply: Reply) -> dict[str, Any]:
    used = reply.usage
    return {
        "prompt_tokens": used.input,
        "completion_tokens": used.output,
        "total_tokens": used.input + used.output,
        "prompt_tokens_details": {"cached_tokens": used.cached},
        "completion_tokens_details": {"reasoning_tokens": used.reasoning},
    }
