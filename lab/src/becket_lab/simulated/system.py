"""The real engine, the real loops, the real journal; around them a modelled outside."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from becket.app.parts import built_in_loops
from becket.app.registry import load_registry
from becket.app.sections import load_config
from becket.kernel.contract.agent import Agents, AgentsByName
from becket.kernel.contract.calls import CallRequest
from becket.kernel.contract.candidate import Candidates
from becket.kernel.contract.config import Budgets, Config
from becket.kernel.contract.effect import EffectAdapter
from becket.kernel.contract.errors import ActionFailed, NotFound
from becket.kernel.contract.gate import StepVerdict, Verdicts
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import Places
from becket.kernel.contract.process import Processes
from becket.kernel.contract.project import Projects
from becket.kernel.contract.proposal import Proposals
from becket.kernel.contract.run import Run, Started
from becket.kernel.contract.spec import Autonomy, Budget, LoopSpec
from becket.kernel.contract.store import Store, WorkerInfo
from becket.kernel.engine.advance import Engine
from becket.kernel.engine.context import Runtime
from becket.kernel.engine.door import Door
from becket.kernel.engine.intake import Intake
from becket.kernel.engine.redact import Redactor
from becket.kernel.engine.triggers import Triggers
from becket.kernel.notices.console import ConsoleNotice
from becket.kernel.spec.book import LoopBook
from becket.kernel.store import open_memory
from becket.kernel.store.steady import SteadyClock
from becket.parts.promote.accepted import JournalProposals
from becket.parts.services.ports import ReleaseDesk, Smokes
from becket_lab.simulated.ground import Ground, Overheard, Told
from becket_lab.simulated.project import CONFIG, ModelAgent, ModelProcesses, ModelWatchdog
from becket_lab.simulated.time import SimulatedTime

WORKER = "wrk_simulated"
TTL = 30.0
BRANCH = "main"


class MemoryArtifacts:
    """Implements the port `Artifacts`."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def put(self, content: bytes | Path) -> tuple[str, int]:
        data = content if isinstance(content, bytes) else content.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        self._kept[digest] = data
        return digest, len(data)

    def path(self, digest: str) -> Path:
        raise NotFound(f"{digest} lies in memory; read it")

    def read(self, digest: str, limit: int | None = None) -> bytes:
        if digest not in self._kept:
            raise NotFound(f"the artifact {digest} is not kept here")
        return self._kept[digest][:limit]

    def check(self, digest: str) -> bool:
        return digest in self._kept

    def remove(self, digests: Sequence[str]) -> None:
        for digest in digests:
            self._kept.pop(digest, None)

    def digests(self) -> frozenset[str]:
        return frozenset(self._kept)

    def older_than(self, digest: str, at: float) -> bool:
        return False


class MemoryVerdicts:
    """Implements the port `Verdicts`."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[StepVerdict, str, float]] = {}

    async def find(self, key: str, not_before: float, now: float) -> tuple[StepVerdict, str] | None:
        found = self._kept.get(key)
        return found[:2] if found is not None and found[2] >= not_before else None

    async def put(self, key: str, verdict: StepVerdict, run_id: str, at: float) -> None:
        if not verdict.green:
            raise ValueError("only a green is remembered")
        self._kept[key] = (verdict, run_id, at)


class ModelProjects:
    """Implements the port `Projects` and the policy: what becket.yaml says, read once for each text."""

    def __init__(self, ground: Ground, folder: Path) -> None:
        self._ground = ground
        self._folder = folder
        self._read: dict[str, Config] = {}

    async def committed(self, sha: str) -> Config:
        text = self._ground.files(sha).get("becket.yaml")
        if text is None:
            raise ActionFailed(f"becket.yaml is not committed in {sha[:12]}", kind="not_configured")
        return self._config(text)

    def current(self) -> Config:
        """People leave becket.yaml alone here, so the work tree has what was committed first."""
        return self._config(CONFIG)

    def _config(self, text: str) -> Config:
        if text not in self._read:
            self._read[text] = load_config(text, "becket.yaml", {})
        return self._read[text]

    def autonomy(self, spec: LoopSpec, run: Run) -> Autonomy:
        return Autonomy.lowest(self.current().autonomy, spec.autonomy)

    def capped_by(self) -> str:
        return ""

    def budget(self, run: Run, stored: Budget) -> Budget:
        return stored

    def why_unenforceable(self, run: Run, wish: CallRequest) -> str:
        return ""

    def budgets(self) -> Budgets:
        return Budgets()

    def owner(self) -> str:
        return "owner"

    def of_run(self, run_id: str) -> Path:
        return self._folder / "runs" / run_id

    def resident(self) -> tuple[Path, Path]:
        return self._folder / "resident", self._ground.port.root / ".worktrees" / "base"

    def hidden(self) -> tuple[Path, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class SimulatedSystem:
    """What the player needs to see of the parts."""

    store: Store
    engine: Engine
    triggers: Triggers
    door: Door
    intake: Intake
    notices: io.StringIO


@dataclass(frozen=True, slots=True)
class Outside:
    """The modelled parts."""

    ground: Ground
    processes: ModelProcesses
    agent: ModelAgent
    watchdog: ModelWatchdog
    main_moved: Told


@dataclass(frozen=True, slots=True)
class Kept:
    """What outlives a process: a house that is built again on it is the next one."""

    store: Store
    artifacts: MemoryArtifacts
    verdicts: MemoryVerdicts
    worker: str = WORKER
    ttl: float = TTL
    loops: Path | None = None  # a repository's own, beside heal
    effects: tuple[EffectAdapter, ...] = ()


def kept_in_memory(time: SimulatedTime) -> Kept:
    return Kept(
        open_memory(time.clock, SteadyClock(time.clock.worked, time.clock.real)), MemoryArtifacts(), MemoryVerdicts()
    )


def build(
    folder: Path, time: SimulatedTime, outside: Outside, chance: random.Random, kept: Kept | None = None
) -> SimulatedSystem:
    ground, watchdog = outside.ground, outside.watchdog
    kept = kept or kept_in_memory(time)
    store = kept.store
    notices = io.StringIO()
    promote = Overheard(ground.promote, outside.main_moved)
    adapters: tuple[EffectAdapter, ...] = (
        ConsoleNotice(notices), promote, ground.propose, watchdog, *kept.effects,
    )  # fmt: skip
    registry = load_registry(adapters)
    loops = LoopBook(kept.loops or folder / "no-loops", {"heal": built_in_loops()["heal"]}, registry)
    projects = ModelProjects(ground, folder)
    redactor = Redactor({})
    effects = {adapter.name: adapter for adapter in adapters}
    door = Door(store, effects, redactor, {}, sleep=time.spend, chance=chance.random)
    intake = Intake(store, loops, ground.port, BRANCH, lambda: None)
    triggers = Triggers(
        store, loops, intake, ground.port, BRANCH, on_started=_nobody, clock=time.clock.worked, sleep=time.sleep
    )
    ports: dict[type, object] = {
        Git: ground.port, Candidates: ground.candidates, Processes: outside.processes, Projects: projects,
        Places: projects, Proposals: JournalProposals(store), Verdicts: kept.verdicts,
        Agents: AgentsByName({"fixer": outside.agent}),
        ReleaseDesk: watchdog, Smokes: watchdog,
    }  # fmt: skip
    engine = Engine(
        Runtime(
            store=store, artifacts=kept.artifacts, door=door, intake=intake, loops=loops, policy=projects,
            places=projects, registry=registry, ports=ports, redact=redactor.text, redact_value=redactor.value,
            worker=kept.worker, lease_ttl=kept.ttl,
        )
    )  # fmt: skip
    return SimulatedSystem(store, engine, triggers, door, intake, notices)


def _nobody(started: Started) -> None:
    """Whoever plays looks for what can start after everything that happens."""


def worker(now: float) -> WorkerInfo:
    return WorkerInfo(
        worker_id=WORKER, pid=1, host="simulated", role="daemon", version="0", started_at=now, beat_at=now, dead=False
    )
