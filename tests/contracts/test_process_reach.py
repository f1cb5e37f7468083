"""Contract of the process port: a child reaches the places on its list, by proxy or by pipe, and no other."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from process_stage import KINDS, Ground, sleeping, unique_sleep, wait_until
from process_town import ASK, FETCH, echo_after_end, hello, hold, server

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildControl, ChildEnd, Network, SandboxKind
from becket.kernel.process import ContainedProcesses
from becket.kernel.process.resolve import Address, PublicOnly


class Names:
    """Where names lead, in this test: to ports of the loopback."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        return [("127.0.0.1", self.ports[host])]


@pytest.fixture
def names() -> Names:
    return Names()


@pytest.fixture(params=KINDS)
def ground(request: pytest.FixtureRequest, tmp_path: Path, names: Names) -> Ground:
    return Ground(ContainedProcesses(request.param, grace=0.3, resolve=names), tmp_path)


def lines(ground: Ground) -> list[str]:
    return ground.said.splitlines()


def test_listed_name_by_plain_http(ground: Ground, names: Names) -> None:
    """A plain request reaches the listed host, is named by its target alone and carries no token there."""
    with server(hello) as names.ports["model.test"]:
        result = ground.python(FETCH, "http://model.test/v1?x=1", reach=("Model.test:80",))
    assert result.ok, ground.said
    assert lines(ground) == ["GET /v1?x=1 HTTP/1.1 | Host: model.test | clean"]
    assert result.denied == ()


def test_listed_name_by_connect(ground: Ground, names: Names) -> None:
    """A tunnel carries bytes both ways, also after one side has said all."""
    script = ASK + (
        "client, status = ask('model.test:443'); client.sendall(b'x' * 3_000_000); client.shutdown(socket.SHUT_WR)\n"
        "print(status, client.recv(100).decode(), client.recv(100))"
    )
    with server(echo_after_end) as names.ports["model.test"]:
        assert ground.python(script, reach=("model.test:443",)).ok, ground.said
    assert lines(ground) == ["200 got 3000000 b''"]


def test_listed_loopback_address(ground: Ground) -> None:
    """A model on this machine is found inside at the very address and port it has outside, without the proxy."""
    with server(hello) as port:
        result = ground.python(FETCH, f"http://127.0.0.1:{port}/", reach=(f"127.0.0.1:{port}",))
    assert result.ok, ground.said
    assert lines(ground) == [f"GET / HTTP/1.1 | Host: 127.0.0.1:{port} | clean"]


def test_listed_loopback_by_name_and_half_closed(ground: Ground) -> None:
    """`localhost` is a loopback place too; a pipe passes on the end of one direction alone."""
    script = (
        "import socket, sys; client = socket.create_connection(('localhost', int(sys.argv[1])), timeout=20)\n"
        "client.sendall(b'x' * 1_000_000); client.shutdown(socket.SHUT_WR); print(client.recv(100).decode())"
    )
    with server(echo_after_end) as port:
        assert ground.python(script, str(port), reach=(f"localhost:{port}",)).ok, ground.said
    assert lines(ground) == ["got 1000000"]


def test_what_is_not_listed_is_denied_and_noted(ground: Ground, names: Names) -> None:
    """403 with a reason for the child; the place in the result, once, in the order of asking (L24, L25)."""
    wanted = ["evil.test/a", "evil.test/b", "model.test:81/", "model.test./", "127.0.0.1:9/"]
    script = "import os; os.environ.pop('no_proxy'); os.environ.pop('NO_PROXY')\n" + FETCH
    with server(hello) as names.ports["model.test"]:
        urls = [f"http://{place}" for place in wanted]
        result = ground.python(script, *urls, "http://model.test/", reach=("model.test:80",))
    assert [line[:3] for line in lines(ground)] == ["403"] * 5 + ["GET"]
    assert "evil.test:80 is not on the list" in lines(ground)[0]
    assert result.denied == ("evil.test:80", "model.test:81", "model.test.:80", "127.0.0.1:9")


def test_denied_list_is_bounded(ground: Ground) -> None:
    """A child that asks for a thousand hosts does not fill the record."""
    script = ASK + "print({ask(f'h{number}.test:443')[1] for number in range(120)})"
    result = ground.python(script, reach=("model.test:443",))
    assert lines(ground) == ["{'403'}"]
    assert len(result.denied) == 50


def test_listed_name_that_leads_inside_is_denied(ground: Ground, names: Names) -> None:
    """Whoever rules a listed name cannot point it at this machine: rebinding is refused and noted."""
    ground.processes = ContainedProcesses(ground.processes.kind, resolve=PublicOnly(names))
    with server(hello) as names.ports["model.test"]:
        result = ground.python(FETCH, "http://model.test/", reach=("model.test:80",))
    assert lines(ground)[0].startswith("403 Becket: model.test:80 is on the list, but its name leads into")
    assert result.denied == ("model.test:80",)


def test_listed_host_that_does_not_answer(ground: Ground, names: Names) -> None:
    """An unreachable host is 502 with the reason, and is not called denied."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        names.ports["model.test"] = closed.getsockname()[1]
    result = ground.python(FETCH, "http://model.test/", reach=("model.test:80",))
    assert lines(ground)[0].startswith("502 Becket: model.test:80 could not be reached")
    assert result.denied == ()


def test_variables_of_the_proxy_are_ours(ground: Ground) -> None:
    """A caller's proxy does not replace the only way out; without a list there is no proxy."""
    given = {"HTTPS_PROXY": "http://elsewhere.test", "no_proxy": "*"}
    assert ground.shell(
        "env | grep -iE '^[a-z]+_proxy=' | sort", env=given, reach=("model.test:443", "127.0.0.5:4000")
    ).ok
    seen = dict(line.split("=", 1) for line in lines(ground))
    assert set(seen) == {"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "https_proxy", "http_proxy", "no_proxy"}
    assert len({value for name, value in seen.items() if name.lower() != "no_proxy"}) == 1
    assert seen["no_proxy"] == seen["NO_PROXY"] == "127.0.0.1,localhost,::1,127.0.0.5"
    assert ("@" in seen["HTTPS_PROXY"]) is (ground.processes.kind is not SandboxKind.bwrap)
    assert ground.shell("env | grep -iE '^[a-z]+_proxy=' || true").ok
    assert ground.said == ""


@pytest.mark.parametrize("network", [Network.full, Network.loopback])
def test_list_without_its_network_is_refused(ground: Ground, network: Network) -> None:
    with pytest.raises(UsageError, match="network: none"):
        ground.run("true", network=network, reach=("model.test:443",))


def test_no_descriptor_of_a_way_reaches_the_child(ground: Ground) -> None:
    """The sockets that listen inside are Becket's alone."""
    script = "import os; print(len(os.listdir('/proc/self/fd')))"
    assert ground.python(script, reach=("model.test:443", "127.0.0.1:4001")).ok
    assert ground.said.strip() == "4"  # the fourth is the listing itself


def test_reserved_port_inside(ground: Ground) -> None:
    """Nobody may listen below 1024 in a network of the child's own: it does not start, and the reason is said."""
    result = ground.run("true", reach=("127.0.0.1:81",))
    if ground.processes.kind is SandboxKind.bwrap:
        assert result.end is ChildEnd.not_started
        assert "cannot listen at 127.0.0.1 port 81" in result.message
    else:
        assert result.ok


def test_twenty_children_with_a_list_side_by_side(ground: Ground, names: Names) -> None:
    """Each child has ways of its own; none is mixed up, and no descriptor stays (L44)."""

    async def all_of_them() -> list[tuple[str, tuple[str, ...]]]:
        specs = [
            ground.python_spec(
                FETCH, f"http://model.test/{number}", f"http://no{number}.test/",
                reach=("model.test:80",), output=ground.base / f"log{number}",
            )
            for number in range(20)
        ]  # fmt: skip
        results = await asyncio.gather(*(ground.processes.run(spec) for spec in specs))
        return [
            (spec.output.read_text().split()[1], result.denied) for spec, result in zip(specs, results, strict=True)
        ]

    with server(hello) as names.ports["model.test"]:
        ground.run("true", reach=("model.test:80",))
        before = len(list(Path("/proc/self/fd").iterdir()))
        assert asyncio.run(all_of_them()) == [(f"/{number}", (f"no{number}.test:80",)) for number in range(20)]
        wait_until("descriptors are closed", lambda: len(list(Path("/proc/self/fd").iterdir())) <= before)


def test_slow_reader_holds_up_nobody(ground: Ground, names: Names) -> None:
    """A tunnel that is not read stops its own server after a few buffers, while another tunnel goes on."""
    sent = [0]

    def flood(connection: socket.socket) -> None:
        connection.settimeout(0.5)
        while sent[0] < 64_000_000:
            sent[0] += connection.send(b"x" * 65536)

    script = ASK + (
        "stuck, _ = ask('flood.test:443'); stuck.recv(1)\n"
        "for _ in range(20):\n"
        "    client, _ = ask('model.test:443'); client.shutdown(socket.SHUT_WR); print(client.recv(100).decode())\n"
    )
    with server(flood) as names.ports["flood.test"], server(echo_after_end) as names.ports["model.test"]:
        assert ground.python(script, reach=("flood.test:443", "model.test:443")).ok, ground.said
    assert lines(ground) == ["got 0"] * 20
    assert sent[0] < 32_000_000


def test_more_connections_than_slots(ground: Ground, names: Names) -> None:
    """A child with more connections than it is given waits for its own; those that end make room."""
    script = ASK + (
        "import threading\n"
        "def one():\n"
        "    client, status = ask('model.test:443'); client.shutdown(socket.SHUT_WR); print(client.recv(9).decode())\n"
        "many = [threading.Thread(target=one) for _ in range(150)]\n"
        "for thread in many: thread.start()\n"
        "for thread in many: thread.join()\n"
    )
    with server(echo_after_end) as names.ports["model.test"]:
        assert ground.python(script, reach=("model.test:443",)).ok, ground.said
    assert ground.said.count("got 0") == 150


@pytest.mark.parametrize("how", ["end", "cancel"])
def test_child_that_is_ended_while_connected(ground: Ground, names: Names, how: str) -> None:
    """The server sees the end of the connection, and at once nothing of the child is left (L19)."""
    nap = unique_sleep()
    over = threading.Event()

    def held(connection: socket.socket) -> None:
        try:
            hold(connection)
        finally:
            over.set()

    script = ASK + (
        "import subprocess; client, _ = ask('model.test:443'); client.recv(1)\n"
        "nap = ['sleep', sys.argv[1][::-1]]; subprocess.Popen(nap, start_new_session=True); subprocess.run(nap)"
    )

    async def connected_and_ended() -> None:
        control = ChildControl()
        spec = ground.python_spec(script, nap[::-1], reach=("model.test:443",))
        task = asyncio.create_task(ground.processes.run(spec, control=control))
        while len(sleeping(nap)) < 2:
            await asyncio.sleep(0.01)
        if how == "end":
            control.end()
            result = await task
            assert (result.end, result.exit_code, result.left_running) == (ChildEnd.killed, -9, 2)
        else:
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert sleeping(nap) == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with server(held) as names.ports["model.test"]:
        asyncio.run(connected_and_ended())
        assert over.wait(60)


def test_server_that_never_reads_holds_up_no_end(ground: Ground, names: Names) -> None:
    """Bytes that nobody takes are dropped with the child: its end does not wait for them."""
    let_go = threading.Event()

    def deaf(connection: socket.socket) -> None:
        let_go.wait(30)

    script = ASK + (
        "client, _ = ask('model.test:443'); client.setblocking(False)\n"
        "import time; until = time.monotonic() + 0.5\n"
        "while time.monotonic() < until:\n"
        "    try: client.send(b'x' * 65536)\n"
        "    except BlockingIOError: time.sleep(0.01)\n"
    )
    with server(deaf) as names.ports["model.test"]:
        began = time.monotonic()
        result = ground.python(script, reach=("model.test:443",))
        let_go.set()
    assert result.ok, ground.said
    assert time.monotonic() - began < 25, "the server would hold it for 30"


@pytest.mark.slow
def test_tls_through_the_tunnel(ground: Ground, names: Names, tmp_path: Path) -> None:
    """A client inside speaks TLS to the listed name, checked by a certificate authority of this test's own."""
    assert shutil.which("openssl"), "this test makes its certificate authority with the program `openssl`"
    pem = _certificate(tmp_path / "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem / "server.pem", pem / "server.key")

    def secured(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            hello(wrapped)

    script = (
        "import ssl, sys, urllib.request; context = ssl.create_default_context(cafile=sys.argv[1])\n"
        "print(urllib.request.urlopen('https://model.test/v1', timeout=10, context=context).read().decode())"
    )
    with server(secured) as names.ports["model.test"]:
        shown = (pem / "ca.pem",)
        assert ground.python(script, str(shown[0]), readable=shown, reach=("model.test:443",)).ok, ground.said
    assert lines(ground) == ["GET /v1 HTTP/1.1 | Host: model.test | clean"]


def _certificate(folder: Path) -> Path:
    folder.mkdir()
    (folder / "names").write_text("subjectAltName=DNS:model.test\n")

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
    openssl("req", *new, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=model.test")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
        "-extfile", "names", "-out", "server.pem",
    )  # fmt: skip
    return folder


DAEMON = """
import asyncio, sys
from pathlib import Path
from becket.kernel.process import ContainedProcesses
from becket.kernel.contract.process import ChildSpec, SandboxKind

kind, tree, port, script, nap = sys.argv[1:]
argv = (sys.executable, "-I", "-c", script, port, nap)
spec = ChildSpec(argv=argv, tree=Path(tree), output=Path(tree).parent / "daemon.log", reach=(f"127.0.0.1:{port}",))
asyncio.run(ContainedProcesses(SandboxKind(kind), scratch=Path(tree).parent).run(spec))
"""


def test_becket_dies_while_a_child_is_connected(ground: Ground) -> None:
    """A kill -9 of Becket takes the child, what it started and its connection (L19)."""
    nap = unique_sleep()
    over = threading.Event()

    def held(connection: socket.socket) -> None:
        try:
            hold(connection)
        finally:
            over.set()

    script = (
        "import socket, subprocess, sys; client = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "client.recv(1); nap = ['sleep', sys.argv[2][::-1]]; subprocess.Popen(nap, start_new_session=True)\n"
        "subprocess.run(nap)"
    )
    with server(held) as port:
        arguments = (ground.processes.kind.value, str(ground.tree), str(port), script, nap[::-1])
        command = [sys.executable, "-c", DAEMON, *arguments]
        with subprocess.Popen(command) as daemon:
            wait_until("both sleep", lambda: len(sleeping(nap)) == 2)
            daemon.kill()
        wait_until("everything ended by itself", lambda: sleeping(nap) == [])
        assert over.wait(60)
