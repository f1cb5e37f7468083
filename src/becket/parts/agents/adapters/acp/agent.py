"""An agent that speaks ACP: its program is started, talked to, held to its limits and ended."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from becket.kernel.contract.agent import AgentReport, CallContext, CallFiles, Limits, Usage
from becket.kernel.contract.config import AgentConfig
from becket.parts.agents.adapters import reports
from becket.parts.agents.adapters.acp.call import AcpCall
from becket.parts.agents.adapters.acp.known import KnownAgent, known
from becket.parts.agents.adapters.acp.reading import ConversationReader
from becket.parts.agents.adapters.acp.wire import VITAL, message_of
from becket.parts.agents.adapters.call_environment import CallEnvironment, CallImpossible, DriverContext, ProgramNeeds
from becket.parts.agents.adapters.dialect import larger
from becket.parts.agents.adapters.lenient_json import Object, mapping
from becket.parts.agents.adapters.lines import lines_of
from becket.parts.agents.adapters.prices import priced, refuse_blind_limit, tightest
from becket.parts.agents.adapters.sessions import remembered_before

_SHELL_SIGNS = frozenset("|&;<>()$`\\*?[#~%\n")


class AcpAgent:
    """`driver: acp`. `run` is its command line, such as `gemini --acp --skip-trust -m gemini-2.5-pro`."""

    def __init__(self, name: str, config: AgentConfig, driver_context: DriverContext) -> None:
        self.name = name
        self.config = config
        self.driver_context = driver_context
        self._words = _plain_words(config.run or "")

    @property
    def kind(self) -> KnownAgent:
        return known(self._called)

    @property
    def tells_money(self) -> bool:
        return self.kind.tells_money

    @property
    def _called(self) -> str:
        return Path(self._words[0]).name if self._words else ""

    def wants(self) -> ProgramNeeds:
        program = self._words[0] if self._words else None
        return ProgramNeeds(program=program, skills=self.kind.skills, hosts=self.kind.hosts)

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
                spec = environment.child(self._argv(environment), workspace, limits.seconds)
                call = AcpCall(self._called, self.config, self.driver_context, environment, limits, call_context)
                return await call.hold(spec, brief, session)
        except CallImpossible as unfit:
            return unfit.report()

    def used(self, files: CallFiles) -> Usage | None:
        """What its messages told. The replay of an older session comes before the answer to its opening."""
        if not files.folder.is_dir():
            return None
        messages = [message for line in lines_of(files.raw, VITAL) if (message := message_of(line)) is not None]
        if not messages:
            return Usage(seconds=reports.last_usage(files).seconds)  # who did not answer was not asked to work
        reading = ConversationReader(Path("/"), lambda event: None)
        reading.tally.begins_at(remembered_before(files).usd)
        reading.begin()
        for message in messages[_first_work(messages) :]:
            if "stopReason" in mapping(message, "result"):
                reading.over(mapping(message, "result"))
            elif message.get("method") == "session/update":
                reading.update(message.get("params"))
        usage = priced(reading.tally.usage, self.driver_context.prices(self.config.model or reading.tally.model))
        usage = larger(usage, reports.last_usage(files))
        over = "stopReason" in mapping(messages[-1], "result")
        return usage if over or usage.tokens or usage.usd else None  # some tell nothing before a prompt is over

    def _argv(self, environment: CallEnvironment) -> tuple[str, ...]:
        if environment.program is None:
            return ("sh", "-euc", self.config.run or "")
        return (str(environment.program), *self._words[1:])


def _plain_words(command: str) -> tuple[str, ...]:
    """Its words where no shell is needed; else none."""
    if _SHELL_SIGNS & set(command):
        return ()
    try:
        words = tuple(shlex.split(command))
    except ValueError:
        return ()
    return () if not words or "=" in words[0] else words


def _first_work(messages: Sequence[Object]) -> int:
    """Where the first prompt begins: after the last answer before the first prompt's own."""
    begin = 0
    for place, message in enumerate(messages):
        if "stopReason" in mapping(message, "result"):
            break
        if "method" not in message:
            begin = place + 1
    return begin
