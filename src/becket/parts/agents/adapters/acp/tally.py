"""What a call used, as far as the agent tells: every vendor tells it somewhere else."""

from __future__ import annotations

from becket.kernel.contract.agent import PriceSource, Usage
from becket.parts.agents.adapters.dialect import plus
from becket.parts.agents.adapters.lenient_json import Object, count, mapping, number, objects, text


class UsageTally:
    """Tokens of all prompts of a call, its turns, and its money where the agent tells it.

    A turn is counted when the agent says or begins something after it had got a prompt or a tool's result. An agent
    that makes several calls in one answer, one after another, so counts more turns than its model had.
    """

    def __init__(self) -> None:
        self.turns = 0
        self.model = ""
        self._past = Usage()  # of the prompts that are over
        self._steps = Usage()  # of the running prompt, step by step
        self.session_cost = 0.0  # of the whole session, as the agent last told it
        self.spent: float | None = None  # of it, in this call; None if it never told
        self._outside = Usage()

    @property
    def usage(self) -> Usage:
        """Of the call so far."""
        wire = plus(self._past, self._steps)
        best = self._outside if self._outside.tokens > wire.tokens else wire
        money: dict[str, object] = {}
        if self.spent is not None:
            money = {"usd": self.spent, "priced": PriceSource.vendor}
        return best.model_copy(update={"turns": self.turns, **money})

    def begins_at(self, cost: float) -> None:
        """What the session had cost before this call."""
        self.session_cost, self.spent = cost, None

    def step(self, told: Object) -> None:
        """The usage that came with a chunk (qwen): of one request to the model."""
        self._steps = plus(self._steps, tokens_of(told))

    def cost(self, update: Object) -> None:
        """A `usage_update`. Its cost is of the whole session; its tokens are the context's and no usage. An agent that
        tells less than before counts anew (claude-agent-acp does in every process).
        """
        cost = mapping(update, "cost")
        if "amount" not in cost or text(cost, "currency").upper() not in ("", "USD"):
            return
        told = number(cost, "amount")
        self.spent = (self.spent or 0.0) + (told - self.session_cost if told >= self.session_cost else told)
        self.session_cost = told

    def prompt_over(self, result: Object) -> None:
        """What an answered prompt used in all: in `usage`, or in gemini's `_meta.quota`."""
        places = (("usage",), ("_meta", "quota", "token_count"), ("_meta", "usage"))
        told = (tokens_of(mapping(result, *place)) for place in places)
        self._past = plus(self._past, max(self._steps, *told, key=lambda usage: usage.tokens))
        self._steps = Usage()
        models = objects(result, "_meta", "quota", "model_usage")
        if models:
            most = max(models, key=lambda used: tokens_of(mapping(used, "token_count")).tokens)
            self.model = text(most, "model") or self.model

    def outside(self, usage: Usage) -> None:
        """What the agent's own records say; it wins where it is more than what came over the wire."""
        self._outside = usage


def tokens_of(told: Object) -> Usage:
    """Tokens under whatever name. Cached and reasoning tokens may be told on top of the others or as part of them:
    the total decides.
    """
    given = _first(told, "inputTokens", "input_tokens", "promptTokens")
    made = _first(told, "outputTokens", "output_tokens", "completionTokens")
    read = _first(told, "cachedReadTokens", "cachedTokens")
    written = _first(told, "cachedWriteTokens")
    thought = _first(told, "thoughtTokens", "thoughtsTokens")
    beyond = count(told, "totalTokens") - given - made
    if beyond > 0 and beyond in (read + written, read + written + thought):
        given += read + written
        beyond -= read + written
    if beyond > 0 and beyond == thought:
        made += thought
    return Usage(
        input_tokens=given,
        output_tokens=made,
        cached_tokens=min(read, given),
        cache_write_tokens=min(written, max(given - read, 0)),
    )


def _first(told: Object, *names: str) -> int:
    return next((count(told, name) for name in names if name in told), 0)
