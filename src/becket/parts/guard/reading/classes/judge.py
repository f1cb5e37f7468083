"""What one file newly can do: its facts after the change beside its facts before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from becket.kernel.contract.guard import ChangeClass, ClassFinding
from becket.kernel.contract.lines import shown
from becket.parts.guard.reading.classes import words
from becket.parts.guard.reading.classes.facts import (
    NO_FACTS,
    NO_FILE,
    CodeUnit,
    Construct,
    Fact,
    FactKind,
    Facts,
    Restoration,
    Size,
    SourceFile,
)
from becket.parts.guard.reading.classes.table import ORDINARY, PLAIN, NameMeaning, Table

_POWERFUL = {
    Construct.catch_all: "hooks", Construct.leaves_finally: "hooks", Construct.dynamic: "dynamic",
    Construct.hook: "hooks", Construct.native: "native", Construct.sealed: "patching", Construct.directive: "dynamic",
    Construct.unreadable_macro: "dynamic", Construct.runs_at_load: "patching",
}  # fmt: skip
_METHODS = frozenset({"", "files", "processes", "exit", "environment"})
"""Powers whose attributes are also usual names of one's own methods."""
MOST = {Size.statement: 8, Size.branch: 4, Size.literal: 5, Size.equality: 1}
"""What a plain change may add at most, all files together: a table of answers is longer than a repair."""


Told = tuple[NameMeaning, str, str] | None
"""The class with its power, a short name of it, and what a person reads; None for what is plain."""


@dataclass(frozen=True)
class FileChange:
    """One source file of a change."""

    path: str
    old: SourceFile
    new: SourceFile
    table: Table
    text: str  # the new content
    before: str  # the old one
    pure: Sequence[str] = ()
    is_own: Callable[[str], bool] = lambda module: False  # a module of the project itself
    is_new: bool = False
    sizes: Counter[str] = field(default_factory=Counter)
    proven: SourceFile = field(default_factory=lambda: NO_FILE)  # the same path in the last proven commit

    @cached_property
    def restoration(self) -> Restoration:
        return Restoration.of(self.old, self.new, self.proven)

    def findings(self) -> Iterator[ClassFinding]:
        for name, unit in self.new.units.items():
            before = self.old.units.get(name)
            if before is None or before.source != unit.source:
                yield from _Judge(self, unit, before).findings()
        for name, unit in self.old.units.items():
            if name not in self.new.units and unit.line:
                yield self.finding(ORDINARY, "removal", unit.line, words.function_gone(name), old=True)
        yield from self._checks_gone()
        yield from self._directives()

    def _directives(self) -> Iterator[ClassFinding]:
        """Comments are read by nobody but compilers and checkers, and those obey some of them."""
        pattern = self.table.directives
        if pattern is None:
            return
        before = Counter(line.strip() for line in self.before.split("\n") if pattern.search(line))
        for number, line in enumerate(self.text.split("\n"), 1):
            if pattern.search(line):
                before[line.strip()] -= 1
                if before[line.strip()] < 0:
                    said = NameMeaning(ChangeClass.powerful, "dynamic")
                    yield self.finding(said, "directive", number, words.MARKS[Construct.directive])

    def _checks_gone(self) -> Iterator[ClassFinding]:
        """A check that moved to another function of the file is not gone."""
        changed = [unit for name, unit in self.old.units.items() if self._differs(name)]
        if not changed:
            return
        lost = _checks(changed) - _checks(unit for name, unit in self.new.units.items() if self._differs(name))
        for fact in lost:
            line = next(unit.facts.lines[fact][0] for unit in changed if fact in unit.facts.lines)
            yield self.finding(ORDINARY, "check", line, words.check_gone(fact[1]), old=True)

    def _differs(self, name: str) -> bool:
        before, after = self.old.units.get(name), self.new.units.get(name)
        return before is None or after is None or before.source != after.source

    def finding(self, said: NameMeaning, power: str, line: int, message: str, *, old: bool = False) -> ClassFinding:
        lines = (self.before if old else self.text).split("\n")
        text = lines[line - 1] if 0 < line <= len(lines) else ""
        return ClassFinding(
            kind=said.kind, power=said.power or power, path=self.path, line=line, message=message, shown=shown(text)
        )


def _checks(units: Iterator[CodeUnit] | Sequence[CodeUnit]) -> Counter[Fact]:
    found: Counter[Fact] = Counter()
    for unit in units:
        found.update({fact: count for fact, count in unit.facts.counts.items() if fact[0] is FactKind.check})
    return found


@dataclass(frozen=True, slots=True)
class _Judge:
    """One unit that is new or changed."""

    file: FileChange
    unit: CodeUnit
    before: CodeUnit | None

    def findings(self) -> Iterator[ClassFinding]:
        old = self.before.facts if self.before is not None else NO_FACTS
        new = self.unit.facts
        back = self.file.restoration.facts(self.unit)
        if self.before is None and self.unit.line and back is NO_FACTS:
            yield self._say(ORDINARY, Construct.new_function, self.unit.line, words.MARKS[Construct.new_function])
        guarded = self.unit.is_hook or self.unit.is_sealed
        if guarded and self.before is not None and self.unit.meaning() != self.before.meaning():
            power, tell = ("hooks", words.hook_changed) if self.unit.is_hook else ("patching", words.sealed_changed)
            yield self._say(NameMeaning(ChangeClass.powerful, power), power, self.unit.line, tell(self.unit.name))
        for (kind, value), count in new.beyond(old).items():
            judge, is_back = _JUDGES.get(kind), count <= back.counts[kind, value]
            if judge is None:
                if kind in (FactKind.size, FactKind.line) and not is_back:
                    self.file.sizes[Size.statement if kind is FactKind.line else value] += count
                continue
            told = judge(self, value)
            if told is not None and told[0] is not PLAIN and not (is_back and self._is_proven(told[0], kind, value)):
                said, power, message = told
                yield self._say(said, power, self._line((kind, value), new, old), message)

    def _is_proven(self, said: NameMeaning, kind: FactKind, value: str) -> bool:
        """What was proven once is nothing new; a power is, for whoever took it away may have meant that."""
        power = self.file.table.power_of(value) if kind is FactKind.name else None
        return said.kind is ChangeClass.ordinary and power is None

    def _say(self, said: NameMeaning, power: str, line: int, message: str) -> ClassFinding:
        return self.file.finding(said, power, line, message)

    def _line(self, fact: Fact, new: Facts, old: Facts) -> int:
        """The line that is new, where one can be told."""
        places = new.lines[fact]
        known = set(self.file.before.split("\n"))
        lines = self.file.text.split("\n")
        fresh = [line for line in places if 0 < line <= len(lines) and lines[line - 1] not in known]
        return (fresh or places[-1:])[0]

    def _known(self, kind: FactKind, value: str) -> bool:
        return (kind, value) in self.file.old.known

    def name(self, value: str) -> Told:
        table = self.file.table
        if self._known(FactKind.name, value):
            return self._known_name(value)
        if value.startswith("?"):
            return NameMeaning(ChangeClass.powerful, "unknown"), "unknown", words.unresolved(shown(value[1:])[:60])
        if value.startswith("~"):
            return self._of_the_package(value[1:])
        if value.startswith(".") or self.file.is_own(value):
            return self._project(value)
        said = table.of_name(value, self.file.pure)
        if said.power == "unknown" and (value in table.modules or value in table.watched):
            return said, "unknown", words.module_as_value(value)
        message = words.power(said.power, value) if said.power else words.MARKS[Construct.not_a_number]
        return said, said.power or "not-a-number", message

    def _of_the_package(self, value: str) -> Told:
        power = self.file.table.power_of(value)
        if power is not None:
            return NameMeaning(ChangeClass.powerful, power), power, words.power(power, value)
        return self._project(value) or (ORDINARY, "name", words.of_the_package(value))

    def _known_name(self, value: str) -> Told:
        """The file used it; a function that did not, and had no such power, gets one."""
        power = self.file.table.power_of(value)
        here = self.before is not None and (FactKind.name, value) in self.before.facts.counts
        if power is None or here or self._same_power(power):
            return None
        return ORDINARY, power, words.power_moved(power, value)

    def _same_power(self, power: str) -> bool:
        """The unit had it under another name."""
        names = [value for kind, value in self.before.facts.counts if kind is FactKind.name] if self.before else []
        return any(self.file.table.power_of(name) == power for name in names)

    def _project(self, value: str) -> Told:
        """What the project's own modules import is not theirs to hand on."""
        parts = value.strip(".").split(".")[1:] if not value.startswith(".") else value.strip(".").split(".")
        for part in parts:
            said = self.file.table.of_attribute(part)
            if part in self.file.table.watched or said.kind is ChangeClass.powerful:
                power = said.power or "modules"
                return NameMeaning(ChangeClass.powerful, power), power, words.power(power, value)
        return None

    def attribute(self, value: str) -> Told:
        if self._known(FactKind.attribute, value):
            return None
        said = self.file.table.of_attribute(value)
        if value in (*self.file.old.defined, *self.file.new.defined) and said.power in _METHODS:
            return None
        if said.power:
            return said, said.power, words.power(said.power, f".{value}")
        return said, "attribute", words.new_attribute(value)

    def store(self, value: str) -> Told:
        if value.startswith("@"):
            if self._known(FactKind.store, value):
                return None
            return NameMeaning(ChangeClass.powerful, "patching"), "patching", words.patched(value[1:])
        last = value.rpartition(".")[2]
        if self.file.table.hooks(last):
            return NameMeaning(ChangeClass.powerful, "hooks"), "hooks", words.patched(value.lstrip("=."))
        if self._known(FactKind.store, value) or (value.startswith(".") and value[1:] in self.file.old.defined):
            return None
        return ORDINARY, "state", words.new_state(value.lstrip("=."))

    def imports(self, value: str) -> Told:
        if self._known(FactKind.imports, value):
            return None
        module, _, name = value.partition(":")
        shown_as = f"{module}.{name}" if name and not module.endswith(".") else f"{module}{name}"
        if module.startswith(".") or self.file.is_own(shown_as):
            if name == "*" or self._project(f"{module}.{name}") is not None:
                return NameMeaning(ChangeClass.powerful, "modules"), "modules", words.unknown_import(shown_as)
            return ORDINARY, "import", words.new_import(shown_as)
        said = self.file.table.of_import(module, name, self.file.pure)
        if said.power and said.power != "unknown":
            return said, said.power, words.power(said.power, shown_as)
        return said, "import", words.unknown_import(shown_as) if said.power else words.new_import(shown_as)

    def value(self, value: str) -> Told:
        if self.file.table.is_trivial(value) or self._known(FactKind.value, value):
            return None
        return ORDINARY, "constant", words.new_value(shown(value)[:60])

    def mark(self, value: str) -> Told:
        mark = Construct(value)
        power = _POWERFUL.get(mark)
        said = NameMeaning(ChangeClass.powerful, power) if power else ORDINARY
        return said, mark.value, words.MARKS[mark]

    def outside(self, value: str) -> Told:
        if self._known(FactKind.outside, value):
            return None
        return ORDINARY, "outside", words.RUNS_AT_LOAD


_JUDGES: dict[FactKind, Callable[[_Judge, str], Told]] = {
    FactKind.name: _Judge.name,
    FactKind.attribute: _Judge.attribute,
    FactKind.store: _Judge.store,
    FactKind.imports: _Judge.imports,
    FactKind.value: _Judge.value,
    FactKind.mark: _Judge.mark,
    FactKind.outside: _Judge.outside,
}
