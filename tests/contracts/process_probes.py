"""Escapes that a contained child tries. Standard library only: the file is fed to the child's Python on its stdin.

A reading attempt proves itself by printing a secret; all others are judged by what became of the decoy.
"""

from __future__ import annotations

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


def _connect_tcp(at: Targets) -> None:
    with socket.create_connection(("127.0.0.1", at["tcp"]), timeout=2) as client:
        client.sendall(b"x")


def _send_udp(at: Targets) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", at["udp"]))


def _abstract_socket(at: Targets) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", "\0" + at["abstract"])


ATTEMPTS: dict[str, tuple[str, Callable[[Targets], None]]] = {
    "write_outside": ("files", _write_outside),
    "truncate_outside": ("files", _truncate_outside),
    "delete_outside": ("files", _delete_outside),
    "move_out": ("files", _move_out),
    "link_in": ("files", _link_in),
    "symlink_write": ("files", _symlink_write),
    "symlink_read": ("files", _symlink_read),
    "read_state": ("files", _read_state),
    "read_home": ("files", _read_home),
    "move_ref": ("files", _move_ref),
    "plant_fsmonitor": ("files", _plant_fsmonitor),
    "see_process": ("processes", _see_process),
    "read_environment": ("processes", _read_environment),
    "signal_process": ("processes", _signal_process),
    "connect_tcp": ("network", _connect_tcp),
    "send_udp": ("network", _send_udp),
    "abstract_socket": ("network", _abstract_socket),
}


def attempt_all(at: Targets) -> None:
    for name, (_, attempt) in ATTEMPTS.items():
        try:
            attempt(at)
            print(f"{name}: no error")
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name}: {error}")
    print("all attempts made")


if __name__ == "__main__":
    attempt_all(json.loads(sys.argv[1]))
