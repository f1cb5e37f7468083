"""A repository with a tiny real service whose commits misbehave as told, and a supervisor over it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, Self

from becket.app.state import find_state, holder
from becket.kernel.contract.base import new_id
from becket.kernel.contract.errors import BecketError
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.context import ServiceContext
from becket.parts.services.line import ask
from becket.parts.services.ports import Release, ReleaseState, RequestOutcome, Service, ServiceOperation, ServiceRequest
from becket.parts.services.process import ProcessHost
from becket.parts.services.services import Supervisor
from becket.parts.services.supervise import Rules
from becket.testing.ports import unused_port
from becket.testing.world import commit_all, make_repository

SOAK = 0.3
RULES = Rules(ready_within=4.0, first_pause=0.05, growth=2.0, longest_pause=0.2, starts=4, window=60.0, deaf_after=0.3)

SERVER = '''
import json, os, signal, socket, subprocess, sys, time

signal.alarm(60)  # whatever a test forgets ends by itself
shape = json.load(open("shape.json"))
smoking = os.environ.get("BECKET_RELEASE") == "smoke"
if smoking and not shape.get("in_smoke"):
    shape = {}
port = int(os.environ["PORT"])
began = time.monotonic()


def open_port(share=False):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if share:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(64)
    return listener


def serve(listener, status="200 OK"):
    asked = 0
    listener.settimeout(0.01)
    while True:
        if "dies_at" in shape and time.monotonic() - began >= shape["dies_at"]:
            os._exit(shape.get("code", 1))
        if "deaf_at" in shape and time.monotonic() - began >= shape["deaf_at"]:
            time.sleep(60)
        if "ill_at" in shape and time.monotonic() - began >= shape["ill_at"]:
            status = "503 Ill"
        try:
            line, _ = listener.accept()
        except TimeoutError:
            continue
        asked += 1
        if asked >= shape.get("dies_after", 1e9):
            os._exit(1)
        line.settimeout(1)
        try:
            line.recv(4096)
            line.sendall(f"HTTP/1.1 {status}\\r\\nContent-Length: 0\\r\\n\\r\\n".encode())
        except OSError:
            pass
        line.close()


def stray(role):
    """Another program: without the marker, in a session of its own."""
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    child = subprocess.Popen([sys.executable, __file__, role], env=env, start_new_session=True)
    with open(shape["strays"], "a") as pids:
        pids.write(f"{child.pid}\\n")


def fork_away():
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


if len(sys.argv) > 1:
    serve(open_port(share=sys.argv[1] == "share"))
if "env" in shape and os.environ.get(shape["env"]) != "there":
    os._exit(7)
if shape.get("ignores_term"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
time.sleep(shape.get("slow", 0))
if shape.get("forks_away"):
    fork_away()
if shape.get("child_serves"):
    if os.fork():
        os.wait()
        time.sleep(60)
if shape.get("never_listens"):
    time.sleep(60)
if shape.get("noise"):
    print("x" * shape["noise"], flush=True)
if shape.get("stray") == "instead":
    stray("alone")
    time.sleep(60)
listener = open_port(share=shape.get("stray") == "share" or shape.get("shares"))
if shape.get("stray") == "share":
    stray("share")
if shape.get("hangs"):
    time.sleep(60)
serve(listener, shape.get("status", "200 OK"))
'''

CONFIG = """\
version: 1
branch: main
autonomy: release
sandbox: {{use: {sandbox}, without: [files, processes, network]}}
services:
  main:
    start: "exec {python} -I -S server.py"
    port: {port}
    health: {{url: /health, samples: 6, soak: {soak}s}}
{more}"""


class ServiceStage:
    """Make one per test, inside `with`: whatever its services started is ended at the end."""

    def __init__(self, folder: Path, *, more: str = "", sandbox: str = "none", rules: Rules = RULES) -> None:
        self.root = folder / "repo"
        self.strays_file = folder / "strays"
        self.port = unused_port()
        make_repository(self.root)
        self.more, self.sandbox, self.rules = more, sandbox, rules
        self.state = find_state(self.root).make()
        self.book = SqliteServiceStore(self.state.services_database)
        self.host = ProcessHost(answer_within=2.0, log_cap=20_000)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for release in [one for service in self.book.services() for one in self.book.releases(service.name)]:
            asyncio.run(self.host.end(release.marker, release.process, 0.0))
        for pid in self.strays():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.book.close()

    def strays(self) -> list[int]:
        found = [int(line) for line in self.strays_file.read_text().split()] if self.strays_file.exists() else []
        return [pid for pid in found if str(self.root) in _cwd(pid)]

    def commit(self, **shape: Any) -> str:
        told = {"strays": str(self.strays_file), **shape}
        more = self.more + "".join(f"    {line}\n" for line in shape.pop("config", ()))
        config = CONFIG.format(python=sys.executable, port=self.port, soak=SOAK, more=more, sandbox=self.sandbox)
        for name, text in (("becket.yaml", config), ("server.py", SERVER), ("shape.json", json.dumps(told))):
            (self.root / name).write_text(text)
        return commit_all(self.root, "a release")

    @contextlib.asynccontextmanager
    async def supervised(self) -> AsyncIterator[None]:
        book = SqliteServiceStore(self.state.services_database)
        shop = ServiceContext(
            self.state, book, self.host, rules=self.rules, grace=0.5, free_within=2.0, look_every=0.05
        )  # fmt: skip
        stop = asyncio.Event()
        task = asyncio.create_task(Supervisor(shop).serve(stop))
        try:
            await self.until(self.state.watchdog_socket.exists)
            yield
        finally:
            stop.set()
            await task
            book.close()

    async def order(self, op: ServiceOperation, sha: str = "", key: str | None = None, service: str = "main") -> str:
        request = ServiceRequest(
            key=key or new_id("req"), op=op, service=service, sha=sha, proof="proof" if sha else ""
        )
        await asyncio.to_thread(ask, self.state.watchdog_socket, {"request": request.model_dump(mode="json")})
        return request.key

    async def outcome(self, key: str) -> RequestOutcome:
        return await self.until(lambda: (found := self.book.request(key)) and found.outcome)

    async def ask(self, op: ServiceOperation, sha: str = "") -> RequestOutcome:
        return await self.outcome(await self.order(op, sha))

    async def release(self, sha: str) -> RequestOutcome:
        return await self.ask(ServiceOperation.release, sha)

    async def until(self, look: Callable[[], Any], seconds: float = 120.0) -> Any:
        end = time.monotonic() + seconds
        while not (answer := look()):
            assert time.monotonic() < end, f"it did not come true; {self.service}"
            await asyncio.sleep(0.01)
        return answer

    @property
    def service(self) -> Service:
        return self.book.service("main")

    def of(self, sha: str) -> Release:
        return next(release for release in self.book.releases("main") if release.sha == sha)

    def states(self) -> list[ReleaseState]:
        return [release.state for release in reversed(self.book.releases("main"))]

    def alive(self, sha: str) -> bool:
        release = self.of(sha)
        return self.host.alive(release.marker, release.process)

    def serving(self) -> str | None:
        """The commit that every listener of the port belongs to; None if there is none, or they differ."""
        markers = {listener.marker for listener in self.host.listeners(self.port)}
        by_marker = {release.marker: release.sha for release in self.book.releases("main")}
        return by_marker.get(markers.pop() or "") if len(markers) == 1 else None

    def incidents(self) -> list[str]:
        return [incident.text for _, incident in self.book.untold() if not incident.over]


def _cwd(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


@contextlib.contextmanager
def real_watchdog(stage: ServiceStage, crash_at: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A watchdog of its own process, as `becket up` starts it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "BECKET_", "PYTEST_"))}
    if crash_at:
        env["BECKET_CRASH_AT"] = crash_at
    stage.state.services_wanted.touch()
    command = [sys.executable, "-m", "becket.cli", "-C", str(stage.root), "watchdog"]
    process = subprocess.Popen(command, env=env, start_new_session=True)
    try:
        until = time.monotonic() + 120
        while process.poll() is None and holder(stage.state.watchdog_lock) != process.pid:
            assert time.monotonic() < until
            time.sleep(0.02)
        while process.poll() is None and not _answers(stage):
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


def _answers(stage: ServiceStage) -> bool:
    try:
        ask(stage.state.watchdog_socket, {"outcome": "nothing"})
    except BecketError:
        return False
    return True
