"""A whole gate on one commit: every step has a result; what is red is looked at until its kind is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from becket.kernel.contract.action import ActionContext
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.gate import (
    EVER_GREEN,
    GateColor,
    GateVerdict,
    RedClass,
    StepVerdict,
    Verdicts,
    ever_green,
    green_at,
)
from becket.kernel.contract.git import Git
from becket.kernel.contract.process import Processes
from becket.parts.gates.judging.keys import cache_key, environment_digest
from becket.parts.gates.judging.step import StepRun, env_file_of, has_selection, run_step
from becket.parts.gates.judging.tree import ProofTree, beside, clean_again, open_tree, still_clean
from becket.parts.gates.ports.report import TestReport
from becket.parts.gates.ports.setup import SetupFailed
from becket.parts.gates.section import GATES, GateStep

step_judged = CrashPoint("gate.step_judged", "a step has run and is judged; its receipt is not written")
green_remembered = CrashPoint("gate.green_remembered", "a green is remembered; its receipt is not written")

MODULES = "git submodule update --init --recursive"


class ControlExperiments(Protocol):
    """Each runs a step on the last proven commit, here and now."""

    async def passes(self, step: GateStep) -> bool:
        """Asked where the log blames the machine: is the step green there? Not if nothing is proven."""
        ...

    async def machine_changed(self, step: GateStep, tests: tuple[str, ...]) -> str:
        """Asked before the code of base is blamed: the sentence, if what was proven with just this step is red now.

        The failing tests go first; the whole step decides.
        """
        ...


RERUNS, RERUNS_OF_HANGING = 2, 1
"""So often the failing tests run alone, each time in a fresh process (L14); and a step that did not end in time."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step's verdict as it counts, and how it came about."""

    verdict: StepVerdict
    kind: RedClass | None = None
    flaky: tuple[str, ...] = ()
    runs: tuple[StepRun, ...] = ()

    @property
    def report(self) -> TestReport | None:
        return self.runs[0].report if self.runs else None


@dataclass(frozen=True, slots=True)
class GateResult:
    """`commands` are the steps' own: a green of another command says nothing about them."""

    verdict: GateVerdict
    steps: tuple[StepResult, ...] = field(default=())
    commands: Mapping[str, str] = field(default_factory=dict)

    @property
    def kinds(self) -> frozenset[RedClass]:
        return frozenset(step.kind for step in self.steps if step.kind is not None)

    @property
    def flaky(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for step in self.steps for name in step.flaky))

    @property
    def facts(self) -> dict[str, str]:
        """To be recorded with the receipts: only then may a remembered green speak for another run of the step.

        And that it was green at all: nobody repairs what never was.
        """
        told: dict[str, str] = {}
        for verdict in (step.verdict for step in self.steps if step.verdict.green):
            told |= {} if verdict.reused_from else {_proven_by(verdict): verdict.receipt}
            told |= seen_green(verdict.gate, verdict.step, self.commands[verdict.step], self.verdict.commit)
        return told


def seen_green(gate: str, step: str, command: str, commit: str) -> dict[str, str]:
    return {green_at(gate, step, command): commit, ever_green(gate, step, command): EVER_GREEN}


def _proven_by(verdict: StepVerdict) -> str:
    return f"green.{verdict.gate}.{verdict.step}"


async def run_gate(
    context: ActionContext,
    gate: str,
    proof: ProofTree,
    *,
    defined_by: str,
    ttl: float,
    only: Iterable[str] = (),
    control: ControlExperiments | None = None,
    again: bool = True,
) -> GateResult:
    """Every step in its order, in a clean tree; neighbours that are `parallel` together, each in a tree of its own. A
    red step does not hide the ones after it.

    Without `again`, what is red is not run once more to learn whether it is flaky.
    """
    chosen = set(only)
    steps = [step for step in proof.config.section(GATES).get(gate, ()) if not chosen or step.name in chosen]
    listing = await context.port(Git).listing(proof.workspace.sha) if any(step.inputs for step in steps) else {}
    runner = _Runner(context, gate, proof, defined_by, ttl, listing, control, again)
    results: list[StepResult] = []
    for batch in _batches(steps):
        if len(batch) == 1:
            results.append(await runner.result(batch[0]))
        else:
            results += await asyncio.gather(*(runner.result(step, alone=False) for step in batch))
    color = _color(result.verdict.color for result in results)
    verdict = GateVerdict(
        gate=gate,
        commit=proof.workspace.sha,
        tree=proof.tree_hash,
        defined_by=defined_by,
        color=color,
        steps=tuple(result.verdict for result in results),
    )
    return GateResult(verdict, tuple(results), {step.name: step.run for step in steps})


async def remembered(
    context: ActionContext, gate: str, proof: ProofTree, *, defined_by: str, ttl: float
) -> list[StepVerdict]:
    """The steps of the gate that are known to be green on this tree, without running any."""
    listing = await context.port(Git).listing(proof.workspace.sha)
    runner = _Runner(context, gate, proof, defined_by, ttl, listing, None)
    found = [await runner.remembered(step) for step in proof.config.section(GATES).get(gate, ())]
    return [verdict for verdict in found if verdict is not None]


def _batches(steps: Sequence[GateStep]) -> list[list[GateStep]]:
    batches: list[list[GateStep]] = []
    for step in steps:
        if batches and _in_company(step) and _in_company(batches[-1][-1]):
            batches[-1].append(step)
        else:
            batches.append([step])
    return batches


def _in_company(step: GateStep) -> bool:
    """A step with an env_file runs by itself: its neighbours did not ask for what is in the tree then (L12)."""
    return step.parallel and step.env_file is None


def _color(colors: Iterable[GateColor]) -> GateColor:
    seen = set(colors)
    if GateColor.red in seen:
        return GateColor.red
    return GateColor.undecided if GateColor.undecided in seen or not seen else GateColor.green


@dataclass(frozen=True, slots=True)
class _Runner:
    context: ActionContext
    gate: str
    proof: ProofTree
    defined_by: str
    ttl: float
    listing: Mapping[str, str]
    control: ControlExperiments | None
    again: bool = True

    async def result(self, step: GateStep, *, alone: bool = True) -> StepResult:
        """Each begins in a clean tree: its own, where others run at the same time."""
        key = self._key(step)  # of the environment as it is before the run: one that changes meanwhile is not proven
        if (known := await self._found(key)) is not None:
            return StepResult(known)
        if alone:
            await clean_again(self.context, self.proof)
            return await self._judged(step, key)
        own = await beside(self.context, self.proof, f"beside-{self.gate}-{step.name}")
        return await replace(self, proof=own)._judged(step, key)

    async def _judged(self, step: GateStep, key: str) -> StepResult:
        first = await self._run(step, "first")
        if first.verdict.green:
            await self.context.port(Verdicts).put(key, first.verdict, self.context.run.run_id, await self.context.now())
            green_remembered()
            return StepResult(first.verdict, runs=(first,))
        return await self._why_red(step, first)

    def _key(self, step: GateStep) -> str:
        holds = self.context.port(Processes).holds()
        env_file = env_file_of(self.context, step)
        environment = environment_digest(step, self.proof, holds, env_file)
        return cache_key(step, self.gate, self.proof, environment, self.listing)

    async def remembered(self, step: GateStep) -> StepVerdict | None:
        return await self._found(self._key(step))

    async def _found(self, key: str) -> StepVerdict | None:
        now = await self.context.now()
        found = await self.context.port(Verdicts).find(key, now - self.ttl, now)
        if found is None:
            return None
        verdict, run_id = found
        if not await self.context.known(_proven_by(verdict), verdict.receipt):
            return None  # a kill came between the memory and the row that holds its receipt
        return verdict.model_copy(update={"reused_from": run_id})

    async def _run(
        self, step: GateStep, label: str, tests: tuple[str, ...] = (), proof: ProofTree | None = None
    ) -> StepRun:
        proof = proof or self.proof
        done = await run_step(self.context, self.gate, step, proof, label=label, tests=tests)
        step_judged()
        if changed := await still_clean(self.context, proof):
            reason = f"the step changed tracked files: {', '.join(changed[:5])}"
            spoiled = done.verdict.model_copy(
                update={"color": GateColor.red, "reasons": (*done.verdict.reasons, reason)}
            )
            return replace(done, verdict=spoiled)
        return done

    async def _machine_is_fine(self, step: GateStep) -> bool:
        """Is the same step green, here and now, on a commit that was proven before? Then the code is to blame."""
        return self.control is not None and await self.control.passes(step)

    async def _with_absent_parts(self, first: StepRun) -> StepRun:
        """A folder that is empty here for want of a submodule, as what its log blames, if it blames nothing else."""
        somebody_asks = self.control is not None or not self.again
        if first.verdict.problem or not somebody_asks:
            return first
        absent = await self.context.port(Git).absent_submodules(self.proof.workspace.sha)
        return _blaming(first, f"submodule: {', '.join(absent[:5])} is not there; run `{MODULES}`") if absent else first

    async def _code(self, step: GateStep, first: StepRun, runs: tuple[StepRun, ...]) -> StepResult:
        """Base's code is blamed for what it changed: where nothing else is red, what was proven is green still."""
        asked = self.control if not self._of_candidate else None
        changed = await asked.machine_changed(step, first.verdict.failing) if asked is not None else ""
        if not changed:
            return StepResult(first.verdict, RedClass.code, runs=runs)
        blamed = _blaming(first, changed)
        return StepResult(blamed.verdict, RedClass.environment, runs=(blamed, *runs[1:]))

    async def _from_scratch(self, step: GateStep) -> StepRun | None:
        """The whole step in a clean tree: what passes only where an earlier run left its files is not green (L5)."""
        place = f"again-{self.gate}-{step.name}"
        proof = await open_tree(self.context, self.proof.workspace.sha, self.defined_by, place)
        return None if isinstance(proof, SetupFailed) else await self._run(step, "whole", proof=proof)

    @property
    def _of_candidate(self) -> bool:
        """Base is judged by the gate that it defines itself."""
        return self.proof.workspace.sha != self.defined_by

    async def _again(self, step: GateStep, tests: tuple[str, ...], times: int) -> list[StepRun]:
        """Fewer times where one of them does not end in time: the next would cost as much and say no more."""
        runs: list[StepRun] = []
        while len(runs) < times and not (runs and runs[-1].hung):
            runs.append(await self._run(step, f"again{len(runs) + 1}", tests))
        return runs

    async def _why_red(self, step: GateStep, first: StepRun) -> StepResult:
        """Environment, flaky or code (L13, L14). Only code goes to a fixer."""
        if first.hung and self._of_candidate:
            return StepResult(first.verdict, RedClass.code, runs=(first,))  # who repairs need not hang us once more
        first = await self._with_absent_parts(first)
        if first.verdict.problem and not await self._machine_is_fine(step):
            return StepResult(first.verdict, RedClass.environment, runs=(first,))
        if not self.again:
            return StepResult(first.verdict, RedClass.code, runs=(first,))
        tests = first.verdict.failing
        alone = tests if has_selection(step, self.proof, tests) else ()
        again = await self._again(step, alone, RERUNS_OF_HANGING if first.hung else RERUNS)
        runs = (first, *again)
        if not any(run.verdict.green for run in again):
            return await self._code(step, first, runs)
        if all(run.verdict.green for run in again):
            whole = await self._from_scratch(step)
            if whole is not None and whole.verdict.green:
                calm = whole.verdict.model_copy(
                    update={
                        "reasons": (f"flaky: failed once and passed {len(again) + 1} times: {', '.join(tests[:5])}",)
                    }
                )
                return StepResult(calm, flaky=tests, runs=(*runs, whole))
        torn = first.verdict.model_copy(
            update={
                "color": GateColor.undecided,
                "reasons": (*first.verdict.reasons, "runs of the same tests on the same tree disagree"),
            }
        )
        return StepResult(torn, RedClass.flaky, flaky=tests, runs=runs)


def _blaming(run: StepRun, problem: str) -> StepRun:
    return replace(run, verdict=run.verdict.model_copy(update={"problem": problem}))
