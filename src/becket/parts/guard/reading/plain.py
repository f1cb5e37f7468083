"""Files of the test side that no parser reads: other languages as text, data by what it means."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable

from becket.kernel.contract.base import Json, canonical
from becket.kernel.contract.lines import is_subsequence

_CODE = frozenset(
    {
        "rb",
        "php",
        "cs",
        "kt",
        "kts",
        "scala",
        "swift",
        "c",
        "h",
        "cc",
        "cpp",
        "cxx",
        "hpp",
        "ex",
        "exs",
        "sh",
        "bash",
        "bats",
    }
    | {
        "lua",
        "pl",
        "t",
        "dart",
        "clj",
        "hs",
        "groovy",
        "feature",
        "erl",
        "ml",
        "m",
        "mm",
        "fs",
        "jl",
        "r",
        "zig",
        "nim",
    }
    | {"vue", "svelte"}
)
_DOCUMENTS = frozenset({"md", "rst", "adoc"})
_SNAPSHOTS = frozenset({"snap", "ambr"})
_SUSPICIOUS = re.compile(
    r"(?i)\b(?:skip\w*|ignore\w*|disabled?|pending|todo|xit|xdescribe|fit|fdescribe|only|return|exit|abort|mock\w*|stub\w*"
    r"|allow|before|after|set_?up|tear_?down|if|unless|rescue|catch|try)\b"
)
_EXAMPLE = re.compile(r"^\s*>>> ", re.MULTILINE)
_LARGEST_PARSED = {"json": 2_000_000, "toml": 500_000, "yaml": 100_000, "yml": 100_000}  # what is read in a moment


def suffix_of(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()


def is_code(path: str) -> bool:
    return suffix_of(path) in _CODE


def is_document(path: str, old: bytes, new: bytes) -> bool:
    """Prose: nothing reads it, unless it holds examples that are run."""
    return suffix_of(path) in _DOCUMENTS and not any(_EXAMPLE.search(_text(data)) for data in (old, new))


def only_longer(old: bytes, new: bytes) -> bool:
    """Every line is still there, in its order, and no added line takes a test out of the run."""
    before, after = _lines(old), _lines(new)
    if before == after:
        return True
    known = set(before)
    added = [line for line in after if line not in known]
    return is_subsequence(before, after) and not any(_SUSPICIOUS.search(line) for line in added)


def same_meaning(path: str, old: bytes, new: bytes) -> bool:
    """Data that reads the same; snapshots may get more entries."""
    suffix = suffix_of(path)
    if old.replace(b"\r\n", b"\n").rstrip(b"\n") == new.replace(b"\r\n", b"\n").rstrip(b"\n"):
        return True
    if suffix in _SNAPSHOTS:
        return is_subsequence(_lines(old), _lines(new))
    reader = _READERS.get(suffix)
    if reader is None or max(len(old), len(new)) > _LARGEST_PARSED[suffix]:
        return False
    try:
        return canonical(reader(_text(old))) == canonical(reader(_text(new)))
    except (ValueError, TypeError, RecursionError):
        return False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _lines(data: bytes) -> list[str]:
    """Indentation stays: in some languages it is what a line means."""
    return [line.rstrip().expandtabs(4) for line in _text(data).splitlines() if line.strip()]


def _json(text: str) -> Json:
    return json.loads(text)


def _yaml(text: str) -> Json:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


_READERS: dict[str, Callable[[str], Json]] = {"json": _json, "yaml": _yaml, "yml": _yaml, "toml": tomllib.loads}


def examples_kept(old: bytes, new: bytes) -> bool:
    """Of a source file that cannot be parsed: its doctest lines are all still there."""
    before, after = (
        [line.strip() for line in _text(data).splitlines() if line.strip().startswith(">>>")] for data in (old, new)
    )
    return is_subsequence(before, after)
