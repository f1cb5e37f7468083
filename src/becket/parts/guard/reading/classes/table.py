"""One language as a table: what is pure, what is a power, what stands for what. Adding a language is adding data."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from becket.kernel.contract.guard import ChangeClass

_VALIDATES = re.compile(r"(?i)^_*(?:check|validate|verify|ensure|require|assert|is_?valid|must|forbid|reject|sanitize)")
_DUNDER = re.compile(r"^__\w+__$")
_INNOCENT_HOOKS = frozenset(
    {"__init__", "__post_init__", "__repr__", "__str__", "__iter__", "__next__", "__call__", "__enter__", "__exit__"}
    | {"__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__", "__pow__", "__neg__", "__pos__"}
    | {"__radd__", "__rsub__", "__rmul__", "__rtruediv__", "__iadd__", "__isub__", "__abs__", "__invert__", "__round__"}
    | {"__getitem__", "__setitem__", "__delitem__", "__int__", "__float__", "__index__", "__bytes__", "__reversed__"}
    | {"__aenter__", "__aexit__", "__slots__", "__all__", "__doc__", "__match_args__", "__len__", "__module__"}
)
_MODULES = sys.stdlib_module_names | {"__builtins__"}


@dataclass(frozen=True, slots=True)
class NameMeaning:
    """What the table says of a name."""

    kind: ChangeClass
    power: str = ""


PLAIN = NameMeaning(ChangeClass.plain)
ORDINARY = NameMeaning(ChangeClass.ordinary)


@dataclass(frozen=True)
class Table:
    name: str
    suffixes: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False)

    def grammar(self, suffix: str) -> str | None:
        """What parses a file of this suffix; None for the language that brings its own parser."""
        found = self.data.get("grammars", {}).get(suffix, self.data.get("grammar"))
        return None if found is None else str(found)

    def spelled(self, name: str) -> str:
        """As the table has it: some languages do not mind case."""
        return self._spellings.get(name.lower(), name) if self.data.get("ignores_case") else name

    @cached_property
    def _spellings(self) -> dict[str, str]:
        known = (self.built_in, self.pure, self._powers, self._power_attributes, self._hooks, self._attributes)
        return {name.lower(): name for names in known for name in names}

    def words(self, key: str) -> frozenset[str]:
        return frozenset(str(self.data.get(key, "")).split())

    def kinds(self, key: str) -> frozenset[str]:
        """Kinds of nodes, or names, that stand for something in this language."""
        found = self._kinds.get(key)
        if found is None:
            found = self._kinds[key] = frozenset(str(self.data.get("nodes", {}).get(key, "")).split())
        return found

    @cached_property
    def _kinds(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def roles(self) -> dict[str, str]:
        """By kind of node: what the reader does with it."""
        return _by_name(self.data.get("roles", {}))

    @cached_property
    def members(self) -> dict[str, tuple[str, str, str]]:
        """Kinds of nodes that reach into something: the fields of the holder and of the part.

        A third word says of which kind the part must be: any other is looked up at run time.
        """
        words = {kind: (*fields.split(), "") for kind, fields in self.data.get("members", {}).items()}
        return {kind: (holder, part, must) for kind, (holder, part, must, *_) in words.items()}

    @cached_property
    def binders(self) -> dict[str, frozenset[str]]:
        return {kind: frozenset(fields.split()) for kind, fields in self.data.get("binders", {}).items()}

    @cached_property
    def directives(self) -> re.Pattern[str] | None:
        return re.compile(self.data["directives"]) if "directives" in self.data else None

    @property
    def unknown(self) -> str:
        """How a name is marked that nothing tells of: `?`, or `~` where it must be of the same package."""
        return str(self.data.get("unknown", "?"))

    @property
    def local(self) -> tuple[str, ...]:
        """What a name begins with that is never seen outside its function."""
        return tuple(self.words("local"))

    @cached_property
    def built_in(self) -> frozenset[str]:
        return self.words("pure_built_in")

    @cached_property
    def pure(self) -> frozenset[str]:
        return self.words("pure")

    @cached_property
    def modules(self) -> frozenset[str]:
        """What must not be handed on as a value: a module, from which anything could be taken."""
        return self.words("modules") or frozenset(each for each in self.pure if "." not in each)

    @cached_property
    def not_plain(self) -> frozenset[str]:
        return self.words("not_plain")

    @cached_property
    def mutators(self) -> frozenset[str]:
        return self.words("mutators")

    @cached_property
    def watched(self) -> frozenset[str]:
        return self.words("watched_modules")

    @cached_property
    def _conventional(self) -> frozenset[str]:
        return self.words("conventional")

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return self.words("pure_attributes")

    @cached_property
    def _powers(self) -> dict[str, str]:
        return _by_name(self.data.get("powers", {}))

    @cached_property
    def _power_attributes(self) -> dict[str, str]:
        """Those that are named, and what a power is called where its module cannot be seen: `environ`, `now`."""
        usual = self._attributes | self.words("usual_attributes")
        derived = {name.rpartition(".")[2]: power for name, power in self._powers.items() if "." in name}
        kept = {name: power for name, power in derived.items() if name not in usual and len(name) > 2}
        return kept | _by_name(self.data.get("power_attributes", {}))

    @cached_property
    def built_in_roots(self) -> frozenset[str]:
        """Globals of which only some members are pure: `Object` for `Object.keys`."""
        return frozenset(name.partition(".")[0] for name in self.built_in)

    @cached_property
    def _hooks(self) -> frozenset[str]:
        return self.words("hooks")

    def is_power(self, name: str) -> bool:
        return self.power_of(name) is not None

    def is_power_by_itself(self, name: str) -> bool:
        """Without an import: a global, or where a path into the language's own library begins."""
        by_name = self.kinds("bare_powers")
        return name in self.kinds("roots") or (name in by_name if by_name else self.is_power(name))

    def power_of(self, name: str) -> str | None:
        """By the longest beginning that the table knows: `os.environ` for `os.environ.get`."""
        for beginning in _beginnings(name):
            if beginning in self.pure:
                return None
            if beginning in self._powers:
                return self._powers[beginning]
        return None

    def of_name(self, name: str, pure: Collection[str] = ()) -> NameMeaning:
        """A resolved name that is not of the project."""
        if name in self.not_plain:
            return ORDINARY
        if (power := self.power_of(name)) is not None:
            return NameMeaning(ChangeClass.powerful, power)
        if name in self.modules:
            return NameMeaning(ChangeClass.powerful, "unknown")
        if name in self.built_in:
            return PLAIN
        for beginning in _beginnings(name):
            if beginning in self.pure or beginning in pure or beginning in self.built_in:
                rest = name[len(beginning) + 1 :].split(".")
                modules = _MODULES | {"stdlib_re", "bltns"} if self.name == "Python" else frozenset[str]()
                leads_away = any(
                    part in modules or part in self._power_attributes or part.startswith("_") for part in rest
                )
                return NameMeaning(ChangeClass.powerful, "unknown") if leads_away else PLAIN
        return NameMeaning(ChangeClass.powerful, "unknown")

    def of_import(self, module: str, name: str, pure: Collection[str] = ()) -> NameMeaning:
        """An import that the file did not have. What is used of a watched module is judged where it is used."""
        full = f"{module}.{name}" if name else module
        if name == "*" and not (module in self.pure and self.name != "Python"):
            return NameMeaning(ChangeClass.powerful, "unknown")
        if (power := self.power_of(full)) is not None and (name or module not in self.watched):
            return NameMeaning(ChangeClass.powerful, power)
        known = full in self.built_in or any(
            each in self.pure or each in pure or each in self.watched for each in _beginnings(full)
        )
        return ORDINARY if known else NameMeaning(ChangeClass.powerful, "unknown")

    def of_attribute(self, name: str) -> NameMeaning:
        if name in self._attributes:
            return PLAIN
        if name in self._power_attributes:
            return NameMeaning(ChangeClass.powerful, self._power_attributes[name])
        return NameMeaning(ChangeClass.powerful, "hooks") if _DUNDER.match(name) else ORDINARY

    def is_trivial(self, value: str) -> bool:
        """A literal that is no answer: nothing, one, a separator, the name of an encoding."""
        if value in ("None", "True", "False", "Ellipsis", "0", "1", "-1", "0.0", "1.0", "-1.0"):
            return True
        if value[:1] in "bBrRuU" and value[1:2] in "'\"":
            value = value[1:]
        if value[:1] not in ("'", '"', "`"):
            return False
        text = value[1:-1]
        plain = _plain(text)
        return text in self._conventional or (len(plain) <= 2 and plain.isascii() and not any(map(str.isalnum, plain)))

    def is_empty(self, value: str) -> bool:
        return value in ("0", "0.0", "''", '""', "b''", "None")

    def hooks(self, name: str) -> bool:
        """Does defining this in a class decide equality, hashing, attributes or how classes are made?"""
        name = self.spelled(name)
        return name in self._hooks or (bool(_DUNDER.match(name)) and name not in _INNOCENT_HOOKS)

    def validates(self, name: str) -> bool:
        return bool(_VALIDATES.match(name))


def _plain(text: str) -> str:
    """`\\n` is one character that is no letter."""
    return re.sub(r"\\[ntr\\'\"0]", "", text)


def _beginnings(name: str) -> list[str]:
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _by_name(groups: Mapping[str, str]) -> dict[str, str]:
    return {name: power for power, names in groups.items() for name in names.split()}


@cache
def table(language: str) -> Table:
    data = tomllib.loads((_tables() / f"{language}.toml").read_text("utf-8"))
    return Table(data["name"], tuple(data["suffixes"]), data)


def _tables() -> Traversable:
    return files(__package__) / "tables"


@cache
def _suffixes() -> Mapping[str, tuple[str, ...]]:
    """By suffix: the tables that name it, in the order of their files. Only their first paragraphs are read."""
    found: dict[str, tuple[str, ...]] = {}
    for file in sorted(
        (each for each in _tables().iterdir() if each.name.endswith(".toml")), key=lambda each: each.name
    ):
        for suffix in tomllib.loads(file.read_text("utf-8").partition("\n\n")[0])["suffixes"]:
            found[suffix] = (*found.get(suffix, ()), file.name.removesuffix(".toml"))
    return found


def tables_for(suffix: str) -> list[Table]:
    return [table(name) for name in _suffixes().get(suffix, ())]


PYTHON = table("python")
