"""The line to the watchdog: one JSON line there, one JSON line back, over a unix socket that only its owner may use."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import ActionFailed, BecketError
from becket.kernel.dispatch.bell import short_address
from becket.parts.services.ports import RequestOutcome, ServiceRequest

ANSWER_WITHIN = 10.0
LONGEST = 1_000_000
"""Longer socket paths do not fit the kernel's address structure."""

UNKNOWN = "unknown_request"


class WatchdogUnreachable(BecketError):
    """No watchdog answers: nothing was ordered. `becket up --detach` starts one."""


class WatchdogCallFailed(BecketError):
    """The watchdog was reached, but its answer did not come or makes no sense: it may have the request."""


class WatchdogRefused(BecketError):
    """The watchdog said no; the message says why."""


def ask(path: Path, message: Mapping[str, Json], within: float = ANSWER_WITHIN) -> dict[str, Json]:
    """One question, one answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(within)
        try:
            with short_address(path) as address:
                line.connect(address)
        except OSError:
            raise WatchdogUnreachable(
                "no watchdog supervises the services; start one with `becket up --detach`"
            ) from None
        try:
            line.sendall(json.dumps(message).encode() + b"\n")
            with line.makefile("rb") as answers:
                answer = json.loads(answers.readline(LONGEST))
        except (OSError, ValueError) as error:
            raise WatchdogCallFailed(f"the watchdog did not answer: {error}; see `becket status` and its log") from None
    if not isinstance(answer, dict):
        raise WatchdogCallFailed("the watchdog's answer makes no sense; is it of this version?")
    if "error" in answer:
        raise WatchdogRefused(str(answer["error"]))
    return answer


class WatchdogLine:
    """What the engine may read of the watchdog; the port ReleaseDesk."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def outcome(self, key: str) -> RequestOutcome | None:
        try:
            answer = await asyncio.to_thread(ask, self._path, {"outcome": key})
        except (WatchdogUnreachable, WatchdogCallFailed):
            return None  # it is being started again; the request is on disk
        if answer.get("request") is None:
            raise ActionFailed(f"the watchdog does not know the request {key}; was its state removed?", kind=UNKNOWN)
        return ServiceRequest.model_validate(answer["request"]).outcome


def listening_socket(path: Path) -> socket.socket:
    """Bound and private. Whoever calls holds the watchdog's lock: a socket that is there was left by a dead one."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISSOCK(path.lstat().st_mode):
            path.unlink()
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with short_address(path) as address:
            line.bind(address)
        path.chmod(0o600)
        line.listen(16)
    except BaseException:
        line.close()
        raise
    return line
