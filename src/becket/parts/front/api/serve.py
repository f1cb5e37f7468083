"""One request of the API: read it strictly, do it, answer without secrets. Errors are problems of RFC 9457."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from starlette.responses import Response

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.errors import BecketError
from becket.parts.front.accounts import note
from becket.parts.front.api.asks import NAME, Wrong, read_body, read_query
from becket.parts.front.api.operations import BELOW, BY_NAME, Operation
from becket.parts.front.asked import Asked
from becket.parts.front.safety import Refused
from becket.parts.front.server import problem

SHORTEST_REDACTED = 6


def __getattr__(name: str) -> Callable[[Asked], Awaitable[Response]]:
    """The endpoint of the operation of that name."""
    if name not in BY_NAME:
        raise AttributeError(name)
    return _endpoint(BY_NAME[name])


@cache
def _endpoint(operation: Operation) -> Callable[[Asked], Awaitable[Response]]:
    run, answers = operation.run, TypeAdapter[Any](operation.answers)
    asks = operation.asks

    async def endpoint(asked: Asked) -> Response:
        try:
            given = _given(operation, asks, asked)
        except Wrong as error:
            return problem(422, asked.app.redactor.text(str(error)), errors=error.errors)
        try:
            answer = await run(asked, given)
        except BecketError as error:
            await _noted(operation, asked, str(error))
            raise
        await _noted(operation, asked, "done")
        return Response(await asyncio.to_thread(_encoded, answers, answer, asked), media_type="application/json")

    return endpoint


def _given(operation: Operation, asks: type[Record], asked: Asked) -> Record:
    for value in asked.params.values():
        if not re.fullmatch(NAME, value):
            raise Refused(404, "there is nothing of that name")
    if operation.method == "GET":
        return read_query(asks, dict(asked.query))
    if asked.query:
        raise Wrong([{"field": name[:80], "why": "this goes into the body"} for name in list(asked.query)[:20]])
    if asked.body and asked.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "a body is sent as application/json")
    return read_body(asks, asked.body)


async def _noted(operation: Operation, asked: Asked, outcome: str) -> None:
    """What changes something is kept, with its outcome, and told to whoever looks."""
    if operation.method == "GET":
        return
    who, about = asked.who, " ".join(asked.params.values())
    did, told = f"{operation.method} {BELOW}{operation.path}", asked.app.redactor.text(outcome)
    await asked.tables.write(note, who.name, who.role, who.kind, asked.address, did, about, told)
    await asked.front.feed.ring()


def _encoded(answers: TypeAdapter[Any], answer: object, asked: Asked) -> bytes:
    shown = redacted(answers.dump_python(answer, mode="json"), asked.app.redactor.text)
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def redacted(value: Json, redact: Callable[[str], str]) -> Json:
    """Every text in it without secrets; numbers under names like `input_tokens` stay."""
    if isinstance(value, str):
        return redact(value) if len(value) >= SHORTEST_REDACTED else value
    if isinstance(value, dict):
        return {redacted(key, redact): redacted(inner, redact) for key, inner in value.items()}
    if isinstance(value, list):
        return [redacted(inner, redact) for inner in value]
    return value
