"""Commits, events and ended runs start loops: at least once tried, at most one run per cause (L2, L42)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence

from becket.contract.base import Json, Record, digest_of
from becket.contract.crash import CrashPoint
from becket.contract.effect import EffectState
from becket.contract.errors import BecketError, NotFound
from becket.contract.git import Git, RefMoved
from becket.contract.loop import Loop, Loops
from becket.contract.run import NewRun, Run, Started, Status
from becket.contract.spec import CommitTrigger
from becket.contract.store import Cursor, RunFilter, Store
from becket.engine.causes import Cause, Start, ended, posted, triggers_of
from becket.engine.debounce import Debounce, Key, Sleep
from becket.engine.intake import Ask, Intake
from becket.engine.trouble import Trouble, in_words, retry_after
from becket.engine.unread import Unread

COMMIT = "commit:"
HELD = "held:"
ABSENT = ""
"""The cursor of a branch that was looked for and is not there: its first commit is a move, not a first sight."""

KEEP_HELD = 7 * 86_400.0
SWEEP_EVERY = 30.0

before_mark = CrashPoint("follow.before_mark", "what follows a run is started, the run still counts as unfollowed")
after_mark = CrashPoint("follow.after_mark", "the run is marked as followed, nobody was told of what was started")

_STAYED_IN = (EffectState.failed, EffectState.refused, EffectState.dry_run)


class HeldStart(Record):
    """A start that failed, kept in a cursor until it works."""

    start: Start
    since: float
    next_at: float
    failures: int = 1


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
        self._trouble = Trouble(store)
        self._unread = Unread(store, loops, self._trouble)
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
            elif await self._is_news(key, moved.old, moved.new):
                await self._debounce.push(key, moved.new, trigger.debounce, trigger.edge)

    async def post(self, name: str, data: dict[str, Json], event_id: str, chain: int = 0) -> tuple[Started, ...]:
        """An event happened. Posting the same event_id again starts only what is still missing."""
        loops, broken = self._unread.look()
        return await self._happened(posted(name, data, event_id, chain), loops, broken)

    async def follow(self) -> tuple[Started, ...]:
        """Start what follows the runs that ended. Dry runs are followed by nothing."""
        started: list[Started] = []
        runs = await self._store.unfollowed()
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

    async def chain_of(self, sha: str) -> int:
        """How many runs led to this commit: one more than the run that moved a branch to it, 0 for a person's."""
        mover = await self._moving(sha)
        if mover is None and (run_id := await self._store.recorded_by("moved", sha)) is not None:
            try:
                mover = await self._store.get_run(run_id)
            except NotFound:
                return 0
        return 0 if mover is None else mover.chain + 1

    async def _moving(self, sha: str) -> Run | None:
        """A run at work whose intent was to move a branch to this commit: its record comes after the move is seen."""
        at_work = RunFilter(statuses=(Status.queued, Status.running), limit=1000)
        for run in await self._store.list_runs(at_work):
            for effect in await self._store.effects(run.run_id):
                if effect.state not in _STAYED_IN and effect.call.payload.get("new") == sha:
                    return run
        return None

    def _on_branch(self, branch: str) -> Iterator[tuple[Loop, CommitTrigger]]:
        """Each loop once, even if it names the branch twice."""
        found = triggers_of(self._loops.all(), CommitTrigger)
        mine = [(loop, trigger) for loop, trigger in found if (trigger.branch or self._branch) == branch]
        yield from {loop.spec.loop_id: (loop, trigger) for loop, trigger in reversed(mine)}.values()

    async def _cursor(self, key: Key) -> Cursor | None:
        name = f"{COMMIT}{key[0]}:{key[1]}"
        return next((cursor for cursor in await self._store.cursors(name) if cursor.name == name), None)

    async def _is_news(self, key: Key, old: str | None, new: str) -> bool:
        """Is the value one that the loop has not handled? A first sight is remembered and starts nothing."""
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
        try:
            run = await self._admitted(
                Start(
                    ask=Ask(
                        loop_id=loop_id,
                        trigger="commit",
                        fields={"branch": branch, "sha": sha, "old": cursor.value},
                        origin_key=f"{COMMIT}{loop_id}:{branch}:{sha}",
                        chain=await self.chain_of(sha),
                    ),
                    unless=trigger.unless,
                    max_chain=trigger.max_chain,
                )
            )
        except Exception as error:  # the cursor stays where it is, so that `sweep` tries again
            await self._trouble.not_started(loop_id, "commit", error, {"branch": branch, "sha": sha})
            return
        runs = () if run is None else (run,)
        for started in await self._store.fire(cursor, Cursor(name=cursor.name, value=sha), runs) or ():
            self._on_started(started)
            await self._trouble.started(loop_id, "commit")

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
        if start.unless is not None and await self._store.has_fact(start.unless, run.subject.name, ask.loop_id):
            return None
        await self._trouble.over(chain)
        return run

    async def _happened(self, cause: Cause, loops: Sequence[Loop], broken: Collection[str]) -> tuple[Started, ...]:
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
            await self._hold(start, error)
            return ()
        if run is None:
            return ()
        return (await self._started(run, start.ask),)

    async def _started(self, run: NewRun, ask: Ask) -> Started:
        started = await self._store.start_run(run)
        self._on_started(started)
        await self._trouble.started(ask.loop_id, ask.trigger)
        return started

    async def _hold(self, start: Start, error: Exception) -> None:
        ask, now = start.ask, await self._store.now()
        held = HeldStart(start=start, since=now, next_at=now + retry_after(1))
        name = f"{HELD}{digest_of(ask.origin_key)[:32]}"
        await self._store.fire(None, Cursor(name=name, value=held.model_dump_json()), ())
        await self._trouble.not_started(ask.loop_id, ask.trigger, error, {"of": ask.origin_key})

    async def _retry_held(self) -> tuple[Started, ...]:
        now = await self._store.now()
        started: list[Started] = []
        for cursor in await self._store.cursors(HELD):
            held = HeldStart.model_validate_json(cursor.value)
            if held.next_at <= now or held.since > now:  # a clock that went back must not delay it by the jump
                started += await self._retry(cursor, held, now)
        return tuple(started)

    async def _retry(self, cursor: Cursor, held: HeldStart, now: float) -> tuple[Started, ...]:
        ask = held.start.ask
        try:
            run = await self._admitted(held.start)
        except Exception as error:
            if now - held.since > KEEP_HELD:
                await self._give_up(cursor, held, error)
            else:
                await self._trouble.not_started(ask.loop_id, ask.trigger, error, {"of": ask.origin_key})
                await self._hold_on(cursor, held, now)
            return ()
        started = () if run is None else (await self._started(run, ask),)
        await self._store.drop_cursors([cursor.name])
        return started

    async def _hold_on(self, cursor: Cursor, held: HeldStart, now: float) -> None:
        failures = held.failures + 1
        again = HeldStart(
            start=held.start, since=min(held.since, now), next_at=now + retry_after(failures), failures=failures
        )
        await self._store.fire(cursor, Cursor(name=cursor.name, value=again.model_dump_json()), ())

    async def _give_up(self, cursor: Cursor, held: HeldStart, error: Exception) -> None:
        """Said before it is dropped: nothing disappears without a word (L44)."""
        ask = held.start.ask
        key = f"given_up:{ask.loop_id}"
        text = (
            f"{ask.loop_id} could not be started for {KEEP_HELD / 86_400:g} days ({ask.origin_key}) and is no longer "
            f"tried: {in_words(error)}\nStart it with `becket run {ask.loop_id}` if it is still needed."
        )
        await self._trouble.over(key)  # an earlier one that was told must not keep this one quiet
        await self._trouble.report(key, text, {"loop": ask.loop_id, "of": ask.origin_key, "fields": ask.fields})
        await self._store.drop_cursors([cursor.name])
