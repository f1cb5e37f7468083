"""Services: what is released, how it fares, and the ports of its supervision. It lives in the watchdog process."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pydantic import Field

from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.caller import Caller
from becket.kernel.contract.process import ChildRef
from becket.kernel.contract.spec import Name
from becket.parts.services.section import ServiceConfig

RELEASE_EFFECT = "service.release"
"""A keyed effect: target is the service, payload a ReleaseOrder. Done means that the watchdog has it on disk."""

MARKER = "BECKET_RELEASE"
"""In the environment of everything a release starts: by it a process is known as ours, and as which release's."""


class ReleaseOrder(Record):
    """The payload of the release effect. `proof` names what proved the commit (L8)."""

    service: Name
    sha: str = Field(pattern=r"^([0-9a-f]{40}|[0-9a-f]{64})$")
    proof: str = ""


class ReleaseState(StrEnum):
    building = "building"
    built = "built"
    smoked = "smoked"
    starting = "starting"  # the intent: from here on the old release may be down
    soaking = "soaking"
    kept = "kept"
    rolled_back = "rolled_back"
    stopped = "stopped"  # was kept, and a newer one took its place
    failed = "failed"  # it was never put into service
    handed_over = "handed_over"  # it migrates data: left as it stands, a person decides


class Release(Record):
    """One commit on its way into service. `config` is the committed one, so that recovery needs nobody else (L33)."""

    release_id: str
    service: str
    sha: str
    folder: Path
    marker: str
    config: ServiceConfig
    state: ReleaseState = ReleaseState.building
    request: str = ""  # the key of what asked for it
    proof: str = ""
    unproven: bool = False  # a person started it before anything was proven
    never_auto: bool = False  # it failed in service: no loop may release this commit again
    reason: str = ""
    process: ChildRef | None = None
    created_at: float
    changed_at: float

    @property
    def tree(self) -> Path:
        return self.folder / "tree"


class ServiceState(StrEnum):
    down = "down"  # nobody wants it
    starting = "starting"  # it runs and is not proven healthy yet
    releasing = "releasing"  # a new release soaks
    up = "up"
    pausing = "pausing"  # it died; the next start is due later
    given_up = "given_up"  # the storm limit: one try per window until a person looks
    blocked = "blocked"  # somebody else holds its port


class RestartHistory(Record):
    """What the restart policy remembers of a service."""

    starts: tuple[float, ...] = ()  # within the window
    strikes: int = 0  # deaths since it was last proven healthy
    stormed: bool = False
    started_at: float | None = None  # of the process that runs now; None: nothing runs
    ended_at: float = 0.0
    healthy_since: float | None = None
    samples: int = 0
    proven: bool = False
    missed_since: float | None = None
    misses: int = 0


class Service(Record):
    """One supervised service."""

    name: str
    wanted: bool = False
    current: str | None = None  # the release that was kept last
    trial: str | None = None  # the release that is being put into service
    state: ServiceState = ServiceState.down
    detail: str = ""
    next_at: float | None = None
    alarms: tuple[str, ...] = ()  # keys of incidents that last until it is well again
    life: RestartHistory = RestartHistory()
    changed_at: float = 0.0


class Incident(Record):
    """Something a person must hear of. The watchdog makes an alert of it."""

    key: str
    service: str
    text: str
    data: dict[str, Json] = Field(default_factory=dict)
    over: bool = False  # what `key` told of is well again
    at: float


class ServiceOperation(StrEnum):
    release = "release"
    start = "start"
    stop = "stop"
    restart = "restart"
    build = "build"


class RequestEnding(StrEnum):
    """How a request ended."""

    done = "done"
    kept = "kept"
    rolled_back = "rolled_back"
    failed = "failed"
    handed_over = "handed_over"


class RequestOutcome(Record):
    ending: RequestEnding
    sha: str = ""
    reason: str = ""
    unproven: bool = False

    @property
    def good(self) -> bool:
        return self.ending in (RequestEnding.done, RequestEnding.kept)


class ServiceRequest(Record):
    """What the watchdog was asked for. On disk before it is answered; the same key is one request (L42)."""

    key: str
    op: ServiceOperation
    service: Name
    sha: str = ""
    proof: str = ""
    by: Caller | None = None  # a person; a release is ordered by its run
    outcome: RequestOutcome | None = None
    tries: int = 0
    at: float = 0.0


class ServiceObservation(StrEnum):
    """What one look at a service found."""

    healthy = "healthy"
    unready = "unready"  # it lives and does not answer well
    stranger = "stranger"  # a process without the marker listens on its port (L29)
    gone = "gone"


class HealthLook(Record):
    sight: ServiceObservation
    detail: str = ""


class PortListener(Record):
    """A process that holds a listening socket of a port; pid 0 for one that cannot be seen from here."""

    pid: int
    command: str
    marker: str | None

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})" if self.pid else "a process of another user"


class Launch(Record):
    """How a service is started: `command` goes to a shell in `tree`, its output to `log`."""

    command: str
    tree: Path
    env: dict[str, str]
    marker: str
    log: Path


class Smoked(Record):
    ok: bool
    reason: str = ""


class Smokes(Protocol):
    """Builds a checkout and tries it: contained, on a free port, with copies of what it shares."""

    async def build(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        """Run `build`, if there is one."""
        ...

    async def smoke(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        """One good answer on a free port. A service without a port has nothing to be asked."""
        ...


class ReleaseDesk(Protocol):
    """The engine's view of the watchdog: only reads. Ordering a release is an effect."""

    async def outcome(self, key: str) -> RequestOutcome | None:
        """How the request ended; None while it is worked on. Raises ActionFailed if the watchdog does not know it."""
        ...
