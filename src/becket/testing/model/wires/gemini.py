"""Google's Gemini API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
from becket.testing.model.wires.openai import wait_of
from becket.testing.model.wires.reading import items, mapping, text_of

_FINISH = {Stop.done: "STOP", Stop.tools: "STOP", Stop.length: "MAX_TOKENS", Stop.refusal: "SAFETY"}
_KNOWN = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "The model is not found for API version v1beta"),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
    500: ("INTERNAL", "An internal error has occurred. Please retry."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_RPC = "type.googleapis.com/google.rpc."


class Gemini:
    name = WireName.gemini

    def key(self, path: str, headers: Mapping[str, str]) -> str | None:
        given = parse_qs(urlsplit(path).query).get("key")
        return headers.get("x-goog-api-key") or (given[0] if given else None) or None

    def unauthorized(self, given: bool) -> Status:
        """This vendor has no 401 for keys."""
        if given:
            return Status(400, kind="key", message="API key not valid. Please pass a valid API key.")
        return Status(403, message="Method doesn't allow unregistered callers. Please use API Key to call this API.")

    def read(self, path: str, headers: Mapping[str, str], body: Json) -> ModelRequest:
        model, _, method = urlsplit(path).path.rpartition("/")[2].partition(":")
        ask = ModelRequest(model=model, stream=method == "streamGenerateContent")
        if ask.stream and parse_qs(urlsplit(path).query).get("alt") != ["sse"]:
            ask.wrong.append("This server streams only with alt=sse.")
        body = mapping(body.get("generateContentRequest")) or body
        if not items(body.get("contents")):
            ask.wrong.append("* GenerateContentRequest.contents: contents is not specified")
        for tool in items(body.get("tools")):
            for declared in items(tool.get("functionDeclarations")):
                schema = mapping(declared.get("parametersJsonSchema") or declared.get("parameters"))
                ask.tools.append(Offered(str(declared.get("name")), schema))
        config = mapping(body.get("generationConfig"))
        ask.answer_schema = mapping(config.get("responseJsonSchema") or config.get("responseSchema")) or None
        ask.wants_thinking = mapping(config.get("thinkingConfig")).get("includeThoughts") is True
        system = mapping(body.get("systemInstruction"))
        if system:
            ask.prompts.append(text_of(system.get("parts")))
        _read_contents(items(body.get("contents")), ask)
        return ask

    def whole(self, reply: Reply) -> dict[str, Any]:
        return _chunk(reply, [_part(block) for block in reply.blocks], last=True)

    def stream(self, reply: Reply, ask: ModelRequest) -> Iterator[Frame]:
        for block in reply.blocks:
            if isinstance(block, Text | Thought):
                for part in pieces(block.text):
                    yield Frame(_chunk(reply, [_part(type(block)(part))]))
            else:
                yield Frame(_chunk(reply, [_part(block)]))
        yield Frame(_chunk(reply, [{"text": ""}], last=True))

    def error(self, status: Status) -> tuple[dict[str, str], dict[str, Any]]:
        name, message = _KNOWN.get(status.code, ("UNKNOWN", f"Error {status.code}"))
        details: list[dict[str, Any]] = []
        wait = wait_of(status)
        if status.code == 401 or status.kind == "key":
            details = [{"@type": f"{_RPC}ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
        if status.code == 429:
            span = "PerDay" if status.kind in {"quota", "usage_limit"} else "PerMinute"
            quota = {"quotaId": f"GenerateRequests{span}PerProjectPerModel", "quotaValue": "50"}
            details.append({"@type": f"{_RPC}QuotaFailure", "violations": [quota]})
            if wait is not None:
                message = f"{message} Please retry in {wait}s."
                details.append({"@type": f"{_RPC}RetryInfo", "retryDelay": f"{wait}s"})
        error = {"code": status.code, "message": status.message or message, "status": name, "details": details}
        return {}, {"error": error}

    def error_frame(self, status: Status) -> Frame:
        return Frame(self.error(status)[1])

    def models(self, names: tuple[str, ...]) -> dict[str, Any]:
        methods = ["generateContent", "countTokens"]
        listed = [
            {"name": f"models/{name}", "displayName": name, "supportedGenerationMethods": methods} for name in names
        ]
        return {"models": listed}

    def count(self, tokens: int) -> dict[str, Any]:
        return {"totalTokens": tokens}


def _read_contents(contents: list[Json], ask: ModelRequest) -> None:
    open_calls: list[str] = []
    for content in contents:
        parts = items(content.get("parts"))
        results = [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
        if not parts:
            ask.wrong.append("* GenerateContentRequest.contents.parts: contents.parts must not be empty.")
        _match(open_calls, [str(result.get("name")) for result in results], ask)
        ask.results += [_result_text(result) for result in results]
        open_calls = []
        if content.get("role") == "model":
            open_calls = [str(mapping(part["functionCall"]).get("name")) for part in parts if "functionCall" in part]
        else:
            ask.prompts.append(text_of(content.get("parts")))
    _match(open_calls, [], ask)


def _match(calls: list[str], results: list[str], ask: ModelRequest) -> None:
    """By name and number: calls have no ids on this wire, unless the client makes some."""
    if sorted(calls) != sorted(results):
        ask.wrong.append(
            "Please ensure that the number of function response parts is equal to the number of function call parts of "
            f"the function call turn: called {', '.join(calls) or 'nothing'}, got {', '.join(results) or 'nothing'}."
        )


def _result_text(result: Json) -> str:
    response = mapping(result.get("response"))
    texts = [value for value in response.values() if isinstance(value, str)]
    return "\n".join(texts) if texts else json.dumps(dict(response))


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, Thought):
        return {"text": block.text, "thought": True}
    if isinstance(block, Text):
        return {"text": block.text}
    name = re.sub(r"[^A-Za-z0-9_.:-]", "_", block.name)
    return {"functionCall": {"name": name, "args": dict(block.arguments)}, "thoughtSignature": "c2NyaXB0ZWQ="}


def _chunk(reply: Reply, parts: list[dict[str, Any]], last: bool = False) -> dict[str, Any]:
    used = reply.usage
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        candidate["finishReason"] = _FINISH[reply.stop]
    usage = {
        "promptTokenCount": used.input,
        "candidatesTokenCount": used.output - used.reasoning,
        "totalTokenCount": used.input + used.output,
        "cachedContentTokenCount": used.cached,
        "thoughtsTokenCount": used.reasoning,
    }
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": reply.model,
        "responseId": reply.id,
    }
