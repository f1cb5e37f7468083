"""What a capability brings: one record, found by the entry-point group `becket.parts`, a stranger's like our own.

Whatever costs an import is named by its target (`module:attribute`) and loaded when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

Target = str
"""`module:attribute`."""

BEGIN, LOOPS, PEOPLE, OPERATIONS = "Begin", "Loops and runs", "People", "Operations"
SECTIONS = (BEGIN, LOOPS, PEOPLE, OPERATIONS)
"""The sections of `becket --help`, in this order."""


class Verb(NamedTuple):
    """A verb of the command line. A test compares `help` with the verb's own."""

    name: str
    target: Target
    help: str
    section: str = ""  # empty: not listed
    rank: int = 50  # within its section; the lower comes first
    quick: Target = ""  # what to call instead where --json is the only option given: Typer takes longer than the answer


class Chore(NamedTuple):
    """Done by the daemon every so many seconds, and once by every command that saw its own runs through."""

    target: Target  # async (App) -> None
    every: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Functions that a part is asked with get the open `App`; each field says what they return."""

    name: str
    needs: tuple[str, ...] = ()
    """Parts whose modules its own import. They come before it in every list."""
    actions: tuple[Target, ...] = ()
    """Each a tuple of ActionDef."""
    verifiers: tuple[Target, ...] = ()
    """Each a tuple of VerifierDef."""
    loops: Mapping[str, str] = field(default_factory=dict)
    """loop_id -> the package that holds its `loop.yaml`."""
    effects: Target = ""
    """(App) -> the EffectAdapters behind the door."""
    ports: Target = ""
    """(App) -> Mapping[type, () -> object]: what `context.port(type)` gives to actions, made when asked for."""
    recover: Target = ""
    """async (App) -> None: puts in order what a killed process left, before anything is started."""
    residents: tuple[Target, ...] = ()
    """Each async (App) -> None: runs as long as the daemon does."""
    chores: tuple[Chore, ...] = ()
    watched: Target = ""
    """(State) -> Watched: lives in the watchdog, and does its work also while the daemon is gone."""
    greeting: Target = ""
    """(StateFolder, seconds that it may wait) -> lines that `becket up` ends with."""
    channel: Target = ""
    """(App) -> Channel | None: another way by which alarms, handoffs and questions reach a person."""
    checks: Mapping[str, Target] = field(default_factory=dict)
    """Of `becket doctor`, by name: (Exam) -> Iterator[Diagnosis]."""
    verbs: tuple[Verb, ...] = ()
    sections: Mapping[str, Target] = field(default_factory=dict)
    """Its keys of becket.yaml: each a Record that needs nothing, or a Section of another type with its default."""
    tables: Target = ""
    """Its Tables in the journal's database, used by `port(TableStore)`."""
    secrets: Target = ""
    """(Config, environ, home) -> name -> value: what must never be shown."""
    evidence: Target = ""
    """(Story) -> lines that a run's report tells besides, in every form. They are redacted and escaped."""

    def __post_init__(self) -> None:
        """Raises TypeError for a field of another shape: `("one")` is a text, and would be read letter by letter."""
        for each in fields(self):
            wrong = _misshapen(each.name, getattr(self, each.name))
            if wrong:
                raise TypeError(f"`{each.name}` of a Part must be {wrong}")


def _misshapen(name: str, given: object) -> str:
    """What it must be, if it is not."""
    if kind := _LISTS.get(name):
        right = isinstance(given, tuple) and all(isinstance(item, kind) for item in given)
        return "" if right else f"a tuple of {kind.__name__}, such as `(one,)` with its comma"
    if name in _MAPPINGS:
        right = isinstance(given, Mapping) and all(isinstance(item, str) for pair in given.items() for item in pair)
        return "" if right else "a mapping from text to text"
    return "" if isinstance(given, str) else "a text"


_LISTS: Mapping[str, type] = {
    "needs": str, "actions": str, "verifiers": str, "residents": str, "chores": Chore, "verbs": Verb,
}  # fmt: skip
_MAPPINGS = frozenset({"loops", "checks", "sections"})
