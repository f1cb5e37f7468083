"""Does a test still do all it did? Then it may have grown: more checks, more rows, more steps at its end."""

from __future__ import annotations

from collections.abc import Sequence

from becket.parts.guard.reading.languages.shape import Language, Shape

_TOKENS = "token_tree"


def has_only_grown(old: Shape, new: Shape, language: Language, iterated: frozenset[str] = frozenset()) -> bool:
    """`iterated`: names of tables that the file hands to its tests row by row."""
    return _Growth(old, language, iterated).of(old, new)


def tables_in(shapes: Sequence[Shape], language: Language) -> frozenset[str]:
    """Names that a loop or a table call goes through."""
    found: set[str] = set()
    for root in shapes:
        for shape in root.walk():
            if shape.kind in language.loops:
                found.update(part.text for child in shape.children[:4] for part in child.walk_outside(language.blocks))
            elif language.is_table_call(shape):
                found.update(part.text for part in shape.walk())
    return frozenset(found - {""})


class _Growth:
    def __init__(self, old: Shape, language: Language, iterated: frozenset[str]) -> None:
        self._tongue = language
        self._names = {shape.text for shape in old.walk() if shape.text}
        self._iterated = iterated | tables_in([old], language)

    def of(self, old: Shape, new: Shape, *, rows: bool = False) -> bool:
        if old == new:
            return True
        if old.kind != new.kind or old.text != new.text or self._tongue.is_check(old):
            return False
        if old.kind in self._tongue.blocks:
            return self._statements(old.children, new.children)
        rows = rows or self._tongue.is_table_call(old) or self._names_table(old)
        if rows and old.kind in self._tongue.tables:
            return self._rows(old, new)
        in_loop = old.kind in self._tongue.loops
        return len(old.children) == len(new.children) and all(
            self.of(before, after, rows=rows or (in_loop and before.kind in self._tongue.tables))
            for before, after in zip(old.children, new.children, strict=True)
        )

    def _names_table(self, shape: Shape) -> bool:
        bound = self._tongue.bound_names(shape)
        return len(bound) == 1 and next(iter(bound)) in self._iterated

    def _rows(self, old: Shape, new: Shape) -> bool:
        """All old rows are there, in their order, and none of the new ones is left out of the run."""
        if old.kind == _TOKENS:  # rows inside a macro are bare tokens: more may only follow behind a comma
            kept = new.children[: len(old.children)] == old.children
            return kept and len(new.children) > len(old.children) and new.children[len(old.children)].kind == ","
        rest = iter(new.children)
        if not all(any(row == other for other in rest) for row in old.children):
            return False
        known = set(old.children)
        return not any(self._tongue.is_skip(part) for row in new.children if row not in known for part in row.walk())

    def _statements(self, old: Sequence[Shape], new: Sequence[Shape]) -> bool:
        position = 0
        for statement in new:
            if position < len(old) and self.of(old[position], statement):
                position += 1
            elif not self._harmless(statement, last=position == len(old)):
                return False
        return position == len(old)

    def _harmless(self, statement: Shape, *, last: bool) -> bool:
        """May this new statement stand here without touching what the old ones prove?"""
        language = self._tongue
        if any(
            language.is_skip(part) or language.is_patch(part) or language.is_hard_exit(part)
            for part in statement.walk()
        ):
            return False
        if language.is_check(statement):
            return True
        if any(part.kind in language.exits for part in statement.walk_outside(language.functions)):
            return False
        bound = set(language.bound_names(statement))
        return not bound & self._names and (last or bool(bound))
