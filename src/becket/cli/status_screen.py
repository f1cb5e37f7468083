"""Everything that matters now, in one screen. Imports no Typer, pydantic or SQLAlchemy: it answers at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from becket.cli import words
from becket.cli.output import emit, say_wrapped
from becket.cli.plain import (
    UNTOLD,
    Paint,
    clock,
    digests_shortened,
    line,
    money,
    safe,
    short,
    tokens,
    took,
    who,
)
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.reasons import reason_words, wait_words

if TYPE_CHECKING:
    from becket.app.record.quota import QuotaNow
    from becket.app.record.status import HandoffNow, RunNow, Snapshot, SpentNow


MOST_LINES = 10
"""Of a question that says what it is about."""


def show_status(as_json: bool) -> None:
    """What `becket status` does."""
    from becket.app.record.status import take
    from becket.app.state import find_state

    snapshot = take(find_state())
    if as_json:
        emit(asdict(snapshot))
        return
    for text in status_lines(snapshot, Paint()):
        say_wrapped(text)


def status_lines(now: Snapshot, paint: Paint) -> Iterator[str]:
    yield from _main(now, paint)
    yield from _house(now, paint)
    yield from _alerts(now, paint)
    yield from _services(now, paint)
    yield from queue_words(now, paint)
    yield from _approvals(now, paint)
    yield from _handoffs(now, paint)
    yield from _paused(now, paint)
    yield from _fires(now, paint)
    if not now.configured:
        yield from ("", words.STATUS_NO_CONFIG)
    if not now.counts:
        yield from ("", words.STATUS_NO_RUNS)
    elif now.engine is None and not now.drivers and not all(_paused_by(run, now) for run in now.queued):
        yield from ("", paint.yellow(words.STATUS_QUEUE))


def queue_words(now: Snapshot, paint: Paint) -> Iterator[str]:
    yield from _section("at work", now.running, lambda run: _at_work(run, now), paint)
    yield from _section("queued", now.queued, lambda run: _queued(run, now), paint)
    yield from _section("waiting", now.waiting, lambda run: _waiting(run, now.now, now.engine), paint)


def _main(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.main is not None:
        from becket.cli.main_words import main_line

        color = {"green": paint.green, "red": paint.red}.get(now.main.state, paint.yellow)
        yield color(main_line(now.main, now.now))


def _house(now: Snapshot, paint: Paint) -> Iterator[str]:
    yield f"{paint.dim('repository')}  {now.root}"
    yield f"{paint.dim('daemon')}      {daemon_words(now, paint)}"
    if now.daemon is not None or now.watchdog is not None:
        yield f"{paint.dim('watchdog')}    {watchdog_words(now, paint)}"
    if now.autonomy is not None:
        yield f"{paint.dim('autonomy')}    {now.autonomy.allowed}{now.autonomy.why}"
    if now.trust:
        yield paint.yellow(now.trust)
    if now.counts:
        counts = ", ".join(f"{count} {words.STATUS.get(name, name)}" for name, count in now.counts.items())
        yield f"{paint.dim('runs')}        {counts}"
    if now.spent is not None:
        yield f"{paint.dim('agents')}      {spent_words(now.spent)}"
    for trouble in filter(None, (now.trouble, now.unwritable)):
        yield paint.red(safe(trouble))


def spent_words(spent: SpentNow) -> str:
    """`today 3 calls, 2m10s, 120,000 tokens, $0.4100`."""
    calls = "1 call" if spent.calls == 1 else f"{spent.calls} calls"
    at_work = f" ({spent.open} open)" if spent.open else ""
    ended = spent.calls - spent.open
    told = f"{tokens(spent.tokens, ended > spent.unpriced)}, {money(spent.usd, not spent.unpriced)}"
    if not spent.tokens and not spent.usd and ended == spent.unpriced:
        told = UNTOLD
    used = f"{took(spent.seconds)}, {told}"
    return words.STATUS_SPENT.format(calls=f"{calls}{at_work}", used=used)


def watchdog_words(now: Snapshot, paint: Paint) -> str:
    if now.watchdog is None:
        return paint.red(words.STATUS_DOWN)
    if now.watchdog_deaf:
        kept = now.daemon is not None and not now.daemon_deaf
        return paint.red(_deaf(now.watchdog, now.watchdog_deaf, "daemon" if kept else ""))
    return paint.green(words.STATUS_UP.format(pid=now.watchdog))


def _deaf(pid: int, silent: float, keeper: str) -> str:
    following = words.DEAF_KEPT.format(other=keeper) if keeper else words.DEAF_ALONE
    return words.STATUS_DEAF.format(pid=pid, silent=took(silent), next=following)


def daemon_words(now: Snapshot, paint: Paint) -> str:
    if now.daemon is not None and now.daemon_deaf:
        kept = now.watchdog is not None and not now.watchdog_deaf
        return paint.red(_deaf(now.daemon, now.daemon_deaf, "watchdog" if kept else ""))
    if now.daemon is not None:
        return paint.green(words.STATUS_UP.format(pid=now.daemon))
    if now.starting is not None:
        return paint.yellow(words.STATUS_STARTING.format(pid=now.starting))
    if now.wanted:
        return paint.red(words.STATUS_LOST)
    if now.drivers:
        return words.STATUS_SIDE.format(pid=now.drivers[0])
    return words.STATUS_DOWN


def _alerts(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.alerts:
        yield from ("", paint.bold("alerts"))
    for alert in now.alerts:
        times = f" ({alert.count} times)" if alert.count > 1 else ""
        yield paint.red(f"  ! {line(alert.text, 400).removesuffix('.')}{times}, since {clock(alert.since, now.now)}")


def _services(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.services:
        yield from ("", paint.bold("services"))
    for item in now.services:
        state = paint.green(item.state) if item.state == "up" else paint.yellow(item.state)
        release = f"  {short(item.sha)}" if item.sha else ""
        unwatched = f"  {words.SERVICE_ALONE}" if item.wanted and not item.supervised else ""
        detail = f"  {line(item.detail)}" if item.detail else ""
        yield f"  {item.name}  {state}{paint.dim(release + detail)}{paint.red(unwatched)}"


def _section(title: str, runs: tuple[RunNow, ...], tell: Callable[[RunNow], str], paint: Paint) -> Iterator[str]:
    if runs:
        yield from ("", paint.bold(title))
    for run in runs:
        subject = digests_shortened(line(run.subject, 60))
        held = paint.yellow(f"  held: becket hold {run.run_id} --off") if run.held else ""
        yield f"  {paint.cyan(run.run_id)}  {run.loop_id}  {subject}  {paint.dim(tell(run))}{held}"


def _at_work(run: RunNow, snapshot: Snapshot) -> str:
    now = snapshot.now
    if run.nobody_since is not None:
        said = words.STATUS_UNWRITTEN if snapshot.unwritable else words.STATUS_NOBODY_AT_WORK
        return said.format(run_id=run.run_id, took=took(now - run.nobody_since))
    where = f"{run.phase}, after {run.step.replace('@', '')}" if run.phase else "beginning"
    again = f"iteration {run.iteration}, " if run.iteration > 1 else ""
    return f"{again}{where}, for {took(now - run.since)}"


def _queued(run: RunNow, snapshot: Snapshot) -> str:
    alone = "" if run.nobody_since is None else words.STATUS_NOBODY_TAKES_IT.format(run_id=run.run_id)
    scope = _paused_by(run, snapshot)
    if scope:
        alone = words.STATUS_KEPT_BY_PAUSE.format(what=words.scope(scope), mend=words.pause_command(scope))
    return f"for {took(snapshot.now - run.since)}{alone}"


def _paused_by(run: RunNow, now: Snapshot) -> str:
    """Nobody goes on with a run of a loop that is paused: neither a daemon nor a command."""
    return next((item.scope for item in now.paused if item.scope in ("all", f"loop:{run.loop_id}")), "")


def _waiting(run: RunNow, now: float, engine: int | None) -> str:
    due = min((at for at in (run.looks_at, run.until) if at is not None), default=now)
    if due < now and engine is None and not run.held:
        waits = " and ".join(waits_words(name, run.quota) for name in run.waits_for)
        return f"for {waits}; {words.STATUS_OVERDUE.format(run_id=run.run_id, since=clock(due, now))}"
    signals = [words.WAKES.get(wake, wake) for wake in run.wakes_on if wake != "clock" or run.looks_at is None]
    wakes = f", wakes on {' or '.join(signals)}" if signals else ""
    again = f", looks again {clock(run.looks_at, now)}" if run.looks_at else ""
    until = f", until {clock(run.until, now)}" if run.until else ""
    if run.quota is not None:
        again = quota_back(run.quota, now) if run.quota.back is not None else again or words.QUOTA_UNTOLD
        until = until.replace(", until", ", gives up")
    waits = " and ".join(waits_words(name, run.quota) for name in run.waits_for)
    return f"for {waits}{wakes}{again}, since {clock(run.since, now)}{until}"


def waits_words(name: str, quota: QuotaNow | None) -> str:
    """`the quota of the agent fixer`, or the condition's name."""
    if quota and name == words.QUOTA_WAIT:
        return words.QUOTA_OF.format(agent=line(quota.agent, 60))
    return wait_words(name)


def quota_back(quota: QuotaNow, now: float) -> str:
    return f", back {clock(quota.back, now)}" if quota.back is not None else words.QUOTA_UNTOLD


def _approvals(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.approvals:
        yield from ("", paint.bold("decisions to make"))
    for item in now.approvals:
        about = f"for {item.role}, about {short(item.bound_to)}, until {clock(item.expires_at, now.now)}"
        first, *more = item.question.strip().split("\n")
        yield f"  {line(first)}  {paint.dim(about)}"
        yield from (f"    {line(text)}" for text in more[:MOST_LINES])
        yield f"    becket approve {item.approval_id}   or   becket deny {item.approval_id}"


def _handoffs(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.handoffs:
        yield from ("", paint.bold("handed to people"))
    for item in now.handoffs:
        taken = f", {'taken' if item.state == 'open' else item.state} by {safe(item.taken_by)}" if item.taken_by else ""
        about = f"{item.loop_id} {digests_shortened(line(item.subject, 60))}"
        yield f"  {line(item.owner, 40)}: {about}, {reason_words(item.reason)}{taken}"
        if item.cause:
            yield f"    {line(item.cause, 200)}"
        yield f"    {_next(item)}"


def _next(item: HandoffNow) -> str:
    if item.reason in REASONS:
        return f"becket proposals show {item.run_id}   then   becket proposals accept {item.run_id}"
    verb = "done" if item.taken_by else "take"
    return f"becket handoffs show {item.handoff_id}   then   becket handoffs {verb} {item.handoff_id}"


def _paused(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.paused:
        yield from ("", paint.bold("paused"))
    for item in now.paused:
        note = f" ({line(item.note, 80)})" if item.note else ""
        what = paint.yellow(words.scope(item.scope))
        yield f"  {what} by {who(item.by, item.via)}{note}: {words.pause_command(item.scope)}"


def _fires(now: Snapshot, paint: Paint) -> Iterator[str]:
    if now.fires:
        yield from ("", paint.bold("next by the clock"))
    for fire in now.fires[:5]:
        late = paint.red("  late") if fire.at < now.now - 60 else ""
        yield f"  {clock(fire.at, now.now)}  {fire.loop_id}{late}"
