"""The ways out of a child's network, without a child: which places mean the same, what the proxy says to whom."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.process import ChildSpec
from becket.kernel.process.egress import Egress
from becket.kernel.process.keeper import seccomp
from becket.kernel.process.reach import HostPort, places_of, read_place
from becket.kernel.process.resolve import Address, AllowedConnector, NotPublic, PublicOnly, is_public

LISTED = (HostPort("model.test", 443), HostPort("model.test", 80))


def spec(*reach: str) -> ChildSpec:
    return ChildSpec(argv=("true",), tree=Path("/"), output=Path("/log"), reach=reach)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("model.test:443", HostPort("model.test", 443)),
        ("MODEL.Test:443", HostPort("model.test", 443)),
        ("xn--bcher-kva.example:1", HostPort("xn--bcher-kva.example", 1)),
        ("localhost:65535", HostPort("localhost", 65535)),
        ("10.0.0.5:8000", HostPort("10.0.0.5", 8000)),
        ("[::1]:80", HostPort("::1", 80)),
        ("[2001:DB8::0:1]:80", HostPort("2001:db8::1", 80)),
    ],
)
def test_places(text: str, place: HostPort) -> None:
    assert read_place(text) == place
    assert read_place(str(place)) == place


@pytest.mark.parametrize(
    "text",
    [
        "", ":", "model.test", "model.test:", ":443", "model.test:0", "model.test:65536", "model.test:0443",
        "model.test:+443", "model.test:٤٤٣", "model.test:4_43", " model.test:443", "model.test :443",
        "model.test.:443", ".model.test:443", "model..test:443", "*.test:443", "-model.test:443", "model_x.test:443",
        "mödel.test:443", "ｍodel.test:443", "user@model.test:443", "model.test/x:443", "a" * 64 + ".test:443",
        "a." * 130 + "test:443", "127.1:80", "2130706433:80", "0x7f.0.0.1:80", "0x7f000001:80", "127.0.0.01:80",
        "127.0.0.1.:80", "1.2.3.4.5:80", "model.0x:80", "::1:80", "[::1%lo]:80", "[::ffff:127.0.0.1]:80",
        "[1.2.3.4]:80", "[::1]x:80", "model.test\0:443", "model.test:443\n",
    ],
)  # fmt: skip
def test_unusual_spellings_name_no_place(text: str) -> None:
    """Only one spelling of a host is understood, so none can be mistaken for a listed one."""
    assert read_place(text) is None
    with pytest.raises(UsageError, match="does not name one place"):
        places_of(spec(text))


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80"])
def test_any_address_cannot_be_listed(text: str) -> None:
    """It would mean this machine, without saying so."""
    with pytest.raises(UsageError, match="does not name one place"):
        places_of(spec(text))


def test_places_are_listed_once_and_in_number() -> None:
    assert places_of(spec("a.test:1", "A.test:1", "a.test:2")) == (HostPort("a.test", 1), HostPort("a.test", 2))
    with pytest.raises(UsageError, match="at most 64"):
        places_of(spec(*(f"h{number}.test:1" for number in range(65))))


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:4700::1111", True),
        ("64:ff9b::5db8:d822", True),
        ("127.0.0.1", False),
        ("127.255.0.9", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fe80::1%lo", False),
        ("fd00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::1", False),
    ],
)
def test_public_addresses(address: str, public: bool) -> None:
    """Nothing of this machine or its own network counts as public, however it is wrapped."""
    assert is_public(address) is public


def test_names_lead_to_public_addresses_only() -> None:
    """Private answers are left out; a name with no other is refused, one without any is only unknown."""
    answers: dict[str, list[Address]] = {
        "mixed": [("10.0.0.1", 443), ("93.184.216.34", 443)],
        "private": [("10.0.0.1", 443), ("::1", 443)],
        "nothing": [],
    }

    async def ask(host: str, port: int) -> Sequence[Address]:
        return answers[host]

    resolve = PublicOnly(ask)
    assert asyncio.run(_soon(resolve("mixed", 443))) == [("93.184.216.34", 443)]
    assert asyncio.run(_soon(resolve("nothing", 443))) == []
    with pytest.raises(NotPublic):
        asyncio.run(_soon(resolve("private", 443)))


def test_a_private_address_is_dialled_by_its_name_where_both_are_listed() -> None:
    """A gateway of one's own has a certificate for its name, and an address in one's own network."""

    async def ask(host: str, port: int) -> Sequence[Address]:
        return [("10.0.0.5", port), ("10.0.0.6", port)]

    resolve = PublicOnly(ask, listed=[("10.0.0.5", 443)])
    assert asyncio.run(_soon(resolve("gateway.internal", 443))) == [("10.0.0.5", 443)]
    with pytest.raises(NotPublic):
        asyncio.run(_soon(resolve("gateway.internal", 8443)))


async def _soon(answer: Awaitable[Sequence[Address]]) -> Sequence[Address]:
    return await answer


def test_name_is_asked_once_and_its_answer_dialled() -> None:
    """Many connections at once ask one time: the address that was checked is the one that is dialled."""
    asked: list[str] = []

    async def scenario() -> None:
        server = await asyncio.start_server(_say_hello, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def resolve(host: str, _: int) -> Sequence[Address]:
            asked.append(host)
            await asyncio.sleep(0.01)
            return [("127.0.0.1", port)]

        dialler = AllowedConnector(resolve)
        for reader, writer in await asyncio.gather(*(dialler.dial(HostPort("model.test", 443)) for _ in range(10))):
            assert await reader.read() == b"hello"
            writer.close()
            await writer.wait_closed()
        server.close()

    asyncio.run(scenario())
    assert asked == ["model.test"]


async def _say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    writer.close()
    await writer.wait_closed()


async def _talk(ways: Egress, *said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", ways.ports[0])
    for piece in said:
        writer.write(piece)
        await asyncio.sleep(0)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def _with_ways(scenario: Callable[[Egress, str], Awaitable[None]]) -> Egress:
    """Plays against a proxy that asks for its token and leads every listed name to a server that says hello."""

    async def play() -> Egress:
        server = await asyncio.start_server(_say_hello, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]

        async def resolve(host: str, _: int) -> Sequence[Address]:
            return [("127.0.0.1", port)]

        ways = Egress(LISTED, resolve, own_network=False)
        login = ways.env["HTTPS_PROXY"].removeprefix("http://").rpartition("@")[0]
        proof = f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n"
        try:
            await scenario(ways, proof)
        finally:
            await ways.close()
            server.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return ways

    return asyncio.run(play())


def test_token_is_asked_for() -> None:
    """Without the token, or with another one, the proxy leads nowhere, and says nothing of what is listed."""

    async def scenario(ways: Egress, proof: str) -> None:
        wrong = f"Proxy-Authorization: Basic {base64.b64encode(b'becket:wrong').decode()}\r\n"
        for tried in ("", wrong, proof.replace("Basic", "Bearer")):
            for place in ("model.test:443", "other.test:443"):
                answer = await _talk(ways, f"CONNECT {place} HTTP/1.1\r\n{tried}\r\n".encode())
                assert answer.startswith(b"HTTP/1.1 407 "), answer
                assert b"Proxy-Authenticate: Basic" in answer
        right = await _talk(ways, f"CONNECT model.test:443 HTTP/1.1\r\n{proof}\r\n".encode())
        assert right == b"HTTP/1.1 200 Connection established\r\n\r\nhello"

    assert _with_ways(scenario).denied == ()


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("CONNECT model.test:443 HTTP/1.1", 200),
        ("CONNECT MODEL.test:443 HTTP/1.0", 200),
        ("CONNECT model.test:444 HTTP/1.1", 403),
        ("CONNECT model.test HTTP/1.1", 403),
        ("CONNECT model.test.:443 HTTP/1.1", 403),
        ("CONNECT sub.model.test:443 HTTP/1.1", 403),
        ("CONNECT model.test@evil.test:443 HTTP/1.1", 403),
        ("CONNECT 127.0.0.1:443 HTTP/1.1", 403),
        ("CONNECT [::1]:443 HTTP/1.1", 403),
        ("GET http://model.test/x HTTP/1.1", 0),
        ("GET http://model.test:80?x HTTP/1.1", 0),
        ("GET http://model.test:443/ HTTP/1.1", 0),
        ("GET http://evil.test/ HTTP/1.1", 403),
        ("GET http://model.test:81/ HTTP/1.1", 403),
        ("GET http://evil.test#@model.test/ HTTP/1.1", 400),
        ("GET http://model.test@evil.test/ HTTP/1.1", 400),
        ("GET http://evil.test\\.model.test/ HTTP/1.1", 400),
        ("GET https://model.test/ HTTP/1.1", 400),
        ("GET / HTTP/1.1", 400),
        ("GET http://model.test/ HTTP/2", 400),
        ("nonsense", 400),
        ("CONNECT model.test:443 HTTP/1.1\r\nfolded: x\r\n y", 400),
        ("CONNECT model.test:443 HTTP/1.1\r\nbroken", 400),
        ("CONNECT model.test:443 HTTP/1.1\r\nlong: " + "x" * 200_000, 431),
    ],
)
def test_requests(request_line: str, status: int) -> None:
    """Each request is led on, denied or called unclear; a plain one that is led on has the server's own answer."""

    async def scenario(ways: Egress, proof: str) -> None:
        answer = await _talk(ways, f"{request_line}\r\n{proof}\r\n".encode())
        expected = f"HTTP/1.1 {status} ".encode() if status else b"hello"
        assert answer.startswith(expected), answer

    ways = _with_ways(scenario)
    assert len(ways.denied) == (status == 403)


def test_what_is_denied_is_printable() -> None:
    """The child's words in a record are cut and hold no control characters (L24)."""

    async def scenario(ways: Egress, proof: str) -> None:
        for place in ("\x1b[31mevil:443", "ä.test:443", "x" * 3000):
            await _talk(ways, f"CONNECT {place} HTTP/1.1\r\n{proof}\r\n".encode("latin-1"))

    assert _with_ways(scenario).denied == ("?[31mevil:443", "?.test:443", "x" * 260)


def test_close_ends_what_is_open() -> None:
    """A connection that says nothing, half a request and an open tunnel end with the ways; no task is left."""

    async def scenario(ways: Egress, proof: str) -> None:
        connections = [await asyncio.open_connection("127.0.0.1", ways.ports[0]) for _ in range(3)]
        connections[1][1].write(b"CONNECT mod")
        connections[2][1].write(f"CONNECT model.test:443 HTTP/1.1\r\n{proof}\r\n".encode())
        await connections[2][0].readuntil(b"hello")
        await ways.close()
        for reader, writer in connections:
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
            writer.close()

    _with_ways(scenario)


def test_filter_of_system_calls_has_its_ways_in_reach() -> None:
    """Every jump of the filter lands on a step, for each machine it is written for."""
    for numbers in seccomp._MACHINES.values():
        program = seccomp._assemble(seccomp._steps(*numbers))
        for here, step in enumerate(program):
            assert here + 1 + max(step.yes, step.no) <= len(program) - (step.code != seccomp._RETURN)
