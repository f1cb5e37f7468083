"""One repair from a red commit to a promoted main, as it runs in a process that is killed and in the one after it.

Everything is real but the patience: git, the journal, a set-up, a gate of one quick script, an agent that is a program.
Each kind of child stops where it is as long as a file named after it lies in `stop`, so that a test can kill it there.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from becket.app.compose import App
from becket.app.record.verify import verify_run
from becket.app.serve import serve
from becket.app.state import StateFolder
from becket.kernel.contract import crash
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.gate import GateVerdict
from becket.kernel.contract.run import ENDED, Run, RunStatus
from becket.kernel.contract.store import RunFilter
from becket.kernel.engine.door import Door, Patience
from becket.kernel.engine.intake import StartRequest
from becket.kernel.store import open_sqlite
from becket.parts.promote.provides import intents
from becket.testing.people import person
from becket.testing.world import commit_all, make_repository, run_git

PATIENCE = Patience(grace=0.2, delays=(0.1, 0.1, 0.1), jitter=0.0, deferred_first=0.2, deferred_growth=1.0)
EFFECT_TIMEOUT = 1.0

STOP = """if mv "STOP/KIND" "STOP/KIND.now" 2>/dev/null; then echo $$ > "STOP/KIND.pid"; exec sleep 60; fi"""

CONFIG = """\
version: 1
autonomy: merge
gates:
  fast:
    - name: unit
      run: |
        GATE_STOP
        PYTHON -I -S -B tests/check.py
      rerun: PYTHON -I -S -B tests/check.py {tests}
      report: "junit:report.xml"
      min_tests: 1
      timeout: 30s
  slow:
    - {name: whole, run: test -s it.py}
setup:
  run: |
    SETUP_STOP
    mkdir .tools && cp lock.txt .tools/made
  key: [lock.txt]
test_side: ["tests/**"]
sandbox: {use: none, without: [files, processes, network]}
heal: {agent: fixer, hold_out: judge}
agents:
  fixer:
    driver: command
    run: |
      AGENT_STOP
      printf '%s' 'REPAIR' > it.py
  judge:
    driver: command
    run: |
      mkdir independent_checks && printf '%s' 'HELD' > independent_checks/check_1.py
"""
GOOD = "def it(number):\n    return number * 2\n"
BAD = GOOD.replace("*", "+")
REPAIR = "def it(number):\n    return _twice(number)\n\n\ndef _twice(number):\n    return number * 2\n"
"""A new function: what it can do is not plain, so that it also passes the hold-out proof."""
HELD = "import it\nraise SystemExit(any(it.it(number) != number + number for number in range(7, 30)))\n"

CHECK = """\
import pathlib
import sys

assert pathlib.Path(".tools/made").exists(), "the set-up is not there"
sys.path.insert(0, ".")
import it

good = it.it(3) == 6
failure = "" if good else '<failure message="it is bad"/>'
cases = f'<testcase classname="tests.check" name="test_it">{failure}</testcase>'
cases += "" if sys.argv[1:] else '<testcase classname="tests.check" name="test_more"/>'
pathlib.Path("report.xml").write_text(f'<testsuite tests="2">{cases}</testsuite>')
sys.exit(not good)
"""


def prepare(folder: Path) -> None:
    """A fresh case: main is green. Called once, outside the lives."""
    for name in ("tmp", "stop"):
        (folder / name).mkdir(parents=True)
    root = folder / "repo"
    make_repository(root)
    config = CONFIG.replace("PYTHON", sys.executable)
    for kind in ("gate", "setup", "agent"):
        stop = STOP.replace("KIND", kind).replace("STOP", str(folder / "stop"))
        config = config.replace(f"{kind.upper()}_STOP", stop)
    config = config.replace("REPAIR", _in_yaml(REPAIR)).replace("HELD", _in_yaml(HELD))
    (root / "tests").mkdir()
    files = {
        "becket.yaml": config, "tests/check.py": CHECK, "lock.txt": "1\n", "it.py": GOOD, ".gitignore": "report.xml\n",
    }  # fmt: skip
    for path, text in files.items():
        (root / path).write_text(text)
    commit_all(root, "a thing")
    StateFolder(root, root / ".git").make()


def _in_yaml(text: str) -> str:
    """Within a block of shell: its lines are indented as the block is."""
    return text.replace("\n", "\n      ")


def break_it(folder: Path) -> None:
    """Main is red from now on, and needs another set-up."""
    root = folder / "repo"
    (root / "it.py").write_text(BAD)
    (root / "lock.txt").write_text("2\n")
    commit_all(root, "a thing to mend")


def open_app(folder: Path) -> App:
    root = folder / "repo"
    state = StateFolder(root, root / ".git")
    app = App(state, open_sqlite(state.database), (folder / "console.log").open("a", buffering=1))
    for adapter in app.effects.values():
        adapter.timeout = EFFECT_TIMEOUT
    app.door = Door(app.store, app.effects, app.redactor, app.config.effect_caps, patience=PATIENCE)
    return app


async def play(folder: Path, git_dies_at: str = "", again: str = "") -> Json:
    """One life: somebody asks for the repair with the same words, and it is seen through as far as it goes.

    `git_dies_at` is a point at which the git that holds main's ref is killed under us; `again` asks for a new run.
    """
    app = open_app(folder)
    if git_dies_at:
        _kill_git_at(git_dies_at, app)
    try:
        started = await app.intake.start(
            StartRequest(loop_id="heal", origin_key=f"case:heal:{again}", by=person("owner"))
        )
        assert started.run is not None
        await _rest(app)
        return await seen(app, started.run.run_id)
    except UsageError as error:
        raise AssertionError(str(error)) from error
    finally:
        await app.triggers.close()
        await app.store.close()


async def _rest(app: App) -> None:
    async def done() -> bool:
        busy = await app.store.list_runs(RunFilter(statuses=(RunStatus.queued, RunStatus.running), limit=10))
        return not busy and not await app.store.effects(states=(EffectState.intended, EffectState.retrying))

    while not await serve(app, "run", done):
        await asyncio.sleep(0.01)  # the life before this one is being buried


def _kill_git_at(point: str, app: App) -> None:
    """Once. The hook that counts the hits stays in its place."""
    counting, done = crash._hook, False  # a life's hook is wrapped here and nowhere else

    def hook(name: str) -> None:
        nonlocal done
        if counting is not None:
            counting(name)
        if name == point and not done:
            done = True
            intent = intents(app).read()
            assert intent is not None
            os.kill(intent.transaction.pid, signal.SIGKILL)

    crash.install(hook)


async def seen(app: App, run_id: str) -> dict[str, Json]:
    """What a case left behind, as far as promises are made about it."""
    run = await app.store.get_run(run_id)
    root = app.state.root
    steps = await app.store.steps(run_id)
    return {
        "run": run_id,
        "status": run.status.value,
        "reason": run.reason,
        "detail": dict(run.detail),
        "counted": run.counted,
        "raised": sorted({item.ref for step in steps for item in step.conditions}),
        "attempts": {step.id: step.attempts for step in steps if step.attempts > 1},
        "against": [f"{item.what} {item.detail}" for item in await verify_run(app, run_id, rerun=False) if not item.ok],
        "missing": await _missing_receipts(app, run),
        "proven": [sha for sha in _git(root, "log", "--format=%H") if await _proven(app, sha) == run_id],
        "alive": [child.pid for child in await app.store.live_children()],
        "calls": sorted([call.step_id, call.agent] for call in await app.store.calls(run_id)),
        "effects": [[effect.call.name, effect.state.value] for effect in await app.store.effects(run_id)],
        "folders": [str(path) for path in app.state.runs.glob("*")] if run.status in ENDED else [],
        "locks": sorted(_locks(root)),
        "intent": intents(app).read() is not None,
    }


async def _proven(app: App, sha: str) -> str | None:
    return await app.store.recorded_by("proven", f"main@{sha}")


async def _missing_receipts(app: App, run: Run) -> list[str]:
    """Receipts that a verdict of the run names and the journal does not hold: claims without a proof."""
    held = {item.digest for item in await app.store.receipts(run.run_id)}
    named = []
    for ref in await app.store.artifacts(run.run_id):
        if ref.name.endswith(".verdict.json"):
            verdict = GateVerdict.model_validate_json(app.artifacts.read(ref.digest))
            named += [f"{ref.name}: {step.step}" for step in verdict.steps if step.receipt not in held]
    return named


def _locks(root: Path) -> list[str]:
    """Lock files in the person's repository. Those of the state folder are held by the system, not by existing."""
    found = [path for path in (root / ".git").rglob("*.lock") if not path.is_relative_to(root / ".git" / "becket")]
    return [str(path.relative_to(root)) for path in found]


def _git(root: Path, *command: str) -> list[str]:
    return run_git(root, command).splitlines()
