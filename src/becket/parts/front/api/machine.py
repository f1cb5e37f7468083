"""The rest: how things stand, loops, brakes, events, spend, services, tokens, the audit."""

from __future__ import annotations

import asyncio

import sqlalchemy as sa

from becket.app import desk
from becket.app.record.agent_spend import SpendGrouping, Spending, spending
from becket.app.record.services_now import ServiceNow
from becket.app.record.shown import Linted, LoopsShown, WholeLoop, lint_findings, linted, loops_shown, whole_loop
from becket.app.record.status import AlertNow, Snapshot
from becket.kernel.contract.base import Record
from becket.kernel.contract.errors import NotFound
from becket.kernel.contract.run import Run
from becket.kernel.contract.store import Control
from becket.kernel.contract.tables import Transaction
from becket.parts.front.accounts import keys, revoke
from becket.parts.front.api.asks import AuditWanted, NewEventWanted, Nothing, OneLoop, Remarked, SpendWanted
from becket.parts.front.asked import Asked
from becket.parts.front.pages.home import snapshot_of
from becket.parts.front.tables import AUDIT
from becket.parts.services import desk as services
from becket.parts.services.ports import RequestOutcome, ServiceOperation

WAITS = 20.0
"""Seconds that an order of a service is waited for."""


SHORTEST_ID = 8


class StartShown(Record):
    created: bool
    dropped: str


class PostedEvent(Record):
    event_id: str
    runs: tuple[Run, ...]
    starts: tuple[StartShown, ...]


class Ordered(Record):
    """`outcome` is null while the watchdog is still at it; `now` says how the service stands."""

    service: str
    verb: ServiceOperation
    outcome: RequestOutcome | None
    now: ServiceNow


class TokenShown(Record):
    id: str
    label: str
    role: str
    user: str
    created_at: float
    expires_at: float
    revoked_at: float | None


class Revoked(Record):
    revoked: str


class AuditLine(Record):
    number: int
    at: float
    who: str
    role: str
    via: str
    address: str
    did: str
    about: str
    outcome: str


async def status(asked: Asked, given: Nothing) -> Snapshot:
    return await snapshot_of(asked)


async def list_alerts(asked: Asked, given: Nothing) -> tuple[AlertNow, ...]:
    return (await snapshot_of(asked)).alerts


async def list_loops(asked: Asked, given: Nothing) -> LoopsShown:
    return loops_shown(asked.app)


async def show_loop(asked: Asked, given: Nothing) -> WholeLoop:
    return whole_loop(asked.app.loops.get(asked.params["loop"]))


async def lint(asked: Asked, given: OneLoop) -> Linted:
    return linted(lint_findings(asked.app, given.loop))


async def list_controls(asked: Asked, given: Nothing) -> tuple[Control, ...]:
    return await asked.app.store.controls()


async def pause(asked: Asked, given: Remarked) -> tuple[Control, ...]:
    """One loop where the path names it, else all of them."""
    return await desk.pause(asked.app, asked.caller(), asked.params.get("loop"), True, given.note)


async def resume(asked: Asked, given: Remarked) -> tuple[Control, ...]:
    return await desk.pause(asked.app, asked.caller(), asked.params.get("loop"), False, given.note)


async def post_event(asked: Asked, given: NewEventWanted) -> PostedEvent:
    event_id, started = await desk.post_event(asked.app, asked.caller(), given.name, given.data, given.event_id)
    return PostedEvent(
        event_id=event_id, runs=tuple(one.run for one in started if one.run is not None),
        starts=tuple(StartShown(created=one.created, dropped=one.dropped) for one in started),
    )  # fmt: skip


async def spend(asked: Asked, given: SpendWanted) -> Spending:
    return await spending(asked.app, given.days, SpendGrouping(given.by))


async def list_services(asked: Asked, given: Nothing) -> tuple[ServiceNow, ...]:
    return await asyncio.to_thread(services.services, asked.app.state)


async def show_service(asked: Asked, given: Nothing) -> ServiceNow:
    return await asyncio.to_thread(services.find, asked.app.state, asked.params["service"])


async def start_service(asked: Asked, given: Nothing) -> Ordered:
    return await _order(asked, ServiceOperation.start)


async def stop_service(asked: Asked, given: Nothing) -> Ordered:
    return await _order(asked, ServiceOperation.stop)


async def restart_service(asked: Asked, given: Nothing) -> Ordered:
    return await _order(asked, ServiceOperation.restart)


class _StillAtIt(Exception):
    """It is on record at the watchdog, and goes on without us."""


async def _order(asked: Asked, op: ServiceOperation) -> Ordered:
    state, name, caller = asked.app.state, asked.params["service"], asked.caller()
    loop = asyncio.get_running_loop()
    until = loop.time() + WAITS

    def waiting() -> None:
        if loop.time() > until:
            raise _StillAtIt

    def ordered() -> RequestOutcome | None:
        try:
            return services.order(state, caller, name, op, waiting)
        except _StillAtIt:
            return None

    outcome = await asyncio.to_thread(ordered)
    return Ordered(service=name, verb=op, outcome=outcome, now=await asyncio.to_thread(services.find, state, name))


async def list_tokens(asked: Asked, given: Nothing) -> tuple[TokenShown, ...]:
    return tuple(
        TokenShown(
            id=one.digest[:12], label=one.label, role=one.role, user=one.user, created_at=one.created_at,
            expires_at=one.expires_at, revoked_at=one.revoked_at,
        )
        for one in await asked.tables.read(keys, "token")
    )  # fmt: skip


async def revoke_token(asked: Asked, given: Nothing) -> Revoked:
    token = asked.params["token"]
    if len(token) < SHORTEST_ID:
        raise NotFound(f"{token!r} is too short to mean one token; give its id as the list has it")
    await asked.tables.write(revoke, token, "token")
    return Revoked(revoked=token)


async def list_audit(asked: Asked, given: AuditWanted) -> tuple[AuditLine, ...]:
    return await asked.tables.read(_audit, given)


def _audit(tx: Transaction, given: AuditWanted) -> tuple[AuditLine, ...]:
    """The newest first."""
    query = sa.select(AUDIT).order_by(AUDIT.c.number.desc()).limit(given.limit)
    if given.before is not None:
        query = query.where(AUDIT.c.number < given.before)
    return tuple(AuditLine(**row) for row in tx.conn.execute(query).mappings())
