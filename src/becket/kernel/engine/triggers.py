"""Commits, events and ended runs start loops: at least once tried, at most one run per cause (L2, L42)."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from becket.kernel.contract.base import Json
from becket.kernel.contract.caller import BECKET, Caller
from becket.kernel.contract.crash import CrashPoint
from becket.kernel.contract.effect import EffectState
from becket.kernel.contract.errors import BecketError, NotFound, StartRefused, StoreUnavailable
from becket.kernel.contract.events import EventKind, NewEvent
from becket.kernel.contract.git import Git, RefMoved
from becket.kernel.contract.handoff import Handoff, HandoffState
from becket.kernel.contract.loop import LoadedLoop, Loops
from becket.kernel.contract.ready import REASONS
from becket.kernel.contract.run import NewRun, Run, RunStatus, Started
from becket.kernel.contract.spec import CommitTrigger, EventTrigger, LoopSpec
from becket.kernel.contract.store import Cursor, RunFilter, Store
from becket.kernel.engine.causes import Cause, Start, ended, posted, triggers_of
from becket.kernel.engine.debounce import Debounce, Key, Sleep
from becket.kernel.engine.held_starts import HeldStart, HeldStarts
from becket.kernel.engine.intake import Intake, StartRequest
from becket.kernel.engine.trigger_alerts import REFUSED, TriggerAlerts, in_words
from becket.kernel.engine.unread_causes import UnreadCauses

COMMIT = "commit:"
ABSENT = ""
"""The cursor of a branch that was looked for and is not there: its first commit is a move, not a first sight."""

SWEEP_EVERY = 30.0
QUIET = 600.0
"""Seconds without another refused start after which the alert about them is over."""

before_mark = CrashPoint("follow.before_mark", "what follows a run is started, the run still counts as unfollowed")
after_mark = CrashPoint("follow.after_mark", "the run is marked as followed, nobody was told of what was started")

_AT_WORK = (RunStatus.queued, RunStatus.running)
_STAYED_IN = (EffectState.failed, EffectState.refused, EffectState.dry_run)


class Triggers:
    """Turns what happened into runs.

    A move of a branch is remembered in a cursor that moves with the run's start. Events and ended runs have no cursor
    of their own: a start that fails is held in one and tried again by `tick`, and so is what happened while a loop
    file did not load. `on_started` hears of every run; those of a commit may start later than the call that told of
    the commit.
    """

    def __init__(
        self,
        store: Store,
        loops: Loops,
        intake: Intake,
        git: Git,
        branch: str,
        *,
        on_started: Callable[[Started], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store = store
        self._loops = loops
        self._intake = intake
        self._git = git
        self._branch = branch
        self._on_started = on_started
        self._clock = clock
        self._swept_at: float | None = None
        self._trouble = TriggerAlerts(store)
        self._unread = UnreadCauses(store, loops, self._trouble)
        self._held = HeldStarts(store, self._trouble)
        self._debounce = Debounce(self._handle_move, clock, sleep)

    def branches(self) -> tuple[str, ...]:
        """Every branch that a loop wants to hear of."""
        found = triggers_of(self._loops.all(), CommitTrigger)
        return tuple(dict.fromkeys(trigger.branch or self._branch for _, trigger in found))

    async def branch_moved(self, moved: RefMoved) -> None:
        """Called for every move, and for every branch at first sight (`old` is None); repeats are harmless."""
        for loop, trigger in self._on_branch(moved.branch):
            key = (loop.spec.loop_id, moved.branch)
            if moved.new is None:
                self._debounce.drop(key)
            elif await self._is_news(key, self._before(moved, trigger), moved.new):
                await self._debounce.push(key, moved.new, trigger.debounce, trigger.edge)

    async def post(
        self, name: str, data: dict[str, Json], event_id: str, chain: int = 0, cause: str | None = None,
        by: Caller = BECKET,
    ) -> tuple[Started, ...]:  # fmt: skip
        """An event happened. Posting the same event_id again starts only what is still missing."""
        loops, broken = self._unread.look()
        told = self._intake.redact(data)  # a start that fails is kept with what it was told
        return await self._happened(posted(name, told, event_id, chain, cause, by), loops, broken)

    async def follow(self, concerns: Callable[[str], bool] = lambda _: True) -> tuple[Started, ...]:
        """Start what follows the runs that ended. Dry runs are followed by nothing."""
        started: list[Started] = []
        runs = [run for run in await self._store.unfollowed() if concerns(run.run_id)]
        loops, broken = self._unread.look() if runs else ((), ())
        for run in runs:
            if not run.dry_run:
                started += await self._happened(ended(run), loops, broken)
            before_mark()
            await self._store.followed(run.run_id)
            after_mark()
        return tuple(started)

    async def tick(self) -> tuple[Started, ...]:
        """Try again what could not be started; now and then look for moves that nobody told of. Called often."""
        if self._swept_at is None or self._clock() - self._swept_at >= SWEEP_EVERY:
            self._swept_at = self._clock()
            await self.sweep()
            await self._trouble.lapse(REFUSED, QUIET)
        return (*await self._retry_unread(), *await self._retry_held())

    async def sweep(self) -> None:
        """Compare every branch with its cursors: the safety net behind the watcher and behind failed starts."""
        for branch in self.branches():
            try:
                sha = await self._git.resolve(f"refs/heads/{branch}")
            except BecketError as error:
                text = f"the branch {branch} cannot be read, so its commits start nothing: {in_words(error)}"
                await self._trouble.report(f"branch:{branch}", text, {"branch": branch})
                continue
            await self._trouble.over(f"branch:{branch}")
            if sha is not None:
                await self.branch_moved(RefMoved(branch=branch, old=None, new=sha))
            else:
                for loop, _ in self._on_branch(branch):
                    await self._is_news((loop.spec.loop_id, branch), None, ABSENT)

    async def close(self) -> None:
        """Stop the timers. What they had collected is found again by the next `sweep`."""
        await self._debounce.close()

    async def _mover(self, sha: str) -> Run | None:
        """The run that moved a branch to this commit, or None for a person's."""
        mover = await self._moving(sha)
        if mover is None and (run_id := await self._store.recorded_by("moved", sha)) is not None:
            with contextlib.suppress(NotFound):
                mover = await self._store.get_run(run_id)
        return mover

    async def _moving(self, sha: str) -> Run | None:
        """A run at work whose intent was to move a branch to this commit: its record comes after the move is seen."""
        for run in await self._store.list_runs(RunFilter(statuses=_AT_WORK, limit=1000)):
            for effect in await self._store.effects(run.run_id):
                if effect.state not in _STAYED_IN and effect.call.payload.get("new") == sha:
                    return run
        return None

    def _on_branch(self, branch: str) -> Iterator[tuple[LoadedLoop, CommitTrigger]]:
        """Each loop once, even if it names the branch twice."""
        found = triggers_of(self._loops.all(), CommitTrigger)
        mine = [(loop, trigger) for loop, trigger in found if (trigger.branch or self._branch) == branch]
        yield from {loop.spec.loop_id: (loop, trigger) for loop, trigger in reversed(mine)}.values()

    @staticmethod
    def _before(moved: RefMoved, trigger: CommitTrigger) -> str | None:
        return ABSENT if moved.old is None and trigger.at_first_sight else moved.old

    async def _cursor(self, key: Key) -> Cursor | None:
        name = f"{COMMIT}{key[0]}:{key[1]}"
        return next((cursor for cursor in await self._store.cursors(name) if cursor.name == name), None)

    async def _is_news(self, key: Key, old: str | None, new: str) -> bool:
        """Is the value one that the loop has not handled? A first sight (no `old`) is remembered and starts nothing."""
        cursor = await self._cursor(key)
        if cursor is None:
            seen = new if old is None else old
            await self._store.fire(None, Cursor(name=f"{COMMIT}{key[0]}:{key[1]}", value=seen), ())
            return seen != new
        return cursor.value != new or self._debounce.busy(key)

    async def _handle_move(self, key: Key, sha: str) -> None:
        """The one act behind the debounce: cursor and run in one transaction."""
        loop_id, branch = key
        trigger = next((found for loop, found in self._on_branch(branch) if loop.spec.loop_id == loop_id), None)
        cursor = await self._cursor(key)
        if trigger is None or cursor is None or cursor.value == sha:
            return
        mover = await self._mover(sha)
        if trigger.unless is not None and mover is not None and _has_yet_to_say(mover, loop_id):
            return  # the cursor stays, so that `sweep` asks once more what is known of the commit
        ask = StartRequest(
            loop_id=loop_id,
            trigger="commit",
            fields={"branch": branch, "sha": sha, "old": cursor.value},
            origin_key=f"{COMMIT}{loop_id}:{branch}:{sha}",
            chain=0 if mover is None else mover.chain + 1,
            cause=None if mover is None else mover.run_id,
        )
        try:
            run = await self._admitted(Start(ask=ask, unless=trigger.unless, max_chain=trigger.max_chain))
        except Exception as error:  # the cursor stays where it is, so that `sweep` tries again
            await self._trouble.not_started(loop_id, "commit", error, {"branch": branch, "sha": sha})
            return
        for started in await self._move_cursor(cursor, sha, run, ask):
            self._on_started(started)
            await self._trouble.started(loop_id, "commit")

    async def _move_cursor(self, cursor: Cursor, sha: str, run: NewRun | None, ask: StartRequest) -> Sequence[Started]:
        moved = Cursor(name=cursor.name, value=sha)
        try:
            return await self._store.fire(cursor, moved, () if run is None else (run,)) or ()
        except StartRefused as refused:
            await self._tell_refused(ask, refused)
            if refused.too_deep:  # otherwise the cursor stays, and `sweep` comes back for the newest commit
                await self._store.fire(cursor, moved, ())
            return ()

    async def _admitted(self, start: Start) -> NewRun | None:
        """The run to start, or None if the trigger's own words forbid it."""
        ask = start.ask
        chain = f"chain:{ask.loop_id}"
        if start.max_chain is not None and ask.chain > start.max_chain:
            text = (
                f"{ask.loop_id} was not started by its {ask.trigger} trigger: {ask.chain} runs in a row led to this "
                f"start, and max_chain is {start.max_chain}. Look for loops that feed each other; start it with "
                f"`becket run {ask.loop_id}` if it is needed."
            )
            await self._trouble.report(chain, text, {"loop": ask.loop_id, "chain": ask.chain, "of": ask.origin_key})
            return None
        run = await self._intake.prepare(ask)
        if start.unless is not None and await answered(self._store, start.unless, run.subject.name, ask.loop_id):
            return None
        await self._trouble.over(chain)
        return run

    async def _happened(
        self, cause: Cause, loops: Sequence[LoadedLoop], broken: Collection[str]
    ) -> tuple[Started, ...]:
        await self._unread.keep(cause, broken)
        started: list[Started] = []
        for start in cause.starts(loops):
            started += await self._start_or_hold(start)
        return tuple(started)

    async def _retry_unread(self) -> tuple[Started, ...]:
        started: list[Started] = []
        for due in await self._unread.due():
            for start in due.starts:
                started += await self._start_or_hold(start)
            await self._unread.settle(due)
        return tuple(started)

    async def _start_or_hold(self, start: Start) -> tuple[Started, ...]:
        try:
            run = await self._admitted(start)
        except Exception as error:  # one loop that cannot start must not keep the others from it
            await self._held.hold(start, error)
            return ()
        if run is None:
            return ()
        try:
            return (await self._started(run, start.ask),)
        except StartRefused as refused:
            await self._refused(start, refused)
            return ()

    async def _started(self, run: NewRun, ask: StartRequest) -> Started:
        started = await self._store.start_run(run)
        self._on_started(started)
        await self._trouble.started(ask.loop_id, ask.trigger)
        return started

    async def _refused(self, start: Start, refused: StartRefused) -> None:
        """Too often: it is held and comes later. Too deep: it never comes, and the run that led to it says so."""
        await self._tell_refused(start.ask, refused)
        if not refused.too_deep:
            await self._held.hold(start, refused)

    async def _tell_refused(self, ask: StartRequest, refused: StartRefused) -> None:
        await self._trouble.refused(ask.loop_id, ask.trigger, refused, ask.cause)
        if refused.too_deep and ask.cause is not None:
            with contextlib.suppress(NotFound):
                note = NewEvent(kind=EventKind.note, data={"text": str(refused)})
                await self._store.append(ask.cause, None, (note,))

    async def _retry_held(self) -> tuple[Started, ...]:
        started: list[Started] = []
        too_often: set[str] = set()
        for held in await self._held.due():
            if held.start.ask.loop_id not in too_often:
                started += await self._retry(held, too_often)
        return tuple(started)

    async def _retry(self, held: HeldStart, too_often: set[str]) -> tuple[Started, ...]:
        ask, started = held.start.ask, tuple[Started, ...]()
        try:
            run = await self._admitted(held.start)
            started = () if run is None else (await self._started(run, ask),)
        except StartRefused as refused:
            await self._tell_refused(ask, refused)
            if not refused.too_deep:
                too_often.add(ask.loop_id)
                await self._held.hold_on(held, refused)
                return ()
        except StoreUnavailable:
            raise
        except Exception as error:
            await self._held.hold_on(held, error)
            return ()
        await self._held.drop(held)
        if not await self._held.any_of(ask.loop_id):
            await self._trouble.let_in(ask.loop_id)
        return started


def _has_yet_to_say(mover: Run, loop_id: str) -> bool:
    """A run of the loop itself has moved the branch, and is about to say what is so of the commit."""
    return mover.loop_id == loop_id and mover.status in _AT_WORK


async def answered(store: Store, fact: str, subject: str, loop_id: str) -> bool:
    """It is so already, or a person declined what a run made of it."""
    return await store.has_fact(fact, subject, loop_id) or await declined_about(store, loop_id, subject) is not None


async def needless(store: Store, spec: LoopSpec, run: Run) -> str:
    """The fact for which the trigger of this run would not start it any more, or nothing."""
    fields = run.subject.fields
    by_commit = [one.commit for one in spec.trigger if one.commit and one.commit.branch in (None, fields.get("branch"))]
    by_event = [one.event for one in spec.trigger if one.event and one.event.name == fields.get("name")]
    causes: dict[str, Sequence[CommitTrigger | EventTrigger]] = {"commit": by_commit, "event": by_event}
    facts = {one.unless or "" for one in causes.get(run.trigger, ())}
    if len(facts) != 1 or not (fact := facts.pop()):
        return ""  # nothing is asked, or the triggers do not agree
    return fact if await answered(store, fact, run.subject.name, run.loop_id) else ""


async def declined_about(store: Store, loop_id: str, subject: str) -> Handoff | None:
    """The newest ready repair of this subject that a person said no to."""
    said = [
        one
        for one in await store.handoffs((HandoffState.declined,))
        if one.reason in REASONS and (one.loop_id, one.subject) == (loop_id, subject)
    ]
    return said[-1] if said else None
