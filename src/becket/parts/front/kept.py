"""The front's process, kept by the watchdog as long as the daemon is wanted and the page is enabled."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import asdict, dataclass, field

from becket.app.keeper import Keeper, forget_restarts, read_restarts
from becket.app.launch import end_holder
from becket.app.liveness import KeptProcess
from becket.app.settings import LiveSettings, read_config
from becket.app.state import StateFolder, holder
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.store import Alert, Store
from becket.parts.front.section import WebConfig


def front_of(state: StateFolder) -> KeptProcess:
    return KeptProcess(
        "front", state.folder / "front.lock", state.folder / "front.start", state.folder / "front.restarts"
    )


LOOPBACK = ("127.0.0.1", "::1")
"""Where browsers look for whatever ends in `.localhost`."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where it listens. Port and name are kept in a file, so that the next start has the same ones."""

    host: str
    port: int
    pid: int = 0
    name: str = field(default_factory=lambda: f"becket-{secrets.token_hex(8)}.localhost")

    @property
    def page(self) -> str:
        """For browsers. They do not keep cookies apart by port: at a number, whatever else listens on this machine
        would be handed the session. Nobody is told the name who is not logged in.
        """
        return f"http://{self.name}:{self.port}" if self.host in LOOPBACK else self.url

    @property
    def url(self) -> str:
        """For programs."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"


def read_address(state: StateFolder) -> Address | None:
    try:
        return Address(**json.loads((state.folder / "front.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_address(state: StateFolder, address: Address) -> None:
    new = state.folder / "front.json.new"
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(json.dumps(asdict(address)))
    new.replace(state.folder / "front.json")


def living_address(state: StateFolder) -> Address | None:
    """Where the front that lives now listens; None while there is none, or it is not listening yet."""
    address, pid = read_address(state), holder(front_of(state).lock)
    return address if address is not None and pid is not None and address.pid == pid else None


def greeting(state: StateFolder, within: float) -> tuple[str, ...]:
    """How to come to the page. A start takes it a moment."""
    if not read_config(state).section(WebConfig).enabled:
        return ()
    ends = time.monotonic() + within
    while (address := living_address(state)) is None and time.monotonic() < ends:
        if read_restarts(front_of(state).restarts).given_up:
            break
        time.sleep(0.1)
    if address is None:
        return ("The page is not up yet: `becket open` opens it.",)
    return (f"`becket open` opens the page, logged in. The API is at {address.url}.",)


class KeptFront:
    """Starts it, and starts it again when it is gone or deaf. Nothing else of the watchdog waits for it."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._settings = LiveSettings(state)
        self._keeper = Keeper(state, front_of(state), self._enabled, gives_up=True)
        self._told: bool | None = None  # perhaps by the watchdog before this one

    def _enabled(self) -> bool:
        if not self._state.wanted.exists():
            return False
        try:
            return self._settings.now().config.section(WebConfig).enabled
        except BecketError:
            return False

    def wanted(self) -> bool:
        """It lives beside the daemon and keeps no watchdog alive."""
        return False

    def start(self) -> None:
        forget_restarts(front_of(self._state))
        self._keeper.start()

    def look(self) -> None:
        """One that is not enabled any more ends by itself."""

    def stop(self) -> None:
        self._keeper.stop()
        end_holder(front_of(self._state).start)
        end_holder(front_of(self._state).lock)

    def hangs(self) -> tuple[str, str] | None:
        """A page that hangs takes nothing with it."""
        return None

    async def report(self, own: Store) -> None:
        """Tell of one that was given up."""
        part = front_of(self._state)
        given_up = read_restarts(part.restarts).given_up and holder(part.lock) is None and self._enabled()
        if given_up and not self._told:
            why = read_restarts(part.restarts).why
            await own.raise_alert(GAVE_UP, f"The page does not stay up and is not started again: {why}", {})
        elif not given_up and self._told is not False:
            await own.close_alert(GAVE_UP)
        self._told = given_up

    def tells(self, alert: Alert) -> bool:
        return alert.key == GAVE_UP


GAVE_UP = "front_restarts"
