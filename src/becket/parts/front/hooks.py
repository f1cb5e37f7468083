"""Signed events from outside: `POST /hooks/NAME` becomes an event, once for each delivery.

The event's id is made from hook and delivery, so that posting it again starts nothing twice. The row comes after the
event: whoever is killed between the two has lost nothing, and a delivery that is sent again finds its event.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Mapping

import sqlalchemy as sa
from starlette.responses import JSONResponse, Response

from becket.app import desk
from becket.kernel.contract.caller import Caller, Via
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.tables import Transaction
from becket.parts.front.accounts import note
from becket.parts.front.api.asks import Wrong, read_object
from becket.parts.front.asked import Asked
from becket.parts.front.safety import Refused
from becket.parts.front.section import HookConfig
from becket.parts.front.server import problem
from becket.parts.front.tables import DELIVERIES

FRESH = 300.0
KEPT = 30 * 86_400.0

_DELIVERY = re.compile(r"[A-Za-z0-9_-]{1,100}")
_TIMESTAMP = re.compile(r"[0-9]{1,11}")
_NOBODYS = secrets.token_hex(32)
"""What a hook that is not there is checked with, so that it looks like one that is."""


def signature(secret: str, timestamp: str, delivery: str, body: bytes) -> str:
    """The delivery is signed too: else whoever saw one request could send it again under another name."""
    signed = f"{timestamp}.{delivery}.".encode() + body
    return f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def event_id_of(hook: str, delivery: str) -> str:
    return f"hook_{hashlib.sha256(f'{hook} {delivery}'.encode()).hexdigest()[:32]}"


async def receive(asked: Asked) -> Response:
    name = asked.params["hook"]
    try:
        hook, delivery = _checked(asked.front.config.hooks.get(name), asked.headers, asked.body)
        asked.front.ingress.heard.check(name)
        if asked.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refused(415, "an event is sent as application/json")
        event_id, again = await _posted(asked, name, hook, delivery)
    except (Refused, Wrong, BecketError) as error:
        await _refused(asked, name, str(error))
        if isinstance(error, Wrong):
            return problem(422, asked.app.redactor.text(str(error)), errors=error.errors)
        raise
    return JSONResponse({"event_id": event_id, "again": again})


def _checked(hook: HookConfig | None, headers: Mapping[str, str], body: bytes) -> tuple[HookConfig, str]:
    """Whether it is one of ours, signed by who may and just now. Raises Refused, alike for all that are not."""
    told = headers.get("x-becket-timestamp", "")
    delivery = headers.get("x-becket-delivery", "")
    shown = headers.get("x-becket-signature", "")
    right = signature(hook.secret if hook else _NOBODYS, told, delivery, body)
    same = hmac.compare_digest(right.encode(), shown.encode("utf-8", "replace"))
    shaped = _TIMESTAMP.fullmatch(told) is not None and _DELIVERY.fullmatch(delivery) is not None
    if hook is None or not same or not shaped:
        raise Refused(401, "no such hook, or not signed as it wants; see docs/howto/api.md")
    if abs(time.time() - int(told)) > FRESH:
        raise Refused(
            401, f"it was signed more than {FRESH:.0f} s before or after now; sign each delivery as it is sent"
        )
    return hook, delivery


async def _posted(asked: Asked, name: str, hook: HookConfig, delivery: str) -> tuple[str, bool]:
    known = await asked.tables.read(_known, name, delivery)
    if known is not None:
        return known, True
    # No person could be told to leave a secret out: it is taken out.
    data = asked.app.redactor.value(read_object(asked.body))
    caller = Caller(name=f"hook:{name}", role="member", via=Via.api)
    event_id, _ = await desk.post_event(asked.app, caller, hook.event, data, event_id_of(name, delivery))
    await asked.tables.write(_keep, name, delivery, event_id)
    await asked.front.feed.ring()
    return event_id, False


def _known(tx: Transaction, hook: str, delivery: str) -> str | None:
    mine = (DELIVERIES.c.hook == hook) & (DELIVERIES.c.delivery == delivery)
    return tx.conn.execute(sa.select(DELIVERIES.c.event_id).where(mine)).scalar()


def _keep(tx: Transaction, hook: str, delivery: str, event_id: str) -> None:
    """One of two that came at once was first. Of this hook, what is long past is forgotten."""
    if _known(tx, hook, delivery) is not None:
        return
    old = (DELIVERIES.c.hook == hook) & (DELIVERIES.c.at < tx.now - KEPT)
    tx.conn.execute(sa.delete(DELIVERIES).where(old))
    row = {"hook": hook, "delivery": delivery, "at": tx.now, "event_id": event_id}
    tx.conn.execute(sa.insert(DELIVERIES), row)


async def _refused(asked: Asked, name: str, why: str) -> None:
    try:
        asked.front.ingress.noted.check("")
    except Refused:
        return
    hook, told = name[:80], asked.app.redactor.text(why)
    await asked.tables.write(note, "", "", "hook", asked.address, "/hooks/{hook}", hook, told)
