"""The `when:` grammar: `and`, `or`, `not` and parentheses over conditions such as `base.fast_red` or `no_progress`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

Has = Callable[[str], bool]

MAX_LENGTH = 2000
MAX_DEPTH = 40


class WhenError(ValueError):
    """The text is not an expression. `column` is 1-based within the text."""

    def __init__(self, message: str, column: int) -> None:
        super().__init__(message)
        self.column = column


class Expr(ABC):
    """A parsed expression: one of Ref, Not, And, Or."""

    __slots__ = ()

    @abstractmethod
    def holds(self, has: Has) -> bool:
        """Whether it is true, where `has` tells if a condition is raised."""

    @abstractmethod
    def leaves(self) -> Iterator[Ref]:
        """Every mention of a condition, in the order of the text."""

    def refs(self) -> tuple[str, ...]:
        """The conditions it mentions, each once, in the order of the text."""
        return tuple(dict.fromkeys(leaf.name for leaf in self.leaves()))


@final
@dataclass(frozen=True, slots=True)
class Ref(Expr):
    """A condition. `column` says where it stands in the text and does not count in comparisons."""

    name: str
    column: int = field(default=1, compare=False)

    def holds(self, has: Has) -> bool:
        return has(self.name)

    def leaves(self) -> Iterator[Ref]:
        yield self

    def __str__(self) -> str:
        return self.name


@final
@dataclass(frozen=True, slots=True)
class Not(Expr):
    item: Expr

    def holds(self, has: Has) -> bool:
        return not self.item.holds(has)

    def leaves(self) -> Iterator[Ref]:
        yield from self.item.leaves()

    def __str__(self) -> str:
        return f"not {_inside(self.item, And, Or)}"


@final
@dataclass(frozen=True, slots=True)
class And(Expr):
    items: tuple[Expr, ...]

    def holds(self, has: Has) -> bool:
        return all(item.holds(has) for item in self.items)

    def leaves(self) -> Iterator[Ref]:
        for item in self.items:
            yield from item.leaves()

    def __str__(self) -> str:
        return " and ".join(_inside(item, And, Or) for item in self.items)


@final
@dataclass(frozen=True, slots=True)
class Or(Expr):
    items: tuple[Expr, ...]

    def holds(self, has: Has) -> bool:
        return any(item.holds(has) for item in self.items)

    def leaves(self) -> Iterator[Ref]:
        for item in self.items:
            yield from item.leaves()

    def __str__(self) -> str:
        return " or ".join(_inside(item, Or) for item in self.items)


def _inside(item: Expr, *weaker: type[Expr]) -> str:
    return f"({item})" if isinstance(item, weaker) else str(item)


@lru_cache(maxsize=4096)
def parse(text: str) -> Expr:
    """The expression that `text` says; raises WhenError."""
    if len(text) > MAX_LENGTH:
        raise WhenError(f"the expression is longer than {MAX_LENGTH} characters", MAX_LENGTH + 1)
    return _Parser(text).whole()


def parsed(text: str) -> str:
    """The text itself, if it is an expression: for parameters that are one."""
    parse(text)
    return text


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    column: int


_TOKEN = re.compile(r"\s*(?:([a-z][a-z0-9_]*(?:\.[a-z][a-z0-9_]*)?)(?![\w.])|([()]))")
_WORD = re.compile(r"[^\s()]+")
KEYWORDS = frozenset({"and", "or", "not"})
_MEANT = {"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not"}


def _tokens(text: str) -> list[_Token]:
    found = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise _strange(text, at)
        word = match[1] or match[2]
        found.append(_Token(word, match.end() - len(word) + 1))
        at = match.end()
    return found


def _strange(text: str, at: int) -> WhenError:
    start = at + len(text[at:]) - len(text[at:].lstrip())
    match = _WORD.match(text, start)
    word = match[0] if match else text[start : start + 1]
    meant = _MEANT.get(word) or (word.lower() if word.lower() in KEYWORDS else None)
    advice = f"write `{meant}`" if meant else "conditions look like `base.fast_red` or `no_progress`"
    return WhenError(f"{word[:60]!r} is not a condition; {advice}", start + 1)


class _Parser:
    """Recursive descent; the depth is bounded, so a hostile text cannot exhaust the stack."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0
        self._end = len(text) + 1

    def whole(self) -> Expr:
        expr = self._any(0)
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            said = "a `)` without its `(`" if token.text == ")" else f"`and` or `or` is missing before {token.text!r}"
            raise WhenError(said, token.column)
        return expr

    def _any(self, depth: int) -> Expr:
        items = [self._all(depth)]
        while self._take("or"):
            items.append(self._all(depth))
        return items[0] if len(items) == 1 else Or(tuple(items))

    def _all(self, depth: int) -> Expr:
        items = [self._one(depth)]
        while self._take("and"):
            items.append(self._one(depth))
        return items[0] if len(items) == 1 else And(tuple(items))

    def _one(self, depth: int) -> Expr:
        if self._at == len(self._tokens):
            raise WhenError("a condition is missing at the end", self._end)
        token = self._tokens[self._at]
        if depth > MAX_DEPTH:
            raise WhenError(f"more than {MAX_DEPTH} levels of `not` and parentheses", token.column)
        self._at += 1
        if token.text == "not":
            return Not(self._one(depth + 1))
        if token.text == "(":
            expr = self._any(depth + 1)
            if not self._take(")"):
                raise WhenError("this `(` is never closed", token.column)
            return expr
        if token.text == ")" or token.text in KEYWORDS:
            raise WhenError(f"a condition is missing before {token.text!r}", token.column)
        return Ref(token.text, token.column)

    def _take(self, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at].text == text:
            self._at += 1
            return True
        return False
