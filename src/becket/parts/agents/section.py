"""What models cost: a key of becket.yaml. `agents` and `budgets` are the kernel's: every loop is bound by them."""

from __future__ import annotations

from pydantic import Field

from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Section
from becket.kernel.contract.spec import Text


class Price(Record):
    """US dollars for a million tokens. What is not said of cached tokens costs as much as any other input."""

    input: float = Field(ge=0, le=10**6)
    output: float = Field(ge=0, le=10**6)
    cached: float | None = Field(default=None, ge=0, le=10**6)
    cache_write: float | None = Field(default=None, ge=0, le=10**6)


PRICES: Section[dict[str, Price]] = Section(dict[Text, Price], dict)
"""By model; wins over the built-in table."""
