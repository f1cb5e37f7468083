"""Repeat the commands of a run's receipts in fresh checkouts. Only exit codes are compared: logs hold times."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from becket.app.compose import App
from becket.app.record.proofs import CROSSING, GATE, VERDICT
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.git import Workspace
from becket.kernel.contract.process import NEUTRAL, ChildEnd, ChildResult, ChildSpec, Network
from becket.kernel.contract.receipt import Repeated, StoredReceipt
from becket.kernel.contract.removal import removed
from becket.kernel.contract.run import Run
from becket.kernel.engine.values import hand_over
from becket.parts.gates.judging.env_file import BadPlace, put
from becket.parts.gates.judging.keys import step_env
from becket.parts.gates.judging.tree import ProofTree
from becket.parts.gates.ports.setup import SetupFailed, SetupReady, Setups
from becket.parts.gates.section import GATES, SET_UP, GateStep

COMMANDS = ("command", "verifier")
REPEATABLE = (*COMMANDS, GATE)
"""Kinds of receipts whose command may be run again: effects never are."""


def left_out(receipts: Iterable[StoredReceipt]) -> int:
    """Runs of chosen tests only: their receipts hold the step's whole command, and that is another question."""
    return sum(_chosen_tests(item) for item in receipts)


def _chosen_tests(item: StoredReceipt) -> bool:
    return item.receipt.kind == GATE and bool(item.receipt.body.get("selected"))


class Repeater:
    """The port's answer."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def repeat(self, run: Run, receipts: tuple[StoredReceipt, ...]) -> list[Repeated]:
        return await repeat(self._app, run, receipts)

    def left_out(self, receipts: Iterable[StoredReceipt]) -> int:
        return left_out(receipts)


async def repeat(app: App, run: Run, receipts: tuple[StoredReceipt, ...]) -> list[Repeated]:
    """In their order. A receipt that several steps have is repeated once for each."""
    folder = Path(tempfile.mkdtemp(prefix="verify-", dir=app.state.folder))
    try:
        again = _Again(app, run, receipts, folder)
        chosen = [item for item in receipts if item.receipt.kind in REPEATABLE and not _chosen_tests(item)]
        return [await again.of(item) for item in chosen]
    finally:
        removed(folder)


@dataclass(frozen=True, slots=True)
class _Again:
    app: App
    run: Run
    receipts: tuple[StoredReceipt, ...]
    folder: Path

    async def of(self, item: StoredReceipt) -> Repeated:
        try:
            result = await (self._gate_step(item) if item.receipt.kind == GATE else self._command(item))
        except BecketError as error:
            return Repeated(item, None, " ".join(str(error).split())[:300])
        if result.end is ChildEnd.not_started:
            return Repeated(item, None, result.message)
        return Repeated(item, result.exit_code)

    async def _command(self, item: StoredReceipt) -> ChildResult:
        body = item.receipt.body
        tree, readable = await self._place(str(body.get("cwd")))
        *program, text = item.receipt.command
        handed = hand_over(body.get("env", {}), self.folder / "values")
        return await self.app.processes.run(
            ChildSpec(
                argv=(*program, handed.before + text),
                tree=tree,
                at=NEUTRAL,
                env=handed.env,
                network=Network(body.get("network", "none")),
                output=self.folder / "again.log",
                readable=(*readable, *handed.readable),
                hidden=self.app.places.hidden(),
            )
        )

    async def _place(self, name: str) -> tuple[Path, tuple[Path, ...]]:
        if name == "scratch":
            (self.folder / "scratch").mkdir(exist_ok=True)
            return self.folder / "scratch", ()
        found = await self.app.git.find_workspace(self.folder)
        if found is None:
            fields = self.run.subject.fields
            at = str(fields.get("sha") or f"refs/heads/{fields['branch']}")
            found = await self.app.git.open_workspace(self.folder, at)
        return found.tree, (found.objects,)

    async def _gate_step(self, item: StoredReceipt) -> ChildResult:
        """On the commit of the receipt, as the becket.yaml says that defined the gate then: it is committed too."""
        receipt, body = item.receipt, item.receipt.body
        commit = str(body.get("commit"))
        config = await self.app.projects.committed(self._defined_by(item, commit))
        step = _step(config, str(body.get("gate")), str(body.get("step")))
        if step is None or receipt.command != ("sh", "-euc", step.run):
            raise BecketError("the becket.yaml that defined this step says another command now")
        async with fresh_tree(self.app, self.folder / "gate", commit, config, self.run.run_id) as proof:
            provide_env_file(self.app.state.root, step, proof.root)
            return await self.app.processes.run(
                ChildSpec(
                    argv=receipt.command,
                    tree=proof.root,
                    at=NEUTRAL,
                    env=step_env(step, proof),
                    timeout=step.timeout,
                    network=Network(step.network.value),
                    output=self.folder / "again.log",
                    readable=proof.readable,
                    hidden=self.app.places.hidden(),
                )
            )

    def _defined_by(self, item: StoredReceipt, commit: str) -> str:
        """The same step's verdict says so, or its crossing; a bisection goes by the base of the run."""
        mine = [one for one in self.receipts if (one.iteration, one.action_id) == (item.iteration, item.action_id)]
        verdicts = [one for one in self.receipts if one.receipt.kind == VERDICT]
        for one in (*mine, *verdicts):
            if one.receipt.kind in (VERDICT, CROSSING):
                return str(one.receipt.body.get("defined_by") or one.receipt.body.get("base"))
        return commit


@asynccontextmanager
async def fresh_tree(app: App, folder: Path, commit: str, config: Config, user: str) -> AsyncIterator[ProofTree]:
    """A clean checkout with its set-up, as a proof has it; gone with the block. The set-up is the `user`'s."""
    folder.mkdir(exist_ok=True)
    try:
        workspace = await app.git.open_workspace(folder, commit)
        ready = await _set_up(app, commit, config, workspace, user)
        yield ProofTree(workspace, await app.git.tree_of(commit), config, ready)
    finally:
        removed(folder)


async def _set_up(app: App, commit: str, config: Config, workspace: Workspace, user: str) -> SetupReady | None:
    setup = config.section(SET_UP)
    if setup is None:
        return None
    ready = await app.port(Setups).ensure(commit, setup, user, hidden=app.places.hidden())
    if isinstance(ready, SetupFailed):
        raise BecketError(f"its set-up fails now: {ready.reason}")
    app.port(Setups).provide(workspace, ready)
    return ready


def provide_env_file(source: Path, step: GateStep, tree: Path) -> None:
    if step.env_file is None:
        return
    if not (source / step.env_file).is_file():
        raise BecketError(f"its env_file {step.env_file} is not there")
    try:
        put(source / step.env_file, tree, step.env_file)
    except BadPlace as problem:
        raise BecketError(f"its env_file {step.env_file}: {problem}") from problem


def _step(config: Config, gate: str, name: str) -> GateStep | None:
    return next((step for step in config.section(GATES).get(gate, ()) if step.name == name), None)
