"""What a request asks and a reply says, the same for every wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from becket.testing.model.steps import Tokens

Json = Mapping[str, Any]


class WireName(StrEnum):
    responses = "responses"
    chat = "chat"
    messages = "messages"
    gemini = "gemini"


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that the client offers. `freeform` takes plain text instead of arguments."""

    name: str
    schema: Json = field(default_factory=dict)
    freeform: bool = False

    @property
    def properties(self) -> Json:
        found = self.schema.get("properties")
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.schema.get("required") or ())


@dataclass(slots=True)
class ModelRequest:
    """A request, read. `wrong` holds what the real service would refuse it for."""

    model: str = ""
    stream: bool = False
    tools: list[Offered] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)  # system, developer and user texts
    results: list[str] = field(default_factory=list)  # what tools gave back
    answer_schema: Json | None = None  # the shape that a reply without tools must have
    wrong: list[str] = field(default_factory=list)
    wants_thinking: bool = True
    wants_stream_usage: bool = True


class Stop(StrEnum):
    done = "done"
    tools = "tools"
    length = "length"
    refusal = "refusal"


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Thought:
    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """`text` is what a freeform tool gets; then there are no arguments."""

    id: str
    name: str
    arguments: Json
    text: str | None = None


Block = Text | Thought | ToolCall


@dataclass(frozen=True, slots=True)
class Reply:
    id: str
    model: str
    blocks: tuple[Block, ...]
    stop: Stop
    usage: Tokens

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolCall))

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.blocks if isinstance(block, Text))


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event."""

    data: Json | str
    event: str = ""


def pieces(text: str, size: int = 12) -> list[str]:
    """A text as a stream delivers it: in several parts."""
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]
