"""One call of an ACP agent: its process, its conversation, a person's messages, its limits, its end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from enum import Enum, auto
from pathlib import Path

from becket.kernel.contract.agent import (
    RETRYABLE,
    AgentEvent,
    AgentEventKind,
    AgentOutcome,
    AgentReport,
    CallContext,
    Limits,
    Usage,
)
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import ChildControl, ChildEnd, ChildResult, ChildSpec
from becket.parts.agents.adapters import reports, versions
from becket.parts.agents.adapters.acp.endings import (
    AcpEnding,
    by_failure,
    by_length,
    by_limit,
    by_loss,
    by_stop,
    model_unreachable,
)
from becket.parts.agents.adapters.acp.gemini import GeminiLedger, make_room, settle
from becket.parts.agents.adapters.acp.policy import PermissionPolicy
from becket.parts.agents.adapters.acp.reading import ConversationReader
from becket.parts.agents.adapters.acp.talk import AcpSession, ConnectionLost, Failure
from becket.parts.agents.adapters.acp.tally import tokens_of
from becket.parts.agents.adapters.acp.wire import AcpTransport
from becket.parts.agents.adapters.call_environment import CallEnvironment, DriverContext
from becket.parts.agents.adapters.inbox import Inbox
from becket.parts.agents.adapters.lenient_json import Object, mapping, text
from becket.parts.agents.adapters.sessions import Sessions, remember_before
from becket.parts.agents.adapters.watch import Watch
from becket.parts.agents.section import Price

_LOOK = 0.1
"""Seconds between two looks at the inbox and the limits while nothing is heard."""

_STOP_FOR_MESSAGE, _STOP_FOR_LIMIT, _LEAVE, _BEYOND_TIME = 10.0, 2.0, 1.0, 5.0
"""Seconds that a cancelled prompt, a program that may go, and a process that should be dead are waited for."""

_LAST_LINES = 5
_IN_VAIN, _LOOK_AT_LOG = 60.0, 5.0
"""Seconds without a word of its model before what it prints about that counts, and between two looks at it."""


class _Interrupt(Enum):
    limit = auto()
    message = auto()


class AcpCall:
    """Made for one call; `hold` is called once."""

    def __init__(
        self,
        program: str,
        config: AgentConfig,
        driver_context: DriverContext,
        environment: CallEnvironment,
        limits: Limits,
        call_context: CallContext,
    ) -> None:
        self._program = program
        self._config = config
        self._driver_context = driver_context
        self._environment = environment
        self._around = call_context
        price = self._price(config.model or "")
        self._watch = Watch(limits, environment.files, call_context.heard, price, redact=driver_context.redact)
        self._inbox = Inbox(environment.files)
        self._sessions = Sessions(environment)
        self._ledger: GeminiLedger | None = None
        self._looks_at = _IN_VAIN
        self._unheard = False  # it has said so much that the rest is read only when it is over

    async def hold(self, spec: ChildSpec, brief: str, session: str | None) -> AgentReport:
        self._environment.files.raw.unlink(missing_ok=True)
        if self._program == "gemini":
            settle(self._environment.home, spec.env)
            make_room(self._environment.home, session or "")
        self._control = control = ChildControl()
        gone = asyncio.Event()
        self._time, self._heard_bytes = spec.timeout, spec.output_head
        self._reading = ConversationReader(spec.tree, self._tell)
        self._wire = AcpTransport(control, self._environment.files.raw, gone)
        self._talk = AcpSession(
            self._wire, self._reading, PermissionPolicy(spec.tree, self._driver_context.processes.holds().files)
        )
        child = asyncio.create_task(self._driver_context.processes.run(spec, self._around.watcher, control))
        child.add_done_callback(lambda _: gone.set())
        try:
            ending = await self._converse(spec.tree, brief, session)
            result = await _gone(child, control, may_leave=isinstance(ending, AcpEnding) and ending.ended)
            if (
                isinstance(ending, AcpEnding)
                and ending.hint is AgentOutcome.cancelled
                and result.end is ChildEnd.timeout
            ):
                ending = ConnectionLost(
                    "it stopped when its time was over"
                )  # qwen says `cancelled` when it is told to go
            if isinstance(ending, ConnectionLost) and self._unheard and result.end is not ChildEnd.timeout:
                ending = by_length(spec.output_cap)
            if isinstance(ending, ConnectionLost):
                spoke = self._reading.tally.turns > 0
                ending = by_loss(str(ending), result, self._last_words(), spoke, time.time())
            return self._report(ending, result)
        finally:
            await _killed(child)
            await self._talk.close()
            self._watch.finish("cancelled")

    def _last_words(self) -> str:
        return "\n".join(reports.tail_of(self._environment.files.log).splitlines()[-_LAST_LINES:])

    async def _converse(self, workspace: Path, brief: str, session: str | None) -> AcpEnding | ConnectionLost:
        try:
            await self._talk.greet()
            await self._talk.open(workspace, session, self._config.model)
            self._begin_accounts()
            ending = await self._work(brief)
            if self._resumed_in_vain(ending):
                await self._talk.open(workspace, None, self._config.model)
                self._begin_accounts()
                ending = await self._work(brief)
            return ending
        except Failure as failure:
            return by_failure(failure, time.time())
        except ConnectionLost as lost:
            return lost

    def _resumed_in_vain(self, ending: AcpEnding) -> bool:
        """Gemini 0.61 sends each tool's result of a resumed session twice, which its model's server refuses."""
        return self._talk.resumed and ending.hint is AgentOutcome.model_error and not self._reading.tally.turns

    def _begin_accounts(self) -> None:
        """Where the session stood before this call."""
        session = self._talk.session or ""
        tally = self._reading.tally
        if self._talk.resumed and not tally.session_cost:
            tally.begins_at(self._sessions.total(session).usd)
        remember_before(self._environment.files, session, Usage(usd=tally.session_cost))
        if self._program == "gemini":
            self._ledger = GeminiLedger(self._environment.home, session)
        warning = versions.warning(self._program, self._talk.version)
        if warning:
            self._watch.take(AgentEvent(kind=AgentEventKind.message, text=warning, by="becket"))

    async def _work(self, brief: str) -> AcpEnding:
        """The brief, and then every message of a person in the same session."""
        said = brief
        while True:
            ending, interrupted = await self._prompt(said)
            if self._watch.passed or not (interrupted or (ending.ended and not ending.error)):
                return ending
            message = self._inbox.take()
            if message is not None:
                self._tell(AgentEvent(kind=AgentEventKind.message, text=message.text, by=message.by or "a person"))
                said = f"A person who watches your work says:\n\n{message.text}\n\nTake it into account and go on."
            elif interrupted:
                said = "Go on."  # the message was empty, or somebody took it back
            else:
                return ending

    async def _prompt(self, said: str) -> tuple[AcpEnding, bool]:
        """How the prompt ended, and whether a message cut it short."""
        if self._ledger is not None:
            self._ledger.prompt()
        asked = asyncio.create_task(self._talk.prompt(said))
        try:
            match await self._interrupted(asked):
                case _Interrupt.limit:
                    await self._stop(asked, _STOP_FOR_LIMIT)
                    return by_limit(self._watch.passed), False
                case _Interrupt.message:
                    if not await self._stop(asked, _STOP_FOR_MESSAGE):
                        raise ConnectionLost(f"it did not stop for a message within {_STOP_FOR_MESSAGE:.0f} s")
                    return (await self._answer(asked, cancelled=True)), True
                case None:
                    return (await self._answer(asked)), False
        finally:
            await _dropped(asked)
            self._take_stock()

    async def _interrupted(self, asked: asyncio.Task[Object]) -> _Interrupt | None:
        while not asked.done():
            self._talk.stirred.clear()
            stirred = asyncio.ensure_future(self._talk.stirred.wait())
            await asyncio.wait({asked, stirred}, timeout=_LOOK, return_when=asyncio.FIRST_COMPLETED)
            stirred.cancel()
            self._take_stock()
            if asked.done():
                break
            if self._watch.passed:
                return _Interrupt.limit
            if self._inbox.waiting() and not self._unheard:
                return _Interrupt.message
            self._refuse_endlessness()
        return None

    def _refuse_endlessness(self) -> None:
        """The process is ended by whoever runs it; this holds if it is not. Who cannot be heard any more is asked
        nothing more: the end of its input tells it so, and its last words may still hold its answer.
        """
        if self._watch.seconds > self._time + _BEYOND_TIME:
            raise ConnectionLost("it did not end within its time")
        if self._reading.tally.turns == 0 and self._watch.seconds > self._looks_at:
            self._looks_at = self._watch.seconds + _LOOK_AT_LOG
            if model_unreachable(self._last_words(), time.time()):
                raise ConnectionLost("it tried its model in vain")
        raw = self._environment.files.raw
        if not self._unheard and raw.exists() and raw.stat().st_size >= self._heard_bytes:
            self._unheard = True
            self._control.close()

    async def _stop(self, asked: asyncio.Task[Object], seconds: float) -> bool:
        await self._talk.cancel()
        done, _ = await asyncio.wait({asked}, timeout=seconds)
        return bool(done)

    async def _answer(self, asked: asyncio.Task[Object], cancelled: bool = False) -> AcpEnding:
        try:
            result = await asked
        except Failure as failure:
            # Some agents answer a cancelled prompt with an error.
            return AcpEnding(True) if cancelled else by_failure(failure, time.time())
        if cancelled and text(result, "stopReason") == "cancelled":
            return AcpEnding(True)
        return by_stop(result, self._reading.said, self._reading.worked, time.time(), self._is_cut(result))

    def _is_cut(self, result: Object) -> bool:
        """Gemini ends its turn well, whatever became of its model's answer after a tool call."""
        if self._ledger is None:
            return False
        if not mapping(result, "_meta", "quota"):  # nothing was counted: not everything is missing then
            return not self._reading.answered
        counted = tokens_of(mapping(result, "_meta", "quota", "token_count")).input_tokens
        return self._ledger.ends_cut(counted) or not (self._reading.answered or self._ledger.ends_answered)

    def _tell(self, event: AgentEvent) -> None:
        self._watch.tally(self._reading.tally.usage)
        self._watch.take(event)

    def _take_stock(self) -> None:
        tally = self._reading.tally
        if self._ledger is not None:
            tally.outside(self._ledger.used)
        if self._watch.price is None:
            self._watch.price = self._price(self._model)
        if tally.usage.tokens != self._watch.usage.tokens:
            self._watch.take(AgentEvent(kind=AgentEventKind.usage, usage=tally.usage))
        self._watch.tally(tally.usage)
        if tally.spent is not None:
            self._sessions.note(self._talk.session, Usage(usd=tally.session_cost))

    @property
    def _model(self) -> str:
        """As the agent names it where it does, else as it was set to."""
        recorded = self._ledger.model if self._ledger is not None else ""
        return self._reading.tally.model or recorded or self._talk.model or self._config.model or ""

    def _price(self, model: str) -> Price | None:
        return self._driver_context.prices(model) if model else None

    def _report(self, ending: AcpEnding, result: ChildResult) -> AgentReport:
        error = ending.error
        if result.denied and ending.hint in RETRYABLE:
            error = f"{error} (it was not allowed to reach {', '.join(result.denied)}: see `hosts`)"
        self._reading.flush()
        self._take_stock()
        reports.tell_what_is_missing(self._watch, self._wire.passed_over, result.output_capped)
        if error:
            self._watch.take(AgentEvent(kind=AgentEventKind.error, text=error))
        self._watch.finish(error)
        return AgentReport(
            ended=ending.ended,
            error=error,
            outcome_hint=ending.hint,
            until=ending.until,
            said=self._watch.last_words(self._reading.said),
            usage=self._watch.usage,
            session=self._talk.session,
            model=self._model,
            version=self._talk.version,
            denied=result.denied,
            refusals=tuple(self._reading.refusals[:50]),
            unheard=tuple(message.text for message in self._inbox.left()),
            unknown_events=self._reading.unknown + self._talk.unknown + self._wire.strange,
            transcript=self._environment.files.raw,
        )


async def _gone(child: asyncio.Task[ChildResult], control: ChildControl, *, may_leave: bool) -> ChildResult:
    """It reads the end of its input and may go by itself; what is left after that is killed."""
    control.close()
    if may_leave:
        await asyncio.wait({child}, timeout=_LEAVE)
    control.end()
    return await asyncio.shield(child)


async def _killed(child: asyncio.Task[ChildResult]) -> None:
    """Nothing of it is left, even if we are cancelled once more while we wait for that."""
    while not child.done():
        child.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({child})


async def _dropped(asked: asyncio.Task[Object]) -> None:
    if not asked.done():
        asked.cancel()
        await asyncio.wait({asked})
    if not asked.cancelled():
        asked.exception()
