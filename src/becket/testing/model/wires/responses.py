"""OpenAI's Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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
from becket.testing.model.wires import openai
from becket.testing.model.wires.reading import items, mapping, missing, text_of, unanswered

_CALLS = ("function_call", "custom_tool_call", "local_shell_call")


class Responses:
    name = WireName.responses

    def key(self, path: str, headers: Mapping[str, str]) -> str | None:
        return openai.bearer(headers)

    def unauthorized(self, given: bool) -> Status:
        return Status(401)

    def read(self, path: str, headers: Mapping[str, str], body: Json) -> ModelRequest:
        ask = ModelRequest(model=str(body.get("model", "")), stream=body.get("stream") is True)
        ask.wrong += missing(body, ["model"] if body.get("previous_response_id") else ["model", "input"])
        if body.get("previous_response_id"):
            ask.wrong.append("Previous response not found: this server keeps none, send the whole input.")
        ask.tools = [tool for listed in items(body.get("tools")) for tool in _offered(listed, ask)]
        form = mapping(mapping(body.get("text")).get("format"))
        ask.answer_schema = mapping(form.get("schema")) or None
        if isinstance(body.get("instructions"), str):
            ask.prompts.append(str(body["instructions"]))
        if isinstance(body.get("input"), str):
            ask.prompts.append(str(body["input"]))
        _read_items(items(body.get("input")), ask)
        return ask

    def whole(self, reply: Reply) -> dict[str, Any]:
        outputs = [_item(reply, at, block) for at, block in enumerate(_blocks(reply))]
        return _response(reply, "incomplete" if reply.stop is Stop.length else "completed", outputs)

    def stream(self, reply: Reply, ask: ModelRequest) -> Iterator[Frame]:
        for number, data in enumerate(self._events(reply)):
            yield Frame({**data, "sequence_number": number}, event=data["type"])

    def _events(self, reply: Reply) -> Iterator[dict[str, Any]]:
        yield {"type": "response.created", "response": _response(reply, "in_progress", [])}
        outputs = []
        for at, block in enumerate(_blocks(reply)):
            item = _item(reply, at, block)
            outputs.append(item)
            yield {"type": "response.output_item.added", "output_index": at, "item": _begun(item)}
            for delta in _deltas(block, item):
                yield {"output_index": at, "item_id": item["id"], **delta}
            yield {"type": "response.output_item.done", "output_index": at, "item": item}
        end = "incomplete" if reply.stop is Stop.length else "completed"
        yield {"type": f"response.{end}", "response": _response(reply, end, outputs)}

    def error(self, status: Status) -> tuple[dict[str, str], dict[str, Any]]:
        return openai.error(status)

    def error_frame(self, status: Status) -> Frame:
        error = openai.error_of(status)
        failed: dict[str, Any] = {"id": "resp_failed", "object": "response", "status": "failed", "output": []}
        failed["error"] = {"code": error["code"] or error["type"], "message": error["message"]}
        return Frame({"type": "response.failed", "response": failed}, event="response.failed")

    def models(self, names: tuple[str, ...]) -> dict[str, Any]:
        return openai.models(names)

    def count(self, tokens: int) -> dict[str, Any]:
        return {"object": "response.input_tokens", "input_tokens": tokens}


def _offered(tool: Json, ask: ModelRequest) -> list[Offered]:
    kind = tool.get("type")
    if kind == "namespace":
        return []
    if kind in {"function", "custom"} and not tool.get("name"):
        ask.wrong.append("Missing required parameter: 'tools[].name'.")
        return []
    if kind == "local_shell":
        return [Offered("local_shell")]
    if kind not in {"function", "custom"}:
        return []
    return [Offered(str(tool["name"]), mapping(tool.get("parameters")), freeform=kind == "custom")]


def _read_items(history: list[Json], ask: ModelRequest) -> None:
    calls: dict[str, int] = {}
    results: dict[str, int] = {}
    for place, item in enumerate(history):
        kind = str(item.get("type") or "message")
        if kind == "message" and item.get("role") in {"user", "developer", "system"}:
            ask.prompts.append(text_of(item.get("content")))
        elif kind in _CALLS:
            calls[str(item.get("call_id"))] = place
        elif kind.endswith("call_output"):
            results[str(item.get("call_id"))] = place
            output = item.get("output")
            ask.results.append(output if isinstance(output, str) else text_of(output))
    ask.wrong += [f"No tool output found for function call {call}." for call in unanswered(calls, results)]
    ask.wrong += [f"No tool call found for function call output with call_id {one}." for one in results.keys() - calls]


def _blocks(reply: Reply) -> tuple[Block, ...]:
    return reply.blocks or (Text(""),)


def _item(reply: Reply, at: int, block: Block) -> dict[str, Any]:
    name = f"{reply.id}_{at}"
    if isinstance(block, Thought):
        summary = [{"type": "summary_text", "text": block.text}]
        return {"id": f"rs_{name}", "type": "reasoning", "summary": summary, "encrypted_content": "scripted"}
    if isinstance(block, Text):
        part: dict[str, Any] = {"type": "output_text", "text": block.text, "annotations": []}
        if reply.stop is Stop.refusal:
            part = {"type": "refusal", "refusal": block.text}
        status = "incomplete" if reply.stop is Stop.length else "completed"
        return {"id": f"msg_{name}", "type": "message", "status": status, "role": "assistant", "content": [part]}
    call = {"status": "completed", "call_id": block.id, "name": block.name}
    if block.text is not None:
        return {"id": f"ctc_{name}", "type": "custom_tool_call", "input": block.text, **call}
    return {"id": f"fc_{name}", "type": "function_call", "arguments": json.dumps(dict(block.arguments)), **call}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "input": "", "status": "in_progress"}
    return {name: empty.get(name, value) for name, value in item.items()}


def _deltas(block: Block, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if isinstance(block, Thought):
        for part in pieces(block.text):
            yield {"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": part}
    elif isinstance(block, Text):
        part = item["content"][0]
        kind = part["type"]
        yield {"type": "response.content_part.added", "content_index": 0, "part": {**part, kind.split("_")[-1]: ""}}
        for piece in pieces(block.text):
            yield {"type": f"response.{kind}.delta", "content_index": 0, "delta": piece}
        yield {"type": f"response.{kind}.done", "content_index": 0, kind.split("_")[-1]: block.text}
        yield {"type": "response.content_part.done", "content_index": 0, "part": part}
    elif block.text is not None:
        yield {"type": "response.custom_tool_call_input.delta", "delta": block.text}
        yield {"type": "response.custom_tool_call_input.done", "input": block.text}
    else:
        yield {"type": "response.function_call_arguments.delta", "delta": item["arguments"]}
        yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}


def _response(reply: Reply, status: str, outputs: list[dict[str, Any]]) -> dict[str, Any]:
    used = reply.usage
    usage = {
        "input_tokens": used.input,
        "input_tokens_details": {"cached_tokens": used.cached},
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.reasoning},
        "total_tokens": used.input + used.output,
    }
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": 1700000000,
        "status": status,
        "model": reply.model,
        "output": outputs,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "usage": None if status == "in_progress" else usage,
    }
