"""What one attempt of an action sees and may ask for; everything it brings is collected here for the journal."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from becket.kernel.contract.action import KEPT, CommandEnd, EffectReport, Executed, Registry, RunCommand
from becket.kernel.contract.artifacts import Artifacts
from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.caller import itself
from becket.kernel.contract.calls import AgentCall, CallEnd, CallGrant, CallRequest
from becket.kernel.contract.condition import Conditions
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import EffectAdapter, EffectCall, EffectState, Origin
from becket.kernel.contract.errors import ActionFailed, StartRefused
from becket.kernel.contract.git import Git, Workspace
from becket.kernel.contract.handoff import Approval, ApprovalState
from becket.kernel.contract.loop import UNHELD, Loops, Places, Policy
from becket.kernel.contract.process import NEUTRAL, ChildRef, ChildSpec, ChildWatcher, Network, Processes
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.receipt import Receipt, StoredReceipt
from becket.kernel.contract.removal import removed
from becket.kernel.contract.run import Decision, Run
from becket.kernel.contract.spec import Autonomy, LoopSpec, Phase
from becket.kernel.contract.store import ArtifactRef, RunFilter, Store
from becket.kernel.contract.template import fill
from becket.kernel.engine import money
from becket.kernel.engine.door import Door
from becket.kernel.engine.excerpts import beginning_and_end, size_of, tail, value_at
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.trigger_alerts import TriggerAlerts
from becket.kernel.engine.values import hand_over

Port = TypeVar("Port")

command_ended = CrashPoint("command.ended", "a command has run, its log is not kept yet")
log_kept = CrashPoint("command.log_kept", "the log is an artifact, the receipt is not written yet")


@dataclass(frozen=True, slots=True)
class Runtime:
    """Everything the engine was given by `app`. One per process."""

    store: Store
    artifacts: Artifacts
    door: Door
    intake: Intake
    loops: Loops
    policy: Policy
    places: Places
    registry: Registry
    ports: Mapping[type, object]
    redact: Callable[[str], str]
    redact_value: Callable[[Json], Json]
    worker: str
    lease_ttl: float = 30.0

    def port(self, kind: type[Port]) -> Port:
        found = self.ports.get(kind)
        if found is None:
            raise ActionFailed(f"nothing is configured behind {kind.__name__}; see `becket doctor`", kind="no_port")
        return found  # type: ignore[return-value]  # registered under its own type


@dataclass
class StepContext:
    """Implements ActionContext for one attempt of one step."""

    runtime: Runtime
    run: Run
    spec: LoopSpec
    phase: Phase
    step_id: str
    attempt: int
    conditions: Conditions
    outputs: Mapping[str, Mapping[str, Json]]
    decision: Decision | None
    seconds_left: float
    receipts: list[StoredReceipt] = field(default_factory=list)
    artifacts: list[str] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    unknown_effects: list[EffectReport] = field(default_factory=list)
    timer: asyncio.Timeout | None = None  # the action's time limit
    ends_at: float | None = None  # when its time is over, by the event loop; the timer gives up a little later
    labels: set[str] = field(default_factory=set)  # of the calls that it began
    failed_before: str = ""
    stood_still: float = 0.0  # seconds in which this process did not run

    def again(self, following: StepContext, failure: Exception) -> StepContext:
        """The next attempt's context; what earlier attempts proved stays part of the step."""
        following.failed_before = str(failure)
        following.stood_still += self.stood_still
        following.receipts += self.receipts
        following.artifacts += self.artifacts
        following.facts += self.facts
        return following

    @property
    def autonomy(self) -> Autonomy:
        """The policy's; a person who accepted this very candidate lets it be promoted where it may be proposed."""
        allowed = self.runtime.policy.autonomy(self.spec, self.run)
        candidate = self.conditions.get("candidate.exists")
        accepted = candidate is not None and bool(candidate.evidence.get("accepted_by"))
        return Autonomy.merge if accepted and allowed is Autonomy.propose else allowed

    @property
    def autonomy_told(self) -> str:
        capped = self.runtime.policy.capped_by()
        return f"autonomy is {self.autonomy}" + (f" ({capped})" if capped else "")

    def port(self, kind: type[Port]) -> Port:
        return self.runtime.port(kind)

    def names(self) -> dict[str, Json]:
        """Every name that a template may use."""
        known: dict[str, Json] = {
            **self.run.subject.fields, "subject": self.run.subject.name, "run_id": self.run.run_id,
            "loop_id": self.run.loop_id, "iteration": self.run.iteration, **self.run.inputs,
        }  # fmt: skip
        for action, made in self.outputs.items():
            known |= {f"{action}.{name}": value for name, value in made.items()}
        if self.decision is not None:
            known |= {
                "decision.outcome": self.decision.outcome.value,
                "decision.reason": self.decision.reason,
                "decision.why": reason_words(self.decision.reason),
            }
        return known

    def fill(self, template: str) -> str:
        known = self.names()

        def look_up(name: str) -> str:
            if name not in known:
                raise ActionFailed(f"{{{name}}} is not known here; its action made no such output", kind="no_output")
            return text_of(known[name])

        return fill(template, look_up, known.__contains__)

    async def workspace(self) -> Path:
        git, folder = self.port(Git), self.runtime.places.of_run(self.run.run_id)
        found = await self.existing_workspace()
        if found is None:
            revision = str(self.run.subject.fields.get("sha") or f"refs/heads/{self.run.subject.fields['branch']}")
            found = await git.open_workspace(folder, revision)
        return found.tree

    async def existing_workspace(self) -> Workspace | None:
        return await self.port(Git).find_workspace(self.runtime.places.of_run(self.run.run_id))

    async def clean_commit(self) -> str | None:
        """The commit that the checkout shows exactly; None once anything in it differs."""
        found = await self.existing_workspace()
        if found is None:
            return None
        state = await self.port(Git).status(found)
        return state.head if state.clean else None

    async def scratch(self) -> Path:
        folder = self.runtime.places.of_run(self.run.run_id) / "scratch"
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def folder(self, name: str) -> Path:
        return self.runtime.places.of_run(self.run.run_id) / name

    async def perform(self, call: EffectCall) -> EffectReport:
        return await self.perform_by(call, None)

    async def perform_by(self, call: EffectCall, adapter: EffectAdapter | None) -> EffectReport:
        origin = Origin(run_id=self.run.run_id, iteration=self.run.iteration, phase=self.phase, action_id=self.step_id)
        if call.approval is not None:
            # Spent on this one effect: the same step of a later iteration needs a new decision.
            await self._spend_approval(call.approval, call.digest, origin.key(call))
        if self.run.epoch > 1:
            await self._allow_for_attempt_before(origin.key(call))
        report = await self.runtime.door.perform(
            call, origin, self.run.epoch, self.autonomy, self.run.dry_run, adapter=adapter
        )
        if report.state == "unknown":
            self.unknown_effects.append(report)
        return report

    async def _allow_for_attempt_before(self, key: str) -> None:
        """The door waits until an attempt of an earlier life has settled: that is not this action's time."""
        row = await self.runtime.store.get_effect(key)
        if row is not None and row.state is EffectState.intended and self.timer is not None:
            in_flight = max(row.settle_at - await self.now(), 0.0)
            self.timer.reschedule((self.timer.when() or 0.0) + in_flight)
            self.ends_at = None if self.ends_at is None else self.ends_at + in_flight

    async def keep(self, content: bytes | Path, name: str, most: int = KEPT) -> str:
        if isinstance(content, Path):  # what a program wrote, such as an agent's log: secrets stay out (L25)
            content = await asyncio.to_thread(self._redacted, content, most)
        digest, size = self.runtime.artifacts.put(content)
        ref = ArtifactRef(
            digest=digest, name=name, size=size, run_id=self.run.run_id, iteration=self.run.iteration,
            phase=self.phase, action_id=self.step_id,
        )  # fmt: skip
        await self.runtime.store.refer(ref, self.run.epoch)
        self.artifacts.append(digest)
        return digest

    def redact(self, text: str) -> str:
        return self.runtime.redact(text)

    async def read(self, digest: str, limit: int | None = None) -> bytes:
        return await asyncio.to_thread(self.runtime.artifacts.read, digest, limit)

    async def known(self, fact: str, subject: str) -> bool:
        return await self.runtime.store.recorded_by(fact, subject) is not None

    async def receipt(self, receipt: Receipt, started_at: float, ended_at: float) -> str:
        self.receipts.append(
            StoredReceipt(
                digest=receipt.digest,
                receipt=receipt,
                run_id=self.run.run_id,
                iteration=self.run.iteration,
                phase=self.phase,
                action_id=self.step_id,
                started_at=started_at,
                ended_at=ended_at,
            )
        )
        return receipt.digest

    async def execute(self, command: RunCommand) -> Executed:
        started = await self.now()
        folder = self.runtime.places.of_run(self.run.run_id) / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        label = f"{self.step_id}-{command.label}" if command.label else self.step_id
        name = f"{self.run.iteration}-{self.phase}-{label}"
        log, stdout = folder / f"{name}.log", folder / f"{name}.out"
        values = folder / f"{name}.values"
        handed = await asyncio.to_thread(hand_over, command.env, values)
        spec = ChildSpec(
            argv=shell(handed.before + command.text),
            tree=command.cwd,
            at=NEUTRAL,
            env=handed.env,
            network=Network(command.network),
            output=log,
            stdout=stdout,
            timeout=min(command.timeout, self.seconds_left),
            stdin=command.input,
            readable=(*command.readable, *handed.readable),
            hidden=self.runtime.places.hidden(),
        )
        try:
            result = await self.port(Processes).run(spec, self.watcher())
        finally:
            removed(values)
        command_ended()
        kept = await self.keep(log, f"{label}.log")
        log_kept()
        return Executed(
            end=result.end,
            exit_code=result.exit_code,
            seconds=result.seconds,
            log=kept,
            log_path=log,
            stdout_path=stdout,
            left_running=result.left_running,
            sandbox=result.sandbox,
            message=result.message,
            started_at=started,
            ended_at=await self.now(),
            cut=result.output_capped and not 0 < size_of(stdout) < spec.output_head,  # the log alone may be cut
        )

    async def command(self, command: RunCommand) -> CommandEnd:
        done = await self.execute(command)
        env = {name: self.runtime.redact(value) for name, value in command.env.items()}
        receipt = Receipt(
            kind=command.kind,
            command=tuple(self.runtime.redact(word) for word in shell(command.text)),
            tree=command.tree,
            exit_code=done.exit_code,
            log=done.log,
            environment=digest_of({"env": env, "network": command.network, "sandbox": done.sandbox}),
            body={
                "end": done.end,
                "cwd": command.cwd.name,
                "env": env,
                "network": command.network,
                "left_running": done.left_running,
            },
        )
        stdout, unfit = await asyncio.to_thread(value_at, done.stdout_path)
        return CommandEnd(
            exit_code=done.exit_code,
            end=done.end,
            stdout=stdout,
            unfit=unfit,
            tail=tail(await self.read(done.log)),
            log=done.log,
            receipt=await self.receipt(receipt, done.started_at, done.ended_at),
            left_running=done.left_running,
            message=done.message,
        )

    def watcher(self) -> ChildWatcher:
        return Children(self.runtime.store, self.run, self.runtime.redact)

    def _redacted(self, log: Path, most: int) -> bytes:
        """The log without secrets (L25), and without the middle of one that is too long."""
        if not log.exists():
            return b""
        parts = (part.decode(errors="surrogateescape") for part in beginning_and_end(log, most))
        return "".join(map(self.runtime.redact, parts)).encode(errors="surrogateescape")

    async def start_run(self, loop: str, subject: str | None, inputs: Mapping[str, Json], again: bool) -> Run:
        # Within one run a step has one child per subject, however often the phase is passed; `again` asks for more.
        turn = self.run.iteration if again else 0
        key = f"child:{self.run.run_id}:{turn}:{self.phase}:{self.step_id}:{loop}:{subject or ''}"
        ask = StartRequest(
            loop_id=loop,
            trigger="run.start",
            subject=subject,
            inputs=dict(inputs),
            origin_key=key,
            unique_subject=not again,
            dry_run=self.run.dry_run,
            autonomy=self.run.autonomy,
            parent=self.run.run_id,
            chain=self.run.chain + 1,
            by=itself(f"run {self.run.run_id}"),
        )
        try:
            started = await self.runtime.intake.start(ask)
        except StartRefused as refused:
            await TriggerAlerts(self.runtime.store).refused(loop, "run.start", refused, self.run.run_id)
            raise ActionFailed(str(refused), kind=refused.kind) from None
        if started.run is None:
            raise ActionFailed(f"{loop} was not started: {started.dropped}", kind="child_dropped")
        return started.run

    async def child_runs(self) -> tuple[Run, ...]:
        return await self.runtime.store.list_runs(RunFilter(parent=self.run.run_id, limit=None, oldest_first=True))

    async def ask_approval(
        self, question: str, bound_to: str, role: str, expires_in: float, *, stands: bool = False
    ) -> Approval:
        now = await self.now()
        asked = [_first_line(question), bound_to, role]
        earlier = [
            one
            for one in await self.runtime.store.approvals(self.run.run_id)
            if [_first_line(one.question), one.bound_to, one.role] == asked
        ]
        for one in earlier:
            if one.used_by == self._user() or (stands and one.state is ApprovalState.used):
                return one  # an earlier life of this very step spent it, or its yes stands
        # An approval that an earlier iteration spent is spent: the same question is asked anew.
        spent = sum(one.state is ApprovalState.used for one in earlier)
        open_one = next((one for one in earlier if one.state is not ApprovalState.used), None)
        identity = digest_of([self.run.run_id, *asked, spent])[:12]
        return await self.runtime.store.ask_approval(
            self.run.run_id,
            self.run.epoch,
            Approval(
                approval_id=f"apr_{identity}",
                run_id=self.run.run_id,
                question=question if open_one is None else open_one.question,
                bound_to=bound_to,
                role=role,
                asked_at=now,
                expires_at=now + expires_in,
            ),
        )

    async def use_approval(self, approval_id: str, bound_to: str) -> Approval:
        return await self._spend_approval(approval_id, bound_to, self._user())

    def _user(self) -> str:
        return f"{self.run.run_id}:{self.run.iteration}:{self.phase}:{self.step_id}"

    async def _spend_approval(self, approval_id: str, bound_to: str, used_by: str) -> Approval:
        return await self.runtime.store.use_approval(approval_id, self.run.run_id, self.run.epoch, bound_to, used_by)

    async def spend(self, kind: str, amount: float) -> None:
        amount = float(amount)
        if not math.isfinite(amount) or amount < 0:
            raise ActionFailed(f"{amount:g} {kind} is no amount that can be spent", kind="bad_amount")
        key = f"{self.run.run_id}:{self.run.iteration}:{self.phase}:{self.step_id}:{self.attempt}:{kind}"
        await self.runtime.store.reserve(key, self.run.run_id, self.run.epoch, {kind: amount}, ())

    async def begin_call(self, request: CallRequest) -> CallGrant:
        if request.label in self.labels:
            raise ActionFailed(f"two calls of one attempt are both labelled {request.label!r}", kind="call_label")
        if why := self.runtime.policy.why_unenforceable(self.run, request):
            raise ActionFailed(why, kind=UNHELD)
        self.labels.add(request.label)
        return await money.begin(self.runtime.store, self._calling(), request)

    async def end_call(self, grant: CallGrant, end: CallEnd) -> None:
        clean = end.model_copy(update={"reason": self.runtime.redact(end.reason)})
        await money.end(self.runtime.store, grant, clean)

    async def open_calls(self) -> tuple[AgentCall, ...]:
        return await money.left_open(self.runtime.store, self._calling())

    def _calling(self) -> money.CallingStep:
        left = self.seconds_left
        if self.ends_at is not None:
            left = min(left, self.ends_at - asyncio.get_running_loop().time())
        policy = self.runtime.policy
        return money.CallingStep(
            self.run, self.phase, self.step_id, self.attempt, left, policy.budget(self.run, self.spec.budget),
            policy.budgets(),
        )  # fmt: skip

    async def now(self) -> float:
        return await self.runtime.store.now()


@dataclass(frozen=True, slots=True)
class Children:
    """Implements ChildWatcher for one claim: the journal knows a run's processes, so that a crash of ours leaves none
    that nobody knows.
    """

    store: Store
    run: Run
    redact: Callable[[str], str]

    async def started(self, child: ChildRef, argv: tuple[str, ...]) -> None:
        shown = [self.redact(word) for word in argv]
        await self.store.child_started(self.run.run_id, self.run.epoch, child, shown)

    async def ended(self, child: ChildRef) -> None:
        await self.store.child_ended(child)


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


def shell(text: str) -> tuple[str, ...]:
    return ("sh", "-euc", text)


def text_of(value: Json) -> str:
    """How an output looks inside a template: strings as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
