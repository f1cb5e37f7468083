"""Escapes that a contained child tries. Standard library only: the file is fed to the child's Python on its stdin.

A reading attempt proves itself by printing a secret; all others are judged by what became of the decoy.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Targets = dict[str, Any]


def _write_outside(at: Targets) -> None:
    Path(at["outside"], "planted").write_text("x")


def _truncate_outside(at: Targets) -> None:
    os.truncate(Path(at["outside"], "precious"), 0)


def _delete_outside(at: Targets) -> None:
    Path(at["outside"], "deletable").unlink()


def _move_out(at: Targets) -> None:
    Path("carried").write_text("x")
    Path("carried").rename(Path(at["outside"], "carried"))


def _link_in(at: Targets) -> None:
    os.link(Path(at["outside"], "linkable"), "linked")
    Path("linked").write_text("changed")


def _symlink_write(at: Targets) -> None:
    Path("way_out").symlink_to(at["outside"])
    Path("way_out", "through_link").write_text("x")


def _symlink_read(at: Targets) -> None:
    Path("way_in").symlink_to(at["state"])
    print(Path("way_in", "journal").read_text())


def _chmod_outside(at: Targets) -> None:
    Path(at["outside"], "modest").chmod(0o777)


def _home_link_write(at: Targets) -> None:
    Path(os.environ["HOME"], "way_out").symlink_to(at["outside"])
    Path(os.environ["HOME"], "way_out", "through_home").write_text("x")


def _home_link_read(at: Targets) -> None:
    Path(os.environ["HOME"], "way_in").symlink_to(at["state"])
    print(Path(os.environ["HOME"], "way_in", "key").read_text())


def _read_state(at: Targets) -> None:
    print(Path(at["state"], "token").read_text())


def _read_home(at: Targets) -> None:
    print(Path(at["home"], ".netrc").read_text())


def _move_ref(at: Targets) -> None:
    subprocess.run(["git", "-C", at["main"], "update-ref", "refs/heads/main", at["other_commit"]], check=True)


def _plant_fsmonitor(at: Targets) -> None:
    subprocess.run(["git", "-C", at["main"], "config", "core.fsmonitor", "touch /planted"], check=True)


def _see_process(at: Targets) -> None:
    print(Path(f"/proc/{at['pid']}/cmdline").read_text())


def _read_environment(at: Targets) -> None:
    print(Path(f"/proc/{at['pid']}/environ").read_text())


def _signal_process(at: Targets) -> None:
    os.kill(at["pid"], signal.SIGUSR1)


def _leave_setsid(at: Targets) -> None:
    subprocess.Popen(["sleep", at["nap"]], start_new_session=True)


def _connect(host: str, port: int) -> None:
    with socket.create_connection((host, port), timeout=2) as client:
        client.sendall(b"x")


def _send(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", (host, port))


def _connect_tcp(at: Targets) -> None:
    _connect("127.0.0.1", at["tcp"])


def _tcp_other_address(at: Targets) -> None:
    _connect("127.0.0.2", at["tcp_2"])


def _connect_mptcp(at: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as client:
        client.settimeout(2)
        client.connect(("127.0.0.1", at["mptcp"]))


def _fast_open(at: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(2)
        client.sendto(b"x", socket.MSG_FASTOPEN, ("127.0.0.1", at["fast"]))


def _send_udp(at: Targets) -> None:
    _send("127.0.0.1", at["udp"])


def _udp_other_address(at: Targets) -> None:
    _send("127.0.0.2", at["udp_2"])


def _abstract_socket(at: Targets) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", "\0" + at["abstract"])


def _ask(proxy: str, place: str) -> None:
    """CONNECT through a proxy, the login of its URL included, and speak where it leads."""
    login, _, where = proxy.removeprefix("http://").rpartition("@")
    host, _, port = where.rpartition(":")
    proof = f"Proxy-Authorization: Basic {base64.b64encode(login.encode()).decode()}\r\n" if login else ""
    with socket.create_connection((host, int(port)), timeout=2) as client:
        client.sendall(f"CONNECT {place} HTTP/1.1\r\n{proof}\r\n".encode())
        answer = client.recv(4096)
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise OSError(answer.decode())
        client.sendall(b"x")


def _listed_address(at: Targets) -> None:
    _connect("127.0.0.1", at["listed"])


def _listed_name(at: Targets) -> None:
    _ask(os.environ["HTTPS_PROXY"], "listed.test:443")


def _listed_port_elsewhere(at: Targets) -> None:
    _connect("127.0.0.2", at["listed"])


def _listed_port_udp(at: Targets) -> None:
    _send("127.0.0.1", at["listed"])


def _unlisted_host(at: Targets) -> None:
    _ask(os.environ["HTTPS_PROXY"], "unlisted.test:443")


def _unlisted_port(at: Targets) -> None:
    _ask(os.environ["HTTPS_PROXY"], "listed.test:444")


def _rebound_name(at: Targets) -> None:
    _ask(os.environ["HTTPS_PROXY"], "rebound.test:443")


def _proxy_of_another(at: Targets) -> None:
    _ask(at["proxy"], "another.test:443")


ATTEMPTS: dict[str, tuple[str, Callable[[Targets], None]]] = {
    "write_outside": ("files", _write_outside),
    "truncate_outside": ("files", _truncate_outside),
    "delete_outside": ("files", _delete_outside),
    "move_out": ("files", _move_out),
    "link_in": ("files", _link_in),
    "symlink_write": ("files", _symlink_write),
    "symlink_read": ("files", _symlink_read),
    "home_link_write": ("files", _home_link_write),
    "home_link_read": ("files", _home_link_read),
    "chmod_outside": ("files", _chmod_outside),
    "read_state": ("files", _read_state),
    "read_home": ("files", _read_home),
    "move_ref": ("files", _move_ref),
    "plant_fsmonitor": ("files", _plant_fsmonitor),
    "see_process": ("processes", _see_process),
    "read_environment": ("processes", _read_environment),
    "signal_process": ("processes", _signal_process),
    "leave_setsid": ("end", _leave_setsid),
    "connect_tcp": ("network", _connect_tcp),
    "tcp_other_address": ("network", _tcp_other_address),
    "connect_mptcp": ("network", _connect_mptcp),
    "fast_open": ("network", _fast_open),
    "send_udp": ("network", _send_udp),
    "udp_other_address": ("network", _udp_other_address),
    "abstract_socket": ("network", _abstract_socket),
}
WITH_REACH: dict[str, tuple[str, Callable[[Targets], None]]] = {
    "listed_address": ("meant", _listed_address),
    "listed_name": ("meant", _listed_name),
    "listed_port_elsewhere": ("network", _listed_port_elsewhere),
    "listed_port_udp": ("network", _listed_port_udp),
    "unlisted_host": ("proxy", _unlisted_host),
    "unlisted_port": ("proxy", _unlisted_port),
    "rebound_name": ("proxy", _rebound_name),
    "proxy_of_another": ("proxy", _proxy_of_another),
}
"""Tried only by a child that may reach `127.0.0.1:listed`, `listed.test:443` and `rebound.test:443`."""


def attempt_all(at: Targets) -> None:
    for name, (_, attempt) in (ATTEMPTS | (WITH_REACH if at["reach"] else {})).items():
        try:
            attempt(at)
            print(f"{name}: no error")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}")
    print("all attempts made")


if __name__ == "__main__":
    attempt_all(json.loads(sys.argv[1]))
