"""One line per event of a run: for pipes, logs and `becket runs events`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from becket.cli import words
from becket.cli.agent_lines import used_words
from becket.cli.plain import clock, digests_shortened, evidence, line, short, took, who
from becket.kernel.contract.agent import Usage
from becket.kernel.contract.events import Event, EventKind
from becket.kernel.contract.reasons import reason_words, wait_words

Data = Mapping[str, Any]


def event_line(event: Event, now: float | None = None) -> str:
    """`14:03:22  discover.scan done in 0.30s, raised links.broken`."""
    try:
        said = _SAYS[event.kind](event.data)
    except (KeyError, TypeError, ValueError):  # written by another version: tell it as it is
        said = f"{event.kind.value} ({evidence(event.data)})"
    return f"{clock(event.at, now)}  {line(said, 300)}"


def plain_line(event: Event, now: float | None = None) -> str:
    """The same for whoever only follows: no workers, no conditions, nothing that was skipped. "" says nothing."""
    try:
        said = _PLAINLY[event.kind](event.data) if event.kind in _PLAINLY else ""
        said += f"  {event.run_id}" if event.kind is EventKind.run_created else ""
    except (KeyError, TypeError, ValueError):
        return ""
    return f"{clock(event.at, now)}  {line(said, 300)}" if said else ""


def _plain_step(data: Data) -> str:
    """A step that is over at once and says nothing is no news."""
    named = [words.condition(str(name)) for name in data.get("conditions", ())]
    named = [name for name in named if name != "pass"]
    if not named and data.get("seconds", 0.0) < 1.0:
        return ""
    return f"{data['id']}{': ' + ', '.join(named) if named else ''}  ({took(data.get('seconds', 0.0))})"


def _created(data: Data) -> str:
    dry = ", dry run" if data.get("dry_run") else ""
    told = {"its subject": data["subject"], **data.get("fields", {}), **data.get("inputs", {})}
    hidden = [name for name, value in told.items() if "[redacted:" in str(value)]
    without = f"; a secret was taken out of {', '.join(hidden)}" if hidden else ""
    return f"{data['loop_id']} on {data['subject']} asked for by {_by(data)} ({data['trigger']}{dry}){without}"


def _by(data: Data) -> str:
    return who(data["by"], data.get("via"))


def _step(data: Data, how: str) -> str:
    parts = [f"{data['phase']}.{data['id']} {how}"]
    if data.get("seconds") and how != "skipped":
        parts[0] += f" in {took(data['seconds'])}"
    if data.get("attempts"):
        parts.append(f"{data['attempts']} attempts")
    if data.get("conditions"):
        parts.append(f"raised {' '.join(data['conditions'])}")
    if data.get("error"):
        parts.append(f"{data.get('kind') or 'error'}: {data['error']}")
    if data.get("note"):
        parts.append(str(data["note"]))
    return ", ".join(parts)


def _waiting(data: Data) -> str:
    return f"waits for {' and '.join(map(_wait, data['waits']))}"


def _wait(row: Data) -> str:
    wake = words.WAKES.get(row["wake"], row["wake"])
    return f"{wait_words(row['condition'])} (wakes on {wake}, until {clock(row['expires'])})"


def _woken(data: Data) -> str:
    names = [str(item.get("name")) for item in data.get("signals", ())]
    return f"woken by {data.get('by', 'a signal')}{': ' + ', '.join(names) if names else ''}"


def _effect(data: Data) -> str:
    why = f": {data['reason']}" if data.get("reason") else ""
    return f"effect {data['name']} on {data['target']} {data['state']}{why}"


def _approval(data: Data) -> str:
    by = f" by {_by(data)}" if data.get("by") else ""
    return f"{data['approval_id']} is {data['state']}{by}{': ' + data['note'] if data.get('note') else ''}"


def _asked(data: Data) -> str:
    return f"asks the {data['role']}: {data['question']} (becket approve {data['approval_id']})"


def _call_settled(data: Data) -> str:
    used = Usage.model_validate(data["usage"])
    return f"{data['agent']} {data['outcome'].replace('_', ' ')}, used {took(used.seconds)}, {used_words(used)}"


def _leapt(data: Data) -> str:
    slept = f", the machine was suspended for {took(data['slept'])}" if data["slept"] else ""
    return f"the clock jumped by {data['jump'] / 3600:+.2f} h{slept}; what is due was moved along"


def _amounts(amounts: Mapping[str, float]) -> str:
    said = [took(amount) if kind == "agent_time" else f"{amount:.10g} {kind}" for kind, amount in amounts.items()]
    return ", ".join(said) or "nothing"


_SAYS: dict[EventKind, Callable[[Data], str]] = {
    EventKind.run_created: _created,
    EventKind.run_claimed: lambda data: f"at work (worker {data['worker']}, segment {data['segment']})",
    EventKind.run_requeued: lambda data: f"queued again: {data.get('why', 'its worker is gone')}",
    EventKind.run_waiting: _waiting,
    EventKind.run_woken: _woken,
    EventKind.run_ended: lambda data: (
        f"{words.STATUS.get(data['status'], data['status'])}: {reason_words(str(data['reason']))}"
    ),
    EventKind.run_held: lambda data: f"held by {_by(data)}",
    EventKind.run_unheld: lambda data: f"let go by {_by(data)}",
    EventKind.run_migrated: lambda data: f"moved to spec {short(str(data['to']))} by {_by(data)}",
    EventKind.cancel_asked: lambda data: (
        f"{_by(data)} asked to cancel it{': ' + data['note'] if data.get('note') else ''}"
    ),
    EventKind.iteration_started: lambda data: f"iteration {data['iteration']} begins",
    EventKind.phase_entered: lambda data: f"{data['phase']}",
    EventKind.step_done: lambda data: _step(data, "done"),
    EventKind.step_skipped: lambda data: _step(data, "skipped"),
    EventKind.step_failed: lambda data: _step(data, "failed"),
    EventKind.decided: lambda data: f"decided: {data['outcome']}, {reason_words(str(data['reason']))}",
    EventKind.effect_intended: _effect,
    EventKind.effect_settled: _effect,
    EventKind.signal_received: lambda data: f"signal {data['name']}",
    EventKind.approval_asked: _asked,
    EventKind.approval_decided: _approval,
    EventKind.approval_used: lambda data: f"{data['approval_id']} is used",
    EventKind.handoff_opened: lambda data: (
        f"handed to {data['owner']}: {reason_words(str(data['reason']))} (becket handoffs show {data['handoff_id']})"
    ),
    EventKind.handoff_changed: lambda data: (
        f"{data['handoff_id']} is {data['state']}{' by ' + _by(data) if data.get('by') else ''}"
    ),
    EventKind.child_started: lambda data: f"process {data['pid']} started: {' '.join(map(str, data['argv']))}",
    EventKind.child_ended: lambda data: f"process {data['pid']} is gone",
    EventKind.call_booked: lambda data: f"{data['agent']} may use {_amounts(data['booked'])}",
    EventKind.call_settled: _call_settled,
    EventKind.spent: lambda data: f"used {_amounts(data['used'])}",
    EventKind.artifacts_dropped: lambda data: f"{data['count']} artifacts dropped by retention",
    EventKind.clock_leapt: _leapt,
    EventKind.note: lambda data: str(data.get("text") or evidence(data)),
}

_PLAINLY: dict[EventKind, Callable[[Data], str]] = {
    EventKind.run_created: lambda data: f"{data['loop_id']} on {digests_shortened(str(data['subject']))}",
    EventKind.run_requeued: _SAYS[EventKind.run_requeued],
    EventKind.run_waiting: _waiting,
    EventKind.run_woken: _woken,
    EventKind.run_held: _SAYS[EventKind.run_held],
    EventKind.run_unheld: _SAYS[EventKind.run_unheld],
    EventKind.cancel_asked: _SAYS[EventKind.cancel_asked],
    EventKind.iteration_started: lambda data: f"iteration {data['iteration']}" if data["iteration"] > 1 else "",
    EventKind.step_done: _plain_step,
    EventKind.step_failed: lambda data: f"{data['id']} failed: {data.get('error') or data.get('kind', '')}",
    EventKind.approval_asked: _asked,
    EventKind.call_booked: lambda data: f"{data['agent']} is asked",
    EventKind.call_settled: _call_settled,
    EventKind.clock_leapt: _leapt,
    EventKind.note: _SAYS[EventKind.note],
}
"""What a pipe is told of a run; `--all` and `becket runs events` have the rest."""
