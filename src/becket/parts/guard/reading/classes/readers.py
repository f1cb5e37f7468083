"""Which reader and which table a path has. What has neither is never plain."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial

from becket.parts.guard.reading.classes.facts import CodeUnit, FactKind, Facts, SourceFile
from becket.parts.guard.reading.classes.table import Table, tables_for

Read = Callable[[bytes | None, bytes], tuple[SourceFile, SourceFile]]
"""The old and the new version of one file; Unreadable where one of them cannot be parsed."""
_WORD = re.compile(r"\w+")
_OF_WORDS = frozenset(
    {FactKind.name, FactKind.own, FactKind.attribute, FactKind.store, FactKind.imports, FactKind.value}
)


Readers = tuple[tuple[Table, Read], ...]


def readers_for(path: str) -> Readers:
    """More than one where a suffix does not say which language it is: a header is C, or else C++."""
    suffix = path.rpartition("/")[2].rpartition(".")[2].lower()
    found = tables_for(suffix)
    return tuple((each, _reader(each, suffix, is_last=each is found[-1])) for each in found)


def _reader(table: Table, suffix: str, *, is_last: bool) -> Read:
    grammar = table.grammar(suffix)
    if grammar is None:
        from becket.parts.guard.reading.classes.python import read_python

        return read_python
    from becket.parts.guard.reading.classes.tree import read_tree

    return partial(read_tree, grammar, table, whole=not is_last)


def as_written(old: bytes, after: SourceFile) -> SourceFile:
    """The repaired file with only those facts whose words stood in the broken one."""
    known = set(_WORD.findall(old.decode("utf-8", "replace")))
    units = {
        name: CodeUnit(name, unit.line, "", partial(_only, unit, known), meaning=unit.meaning)
        for name, unit in after.units.items()
    }
    return SourceFile(units, lambda: after.defined & known, was_broken=True)


def _only(unit: CodeUnit, known: set[str]) -> Facts:
    facts = unit.facts
    kept = Counter({fact: n for fact, n in facts.counts.items() if fact[0] not in _OF_WORDS or _stood(fact[1], known)})
    return Facts(kept, facts.lines)


def _stood(value: str, known: set[str]) -> bool:
    return set(_WORD.findall(value)) <= known
