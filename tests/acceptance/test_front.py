"""The page's process: kept beside the daemon, replaced when it dies or hangs, and no burden to anybody else."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cli_stage import Stage, wait_for

from becket.app.state import StateFolder, holder
from becket.parts.front.kept import LOOPBACK, Address, front_of, living_address, read_address

ON = "version: 1\nbranch: main\nautonomy: propose\nweb: {enabled: true}\n"
LIMITS = {"BECKET_WATCHDOG_EVERY": "0.2", "BECKET_DEAF_AFTER": "4", "BECKET_START_WITHIN": "90"}
FLOOD = 300


class House(Stage):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "repo", "greet")
        self.write("becket.yaml", ON)
        self.commit("a page")
        self.paths = StateFolder(root=self.root, common=self.root / ".git")

    @property
    def front(self) -> int:
        return holder(front_of(self.paths).lock) or 0

    def up(self) -> Address:
        self.becket("up", "--detach", env=LIMITS)
        return self.served()

    def served(self, other_than: int = 0) -> Address:
        """Where a front answers."""

        def look() -> Address | None:
            found = living_address(self.paths)
            return found if found and found.pid != other_than and answers(found) else None

        found = wait_for(look)
        assert found is not None
        return found

    def processes(self) -> list[int]:
        locks = (self.paths.daemon_lock, self.paths.watchdog_lock, front_of(self.paths).lock)
        return [pid for lock in locks if (pid := holder(lock))]

    def greets(self) -> None:
        """The engine works as ever."""
        assert self.json("run", "greet", "--follow")["run"]["status"] == "completed"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    try:
        yield house
    finally:
        with contextlib.suppress(ProcessLookupError):
            if house.front:
                os.kill(house.front, signal.SIGCONT)
        house.becket("down")


def answers(address: Address) -> bool:
    try:
        with urllib.request.urlopen(f"{address.url}/login", timeout=10) as answer:
            return b"Log in" in answer.read()
    except (OSError, http.client.HTTPException):
        return False


def named(address: Address, path: str = "/") -> urllib.request.Request:
    """As a browser asks, which finds the name by itself."""
    return urllib.request.Request(address.url + path, headers={"Host": urlsplit(address.page).netloc})


def is_here(host: str) -> bool:
    try:
        with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return True
    except OSError:
        return False


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except OSError:
        return True


def test_a_page_comes_up_with_the_daemon_and_ends_with_it(house: House) -> None:
    first = house.up()
    link = house.json("open", "--print")["url"]
    assert link.startswith(f"{first.page}/enter/bkt_")
    assert first.name not in house.becket("up", "--detach").out
    assert stat.S_IMODE((house.paths.folder / "front.json").stat().st_mode) == 0o600
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    enter = urlsplit(link).path
    with pytest.raises(urllib.error.HTTPError, match="403"):  # and it is not spent
        browser.open(first.url + enter, timeout=30)
    assert b"What is asked of me" in browser.open(named(first, enter), timeout=30).read()
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(named(first, enter), timeout=30)
    assert b"What is asked of me" not in browser.open(first.url, timeout=30).read()

    os.kill(first.pid, signal.SIGKILL)
    second = house.served(first.pid)
    assert (second.url, second.page) == (first.url, first.page)
    assert b"What is asked of me" in browser.open(named(second), timeout=30).read()

    known = house.processes()
    assert len(known) == 3
    house.becket("down")
    assert all(gone(pid) for pid in known)
    assert "`becket up --detach`" in house.becket("open", code=2).err


def test_a_page_that_is_not_enabled_any_more_ends_and_nothing_else(house: House) -> None:
    first = house.up()
    daemon = holder(house.paths.daemon_lock)
    house.write("becket.yaml", ON.replace("true", "false"))
    wait_for(lambda: gone(first.pid))
    assert "enabled: true" in house.becket("open", code=2).err
    house.write("becket.yaml", ON)
    assert house.served(first.pid).port == first.port
    assert holder(house.paths.daemon_lock) == daemon


def test_an_address_that_others_reach_needs_users(house: House) -> None:
    house.write("becket.yaml", ON.replace("enabled: true", "enabled: true, host: 0.0.0.0"))
    said = house.becket("front", code=2).err
    assert "nobody has an account: `becket user add NAME` first" in said


@pytest.mark.parametrize("host", [host for host in LOOPBACK if is_here(host)])
def test_a_port_that_somebody_has_is_told(house: House, host: str) -> None:
    """At either address: a browser looks for the page's name at both."""
    with socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET) as taken:
        port = taken.getsockname()[1]
        house.write("becket.yaml", ON.replace("enabled: true", f"enabled: true, port: {port}"))
        said = house.becket("front", code=2).err
        assert f"{host}:{port}: Address already in use" in said
        assert "web.port" in said


@pytest.mark.slow
def test_a_page_whose_port_was_taken_meanwhile_goes_to_another(house: House) -> None:
    first = house.up()
    house.becket("down")
    with socket.create_server((first.host, first.port)):
        house.becket("up", "--detach", env=LIMITS)
        wait_for(lambda: living_address(house.paths))
        second = read_address(house.paths)
        assert second is not None
        assert second.port != first.port
        assert second.name != first.name


@pytest.mark.slow
def test_a_page_that_hangs_is_replaced_and_nobody_waits_for_it(house: House) -> None:
    first = house.up()
    daemon = holder(house.paths.daemon_lock)
    os.kill(first.pid, signal.SIGSTOP)
    house.greets()
    second = house.served(first.pid)
    assert gone(first.pid)
    assert second.port == first.port
    assert holder(house.paths.daemon_lock) == daemon


@pytest.mark.slow
def test_a_flood_harms_neither_runs_nor_those_who_come_after_it(house: House) -> None:
    address = house.up()
    daemon = holder(house.paths.daemon_lock)
    held = [socket.create_connection((address.host, address.port)) for _ in range(FLOOD)]
    for number, one in enumerate(held):
        if number % 3 == 0:
            one.sendall(b"\x00\xff nonsense\r\n\r\n")
        elif number % 3 == 1:
            one.sendall(b"POST /login HTTP/1.1\r\nHost: %s:%d\r\n" % (address.host.encode(), address.port))
    house.greets()
    assert answers(address)
    for one in held:  # whoever says nothing is not waited for
        one.settimeout(60)
        with contextlib.suppress(ConnectionError):
            while one.recv(4096):
                pass
        one.close()
    assert (house.front, holder(house.paths.daemon_lock)) == (address.pid, daemon)
    words = (house.paths.logs / "front.out").read_bytes() + (house.paths.logs / "front.log").read_bytes()
    assert len(words) < 10_000
