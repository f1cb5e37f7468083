"""One call of a program that prints its events: started, followed line by line, held to its limits, and read."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, AgentReport, CallContext, CallFiles, Limits, Usage
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.process import ChildResult, ChildSpec
from becket.parts.agents.adapters import reports, versions
from becket.parts.agents.adapters.call_environment import (
    CallEnvironment,
    CallImpossible,
    DriverContext,
    ProgramNeeds,
    parts_of,
)
from becket.parts.agents.adapters.dialect import Dialect, Heard, larger, plus
from becket.parts.agents.adapters.hearing import Ledger, OutputReader
from becket.parts.agents.adapters.inbox import Inbox, Message
from becket.parts.agents.adapters.lines import LineReader, lines_of
from becket.parts.agents.adapters.prices import priced, refuse_blind_limit, tightest
from becket.parts.agents.adapters.sessions import Sessions, remember_before, remembered_before
from becket.parts.agents.adapters.watch import Watch

_LOOKS = 1.0
"""Seconds between two looks at what a silent program has used."""


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What one child is asked: the brief, or a person's message to the session that the brief began."""

    prompt: str
    session: str | None
    limits: Limits
    part: int = 1


@dataclass(frozen=True, slots=True)
class HeadlessCall:
    """One call while it goes on."""

    environment: CallEnvironment
    tree: Path
    call_context: CallContext
    limits: Limits
    watch: Watch
    sessions: Sessions


class HeadlessAgent(ABC):
    """What the drivers of such programs share. A driver says how its program is started and what its lines mean."""

    vendor: str  # the program's name, for versions
    resumes = True
    tells_money = False
    lingers = 10.0  # seconds that the program may live on after its terminal event

    def __init__(self, name: str, config: AgentConfig, driver_context: DriverContext) -> None:
        self.name = name
        self.config = config
        self.driver_context = driver_context

    @abstractmethod
    def wants(self) -> ProgramNeeds: ...

    @abstractmethod
    def command(self, environment: CallEnvironment, turn: AgentTurn) -> tuple[str, ...]:
        """The command line of one child; the prompt goes to its standard input."""

    def ledger(self, environment: CallEnvironment) -> Ledger | None:
        """What the program writes down of its session besides what it prints, if it does."""
        return None

    @abstractmethod
    def dialect(self, tree: Path, before: Usage) -> Dialect:
        """A new reader. `before` is what the vendor had counted of the session already."""

    async def run(
        self,
        brief: str,
        workspace: Path,
        limits: Limits,
        session: str | None = None,
        *,
        call_context: CallContext | None = None,
    ) -> AgentReport:
        price = self.driver_context.prices(self.config.model or "")
        refuse_blind_limit(self.name, self.config, price, tells_money=self.tells_money)
        call_context = call_context or CallContext()
        limits = tightest(limits, self.config)
        try:
            with self.driver_context.prepare(self.config, self.wants(), call_context) as environment:
                watch = Watch(limits, environment.files, call_context.heard, price, redact=self.driver_context.redact)
                call = HeadlessCall(environment, workspace, call_context, limits, watch, Sessions(environment))
                return await self._whole(call, AgentTurn(brief, session if self.resumes else None, limits))
        except CallImpossible as unfit:
            if call_context.files is not None:
                Watch(limits, call_context.files, call_context.heard).finish(str(unfit))
            return unfit.report()

    def used(self, files: CallFiles) -> Usage | None:
        parts = parts_of(files.raw)
        if not parts:  # they are made right before the program runs
            return Usage() if files.folder.is_dir() else None
        usage, total, model = Usage(), remembered_before(files), ""
        for part in parts:
            dialect = self.dialect(Path("/"), total)
            for line in lines_of(part, dialect.vital):
                dialect.take(line)
            usage, total = plus(usage, dialect.heard.usage), dialect.heard.total
            model = dialect.heard.model or model
        usage = priced(usage, self.driver_context.prices(model or self.config.model or ""))
        usage = larger(usage, reports.last_usage(files))
        return usage if usage.tokens else None  # it may have used more than nothing: only its vendor knows

    async def _whole(self, call: HeadlessCall, turn: AgentTurn) -> AgentReport:
        """The brief, and then what people say meanwhile, in one session and within the same limits."""
        error = "it was broken off"
        try:
            self._warn(call)
            report = await self._turns(call, turn)
            error = report.error
        except asyncio.CancelledError:
            error = "cancelled"
            raise
        finally:
            call.watch.finish(error)
        return report.model_copy(update={"usage": call.watch.usage})

    async def _turns(self, call: HeadlessCall, turn: AgentTurn) -> AgentReport:
        inbox = Inbox(call.environment.files)
        denied: dict[str, None] = {}
        undelivered: list[Message] = []
        settled = Usage()
        session: str | None = None
        while True:
            heard, result, hearing = await self._one(call, turn, settled)
            session = heard.session or session
            denied |= dict.fromkeys(result.denied)
            settled = plus(settled, heard.usage)
            if heard.session_gone and turn.session:
                turn = AgentTurn(turn.prompt, None, call.limits, turn.part + 1)
                continue
            if undelivered and not heard.ended:
                break
            undelivered.clear()
            message = inbox.take() if self._goes_on(heard, hearing) else None
            if message is None:
                break
            call.watch.take(AgentEvent(kind=AgentEventKind.message, text=message.text, by=message.by or "a person"))
            undelivered.append(message)
            turn = AgentTurn(message.text, heard.session, _left(call.limits, settled), turn.part + 1)
        report = reports.of(heard, result, hearing.stopped, call.watch, call.environment)
        for message in undelivered:
            inbox.give_back(message)
        error = report.error
        if error and denied:
            error = f"{error}; it was not allowed to reach {', '.join(denied)}: see `hosts`"
        return report.model_copy(
            update={
                "error": error,
                "session": session,
                "version": heard.version or self._version(call.environment),
                "denied": tuple(denied),
                "unheard": tuple(message.text for message in inbox.left()),
            }
        )

    async def _one(
        self, call: HeadlessCall, turn: AgentTurn, settled: Usage
    ) -> tuple[Heard, ChildResult, OutputReader]:
        """One child, from its start to its end."""
        before = call.sessions.total(turn.session)
        if turn.part == 1:
            remember_before(call.environment.files, turn.session, before)
        dialect = self.dialect(call.tree, before)
        hearing = OutputReader(
            dialect,
            call.watch,
            call.sessions,
            self.driver_context.prices,
            before=before,
            settled=settled,
            session=turn.session,
            ledger=self.ledger(call.environment),
            lingers=self.lingers,
        )
        prompt = turn.prompt.encode("utf-8", "replace")
        seconds = call.limits.seconds - call.watch.seconds
        spec = call.environment.child(
            self.command(call.environment, turn), call.tree, seconds, stdin=prompt, part=turn.part
        )
        try:
            result = await self._attend(spec, call, hearing)
        finally:
            dialect.heard.usage = hearing.close()  # of a cancelled call too
        dialect.close(result, reports.tail_of(spec.output))
        return dialect.heard, result, hearing

    async def _attend(self, spec: ChildSpec, call: HeadlessCall, hearing: OutputReader) -> ChildResult:
        assert spec.stdout is not None
        spec.stdout.unlink(missing_ok=True)  # of an earlier attempt: it would be read as this child's
        hearing.control.close()
        ended = asyncio.Event()
        child = asyncio.ensure_future(
            self.driver_context.processes.run(spec, call.call_context.watcher, hearing.control)
        )
        child.add_done_callback(lambda _: ended.set())
        looking = asyncio.ensure_future(_look_now_and_then(hearing))
        try:
            lines = LineReader(spec.stdout, ended, hearing.vital)
            async for batch in lines.batches():
                hearing.hear(batch)
            result = await child
            reports.tell_what_is_missing(call.watch, lines.passed_over, result.output_capped)
            return result
        finally:
            looking.cancel()
            await _gone(child)

    def _goes_on(self, heard: Heard, hearing: OutputReader) -> bool:
        return self.resumes and heard.ended and not heard.error and not hearing.stopped and heard.session is not None

    def _warn(self, call: HeadlessCall) -> None:
        warning = versions.warning(self.vendor, self._version(call.environment))
        if warning:
            call.watch.take(AgentEvent(kind=AgentEventKind.message, text=warning, by="becket"))

    def _version(self, environment: CallEnvironment) -> str:
        return versions.of_package(environment.program) if environment.program is not None else ""


async def _look_now_and_then(hearing: OutputReader) -> None:
    while True:
        await asyncio.sleep(_LOOKS)
        hearing.look()


def _left(limits: Limits, used: Usage) -> Limits:
    """For a further child of the same call, in its own words; the watch holds the whole call to its limits."""
    turns = None if limits.turns is None else max(limits.turns - used.turns, 1)
    usd = None if limits.usd is None else max(limits.usd - used.usd, 0.01)
    return limits.model_copy(update={"turns": turns, "usd": usd})


async def _gone(child: asyncio.Future[ChildResult]) -> None:
    """Nothing of the child is left, even if we are cancelled while we wait for that."""
    while not child.done():
        child.cancel()
        try:
            await asyncio.wait([child])
        except asyncio.CancelledError:
            continue  # whoever cancelled us gets the first cancellation, which is on its way already
