"""Tell people and systems: on the console, in a file, by a signed webhook."""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.action import ActionContext, ActionDef, EffectReport, Result
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.effect import EffectCall
from becket.kernel.contract.naming import HttpUrl
from becket.kernel.contract.spec import Phase


class ConsoleParams(Record):
    text: str


class FileParams(Record):
    path: str
    text: str
    data: dict[str, Json] = Field(default_factory=dict)


class PostParams(Record):
    url: HttpUrl
    body: dict[str, Json] = Field(default_factory=dict)


async def console(context: ActionContext, params: ConsoleParams) -> Result:
    call = EffectCall(name="notify.console", target="console", payload={"text": params.text}, defer=_late(context))
    return _said(await context.perform(call))


async def file(context: ActionContext, params: FileParams) -> Result:
    payload = {"text": params.text, "data": params.data, "run": context.run.run_id}
    return _said(
        await context.perform(EffectCall(name="notify.file", target=params.path, payload=payload, defer=_late(context)))
    )


async def post(context: ActionContext, params: PostParams) -> Result:
    call = EffectCall(name="http.post", target=params.url, payload=params.body, defer=_late(context))
    return _said(await context.perform(call))


def _late(context: ActionContext) -> bool:
    """A notice may be delivered after the run has ended; anything else is part of the work."""
    return context.phase is Phase.notify


def _said(report: EffectReport) -> Result:
    return Result(outputs={"state": report.state, "effect": report.key}, note=report.reason)


OUTPUTS = ("state", "effect")

ACTIONS = (
    ActionDef(
        name="notify.console", summary="Print a line where Becket runs.", run=console, params=ConsoleParams,
        outputs=OUTPUTS, effects=("notify.console",),
    ),
    ActionDef(
        name="notify.file", summary="Append one JSON line to a file.", run=file, params=FileParams,
        outputs=OUTPUTS, effects=("notify.file",),
    ),
    ActionDef(
        name="http.post", summary="Post JSON to a URL, signed, with an idempotency key.", run=post, params=PostParams,
        outputs=OUTPUTS, effects=("http.post",),
    ),
)  # fmt: skip
