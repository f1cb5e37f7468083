"""What a run keeps, as files: only by digests that it refers to itself."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from starlette.responses import Response, StreamingResponse

from becket.app.record.log_part import redacted_parts
from becket.app.record.report.collect import read_report
from becket.app.record.report.html import html_of
from becket.kernel.contract.errors import NotFound
from becket.parts.front.asked import Asked
from becket.parts.front.server import Front

_BUSY: WeakKeyDictionary[Front, asyncio.Lock] = WeakKeyDictionary()


async def artifact(asked: Asked) -> Response:
    run_id, digest = await asked.run_id(), asked.params["digest"]
    known = {ref.digest for ref in await asked.app.store.artifacts(run_id)}
    if digest not in known:
        raise NotFound("this run refers to no such artifact")
    path = asked.app.artifacts.path(digest)
    return StreamingResponse(
        redacted_parts(path, asked.app.redactor.text), media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'inline; filename="{digest[:12]}.txt"'},
    )  # fmt: skip


async def report(asked: Asked) -> Response:
    """The whole, as `becket runs report --html` writes it: one file to keep or to send. One is made at a time."""
    run_id = await asked.run_id()
    async with _BUSY.setdefault(asked.front, asyncio.Lock()):
        found = await read_report(asked.app, run_id)
        html = await asyncio.to_thread(html_of, found)
    named = {"content-disposition": f'attachment; filename="{run_id}.html"'}
    return Response(html, media_type="text/html; charset=utf-8", headers=named)
