"""A run's story as something Rich can print: the same for the live view, `becket run` and `becket runs show`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from becket.app.record.quota import quota_of
from becket.app.record.report.plain import because
from becket.cli import words
from becket.cli.agent_lines import used_words
from becket.cli.plain import clock, digests_shortened, line, safe, short, took, who
from becket.cli.proof import proof_sections
from becket.cli.status_screen import quota_back, waits_words
from becket.cli.timeline import IterationView, RowMark, TimelineRow, passages
from becket.kernel.contract.agent import AgentOutcome
from becket.kernel.contract.calls import AgentCall
from becket.kernel.contract.effect import Effect, EffectState
from becket.kernel.contract.events import EventKind
from becket.kernel.contract.handoff import Approval, ApprovalState, Handoff, HandoffState
from becket.kernel.contract.reasons import reason_words
from becket.kernel.contract.run import ENDED, Run, RunStatus, StepState
from becket.kernel.contract.spec import Signal
from becket.kernel.contract.state import state_seen

if TYPE_CHECKING:
    from becket.app.record.report.model import Report
    from becket.app.record.story import Story


@dataclass(frozen=True, slots=True)
class Marks:
    """The signs of a timeline, for terminals with and without them."""

    signs: dict[RowMark, str]
    branch: str
    corner: str
    box: box.Box


UNICODE = Marks(
    {
        RowMark.done: "✓", RowMark.failed: "✗", RowMark.undecided: "?", RowMark.skipped: "·", RowMark.current: "▸",
        RowMark.pending: "○", RowMark.left_out: "–", RowMark.decision: "→",
    },
    "├ ", "└ ", box.ROUNDED,
)  # fmt: skip
ASCII = Marks(
    {
        RowMark.done: "+", RowMark.failed: "x", RowMark.undecided: "?", RowMark.skipped: ".", RowMark.current: ">",
        RowMark.pending: "o", RowMark.left_out: "-", RowMark.decision: "=",
    },
    "| ", "` ", box.ASCII,
)  # fmt: skip

STYLES = {
    RowMark.done: "green", RowMark.failed: "bold red", RowMark.undecided: "yellow", RowMark.skipped: "dim",
    RowMark.current: "bold cyan", RowMark.pending: "dim", RowMark.left_out: "dim", RowMark.decision: "bold",
}  # fmt: skip
STATUS_STYLES = {
    RunStatus.completed: "bold green", RunStatus.completed_dry_run: "bold green",
    RunStatus.ready_for_handoff: "bold yellow", RunStatus.failed: "bold red", RunStatus.cancelled: "bold magenta",
    RunStatus.waiting: "bold yellow", RunStatus.running: "bold cyan", RunStatus.queued: "dim",
}  # fmt: skip
EFFECT_STYLES = {
    EffectState.done: "green", EffectState.failed: "bold red", EffectState.refused: "bold red",
    EffectState.unknown: "bold yellow",
}  # fmt: skip

NAME_WIDTH, WIDEST_NAME = 10, 20
MOST_REASONS = 8


def render_story(story: Story, marks: Marks = UNICODE, report: Report | None = None) -> RenderableType:
    """The whole story; with its report also what was proven, and how."""
    found = passages(story)
    parts: list[RenderableType] = [head(story)]
    for passage in found:
        parts += [Text(), _passage(passage, marks, numbered=len(found) > 1)]
    if report is not None:
        parts += proof_sections(report)
    parts += _sections(story)
    parts += [part for box_ in boxes(story, marks) for part in (Text(), box_)]
    return Group(*parts)


def head(story: Story) -> RenderableType:
    run = story.run
    title = Text.assemble((safe(run.loop_id), "bold"), "  ", line(digests_shortened(run.subject.name)))
    status = Text(status_words(story), STATUS_STYLES[run.status])
    return Group(_row(title, status), Text("  ".join(_about(story)), "dim"))


def status_words(story: Story) -> str:
    run = story.run
    said = words.STATUS[run.status.value]
    if run.held:
        return f"{said}, held"
    if run.status in ENDED:
        return f"{said} in {took(max((run.ended_at or story.now) - run.created_at, 0.0))}"
    if run.cancel_asked:
        return f"{said}, stopping"
    return f"{said}, {took(max(story.now - run.created_at, 0.0))}"


def _about(story: Story) -> Iterator[str]:
    run = story.run
    yield run.run_id
    yield f"{run.trigger} by {who(run.by, _via(story))}"
    yield clock(run.created_at, story.now)
    if run.dry_run:
        yield "dry run"
    if run.autonomy is not None:
        yield f"autonomy {run.autonomy.value}"
    if run.retry_of:
        yield f"retry of {run.retry_of}"
    if run.parent:
        yield f"child of {run.parent}"


def _via(story: Story) -> object:
    """The way in by which the run was asked for: its first event says so."""
    return story.events[0].data.get("via") if story.events else None


def _passage(passage: IterationView, marks: Marks, *, numbered: bool) -> RenderableType:
    rows = marked_rows(passage.rows, marks)
    if not numbered:
        return rows
    return Group(_row(Text(f"iteration {passage.number}", "bold"), took(passage.seconds)), rows)


def marked_rows(rows: Sequence[TimelineRow], marks: Marks) -> RenderableType:
    grid = _grid()
    width = max((len(row.name) for row in rows if row.depth and row.text), default=0)
    for row in rows:
        grid.add_row(_told_row(row, marks, min(width, WIDEST_NAME)), Text(row.right, "dim"))
    return grid


def _told_row(row: TimelineRow, marks: Marks, width: int) -> Text:
    style = STYLES[row.mark]
    sign = (marks.signs[row.mark] + " ", style)
    if row.depth == 0:
        quiet = row.mark in (RowMark.pending, RowMark.left_out, RowMark.skipped)
        return Text.assemble(sign, (row.name.ljust(NAME_WIDTH), "dim" if quiet else "bold"), " ", (row.text, "dim"))
    if row.mark is RowMark.decision:
        return Text.assemble("  ", (marks.corner if row.last else marks.branch, "dim"), sign, (row.name, "bold"))
    loud = row.mark in (RowMark.failed, RowMark.undecided)
    quiet = row.mark is RowMark.skipped
    name = row.name.ljust(width) if row.text else row.name
    return Text.assemble(
        "  ", (marks.corner if row.last else marks.branch, "dim"), sign,
        (name, style if loud or quiet or row.mark is RowMark.current else ""), "  " if row.text else "",
        (row.text, style if loud or quiet else "cyan"),
    )  # fmt: skip


def _sections(story: Story) -> Iterator[RenderableType]:
    yield from _section("agents", [_call(item, story.now) for item in story.calls])
    yield from _section("effects", [(_effect(item), "") for item in story.effects])
    yield from _section("outputs", [(_output(*item), "") for item in _outputs(story)])
    yield from _section("state", [(Text(words.state_ref(item)), "") for item in state_seen(story.events)])
    yield from _section("receipts", [_receipt(story, number) for number in range(len(story.receipts))])
    if story.run.status in ENDED and story.run.status is not RunStatus.completed:
        yield from _section("why", [(Text(text), "") for text in why(story.run)])


def _section(title: str, rows: Sequence[tuple[Text, str]]) -> Iterator[RenderableType]:
    if rows and not any(right for _, right in rows):
        yield from (Text(), Text(title, "bold"), *(Text.assemble("  ", text) for text, _ in rows))
    elif rows:
        grid = _grid()
        for text, right in rows:
            grid.add_row(Text.assemble("  ", text), Text(right, "dim"))
        yield Text()
        yield Text(title, "bold")
        yield grid


def _call(call: AgentCall, now: float) -> tuple[Text, str]:
    end = call.end
    if end is None:
        return Text.assemble(call.agent, "  ", (words.CALL_OPEN, "yellow")), took(max(now - call.began_at, 0.0))
    over = f"  {words.CALL_OVER.format(what=', '.join(end.over))}" if end.over else ""
    good = end.outcome is AgentOutcome.changed
    said = Text.assemble(
        line(call.agent, 40), "  ", (end.outcome.value.replace("_", " "), "green" if good else "bold yellow"), "  ",
        (used_words(end.usage), "cyan"), (over, "bold red"),
        ("" if good or not end.reason else f"  {line(end.reason)}", "dim"),
    )  # fmt: skip
    return said, took(end.usage.seconds)


def _effect(effect: Effect) -> Text:
    state = (effect.state.value.replace("_", " "), EFFECT_STYLES.get(effect.state, "yellow"))
    why = f"  {line(effect.reason)}" if effect.reason else ""
    return Text.assemble(effect.call.name, "  ", (line(effect.call.target, 80), "cyan"), "  ", state, (why, "dim"))


def _outputs(story: Story) -> Iterator[tuple[str, object]]:
    """The last value of what the loop keeps and what its commands made; the rest only serves other steps."""
    kept = {ref for phase in story.spec.phases.values() for ref in phase.persist_outputs}
    commands = {action.id for action in story.spec.output_makers().values() if action.run is not None}
    last = {
        f"{step.id}.{name}": value
        for step in story.steps
        for name, value in step.outputs.items()
        if step.state is StepState.done and (step.id in commands or f"{step.id}.{name}" in kept)
    }
    yield from last.items()


def _output(name: str, value: object) -> Text:
    text = safe(value).strip()
    count = len(text.splitlines())
    more = f"  ({count} lines)" if count > 1 else ""
    return Text.assemble(
        name, "  ", (digests_shortened(line(text.splitlines()[0] if text else "", 64)), "cyan"), (more, "dim")
    )


def _receipt(story: Story, number: int) -> tuple[Text, str]:
    item = story.receipts[number]
    code = item.receipt.exit_code
    log = f"  log {short(item.receipt.log)}" if item.receipt.log else ""
    said = Text.assemble(
        (short(item.digest), "cyan"), f"  {item.phase}.{item.action_id}  ",
        (f"exit {code}" if code is not None else item.receipt.kind, "green" if code == 0 else "yellow"), (log, "dim"),
    )  # fmt: skip
    return said, took(item.ended_at - item.started_at)


def why(run: Run) -> Iterator[str]:
    """The reason of an end that is not success, with what is behind it."""
    yield reason_words(run.reason)
    for key, value in run.detail.items():
        if value in (None, "", {}):
            continue
        for item in value if isinstance(value, list) else [value]:
            yield digests_shortened(line(f"{key.replace('_', ' ')}: {item}", 240))


def boxes(story: Story, marks: Marks = UNICODE) -> Iterator[RenderableType]:
    """What a person can do now, with the exact commands."""
    for approval in story.approvals:
        if approval.state is ApprovalState.asked and story.run.status not in ENDED:
            yield _box(f"{approval.approval_id} waits for a decision", _approval(approval, story.now), marks)
    for handoff in story.handoffs:
        if handoff.state in (HandoffState.open, HandoffState.taken):
            yield _box(f"{handoff.handoff_id} for {line(handoff.owner, 40)}", _handoff(handoff), marks)
    if story.run.status is RunStatus.waiting and not any(item.state is ApprovalState.asked for item in story.approvals):
        yield _box("waits", _waits(story), marks)


def _box(title: str, body: Text, marks: Marks) -> Panel:
    return Panel(body, title=Text(title), title_align="left", border_style="yellow", box=marks.box, padding=(0, 1))


def _approval(approval: Approval, now: float) -> Text:
    about = f"for {approval.role}, about {short(approval.bound_to)}, until {clock(approval.expires_at, now)}"
    return Text.assemble(
        safe(approval.question).strip(), "\n", (about, "dim"), "\n",
        (f"becket approve {approval.approval_id}", "bold"), "\n", (f"becket deny {approval.approval_id}", "bold"),
    )  # fmt: skip


def _because(handoff: Handoff) -> str:
    return "".join(f"- {line(why)}\n" for why in because(handoff.evidence)[:MOST_REASONS])


def _handoff(handoff: Handoff) -> Text:
    verb = "done" if handoff.state is HandoffState.taken else "take"
    taken = f"taken by {line(handoff.taken_by, 40)}\n" if handoff.taken_by else ""
    return Text.assemble(
        reason_words(handoff.reason), "\n", _because(handoff), (taken, "dim"), (safe(handoff.next_step), "dim"), "\n",
        (f"becket handoffs {verb} {handoff.handoff_id}", "bold"),
    )  # fmt: skip


def _waits(story: Story) -> Text:
    run = story.run
    lines = []
    for name in run.waiting_on:
        wait = story.spec.wait_conditions.get(name)
        quota = quota_of(story.calls) if name == words.QUOTA_WAIT else None
        wakes = quota_back(quota, story.now) if quota else _wakes(story, name, wait.wake) if wait else ""
        most = f", at most {took(wait.for_)}" if wait else ""
        since = clock(run.waits_since.get(name, run.updated_at), story.now)
        lines.append(f"for {waits_words(name, quota)}{wakes}{most}, since {since}")
        lines += _why_it_waits(story, name)
    return Text.assemble("\n".join(lines), "\n", (f"becket drop {run.run_id}", "bold"), ("  gives it up", "dim"))


def _wakes(story: Story, name: str, wake: str) -> str:
    told = [event.data["waits"] for event in story.events if event.kind is EventKind.run_waiting]
    due = [row["due"] for row in told[-1] if row["condition"] == name] if told else []
    if wake == Signal.clock and due:
        return f", looks again {clock(due[0], story.now)}"
    return f", wakes on {words.WAKES.get(wake, wake)}"


def _why_it_waits(story: Story, name: str) -> list[str]:
    """In the words of whoever raised it last."""
    raised = [one for step in story.steps for one in step.conditions if one.ref == name]
    return [line(told)] if raised and (told := raised[-1].evidence.get("message")) else []


def _grid() -> Table:
    grid = Table.grid(expand=True, padding=(0, 0, 0, 2), pad_edge=False)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_column(justify="right", no_wrap=True)
    return grid


def _row(text: Text, right: str | Text) -> Table:
    grid = _grid()
    grid.add_row(text, right if isinstance(right, Text) else Text(right, "dim"))
    return grid
