"""What a case left behind, in words that do not depend on ids, times or which life did what."""

from __future__ import annotations

import json
import re
from pathlib import Path

from becket.app.compose import App
from becket.app.record.verify import verify_run
from becket.kernel.contract.base import Json
from becket.kernel.contract.effect import Effect
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.receipt import StoredReceipt
from becket.kernel.contract.run import ENDED, Run, Step
from becket.kernel.contract.store import RunFilter
from becket.testing.world import run_git

TOLD = frozenset(EventKind) - {
    EventKind.run_claimed,
    EventKind.run_requeued,
    EventKind.child_started,
    EventKind.child_ended,
    EventKind.phase_entered,
    EventKind.cancel_asked,
    EventKind.effect_intended,
    EventKind.call_booked,
    EventKind.call_settled,
}
"""Events of the story itself; the others tell of workers, processes and calls, of which a crash needs more."""


async def view(app: App, folder: Path) -> dict[str, Json]:
    runs = await app.store.list_runs(RunFilter(limit=1000, oldest_first=True))
    names = await _names(app, runs)
    return {
        "runs": {names(run.run_id): await _run(app, run, names) for run in runs},
        "effects": {_effect_name(effect, names): effect.state.value for effect in await app.store.effects()},
        "unproven": [problem for run in runs for problem in await _unproven(app, run, names)],
        "leftovers": await _leftovers(app, runs),
        "outside": _outside(folder, names),
        "refs": [names(line) for line in _git(app, "for-each-ref", "--format=%(refname) %(objectname)")],
        "keys": {effect.key: _effect_name(effect, names) for effect in await app.store.effects()},
    }


class Names:
    """Replaces every id by what it stands for."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known
        self._pattern = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))) or r"(?!)")

    def __call__(self, text: str) -> str:
        return self._pattern.sub(lambda found: self._known[found[0]], text)

    def inside(self, value: Json) -> Json:
        return json.loads(self(json.dumps(value)))


async def _names(app: App, runs: tuple[Run, ...]) -> Names:
    fired = sorted({str(run.subject.fields["time"]) for run in runs if run.trigger == "schedule"})
    known = {at: f"<fire {number}>" for number, at in enumerate(fired, 1)}
    commits = dict(line.split(" ", 1) for line in _git(app, "log", "--all", "--format=%H %s"))
    by_hand = Names(known | {sha: f"<{subject}>" for sha, subject in commits.items()})
    known |= {run.run_id: by_hand(run.subject.name) for run in runs}
    known |= {sha: f"<{Names(known)(subject)}>" for sha, subject in commits.items()}
    subjects = Names(known)
    for effect in await app.store.effects():
        known[effect.key] = known[effect.key[:12]] = f"<{_effect_name(effect, subjects)}>"
    for approval in await app.store.approvals():
        known[approval.approval_id] = f"<approval {approval.question}>"
    return Names(known)


def _effect_name(effect: Effect, names: Names) -> str:
    origin = effect.origin
    return f"{names(origin.run_id)} | {origin.iteration}.{origin.phase}.{origin.action_id} | {effect.call.name}"


async def _run(app: App, run: Run, names: Names) -> dict[str, Json]:
    receipts = await app.store.receipts(run.run_id)
    logs = await app.store.artifacts(run.run_id)
    steps = await app.store.steps(run.run_id)
    events = await app.store.events(run.run_id)
    return {
        "loop": run.loop_id,
        "status": run.status.value,
        "reason": run.reason,
        "counted": run.counted,
        "iteration": run.iteration,
        "trigger": run.trigger,
        "chain": run.chain,
        "parent": names(run.parent or ""),
        "steps": {f"{step.iteration}.{step.phase}.{step.id}": _step(step, names) for step in steps},
        "receipts": _by_step(receipts),
        "artifacts": sorted({f"{ref.iteration}.{ref.phase}.{ref.action_id} {ref.digest}" for ref in logs}),
        "told": [_told(event.kind, names.inside(event.data)) for event in events if event.kind in TOLD],
        "handoffs": [[item.reason, item.owner, item.state.value] for item in await app.store.handoffs((), run.run_id)],
        "approvals": [[item.question, item.state.value] for item in await app.store.approvals(run.run_id)],
        "spent": await app.store.spent(run_id=run.run_id),
    }


def _by_step(receipts: tuple[StoredReceipt, ...]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for item in receipts:
        step = f"{item.iteration}.{item.phase}.{item.action_id}"
        found[step] = sorted([*found.get(step, []), f"{item.receipt.kind} {item.receipt.exit_code}"])
    return found


def _step(step: Step, names: Names) -> dict[str, Json]:
    outputs = {name: value for name, value in step.outputs.items() if name not in ("refs", "detail")}
    return {
        "state": step.state.value,
        "kind": step.error_kind,
        "outputs": names.inside(outputs),
        "conditions": sorted(condition.ref for condition in step.conditions),
    }


def _told(kind: EventKind, data: dict[str, Json]) -> str:
    keys = ("phase", "id", "name", "outcome", "status", "reason", "iteration")
    about = [
        str(data[key]) for key in keys if key in data and not (kind is EventKind.effect_settled and key == "reason")
    ]
    return " ".join([kind.value, *about])


async def _unproven(app: App, run: Run, names: Names) -> list[str]:
    checked = await verify_run(app, run.run_id, rerun=False)
    return [f"{names(run.run_id)}: {names(item.what)} {names(item.detail)}" for item in checked if not item.ok]


async def _leftovers(app: App, runs: tuple[Run, ...]) -> list[str]:
    ended = {run.run_id: run for run in runs if run.status in ENDED}
    folders = [f"folder of {ended[item.name].subject.name}" for item in _children(app.state.runs) if item.name in ended]
    living = [f"process {child.pid}" for child in await app.store.live_children()]
    unsure = [f"worker {worker.worker_id}" for worker in await app.store.workers() if not worker.dead]
    return sorted([*folders, *living, *unsure])


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _outside(folder: Path, names: Names) -> dict[str, Json]:
    """Every line that left, sorted: which run wrote first is nobody's business, how often is."""
    outbox = folder / "repo" / ".git" / "becket" / "outbox"
    notices = {path.name: sorted(_notice(line, names) for line in _lines(path)) for path in _children(outbox)}
    marks = {path.name: sorted(_lines(path)) for path in _children(folder / "outside")}
    return {**notices, **marks}


def _notice(line: str, names: Names) -> str:
    said = json.loads(line)
    return names(f"{said['key']}: {said['payload']['text']}")


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _git(app: App, *command: str) -> list[str]:
    return run_git(app.state.root, command).splitlines()
