"""What an agent tells while it works, read into our events. Nothing that it may say can raise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from becket.kernel.contract.agent import AgentEvent, AgentEventKind, CallState
from becket.kernel.contract.base import Json
from becket.parts.agents.adapters.acp.tally import UsageTally
from becket.parts.agents.adapters.acp.tools import AcpToolCall, ToolCalls
from becket.parts.agents.adapters.lenient_json import Object, mapping, text
from becket.parts.agents.adapters.watch import SAID_LOOKED_AT

_PIECES_LIMIT = 10_000
_WITHOUT_MEANING = frozenset(
    {
        "available_commands_update",
        "config_option_update",
        "current_mode_update",
        "plan",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "user_message_chunk",
    }
)
_CHUNKS = {"agent_message_chunk": AgentEventKind.message, "agent_thought_chunk": AgentEventKind.thinking}


class ConversationReader:
    """One conversation. Until `begin`, everything is the replay of an old session, and only its cost is read."""

    def __init__(self, workspace: Path, tell: Callable[[AgentEvent], None]) -> None:
        self._tell = tell
        self._calls = ToolCalls(workspace)
        self._live = False
        self._awaited = True  # the next thing that it says begins a turn
        self._kind: AgentEventKind | None = None  # of the chunks that are being joined
        self._message = ""
        self._pieces: list[str] = []
        self.tally = UsageTally()
        self.said = ""
        self.unknown = 0
        self.refusals: list[str] = []
        self.worked = False  # the running prompt has led to a tool call
        self.answered = False  # it has said something since the prompt and the last piece of a tool call

    def pause(self) -> None:
        """A session is being opened."""
        self.flush()
        self._live = False

    def begin(self) -> None:
        """A prompt is sent."""
        self._live, self._awaited = True, True
        self.said, self.worked, self.answered = "", False, False

    def update(self, params: Json) -> None:
        """The parameters of one `session/update`."""
        told = mapping(params, "update")
        name = text(told, "sessionUpdate")
        if name == "usage_update":
            self._cost(told)
        elif name in _CHUNKS:
            self._chunk(_CHUNKS[name], told)
        elif name in ("tool_call", "tool_call_update"):
            self._piece(told)
        elif name not in _WITHOUT_MEANING:
            self.unknown += 1

    def asked(self, told: Object) -> AcpToolCall:
        """The tool call of a permission request: some agents tell of a call only there."""
        return self._piece(told)

    def refused(self, call: AcpToolCall) -> None:
        self.refusals.append(call.command or call.title or call.tool)
        self._tell(self._calls.refused(call))
        self._awaited = not self._calls.running

    def over(self, result: Object) -> None:
        """The running prompt was answered."""
        self.flush()
        self._awaited = True
        self.tally.prompt_over(result)

    def flush(self) -> None:
        """What was joined so far is one event."""
        kind, joined = self._kind, "".join(self._pieces)
        self._kind, self._pieces = None, []
        if kind is None or not joined.strip():
            return
        if kind is AgentEventKind.message:
            self.said = joined[-SAID_LOOKED_AT:]
        self._tell(AgentEvent(kind=kind, text=joined))

    def _chunk(self, kind: AgentEventKind, told: Object) -> None:
        if not self._live:
            return
        if mapping(told, "_meta", "usage"):
            self.tally.step(mapping(told, "_meta", "usage"))
            self._tell(AgentEvent(kind=AgentEventKind.usage, usage=self.tally.usage))
        said = text(told, "content", "text")
        if not said:
            return
        self._turn()
        self.answered = self.answered or kind is AgentEventKind.message
        message = text(told, "messageId")
        if kind is not self._kind or message != self._message or len(self._pieces) > _PIECES_LIMIT:
            self.flush()
        self._kind, self._message = kind, message
        self._pieces.append(said)

    def _piece(self, told: Object) -> AcpToolCall:
        if not self._live:
            return AcpToolCall("")
        self.flush()
        if not self._calls.known(text(told, "toolCallId")):
            self._turn()
        self.worked, self.answered = True, False
        call, event = self._calls.piece(told)
        if not self._calls.running:
            self._awaited = True
        if event is not None:
            self._tell(event)
            if event.state is CallState.refused:
                self.refusals.append(event.text)
        return call

    def _cost(self, told: Object) -> None:
        self.tally.cost(told)
        if not self._live:
            self.tally.begins_at(self.tally.session_cost)
        elif self.tally.spent is not None:
            self._tell(AgentEvent(kind=AgentEventKind.usage, usage=self.tally.usage))

    def _turn(self) -> None:
        if self._awaited:
            self._awaited = False
            self.tally.turns += 1
