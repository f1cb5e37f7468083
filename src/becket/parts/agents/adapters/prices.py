"""What tokens cost: the user's `prices` first, then the table that comes with Becket."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from becket.kernel.contract.agent import Limits, PriceSource, Usage
from becket.kernel.contract.config import AgentConfig
from becket.kernel.contract.errors import UsageError
from becket.parts.agents.section import Price

Prices = Callable[[str], Price | None]
_TABLE = Path(__file__).with_name("prices.yaml")
_MILLION = 1_000_000
_SNAPSHOT = re.compile(r"([-@](\d{8}|\d{4}-\d{2}-\d{2}|latest|default)|\[1m\])+$")
"""What a vendor adds to the name of the same model at the same price; `-mini` and `-5` name another one."""


def prices_with(own: Mapping[str, Price]) -> Prices:
    """Prices by model name; the user's own win, and of those the longest that the model's name begins with."""

    def price_of(model: str) -> Price | None:
        names = [name for name in own if name and model.startswith(name)]
        return own[max(names, key=len)] if names else built_in().get(_SNAPSHOT.sub("", model))

    return price_of


@cache
def built_in() -> Mapping[str, Price]:
    import yaml

    return {name: Price.model_validate(value) for name, value in yaml.safe_load(_TABLE.read_text()).items()}


def priced(usage: Usage, price: Price | None) -> Usage:
    """With the money that the table says, unless the vendor said it already. What is free is so untold, too."""
    if usage.priced is PriceSource.vendor or price is None or not (usage.tokens or _free(price)):
        return usage
    cached_price = price.input if price.cached is None else price.cached
    write_price = price.input if price.cache_write is None else price.cache_write
    plain = max(usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens, 0)
    cost = plain * price.input + usage.cached_tokens * cached_price + usage.cache_write_tokens * write_price
    cost += usage.output_tokens * price.output
    return usage.model_copy(update={"usd": cost / _MILLION, "priced": PriceSource.table})


def _free(price: Price) -> bool:
    return not (price.input or price.output or price.cached or price.cache_write)


def refuse_blind_limit(name: str, config: AgentConfig, price: Price | None, *, tells_money: bool = False) -> None:
    """A limit in money that nobody could hold is worse than none. Who tells its money tells it at its end: until then,
    and of a call that is stopped, the price is all there is. Only of a model that is not named may it yet be found.
    """
    if config.limits.usd is None or (price is not None and config.driver != "command"):
        return
    if tells_money and config.model is None:
        return
    if config.driver == "command":
        raise UsageError(f"agents.{name}: nobody can tell what a `command` agent costs; leave `limits.usd` away")
    known = f"the price of {config.model!r} is not known" if config.model else "its model is not named"
    price_too = f"`prices: {{{config.model or 'MODEL'}: {{input: 1.0, output: 5.0}}}}`"
    raise UsageError(
        f"agents.{name}: `limits.usd` cannot be held, {known}. Name the `model` in full, or its price too: {price_too}"
    )


def tightest(limits: Limits, config: AgentConfig) -> Limits:
    """What a call may use, where the agent has limits of its own too."""
    own = config.limits
    pairs = {"turns": (limits.turns, own.turns), "tokens": (limits.tokens, own.tokens), "usd": (limits.usd, own.usd)}
    least = {name: min((each for each in pair if each is not None), default=None) for name, pair in pairs.items()}
    return limits.model_copy(update={**least, "seconds": min(limits.seconds, own.time)})
