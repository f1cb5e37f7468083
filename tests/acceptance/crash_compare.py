"""What may differ between a story that was killed and one that was not, and nothing else.

The journal as the killed process left it says which effects were under way. Only they may differ, and only in the way
their class says: a blind one is unknown and its run is handed to a person, a command that could be looked up has the
receipt of the look-up, a deferred notice was still on its way when its step was written.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

View = dict[str, Any]

UNSTEADY = "fan"
"""How often this loop is woken depends on which of its children is faster."""


TRIED_AGAIN = ".flaky"
"""The action that fails at first. How often it is tried depends on what a killed life left behind."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """An effect that a killed process had under way."""

    key: str
    class_: str
    deferred: bool
    by_command: bool


def compare(expected: View, found: View, doubts: Iterable[Doubt], paid: Collection[str] = ()) -> None:
    wanted, found = json.loads(json.dumps(expected)), json.loads(json.dumps(found))
    wanted.pop("keys")
    keys = found.pop("keys")
    in_doubt = {keys[doubt.key]: doubt for doubt in doubts}
    for name, doubt in in_doubt.items():
        if doubt.class_ == "blind":
            _expect_unknown(wanted, found, name)
        elif doubt.by_command:
            _expect_look_up(wanted, found, name)
        if doubt.deferred:
            _expect_on_its_way(wanted, found, name)
    for subject in paid:
        _allow_earlier_end(wanted, found, subject)
        _allow_double_payment(wanted, found, subject)
    _compare_console(wanted.pop("console"), found.pop("console"), in_doubt)
    for view in (wanted, found):
        view["runs"] = {name: _plain(run) for name, run in view["runs"].items()}
    differences = [f"{where}: {theirs} instead of {ours}" for where, ours, theirs in _differences(wanted, found)]
    assert not differences, "\n".join(differences)


def _differences(wanted: Any, found: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from _differences(wanted.get(key), found.get(key), f"{where}/{key}")
    elif wanted != found:
        yield where, wanted, found


def _expect_unknown(wanted: View, found: View, name: str) -> None:
    """Once or not at all outside; `unknown` in the journal; a person's business."""
    subject, step, effect = name.split(" | ")
    run = wanted["runs"][subject]
    iteration = step.partition(".")[0]
    run |= {"status": "ready_for_handoff", "reason": "effect_unknown"}
    run["handoffs"] = [["effect_unknown", "owner", "open"]]
    run["steps"][step] |= {"outputs": {}, "conditions": ["effect_unknown"]}
    run["steps"][f"{iteration}.decide.@decision"]["outputs"] |= {"outcome": "handoff", "reason": "effect_unknown"}
    run["receipts"].pop(step)
    run["told"] = [
        "decided handoff effect_unknown" if line.startswith("decided") else line
        for line in run["told"]
        if not line.startswith("run.ended")
    ] + ["handoff.opened effect_unknown", "run.ended ready_for_handoff effect_unknown"]
    wanted["effects"][name] = "unknown"
    wanted["unproven"].append(f"{subject}: effect <{name}> {effect} unknown")
    _forget_artifacts(wanted, found, subject, step)
    shipped = found["outside"].setdefault("shipped", [])
    if (mark := subject.split("/")[1]) not in shipped:
        found["outside"]["shipped"] = sorted([*shipped, mark])


def _expect_look_up(wanted: View, found: View, name: str) -> None:
    subject, step, _ = name.split(" | ")
    receipts = wanted["runs"][subject]["receipts"], found["runs"][subject]["receipts"]
    unharmed, looked_up = receipts[0].pop(step), receipts[1].pop(step)
    proven = "look_up 0" in looked_up or set(unharmed) <= set(looked_up)
    assert proven, f"{name}: {looked_up}"
    assert set(looked_up) <= {*unharmed, "look_up 0", "look_up 1"}, f"{name}: {looked_up}"
    _forget_artifacts(wanted, found, subject, step)


def _expect_on_its_way(wanted: View, found: View, name: str) -> None:
    subject, step, _ = name.split(" | ")
    for view in (wanted, found):
        state = view["runs"][subject]["steps"][step]["outputs"].pop("state")
        assert state in ("intended", "retrying", "done")


def _allow_earlier_end(wanted: View, found: View, subject: str) -> None:
    """Where the lost call used up the budget, the run ends sooner, for the same reason; until then all is the same."""
    ours, theirs = wanted["runs"][subject], found["runs"][subject]
    if theirs["reason"] == "budget_exhausted":
        last = f"{theirs['iteration']}."
        before = {name: step for name, step in theirs["steps"].items() if not name.startswith(last)}
        assert before.items() <= ours["steps"].items()
        assert theirs["iteration"] <= ours["iteration"]
        for view in (wanted, found):
            kept = ("loop", "status", "reason", "handoffs", "spent", "trigger")
            view["runs"][subject] = {"told": [], **{key: view["runs"][subject][key] for key in kept}}


def _allow_double_payment(wanted: View, found: View, subject: str) -> None:
    """A call that was made and lost is paid for, and so is the one that replaces it; nothing is paid too little."""
    ours, theirs = wanted["runs"][subject]["spent"], found["runs"][subject]["spent"]
    assert all(theirs[kind] >= amount - 1e-9 for kind, amount in ours.items()), f"{subject}: {theirs}, not {ours}"
    found["runs"][subject]["spent"] = ours


def _forget_artifacts(wanted: View, found: View, subject: str, step: str) -> None:
    for view in (wanted, found):
        run = view["runs"][subject]
        run["artifacts"] = [item for item in run["artifacts"] if not item.startswith(f"{step} ")]


def _plain(run: View) -> View:
    """The story in its order, but for the effects: a notice may arrive after the run has ended."""
    if run["loop"] == UNSTEADY:
        return _end_of(run)
    for step in (step for step in run.get("receipts", {}) if step.endswith(TRIED_AGAIN)):
        run["receipts"][step] = run["receipts"][step][:1]  # the try that succeeded
    settled = sorted(line for line in run["told"] if line.startswith("effect.settled"))
    return {**run, "told": [line for line in run["told"] if line not in settled], "settled": settled}


def _end_of(run: View) -> View:
    last = {name.partition(".")[2]: step for name, step in run["steps"].items()}
    kept = ("loop", "status", "reason", "counted", "trigger", "parent", "handoffs", "spent")
    return {**{key: run[key] for key in kept}, "steps": {name: last[name] for name in ("act.each", "act.stand")}}


def _compare_console(wanted: list[str], found: list[str], in_doubt: dict[str, Doubt]) -> None:
    """A repeatable notice is seen, and once more at most where nobody could tell."""
    repeated = [name for name, doubt in in_doubt.items() if doubt.class_ == "repeatable"]
    assert set(found) == set(wanted)
    assert (Counter(found) - Counter(wanted)).total() <= len(repeated)


def no_stray_process(folder: Path, patience: float = 60.0) -> None:
    """Nothing that belongs to the case is alive: by working directory or environment (L19, L26)."""
    until = time.monotonic() + patience
    while alive := _of_case(os.fsencode(folder)):
        assert time.monotonic() < until, f"processes outlived their case: {alive}"
        time.sleep(0.02)


def _of_case(folder: bytes) -> dict[int, str]:
    alive = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            said = (process / "environ").read_bytes() + os.fsencode((process / "cwd").readlink())
            if folder in said:
                alive[int(process.name)] = (process / "cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # it is gone, or another user's
    return alive
