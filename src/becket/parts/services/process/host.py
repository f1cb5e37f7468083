"""Starts services, finds them again by their marker, looks at them and ends them for certain."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

from becket.kernel.contract.process import ChildRef
from becket.kernel.process import identity
from becket.kernel.process.keeper import processes
from becket.parts.services.ports import MARKER, HealthLook, Launch, PortListener, ServiceObservation
from becket.parts.services.process import answer, logs, ports

_PAUSE = 0.02
_LOOKS = 3
_KILL_WITHIN = 5.0
_BLINKS = 3
"""A process that ends or forks just now may hold its socket invisibly for a moment: look so often before judging."""

_spawned: list[subprocess.Popen[bytes]] = []


class ProcessHost:
    """Real processes of services on this machine. They outlive the watchdog and are found again by their marker.

    `answer_within` bounds each question of a look.
    """

    def __init__(self, answer_within: float = 2.0, log_cap: int = logs.CAP) -> None:
        self._answer_within = answer_within
        self._log_cap = log_cap
        self._known: dict[int, tuple[str, frozenset[str]]] = {}  # by port: the sockets that were traced to a marker

    def start(self, launch: Launch) -> ChildRef:
        """In a session of its own (L27). Raises OSError if no process can be made."""
        out = logs.opened(launch.log)
        try:
            child = subprocess.Popen(
                ["sh", "-c", launch.command],
                cwd=launch.tree,
                env={**launch.env, MARKER: launch.marker},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        finally:
            os.close(out)
        reference = identity.reference(child.pid)
        _spawned.append(child)
        return reference

    def alive(self, marker: str, leader: ChildRef | None) -> bool:
        """Does anything of this release live, wherever it forked to?

        A look around can miss whoever forks and leaves in its midst, which a program does twice to go away.
        """
        _reap()
        return _leads(leader) or any(any(_belonging(marker, leader)) for _ in range(_LOOKS))

    async def end(self, marker: str, leader: ChildRef | None, grace: float, stop: Launch | None = None) -> bool:
        """The service's own stop command, TERM, then KILL, to its session and to whoever carries the marker.

        Stopped means stopped (L30): True only if nothing of it lives. Whoever was seen once is followed by pid and
        start time, even if the session's leader ends before it.
        """
        if stop is not None and self.alive(marker, leader):
            await self._ask_to_stop(marker, leader, grace, stop)
        known: dict[tuple[int, int], processes.SeenProcess] = {}
        for number, within in ((signal.SIGTERM, grace), (signal.SIGKILL, _KILL_WITHIN)):
            until, asked = time.monotonic() + within, set[tuple[int, int]]()
            while living := self._living(known, marker, leader):
                for process in living:
                    who = (process.pid, process.started)
                    if number == signal.SIGKILL or who not in asked:
                        processes.send(process, number)
                        asked.add(who)
                if time.monotonic() >= until:
                    break
                await asyncio.sleep(_PAUSE)
            else:
                return True
        return not self._living(known, marker, leader)

    async def _ask_to_stop(self, marker: str, leader: ChildRef | None, grace: float, stop: Launch) -> None:
        """The service's own `stop` command. It carries the marker too, so it cannot outlive the service."""
        with contextlib.suppress(OSError):
            command = self.start(stop)
            until = time.monotonic() + grace
            while time.monotonic() < until and (_leads(command) or self.alive(marker, leader)):
                await asyncio.sleep(_PAUSE)

    @staticmethod
    def _living(
        known: dict[tuple[int, int], processes.SeenProcess], marker: str, leader: ChildRef | None
    ) -> list[processes.SeenProcess]:
        _reap()
        known |= {(process.pid, process.started): process for process in _belonging(marker, leader)}
        now = {pid: processes.look(pid) for pid, _ in known}
        return [seen for (pid, began) in known if (seen := now[pid]) and seen.alive and seen.started == began]

    def listeners(self, port: int) -> tuple[PortListener, ...]:
        """Every process that holds a listening socket on the port: two may share one."""
        for _ in range(_BLINKS):
            found = ports.holders(ports.sockets(port))
            if all(listener.pid for listener in found):
                break
            time.sleep(_PAUSE)
        return found

    async def look(self, marker: str, leader: ChildRef | None, port: int | None, url: str) -> HealthLook:
        """Alive, every listener ours, and an answer of 2xx."""
        if port is None:
            alive = self.alive(marker, leader)
            return HealthLook(
                sight=ServiceObservation.healthy if alive else ServiceObservation.gone,
                detail="" if alive else "its processes are gone",
            )
        strangers = self._strangers(port, marker)
        if strangers:
            return HealthLook(sight=ServiceObservation.stranger, detail=f"port {port} is also held by {strangers[0]}")
        if not self.alive(marker, leader):
            return HealthLook(sight=ServiceObservation.gone, detail="its processes are gone")
        wrong = await answer.problem(port, url, self._answer_within)
        if not wrong and (strangers := self._strangers(port, marker)):
            return HealthLook(sight=ServiceObservation.stranger, detail=f"port {port} is also held by {strangers[0]}")
        if not wrong and not ports.sockets(port):
            wrong = f"nobody listens on port {port} any more"
        return HealthLook(sight=ServiceObservation.unready if wrong else ServiceObservation.healthy, detail=wrong)

    def _strangers(self, port: int, marker: str) -> list[PortListener]:
        """A socket of ours stays ours: only sockets that were not there at the last look are traced to processes."""
        found = ports.sockets(port)
        if found and self._known.get(port) == (marker, found):
            return []
        strangers = [listener for listener in self.listeners(port) if listener.marker != marker]
        if not strangers:
            self._known[port] = (marker, found)
        return strangers

    def trim(self, log: Path) -> None:
        """Rotate a log that has grown too large, under the hands of whoever writes it."""
        with contextlib.suppress(OSError):
            logs.trim(log, self._log_cap)


def _leads(leader: ChildRef | None) -> bool:
    if leader is None or leader.boot != identity.boot_id():
        return False
    now = processes.look(leader.pid)
    return now is not None and now.started == leader.started and now.alive


def _belonging(marker: str, leader: ChildRef | None) -> list[processes.SeenProcess]:
    """Everything alive that carries the marker, and the whole session while its leader certainly is ours."""
    session = leader.pid if leader is not None and _leads(leader) else None
    around = [process for process in processes.look_around() if process.alive and process.pid != os.getpid()]
    return [
        process for process in around if process.session == session or ports.marker(process.pid) == marker
    ]  # fmt: skip


def _reap() -> None:
    """Our own children that ended: a zombie would still have its pid."""
    _spawned[:] = [child for child in _spawned if child.poll() is None]
