"""A modelled project: modules that are good, broken or torn, gates that say so, agents that repair, fail or cheat.

`mods/m0` .. `mods/m5` are tested by the fast gate, `mods/m6` .. `mods/m9` by the slow one. What a module's first word
says, its test finds: `good`, `bug`, or `torn` (fails now and then). A test exists while `tests/mN` says `on`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from becket.kernel.contract.agent import AgentOutcome, AgentReport, CallContext, CallFiles, Limits, Usage
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectCall, LookUpResult, Permit, demand
from becket.kernel.contract.process import ChildEnd, ChildRef, ChildResult, ChildSpec, ChildWatcher, Holds, SandboxKind
from becket.kernel.contract.spec import Autonomy, EffectClass
from becket.parts.services.ports import RELEASE_EFFECT, RequestEnding, RequestOutcome, Smoked
from becket.parts.services.section import ServiceConfig
from becket_lab.simulated.git import Files
from becket_lab.simulated.ground import Ground
from becket_lab.simulated.time import SimulatedTime

FAST = tuple(range(6))
SLOW = tuple(range(6, 10))
MODULES = (*FAST, *SLOW)
GATES = {"fast": FAST, "slow": SLOW}

CONFIG = """\
version: 1
autonomy: release
gates:
  fast:
    - {name: unit, run: "gate fast", rerun: "gate fast {tests}", report: go, min_tests: 1, timeout: 2h}
  slow:
    - {name: whole, run: "gate slow", rerun: "gate slow {tests}", report: go, min_tests: 1, timeout: 2h}
test_side: ["tests/**"]
services: {main: {start: "serve"}}
agents: {fixer: {driver: command, run: "agent"}}
"""


@dataclass(frozen=True, slots=True)
class Odds:
    """How often things go wrong."""

    red: float = 0.12  # of a person's commits
    torn: float = 0.01
    flake: float = 0.02  # of the runs of a gate: one test fails that should not
    dirty: float = 0.05  # of a person's commits: unfinished work lies about for a while afterwards
    repaired_by_person: float = 0.15  # of a person's commits, while something is broken
    release_fails: float = 0.01
    agent: tuple[tuple[str, float], ...] = (
        ("repairs", 0.62),
        ("nothing", 0.08),
        ("remark", 0.08),
        ("breaks_another", 0.06),
        ("weakens_test", 0.05),
        ("edits_gate", 0.03),
        ("crashes", 0.05),
        ("quota", 0.03),
    )


RUNNER = "tests/app_test.go"
"""The file that the ids of the reports lead to."""


def module(number: int) -> str:
    return f"mods/m{number}.py"


def source(word: str, number: int, mark: str) -> str:
    """A module as it is when it is good, has a bug, or is torn. To put one right is a plain change."""
    return f"def state():\n    return {int(word != 'bug')}  # {word} m{number} {mark}\n"


def test_of(number: int) -> str:
    return f"tests/m{number}"


def begin() -> dict[str, str]:
    good = {module(number): source("good", number, "v0") for number in MODULES}
    tests = {test_of(number): "on\n" for number in MODULES}
    return {"becket.yaml": CONFIG, RUNNER: "package tests\n", **good, **tests}


def broken(files: Files) -> list[int]:
    return [number for number in MODULES if "# bug" in files.get(module(number), "# bug")]


def truly_green(files: Files) -> bool:
    """What no gate can be wrong about: nothing is broken, and every test is there."""
    return not broken(files) and all(files.get(test_of(number)) == "on\n" for number in MODULES)


@dataclass
class ModelProcesses:
    """Implements the port `Processes`: every command is a gate's."""

    ground: Ground
    time: SimulatedTime
    chance: random.Random
    odds: Odds
    proof: float  # seconds that both gates take together
    runs: dict[str, int] = field(default_factory=lambda: {"whole": 0, "selected": 0})

    def holds(self) -> Holds:
        return Holds(kind=SandboxKind.bwrap, files=True, processes=True, network=True)

    async def run(self, spec: ChildSpec, watcher: ChildWatcher | None = None) -> ChildResult:
        _, gate, *chosen = spec.argv[-1].split(" ", 2)
        wanted = re.findall(r"TestM(\d+)", chosen[0]) if chosen else None
        files = self.ground.at(spec.tree)
        numbers = [n for n in GATES[gate] if files.get(test_of(n)) == "on\n" and (wanted is None or str(n) in wanted)]
        failing = self._failing(files, numbers)
        self.runs["whole" if wanted is None else "selected"] += 1
        seconds = self._seconds(gate, selected=wanted is not None)
        await self.time.spend(seconds)
        output = _told(numbers, failing)
        spec.output.write_bytes(output)
        if spec.stdout is not None:
            spec.stdout.write_bytes(output)
        return ChildResult(
            end=ChildEnd.exited, exit_code=1 if failing else 0, seconds=seconds, output_bytes=len(output),
            output_capped=False, sandbox=SandboxKind.bwrap,
        )  # fmt: skip

    def sweep(self, children: object) -> list[ChildRef]:
        return []

    def _failing(self, files: Files, numbers: list[int]) -> set[int]:
        red = {n for n in numbers if n in broken(files)}
        red |= {n for n in numbers if "# torn" in files[module(n)] and self.chance.random() < 0.4}
        if numbers and self.chance.random() < self.odds.flake:
            red.add(self.chance.choice(numbers))
        return red

    def _seconds(self, gate: str, *, selected: bool) -> float:
        share = 0.4 if gate == "fast" else 0.6
        return self.proof * share * (0.1 if selected else 1.0)


def _told(numbers: list[int], failing: set[int]) -> bytes:
    ends = [("fail" if n in failing else "pass", f"TestM{n}") for n in numbers]
    lines = [{"Action": end, "Package": "app/tests", "Test": name, "Elapsed": 0.1} for end, name in ends]
    lines.append({"Action": "fail" if failing else "pass", "Package": "app/tests", "Elapsed": 1.0})
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@dataclass
class ModelAgent:
    """An agent that does one of the things agents do."""

    ground: Ground
    time: SimulatedTime
    chance: random.Random
    odds: Odds
    calls: dict[str, int] = field(default_factory=dict)

    def used(self, files: CallFiles) -> Usage | None:
        return None

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        kinds, weights = zip(*self.odds.agent, strict=True)
        kind = self.chance.choices(kinds, weights)[0]
        self.calls[kind] = self.calls.get(kind, 0) + 1
        seconds = self.chance.uniform(20.0, 240.0)
        await self.time.spend(seconds)
        before = self.ground.at(workspace)
        files = dict(before)
        report = self._deeds()[kind](files, Usage(seconds=seconds, turns=1, output_tokens=1000, usd=0.01))
        self.ground.put(workspace, {path: text for path, text in files.items() if before.get(path) != text})
        return report

    def _deeds(self) -> dict[str, Callable[[dict[str, str], Usage], AgentReport]]:
        return {
            "repairs": self._repairs, "nothing": _claims, "remark": self._remarks,
            "breaks_another": self._breaks_another, "weakens_test": self._weakens, "edits_gate": self._edits_gate,
            "crashes": lambda files, usage: AgentReport(ended=False, error="it crashed", usage=usage),
            "quota": self._quota,
        }  # fmt: skip

    def _repairs(self, files: dict[str, str], usage: Usage) -> AgentReport:
        for number in broken(files):
            files[module(number)] = source("good", number, f"r{self.chance.randrange(10**9)}")
        return _claims(files, usage)

    def _breaks_another(self, files: dict[str, str], usage: Usage) -> AgentReport:
        self._repairs(files, usage)
        number = self.chance.choice(MODULES)
        files[module(number)] = source("bug", number, f"b{self.chance.randrange(10**9)}")
        return _claims(files, usage)

    def _remarks(self, files: dict[str, str], usage: Usage) -> AgentReport:
        files["NOTES"] = f"looked at it {self.chance.randrange(10**9)}\n"
        return _claims(files, usage)

    def _weakens(self, files: dict[str, str], usage: Usage) -> AgentReport:
        for number in broken(files):
            files[test_of(number)] = "off\n"
        return _claims(files, usage)

    def _edits_gate(self, files: dict[str, str], usage: Usage) -> AgentReport:
        files["becket.yaml"] = files["becket.yaml"].replace("gate fast", "true")
        return _claims(files, usage)

    def _quota(self, files: dict[str, str], usage: Usage) -> AgentReport:
        until = self.time.clock() + self.chance.uniform(300.0, 3600.0)
        return AgentReport(ended=True, error="quota", outcome_hint=AgentOutcome.quota_wait, until=until, usage=usage)


def _claims(files: dict[str, str], usage: Usage) -> AgentReport:
    return AgentReport(ended=True, said="All tests pass now.", usage=usage)


@dataclass
class ModelWatchdog:
    """The release effect, its desk and the smoke test: a service that nearly always comes up."""

    time: SimulatedTime
    chance: random.Random
    odds: Odds
    released: list[tuple[str, str]] = field(default_factory=list)  # sha, proof: every order, in its order
    never_again: set[str] = field(default_factory=set)
    in_service: str = ""
    ends: dict[str, RequestOutcome] = field(default_factory=dict)

    name = RELEASE_EFFECT
    class_ = EffectClass.keyed
    needs = Autonomy.release
    timeout = 30.0

    def check(self, call: EffectCall) -> str | None:
        return None if call.payload.get("proof") else "a release names what proved it"

    async def perform(self, call: EffectCall, permit: Permit) -> dict[str, Json]:
        demand(permit, call)
        sha = str(call.payload["sha"])
        if sha in self.never_again:
            self.ends[permit.key] = RequestOutcome(
                ending=RequestEnding.failed, sha=sha, reason="it failed in service before"
            )
            return {"accepted": True}
        if sha == self.in_service:  # as the real one: what runs is left alone
            self.ends[permit.key] = RequestOutcome(ending=RequestEnding.kept, sha=sha, reason="it is in service")
            return {"accepted": True}
        self.released.append((sha, str(call.payload["proof"])))
        good = self.chance.random() >= self.odds.release_fails
        if good:
            self.in_service = sha
        else:
            self.never_again.add(sha)
        self.ends[permit.key] = RequestOutcome(
            ending=RequestEnding.kept if good else RequestEnding.rolled_back,
            sha=sha,
            reason="" if good else "it died in its soak",
        )
        return {"accepted": True}

    async def look_up(self, call: EffectCall, key: str) -> LookUpResult:
        return LookUpResult.yes if key in self.ends else LookUpResult.no

    async def outcome(self, key: str) -> RequestOutcome | None:
        await self.time.spend(15.0)
        return self.ends[key]

    async def build(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        return Smoked(ok=True)

    async def smoke(self, config: ServiceConfig, tree: Path, log: Path) -> Smoked:
        await self.time.spend(2.0)
        return Smoked(ok=True)
