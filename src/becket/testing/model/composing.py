"""From a step to the reply that a wire can write."""

from __future__ import annotations

from collections.abc import Callable

from becket.testing.model.exchange import Block, ModelRequest, Reply, Stop, Text, Thought
from becket.testing.model.lanes import ScriptedTurn
from becket.testing.model.steps import (
    Call,
    Cut,
    Edit,
    Hang,
    Refuse,
    Say,
    Shell,
    Status,
    Together,
    Tokens,
    Truncate,
    Write,
)
from becket.testing.model.tools import call_for

_TOOL_STEPS = Shell | Write | Edit | Call


def compose(turn: ScriptedTurn, ask: ModelRequest, new_id: Callable[[], str], usual: Tokens) -> Reply:
    """What would be said; how much of it is really sent is the server's business. Raises NoTool."""
    step = turn.step
    blocks: list[Block] = [Thought(text) for text in turn.thoughts if ask.wants_thinking]
    usage = usual
    stop = Stop.done
    if isinstance(step, Together):
        for one in step.steps:
            blocks += _blocks(one, ask, new_id)
    elif isinstance(step, Cut | Hang | Truncate | Refuse):
        blocks.append(Text(step.text))
        stop = {Truncate: Stop.length, Refuse: Stop.refusal}.get(type(step), Stop.done)
    elif not isinstance(step, Status):
        blocks += _blocks(step, ask, new_id)
    if not isinstance(step, Cut | Hang | Status) and step.usage is not None:
        usage = step.usage
    reply = Reply(new_id(), ask.model, tuple(blocks), stop, usage)
    return Reply(reply.id, reply.model, reply.blocks, Stop.tools, usage) if reply.calls else reply


def _blocks(step: Say | _TOOL_STEPS, ask: ModelRequest, new_id: Callable[[], str]) -> list[Block]:
    if isinstance(step, Say):
        return [Text(step.text)]
    return [call_for(step, ask, new_id())]
