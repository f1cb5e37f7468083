"""What a person asks of a service: carried to the watchdog, which is started where none runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from becket.app.daemon import end_if_deaf
from becket.app.launch import last_words, launch
from becket.app.liveness import START_WITHIN, watchdog_of
from becket.app.record.services_now import ServiceNow, read_history, read_services
from becket.app.settings import read_config
from becket.app.state import StateFolder, holder
from becket.kernel.contract.base import Json, new_id
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.errors import BecketError, NotFound, UsageError
from becket.parts.services.context import service_log
from becket.parts.services.line import WatchdogCallFailed, WatchdogUnreachable, ask
from becket.parts.services.ports import RequestOutcome, ServiceOperation, ServiceRequest
from becket.parts.services.section import SERVICES

_LOOK_EVERY = 0.1
_LOG_END = 64_000


def services(state: StateFolder) -> tuple[ServiceNow, ...]:
    """Those on record, and those of becket.yaml that were never started."""
    known = {service.name: service for service in read_services(state)}
    supervised = holder(state.watchdog_lock) is not None
    for name, config in read_config(state).section(SERVICES).items():
        known.setdefault(name, ServiceNow(name, "down", False, supervised, False, port=config.port))
    return tuple(known[name] for name in sorted(known))


def find(state: StateFolder, name: str) -> ServiceNow:
    for service in services(state):
        if service.name == name:
            return service
    known = ", ".join(service.name for service in services(state)) or "none"
    raise NotFound(f"there is no service {name!r}; becket.yaml has {known}")


def order(
    state: StateFolder, caller: Caller, name: str, op: ServiceOperation, waiting: Callable[[], None] = lambda: None
) -> RequestOutcome:
    """Ask, and wait for the end. `waiting` is called now and then; Ctrl-C leaves the watchdog at work."""
    return _ordered(state, ServiceRequest(key=new_id("req"), op=op, service=find(state, name).name, by=caller), waiting)


def roll_back(
    state: StateFolder, caller: Caller, name: str, sha: str, waiting: Callable[[], None] = lambda: None
) -> RequestOutcome:
    """Put a commit into service again that was there before, by the same steps as any other: built, tried, watched."""
    known = find(state, name).name
    old = next((one for one in read_history(state, known)[0] if one.sha == sha and one.again), None)
    if old is None:
        raise UsageError(
            f"{sha[:12]} was never kept in service as {known}, or is there now; choose one of its releases"
        )
    request = ServiceRequest(
        key=new_id("req"), op=ServiceOperation.release, service=known, sha=sha, proof=old.proof, by=caller
    )
    return _ordered(state, request, waiting)


def _ordered(state: StateFolder, request: ServiceRequest, waiting: Callable[[], None]) -> RequestOutcome:
    _carried(state, {"request": request.model_dump(mode="json")})
    while True:
        answer = _carried(state, {"outcome": request.key})
        found = ServiceRequest.model_validate(answer["request"])
        if found.outcome is not None:
            return found.outcome
        waiting()
        time.sleep(_LOOK_EVERY)


def _carried(state: StateFolder, message: dict[str, Json]) -> dict[str, Json]:
    try:
        return ask(state.watchdog_socket, message)
    except WatchdogUnreachable:
        pass
    except WatchdogCallFailed:
        if end_if_deaf(state, watchdog_of(state)) is None:
            raise
    ensure_watchdog(state)
    return ask(state.watchdog_socket, message)  # under the same key: what the last one took is not done twice


def ensure_watchdog(state: StateFolder) -> None:
    """One that answers. It stays as long as a service is wanted, with or without the daemon."""
    state.make().services_wanted.touch()
    part, until = watchdog_of(state), time.monotonic() + START_WITHIN
    launch(state, part)
    while not _answers(state):
        gone = holder(part.start) is None and holder(part.lock) is None
        if gone or time.monotonic() > until:
            said = last_words(state, part.verb)
            raise BecketError(f"the watchdog did not start: {said} (more in {state.logs / 'watchdog.log'})")
        time.sleep(_LOOK_EVERY)
        state.services_wanted.touch()


def _answers(state: StateFolder) -> bool:
    try:
        ask(state.watchdog_socket, {"outcome": ""})
    except BecketError:
        return False
    return True


def log_of(state: StateFolder, name: str, kind: str) -> Path:
    return service_log(state, find(state, name).name, kind)


def log_end(state: StateFolder, name: str, lines: int) -> tuple[str, ...]:
    """The last lines of a service's log, as far as they stand in the last bytes of it."""
    try:
        with log_of(state, name, "service").open("rb") as log:
            log.seek(max(log.seek(0, 2) - _LOG_END, 0))
            return tuple(log.read(_LOG_END).decode("utf-8", "replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ()
