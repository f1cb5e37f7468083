"""What a scripted model does, step by step. One step answers one request; `Think` and `Delay` go before the next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a reply says it used. `cached` is part of `input`, `reasoning` of `output`, however the vendor counts."""

    input: int = 100
    output: int = 10
    cached: int = 0
    reasoning: int = 0


@dataclass(frozen=True, slots=True)
class Say:
    """Text, and the model's turn is over."""

    text: str
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Shell:
    """A command line, by whatever tool the client offers for it."""

    command: str
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Write:
    """A whole file. A relative path is below the client's working folder."""

    path: str
    text: str
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Edit:
    """One place in a file that exists. `old` must occur in it once, and whole lines suit every client best."""

    path: str
    old: str
    new: str
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call as it is, whether or not the client offers such a tool."""

    tool: str
    arguments: Mapping[str, object] = field(default_factory=dict)
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Together:
    """Several texts and tool calls in one reply, in this order."""

    steps: tuple[Say | Shell | Write | Edit | Call, ...]
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """Text that ends because the reply may not be longer."""

    text: str = "I will now"
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Refuse:
    """The model declines, in the way its vendor marks a refusal."""

    text: str = "I can't help with that."
    usage: Tokens | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection drops: in the middle of the reply, or `at_once` before any of it."""

    text: str = "I was about to say something longer"
    at_once: bool = False


@dataclass(frozen=True, slots=True)
class Status:
    """An error in the vendor's own shape.

    `retry_after` (seconds) and `resets_at` (seconds since 1970) become the vendor's headers and fields. `kind` picks
    between errors of one code: of 429 `rate` (per minute), `quota` (money or day) and `usage_limit` (a subscription).
    `midstream` says 200 first and the error in the stream. `body` replaces everything.
    """

    code: int
    kind: str = ""
    message: str = ""
    retry_after: int | None = None
    resets_at: float | None = None
    midstream: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing more comes, until the client goes away or the server stops. With `text`, it hangs after that text."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Think:
    """Reasoning in front of the next step's reply, where the vendor shows any."""

    text: str


@dataclass(frozen=True, slots=True)
class Delay:
    """So many seconds before the next step's reply."""

    seconds: float


Answering = Say | Shell | Write | Edit | Call | Together | Truncate | Refuse | Cut | Status | Hang
Preface = Think | Delay


@dataclass(frozen=True, slots=True, init=False)
class Loop:
    """These steps again and again; nothing after them is ever reached."""

    steps: tuple[Answering | Preface, ...]

    def __init__(self, *steps: Answering | Preface) -> None:
        object.__setattr__(self, "steps", steps)
        if not any(not isinstance(step, Think | Delay) for step in steps):
            raise ValueError("a Loop needs at least one step that answers")


Step = Answering | Preface | Loop
