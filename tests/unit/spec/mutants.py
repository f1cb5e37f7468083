"""Bad files made from good ones, by seed: every kind of slip at places that are drawn from the file itself.

A kind says whether its mutants are `always` refused. The others may also be a legal other file (a free text with
another word, an optional key left out, a larger bound): what the test then demands of them stands in test_mutants.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from becket.kernel.spec.document import Document, SourcePlace, read

Where = tuple[str | int, ...]
Applies = Callable[[Where, Any], bool]

DURATION = re.compile(r"([0-9.]+(ms|s|m|h|d|w))+")
SIZE = re.compile(r"[0-9.]+\s*(B|KB|MB|GB)")
URL = re.compile(r"[a-z+]+://")
LOOSE = {"with", "default", "prices", "chat", "forge", "web", "knowledge", "flaky", "evolve"}
"""Below these keys anything may stand, or the kind is that of an action's parameter."""


@dataclass(frozen=True, slots=True)
class Mutant:
    source: str
    kind: str
    where: str
    content: bytes
    always: bool  # never harmless, even where it would mean the same: nothing is read as another kind

    def __str__(self) -> str:
        return f"{self.source}: {self.kind} at {self.where}"


def number(path: Where, value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not LOOSE & set(path)


def text(path: Where, value: Any) -> bool:
    return isinstance(value, str) and not LOOSE & set(path) and "${" not in value


def free(path: Where, value: Any) -> bool:
    """A text that is neither a duration nor a size, where a number would be another way to say it."""
    return text(path, value) and not DURATION.fullmatch(value) and not SIZE.fullmatch(value)


def duration(path: Where, value: Any) -> bool:
    return text(path, value) and DURATION.fullmatch(value) is not None


def whole(path: Where, value: Any) -> bool:
    return number(path, value) and isinstance(value, int)


def truth(path: Where, value: Any) -> bool:
    return isinstance(value, bool) and not LOOSE & set(path)


def size(path: Where, value: Any) -> bool:
    return text(path, value) and SIZE.fullmatch(value) is not None


def name(path: Where, value: Any) -> bool:
    return text(path, value) and re.fullmatch(r"[a-z_.]+", value) is not None


def address(path: Where, value: Any) -> bool:
    return text(path, value) and URL.match(value) is not None


def anything(_: Where, __: Any) -> bool:
    return True


def of(*keys: str) -> Applies:
    """Texts of these keys, or in lists of theirs."""

    def applies(path: Where, value: Any) -> bool:
        return isinstance(value, str) and next((step for step in reversed(path) if isinstance(step, str)), "") in keys

    return applies


@dataclass(frozen=True, slots=True)
class Slip:
    """`words` stand instead of a scalar that it applies to; in them `@` is what stood there."""

    kind: str
    applies: Applies
    words: tuple[str, ...]
    always: bool = True


SLIPS: tuple[Slip, ...] = (
    Slip("number in quotes", number, ('"@"',)),
    Slip("fraction for a whole number", whole, ("@.5",), always=False),
    Slip("whole number as a fraction", whole, ("@.0",), always=False),
    Slip("number out of bounds", number, ("-1", "-0.5", "1e99", "9" * 18, "9" * 19)),
    Slip("number zero", number, ("0",), always=False),
    Slip("no number", number, (".nan", ".inf", "-.inf", "nan", "0x1F", "0o17", "1_000", "many", "2024-01-01")),
    Slip("truth for a number", number, ("true", "no")),
    Slip("list or mapping for a number", number, ("[]", "{}", "[1]", "{a: 1}")),
    Slip("number for a text", free, ("12", "1.5", "-1")),
    Slip("truth for a text", free, ("true", "False")),
    Slip("nothing for a text", free, ("~", '""'), always=False),
    Slip("list or mapping for a text", free, ("[]", "{}", "[a]", "{a: b}"), always=False),
    Slip("YAML's old guesses", free, ("no", "on", "12:30", "2024-01-01", "0o17", "=", "<<"), always=False),
    Slip("odd truth", truth, ("yes", "1", "0", '"true"', "on", "~", "[]")),
    Slip("no duration", duration, ("10 m", "-1s", "1y", "999999999w", '"10"', "1e3s", ".nan", "true", '""', "[]")),
    Slip("duration zero", duration, ("0s", "0"), always=False),
    Slip("no size", size, ("5XB", "-1MB", '"5"', "1.5", "99999999GB")),
    Slip("reference renamed", name, ("@x", "nobody"), always=False),
    Slip("no place below", of("env_file", "shared"), ("/etc/passwd", "../x", '"a\\0b"', '"a\\nb"', "~/x")),
    Slip(
        "no report", of("report"), ("junit:/etc/passwd", "junit:../x", '"junit:a\\0b"', '"junit:"', "xml", '"junit:["')
    ),
    Slip("no glob", of("test_side", "protected", "key"), ('"["', '"{a"', '"!x"', "../x", '""', '"a\\0b"')),
    Slip("no branch", of("branch"), ("a..b", "-f", '"a b"', "refs/heads/x", ".x", "x.lock", "HEAD", "x" * 300)),
    Slip("no address", address, ("file:///etc/passwd", "ftp://x/y", '"http://"', '"http://a b"')),
    Slip("NUL in a text", text, ('"a\\0b"',)),
    Slip("half a character", text, ('"\\ud83d"', '"\\udc00x"')),
    Slip("anchor", anything, ("&a @", "*a")),
    Slip("tag", anything, ("!!str @", "!x @")),
    Slip("deep nesting", anything, ("[" * 10_000 + "]" * 10_000, "{a: " * 10_000 + "}" * 10_000)),
)


def mutants(source: str, content: str, seed: int, each: int = 1) -> Iterator[Mutant]:
    """For every kind of slip up to `each` places of the file, then the slips of keys and of the file as a whole."""
    chance = random.Random(f"{seed} {source}")
    document = read(content, source)
    scalars = [
        (path, place)
        for path, place in document.places.items()
        if place.scalar and place.source and place.style in ("", "'", '"')
    ]
    for slip in SLIPS:
        possible = [(path, place) for path, place in scalars if slip.applies(path, document.at(path))]
        for path, place in chance.sample(possible, min(each, len(possible))):
            made = _put(content, place, chance.choice(slip.words).replace("@", place.source))
            yield Mutant(source, slip.kind, ".".join(map(str, path)), made.encode(), slip.always)
    yield from _of_keys(source, content, document, chance, each)
    yield from _of_files(source, content, chance)


def _put(content: str, place: SourcePlace, words: str) -> str:
    start = _offset(content, place.value)
    assert content[start : start + len(place.source)] == place.source
    return content[:start] + words + content[start + len(place.source) :]


def _offset(content: str, spot: tuple[int, int]) -> int:
    line, column = spot
    return sum(len(row) for row in content.splitlines(keepends=True)[: line - 1]) + column - 1


def _of_keys(source: str, content: str, document: Document, chance: random.Random, each: int) -> Iterator[Mutant]:
    keys = [(path, place) for path, place in document.places.items() if path and isinstance(path[-1], str)]
    for path, place in chance.sample(keys, min(each, len(keys))):
        start, key = _offset(content, place.key), str(path[-1])
        where, before, after = ".".join(map(str, path)), content[:start], content[start:]
        always = not LOOSE & set(path) and not _chosen(path)
        yield Mutant(source, "key misspelt", where, f"{before}{key}x{after[len(key) :]}".encode(), always)
        yield Mutant(source, "key in another case", where, f"{before}{after[0].upper()}{after[1:]}".encode(), False)
        yield Mutant(source, "merge key", where, f"{before}<<{after[len(key) :]}".encode(), always)
        yield Mutant(source, "list as a key", where, f"{before}? [a]\n: b\n{after}".encode(), True)
        yield Mutant(source, "key twice", where, f"{before}{key}: 1, {key}: 2{after[len(key) :]}".encode(), True)
    rows = content.splitlines(keepends=True)
    plain = [n for n, row in enumerate(rows) if re.fullmatch(r"[a-z_]+: [^|>\n]+\n", row)]
    for number_ in chance.sample(plain, min(each, len(plain))):
        where = rows[number_].split(":")[0]
        yield Mutant(source, "line removed", where, "".join(rows[:number_] + rows[number_ + 1 :]).encode(), False)
        yield Mutant(source, "line twice", where, "".join(rows[: number_ + 1] + rows[number_:]).encode(), True)


def _chosen(path: Where) -> bool:
    """Whether the key is a name that the writer of the file chooses."""
    free_keys = {"env", "set", "match", "inputs", "outputs", "gates", "services", "agents", "people", "loops", "pure"}
    return len(path) > 1 and path[-2] in free_keys | {"effect_caps", "wait_conditions", "raises"}


def _of_files(source: str, content: str, chance: random.Random) -> Iterator[Mutant]:
    raw, cut = content.encode(), chance.randrange(len(content))
    inside = len(content[:cut].encode())
    whole = {
        "UTF-16": (content.encode("utf-16"), True),
        "UTF-32": (content.encode("utf-32"), True),
        "byte order mark": (b"\xef\xbb\xbf" + raw, False),
        "Windows line ends": (raw.replace(b"\n", b"\r\n"), False),
        "latin-1": (raw[:inside] + b"\xe9" + raw[inside:], True),
        "raw surrogate": (raw[:inside] + b"\xed\xa0\x80" + raw[inside:], True),
        "raw NUL": (raw[:inside] + b"\0" + raw[inside:], True),
        "control character": (raw[:inside] + b"\x07" + raw[inside:], True),
        "escape sequence": (raw[:inside] + b"\x1b[2J" + raw[inside:], True),
        "second document": (raw + b"---\nversion: 1\n", True),
        "tab": (raw + b"\tx: y\n", True),
        "larger than a file may be": (raw + b"# filler\n" * 120_000, True),
        "cut off": (raw[:inside], False),
        "empty": (b"", True),
        "only a list": (b"- a\n", True),
    }
    for kind, (made, always) in whole.items():
        yield Mutant(source, kind, f"byte {inside}", made, always)


def repository() -> Path:
    return Path(__file__).parents[3]
