"""The parts under a service: who listens, who belongs to whom, logs that stay small, trials in every sandbox."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import SandboxKind
from becket.kernel.process import ContainedProcesses, available
from becket.parts.services.book import SqliteServiceStore
from becket.parts.services.line import WatchdogUnreachable, ask, listening_socket
from becket.parts.services.ports import (
    Incident,
    Launch,
    RequestOutcome,
    Service,
    ServiceObservation,
    ServiceOperation,
    ServiceRequest,
)
from becket.parts.services.ports import RequestEnding as End
from becket.parts.services.process import ContainedSmokes, ProcessHost, service_environment
from becket.parts.services.process import logs as service_logs
from becket.parts.services.process.shared import copy_shared, link_shared
from becket.parts.services.section import BuildConfig, HealthConfig, ServiceConfig
from becket.testing.ports import unused_port

SLEEPER = "import time; time.sleep(30)"
AWAY = """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(30)
"""
SERVER = """
import os, socket, sys
listener = socket.socket()
listener.bind(("127.0.0.1", int(os.environ["PORT"])))
listener.listen()
while True:
    line, _ = listener.accept()
    line.recv(4096)
    line.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    line.close()
"""


@pytest.fixture
def host() -> Iterator[ProcessHost]:
    host = ProcessHost(answer_within=20.0)
    yield host
    for marker in ("one", "two"):
        asyncio.run(host.end(marker, None, 0.0))


def launch(folder: Path, script: str, marker: str = "one", **env: str) -> Launch:
    file = folder / f"{marker}.py"
    file.write_text(script)
    return Launch(
        command=f"exec {sys.executable} -I -S {file}", tree=folder, env={"PATH": os.environ["PATH"], **env},
        marker=f"{marker}.{folder}", log=folder / "log",
    )  # fmt: skip


async def until(look: object, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not look():  # type: ignore[operator]
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


def test_a_process_that_forked_away_is_found_by_its_marker_and_ended(tmp_path: Path, host: ProcessHost) -> None:
    """L26: neither its parent nor its session leads to it."""
    told = launch(tmp_path, AWAY)
    leader = host.start(told)

    async def story() -> None:
        await until(lambda: not Path(f"/proc/{leader.pid}").exists() or _zombie(leader.pid))
        assert host.alive(told.marker, leader)
        assert not host.alive("another", leader)
        assert await host.end(told.marker, leader, 1.0)
        assert not host.alive(told.marker, leader)

    asyncio.run(story())


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_member_of_the_session_without_the_marker_is_ended_too(tmp_path: Path, host: ProcessHost) -> None:
    """L19, L26: a program that was started with an empty environment."""
    pid_file = tmp_path / "pid"
    told = launch(tmp_path, SLEEPER)
    shell = f"env -i sh -c 'echo $$ > {pid_file}; exec sleep 30' & {told.command}"
    told = told.model_copy(update={"command": shell})
    leader = host.start(told)

    async def story() -> None:
        await until(lambda: pid_file.exists() and pid_file.read_text().strip())
        pid = int(pid_file.read_text())
        assert await host.end(told.marker, leader, 1.0)
        assert not Path(f"/proc/{pid}").exists() or _zombie(pid)

    asyncio.run(story())


def test_a_pid_of_another_start_time_is_nobody_of_ours(tmp_path: Path, host: ProcessHost) -> None:
    """L26: the number alone says nothing."""
    told = launch(tmp_path, SLEEPER)
    leader = host.start(told)
    older = leader.model_copy(update={"started": leader.started - 1})
    assert not host.alive("another", older)
    assert asyncio.run(host.end("another", older, 0.0))
    assert host.alive(told.marker, leader)
    assert asyncio.run(host.end(told.marker, leader, 1.0))


def test_listeners_are_told_apart_by_their_marker(tmp_path: Path, host: ProcessHost) -> None:
    """L29: an answer of 200 by a process without the marker is not health."""
    port = unused_port()
    told = launch(tmp_path, SERVER, PORT=str(port))
    leader = host.start(told)

    async def story() -> None:
        await until(lambda: host.listeners(port))
        assert [one.marker for one in host.listeners(port)] == [told.marker]
        assert (await host.look(told.marker, leader, port, "/")).sight is ServiceObservation.healthy
        seen = await host.look("another", None, port, "/")
        assert (seen.sight, f"pid {leader.pid}" in seen.detail) == (ServiceObservation.stranger, True)
        await host.end(told.marker, leader, 1.0)
        assert (await host.look(told.marker, leader, port, "/")).sight is ServiceObservation.gone
        assert host.listeners(port) == ()

    asyncio.run(story())


def test_a_log_is_cut_while_it_is_written_and_only_a_few_old_ones_stay(tmp_path: Path) -> None:
    log = tmp_path / "log"
    writer = subprocess.Popen(
        ["sh", "-c", "while read line; do echo $line; done"], stdin=subprocess.PIPE, stdout=service_logs.opened(log),
        text=True, bufsize=1,
    )  # fmt: skip
    assert writer.stdin is not None
    for number in range(6):
        writer.stdin.write(f"{number} {'x' * 100}\n")
        while log.stat().st_size < 100:
            time.sleep(0.01)
        assert service_logs.trim(log, cap=50, keep=3)
        assert log.stat().st_size == 0
    writer.stdin.close()
    writer.wait()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1", "log.2", "log.3"]
    assert (tmp_path / "log.1").read_text().startswith("5 ")
    assert not service_logs.trim(log, cap=50)


def test_of_a_burst_the_beginning_and_the_end_stay_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n" + "x" * 5_000 + "\nlast\n")
    assert service_logs.trim(log, cap=100)
    kept = (tmp_path / "log.1").read_text()
    assert kept.startswith("first\n")
    assert kept.endswith("\nlast\n")
    assert "[becket: 4812 bytes that stood here are not kept]" in kept
    assert len(kept) < 300


def test_the_environment_of_a_service_holds_its_file_and_no_secret_of_ours(tmp_path: Path) -> None:
    """L12, L25. The port is Becket's word, whatever the file says."""
    (tmp_path / ".env").write_text("# a remark\nexport A='1 2'\nB=\"x\"\nC=a=b\n\nPORT=1\n")
    config = ServiceConfig(start="x", port=99, env_file=".env")
    env = service_environment(config, tmp_path, {"PATH": "/bin", "TOKEN": "secret", "GIT_DIR": "/x", "LC_ALL": "C"})
    assert env == {"PATH": "/bin", "LC_ALL": "C", "A": "1 2", "B": "x", "C": "a=b", "PORT": "99"}
    (tmp_path / ".env").write_text("A=1\nnot a pair\n")
    with pytest.raises(UsageError, match=r"\.env:2"):
        service_environment(config, tmp_path, {})


@pytest.mark.parametrize("path", ["../out", "/etc", ".git/config", "", "missing", "link/x"])
def test_what_is_shared_lies_inside_the_work_tree(tmp_path: Path, path: str) -> None:
    root, tree, outside = tmp_path / "root", tmp_path / "tree", tmp_path / "outside"
    for folder in (root, tree, outside, root / "link"):
        folder.mkdir()
    (root / "link" / "x").write_text("")
    (tree / "link").symlink_to(outside)
    for share in (copy_shared, link_shared):
        with pytest.raises(UsageError):
            share(root, tree, [path])
    assert list(outside.iterdir()) == []


def test_a_trial_gets_copies_and_the_release_links(tmp_path: Path) -> None:
    root, tree = tmp_path / "root", tmp_path / "tree"
    (root / "data").mkdir(parents=True)
    (root / "data" / "kept").write_text("mine")
    (tree / "data").mkdir(parents=True)
    copy_shared(root, tree, ["data"])
    (tree / "data" / "kept").write_text("spoilt by a trial")
    assert (root / "data" / "kept").read_text() == "mine"
    for _ in range(2):
        link_shared(root, tree, ["data"])
    assert (tree / "data" / "kept").read_text() == "mine"
    (tree / "data" / "new").write_text("")
    assert (root / "data" / "new").exists()


KINDS = [pytest.param("none"), *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("landlock", "bwrap"))]


@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_answers_inside_the_sandbox(tmp_path: Path, kind: str) -> None:
    assert any(offer.kind == kind and offer.holds for offer in available()), f"this machine has no {kind}"
    tree, log = tmp_path / "tree", tmp_path / "log"
    tree.mkdir()
    (tree / "server.py").write_text(SERVER)
    smokes = ContainedSmokes(ContainedProcesses(SandboxKind(kind)), tmp_path, hidden=(Path.home(),), answer_within=30.0)
    good = ServiceConfig(
        start=f"exec {sys.executable} -I -S server.py", build=BuildConfig(run="echo built > built"), port=1,
        health=HealthConfig(url="/"),
    )  # fmt: skip

    async def story() -> None:
        assert (await smokes.build(good, tree, log)).ok
        assert (tree / "built").exists()
        tried = await smokes.smoke(good, tree, log)
        assert tried.ok, tried.reason
        died = await smokes.smoke(good.model_copy(update={"start": "exit 9"}), tree, log)
        assert (died.ok, "exit code 9" in died.reason) == (False, True)
        failing = BuildConfig(run="echo no; exit 4")
        broken = await smokes.build(good.model_copy(update={"build": failing}), tree, log)
        assert (broken.ok, "exit code 4" in broken.reason) == (False, True)
        assert (await smokes.smoke(good.model_copy(update={"port": None}), tree, log)).ok

    asyncio.run(story())


def test_a_build_is_given_variables_like_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else of Becket's own environment."""
    (tmp_path / "tree").mkdir()
    monkeypatch.setenv("REGISTRY", "of-the-house")
    monkeypatch.setenv("OTHER", "not given")
    build = {"run": 'echo "$REGISTRY $MODE ${OTHER-}" > said', "env": ["REGISTRY"], "set": {"MODE": "small"}}
    config = ServiceConfig.model_validate({"start": "true", "build": build})
    smokes = ContainedSmokes(ContainedProcesses(SandboxKind.none), tmp_path, hidden=(Path.home(),))
    assert asyncio.run(smokes.build(config, tmp_path / "tree", tmp_path / "log")).ok
    assert (tmp_path / "tree" / "said").read_text().split() == ["of-the-house", "small"]
    assert ServiceConfig.model_validate({"start": "true", "build": "make"}).build == BuildConfig(run="make")


def test_the_book_keeps_what_it_was_told_over_a_reopening(tmp_path: Path) -> None:
    book = SqliteServiceStore(tmp_path / "services.db")
    asked = ServiceRequest(key="k", op=ServiceOperation.start, service="main")
    assert book.accept(asked) == asked
    assert book.accept(asked.model_copy(update={"at": 9.0})) == asked, "the first one counts"
    with pytest.raises(UsageError):
        book.accept(asked.model_copy(update={"op": ServiceOperation.stop}))
    book.put(Service(name="main", wanted=True), Incident(key="a", service="main", text="t", at=1.0))
    book.close()
    again = SqliteServiceStore(tmp_path / "services.db")
    assert again.service("main").wanted
    ((number, incident),) = again.untold()
    again.told(number)
    assert (incident.key, again.untold()) == ("a", [])
    again.put(asked.model_copy(update={"outcome": RequestOutcome(ending=End.done)}))
    assert again.open_requests() == ()
    again.close()


def test_the_socket_is_private_and_a_missing_watchdog_is_told(tmp_path: Path) -> None:
    path = tmp_path / ("deep" * 40) / "watchdog.sock"
    path.parent.mkdir()
    with pytest.raises(WatchdogUnreachable, match="becket up"):
        ask(path, {})
    for _ in range(2):  # the second time it finds a socket that was left behind
        with listening_socket(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(WatchdogUnreachable):
        ask(path, {})
