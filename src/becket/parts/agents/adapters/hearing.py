"""One child while it talks: what it says is read, counted and told, and it is ended when a limit is passed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, Usage
from becket.kernel.contract.process import ChildControl
from becket.parts.agents.adapters.dialect import Dialect, larger, minus, plus
from becket.parts.agents.adapters.lines import Vital
from becket.parts.agents.adapters.reports import over
from becket.parts.agents.adapters.sessions import Sessions
from becket.parts.agents.adapters.watch import Watch
from becket.parts.agents.section import Price


class Ledger(Protocol):
    """What a program writes down of its session besides what it prints. `model` is empty until it says which one."""

    model: str

    def total(self, session: str) -> Usage: ...


class OutputReader:
    """`stopped` says why we ended the child, if we did."""

    def __init__(
        self,
        dialect: Dialect,
        watch: Watch,
        sessions: Sessions,
        price_of: Callable[[str], Price | None],
        *,
        before: Usage,
        settled: Usage,
        session: str | None = None,
        ledger: Ledger | None = None,
        lingers: float = 10.0,
    ) -> None:
        self.control = ChildControl()
        self.stopped = ""
        self._dialect = dialect
        self._watch = watch
        self._sessions = sessions
        self._price_of = price_of
        self._before = before
        self._settled = settled  # of the children of this call before this one
        self._ledger = ledger
        self._turns_at_start = ledger.total(session).turns if ledger and session else 0
        self._lingers = lingers
        self._told = Usage()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_for = 0.0

    @property
    def vital(self) -> Vital:
        return self._dialect.vital

    @property
    def usage(self) -> Usage:
        """Of this child."""
        heard = self._dialect.heard
        if self._ledger is None or not heard.session:
            return heard.usage
        total = self._ledger.total(heard.session)
        # The record also after the end: a command of the agent may have printed an end of its own, at no cost.
        turns = heard.usage.turns if heard.ended else max(total.turns - self._turns_at_start, 0)
        own = minus(total, self._before).model_copy(update={"turns": turns})
        heard.total = larger(heard.total, total.model_copy(update={"turns": 0}))
        return larger(heard.usage, own)

    def hear(self, lines: Sequence[str]) -> None:
        for line in lines:
            for event in self._dialect.take(line):
                if event.usage is None:
                    self._watch.take(event)
        self.look()
        self._set_timer()

    def look(self) -> None:
        """Also called when nothing is said: a program may work on in silence."""
        heard = self._dialect.heard
        usage = self.usage
        heard.model = heard.model or (self._ledger.model if self._ledger is not None else "")
        if heard.model and self._watch.price is None:
            self._watch.price = self._price_of(heard.model)
        self._watch.tally(plus(self._settled, usage))
        self._sessions.note(heard.session, heard.total)
        if usage.tokens and (usage.turns > self._told.turns or heard.ended) and usage != self._told:
            self._told = usage
            self._watch.take(AgentEvent(kind=AgentEventKind.usage, usage=plus(self._settled, usage)))
        if self._watch.passed and not heard.ended:
            self._stop(over(self._watch.passed))

    def close(self) -> Usage:
        """After the child's end."""
        if self._timer is not None:
            self._timer.cancel()
        self.look()
        return self.usage

    def _stop(self, why: str) -> None:
        if not self.stopped:
            self.stopped = why
            self.control.end()

    def _set_timer(self) -> None:
        """A program that has ended, or that waits for what will not come, is given some seconds more."""
        heard = self._dialect.heard
        wanted = self._lingers if heard.ended else heard.patience
        if wanted == self._timer_for:
            return  # the seconds count from the first sign of it
        if self._timer is not None:
            self._timer.cancel()
        end = self.control.end if heard.ended else self._give_up
        self._timer = asyncio.get_running_loop().call_later(wanted, end) if wanted else None
        self._timer_for = wanted

    def _give_up(self) -> None:
        self._dialect.heard.gave_up = True
        self._stop(self._dialect.heard.last_error or "it waits in vain")
