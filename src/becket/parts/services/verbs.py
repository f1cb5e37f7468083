"""`becket service`: start, stop and look at the services of becket.yaml. The watchdog does the work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli import words as cli_words
from becket.cli.output import columns, emit, say
from becket.cli.plain import clock, safe, short
from becket.cli.shape import AsJson, end
from becket.kernel.contract.errors import UsageError
from becket.parts.services import words

if TYPE_CHECKING:
    from becket.app.record.services_now import ServiceNow
    from becket.app.state import StateFolder

LIST = "list"
_FOLLOW_EVERY = 0.2


class ServiceVerb(StrEnum):
    start = "start"
    stop = "stop"
    restart = "restart"
    status = "status"
    logs = "logs"
    build = "build"


class LogKind(StrEnum):
    service = "service"
    build = "build"
    smoke = "smoke"


def service(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A service of becket.yaml; `list` shows all.")],
    verb: Annotated[ServiceVerb | None, typer.Argument(help="What to do with it.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="logs: go on with what is written.")] = False,
    number: Annotated[
        int, typer.Option("--lines", "-n", min=0, max=100_000, help="logs: so many of the last lines.")
    ] = 50,
    of: Annotated[
        LogKind, typer.Option("--of", help="logs: of the service, or of its last build or smoke.")
    ] = LogKind.service,
    as_json: AsJson = False,
) -> None:
    """Start, stop, watch and build the services of becket.yaml."""
    from becket.app.state import find_state

    state = find_state()
    if name == LIST and verb is None:
        _list(state, as_json)
    elif verb is None:
        raise UsageError(words.SERVICE_WHAT.format(name=safe(name), verbs="|".join(ServiceVerb)))
    elif verb is ServiceVerb.status:
        _status(state, name, as_json)
    elif verb is ServiceVerb.logs:
        _logs(state, name, of, number, follow, as_json)
    else:
        _order(state, name, verb, as_json)


def _list(state: StateFolder, as_json: bool) -> None:
    from becket.parts.services.desk import services

    found = services(state)
    if as_json:
        emit([asdict(one) for one in found])
    elif not found:
        say(words.SERVICE_NONE)
    else:
        columns(
            ("service", "state", "release", "port", "pid", ""),
            [
                (one.name, one.state, short(one.sha), str(one.port or ""), str(one.pid or ""), _remark(one))
                for one in found
            ],
        )


def _status(state: StateFolder, name: str, as_json: bool) -> None:
    from becket.parts.services.desk import find

    found = find(state, name)
    if as_json:
        emit(asdict(found))
        return
    release = f" at {short(found.sha)}" if found.sha else ""
    where = f", port {found.port}" if found.port else ""
    process = f", pid {found.pid}" if found.pid else ""
    say(f"{safe(found.name)}: {found.state}{release}{process}{where}")
    if remark := _remark(found):
        say(f"  {remark}")


def _remark(found: ServiceNow) -> str:
    parts = [safe(found.detail)]
    if found.next_at is not None:
        parts.append(words.SERVICE_NEXT.format(at=clock(found.next_at)))
    if found.unproven:
        parts.append(words.SERVICE_UNPROVEN)
    if found.releasing:
        parts.append(words.SERVICE_RELEASING.format(sha=short(found.releasing)))
    elif found.building:
        parts.append(words.SERVICE_ASKED.format(what=safe(found.building)))
    if found.wanted and not found.supervised:
        parts.append(cli_words.SERVICE_ALONE)
    return "; ".join(part for part in parts if part)


def _order(state: StateFolder, name: str, verb: ServiceVerb, as_json: bool) -> None:
    from becket.app.keyboard import at_keyboard
    from becket.app.settings import read_config
    from becket.parts.services.desk import find, order
    from becket.parts.services.ports import ServiceOperation

    outcome = order(state, at_keyboard(read_config(state)), name, ServiceOperation(verb.value))
    if as_json:
        emit({"service": name, "verb": verb.value, **outcome.model_dump(mode="json"), "now": asdict(find(state, name))})
    else:
        sentence = words.SERVICE_DONE[verb.value] if outcome.good else words.SERVICE_FAILED
        say(sentence.format(name=safe(name), verb=verb.value, sha=short(outcome.sha)))
        if outcome.reason:
            say(f"  {safe(outcome.reason)}")
    end(0 if outcome.good else 1)


def _logs(state: StateFolder, name: str, of: LogKind, number: int, follow: bool, as_json: bool) -> None:
    from becket.parts.services.desk import log_of

    if follow and as_json:
        raise UsageError(words.SERVICE_FOLLOW_JSON)
    path = log_of(state, name, of.value)
    lines, position = _tail(path, number)
    if as_json:
        emit({"service": name, "log": str(path), "lines": lines})
        return
    for line in lines:
        say(safe(line))
    for line in _following(path, position) if follow else ():
        say(safe(line))


def _tail(path: Path, number: int) -> tuple[list[str], int]:
    """The last lines of the log and of the one before it, and where the log ends."""
    older = path.with_name(f"{path.name}.1")
    before = older.read_bytes() if older.exists() else b""
    now = path.read_bytes() if path.exists() else b""
    lines = (before + now).decode("utf-8", "replace").splitlines()
    return lines[max(len(lines) - number, 0) :], len(now)


def _following(path: Path, position: int) -> Iterator[str]:
    while True:
        size = path.stat().st_size if path.exists() else 0
        position = 0 if size < position else position  # it was rotated
        if size > position:
            with path.open("rb") as log:
                log.seek(position)
                text = log.read(size - position)
            whole = text[: text.rfind(b"\n") + 1]
            position += len(whole)
            yield from whole.decode("utf-8", "replace").splitlines()
        time.sleep(_FOLLOW_EVERY)
