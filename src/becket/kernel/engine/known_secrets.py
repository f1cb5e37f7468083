"""Secrets whose values are known, in every encoding in which one may appear in a text."""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from becket.kernel.engine.common_words import USUAL

_FILLING = re.compile(r"[\W_]+")
_MOST_LINES = 100
_DIGITS = 9
"""Fewer of them are a port, a year, a day."""


def mark(kind: str) -> str:
    return f"[redacted:{kind}]"


def worth_looking_for(value: str) -> bool:
    """What is short or usual would blacken ordinary text; it is still hidden where it is assigned to a name."""
    usual = value.casefold() in USUAL or (value.isdigit() and len(value) < _DIGITS)
    return len(value) >= 8 and len(set(value)) > 2 and not usual


def _is_plain_word(value: str) -> bool:
    """It may be a part of other words; as a trace it would be found in ordinary text."""
    one_case = value.islower() or value.isupper()
    return len(value) < 16 and value.isascii() and value.isalpha() and one_case


def squeeze(text: str) -> str:
    """Only letters and digits, in one case: what stays of a secret that was split, spaced or re-wrapped."""
    return _FILLING.sub("", unicodedata.normalize("NFKC", text).casefold())


def _base64_cores(raw: bytes) -> Iterator[str]:
    """What base64 of any text around the secret must contain, for each of the three alignments."""
    for lead in range(3):
        encoded = base64.b64encode(b"\0" * lead + raw).decode().rstrip("=")
        yield encoded[(0, 2, 3)[lead] : len(encoded) - (1 if (lead + len(raw)) % 3 else 0)]


@dataclass(frozen=True, slots=True)
class KnownSecret:
    """One of them; `of` makes all that are worth looking for."""

    name: str
    exact: tuple[str, ...]  # replaced where they stand
    traces: tuple[str, ...] = ()  # squeezed; one of them left in a payload is a leak
    word: str = ""  # a plain word, replaced where it stands by itself

    def hidden(self, text: str) -> str:
        for form in self.exact:
            text = text.replace(form, mark(self.name))
        if self.word and self.word in text:
            text = re.sub(rf"(?<!\w){self.word}(?!\w)", mark(self.name), text)
        return text

    @classmethod
    def of(cls, name: str, value: str) -> Iterator[KnownSecret]:
        """The value, and each line of one that has several."""
        label = re.sub(r"[^A-Za-z0-9_.-]", "_", name)
        if _is_plain_word(value):
            raw = value.encode()
            yield cls(label, (base64.b64encode(raw).decode().rstrip("="), raw.hex()), word=value)
            return
        yield cls._whole(label, value)
        lines = dict.fromkeys(line.strip() for line in value.splitlines()[:_MOST_LINES]) if "\n" in value else ()
        for line in lines:
            if worth_looking_for(line) and not line.startswith("-----") and not _is_plain_word(line):
                yield cls(label, (line,))

    @classmethod
    def _whole(cls, name: str, value: str) -> KnownSecret:
        raw = value.encode()
        encoded = base64.b64encode(raw).decode()
        exact = {value, quote(value, safe=""), quote(value), quote_plus(value), json.dumps(value)[1:-1], raw.hex()}
        exact |= {encoded, encoded.rstrip("="), base64.urlsafe_b64encode(raw).decode().rstrip("=")}
        traces = {squeeze(trace) for trace in (value, value[::-1], raw.hex(), *_base64_cores(raw))}
        return cls(
            name=name,
            exact=tuple(sorted(exact, key=len, reverse=True)),
            traces=tuple(trace for trace in traces if len(trace) >= 8),
        )

    def left_in(self, views: set[str], squeezed: set[str]) -> bool:
        exact = any(form in view for view in views for form in self.exact)
        return exact or any(trace in view for view in squeezed for trace in self.traces)
