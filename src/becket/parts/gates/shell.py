"""A clean tree of one commit, and a program in it, contained as a gate's step is; the tree goes with the program."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from becket.app.compose import App
from becket.kernel.contract.errors import ActionFailed, UsageError
from becket.kernel.contract.process import NEUTRAL, ChildControl, ChildResult, ChildSpec
from becket.kernel.contract.removal import removed
from becket.parts.gates.actions.trial import wanted
from becket.parts.gates.judging.keys import step_env
from becket.parts.gates.judging.tree import ProofTree
from becket.parts.gates.repetition import fresh_tree, provide_env_file
from becket.parts.gates.section import GateStep

PREFIX = "shell-"
ENDLESS = 1 << 40
A_WEEK = 7 * 86400.0
_PTY = """\
import os, pty, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])) & 255)"""


def chosen_step(app: App, name: str | None) -> GateStep:
    """The step whose variables and network count; the first one without a word."""
    try:
        return next(step for _, step in wanted(app.config, [name] if name else []))
    except ActionFailed as error:
        if name:
            raise UsageError(str(error)) from None
        return GateStep(name="shell", run="true")


@asynccontextmanager
async def opened(app: App, sha: str, step: GateStep) -> AsyncIterator[ProofTree]:
    """With its set-up, links and env_file. What an earlier shell left that was killed is removed first."""
    _remove_left(app.state.folder)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=app.state.folder))
    try:
        async with fresh_tree(app, folder / "tree", sha, app.config, f"{PREFIX}{os.getpid()}") as proof:
            provide_env_file(app.state.root, step, proof.root)
            yield proof
    finally:
        removed(folder)


def _remove_left(state: Path) -> None:
    for folder in state.glob(f"{PREFIX}*"):
        pid = folder.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists():
            removed(folder)


async def execute(
    app: App,
    proof: ProofTree,
    step: GateStep,
    argv: tuple[str, ...],
    output: Path,
    *,
    control: ChildControl | None,
    terminal: bool,
) -> ChildResult:
    """On a terminal of its own, inside, where one is wanted: whoever types has job control, colours and Ctrl-C."""
    python = getattr(sys, "_base_executable", None) or sys.executable
    term = {"TERM": os.environ.get("TERM", "dumb")} if terminal else {}
    spec = ChildSpec(
        argv=(python, "-I", "-c", _PTY, *argv) if terminal else argv,
        tree=proof.root,
        at=NEUTRAL,
        env={**step_env(step, proof), **term},
        network=step.network,
        timeout=A_WEEK,
        output=output,
        output_cap=ENDLESS,
        readable=proof.readable,
        hidden=app.places.hidden(),
    )
    return await app.processes.run(spec, control=control)
