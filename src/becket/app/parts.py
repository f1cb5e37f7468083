"""The parts that are installed. They enter by entry point, the built-in ones by the same door as a stranger's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from becket.kernel.contract.errors import BecketError, PartFailed, UsageError
from becket.kernel.contract.part import Part, Target
from becket.kernel.contract.tables import Tables

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "becket.parts"
OWN = "becket"
"""The distribution that is not removed."""
_FAULTS = (Exception, SystemExit)
"""What a module or a function of a part may fail with; one that calls `sys.exit` ends nobody else."""

T = TypeVar("T")


@cache
def installed() -> tuple[Part, ...]:
    """Every part, after those that it needs. Raises UsageError for one that does not load or lacks what it needs."""
    from importlib.metadata import entry_points  # it takes longer to import than most verbs

    points: dict[str, EntryPoint] = {}
    for point in sorted(entry_points(group=GROUP)):
        other = points.setdefault(point.name, point)
        if other.value != point.value:
            raise UsageError(
                f"two distributions bring a part named {point.name}: {_home(other)} ({other.value}) and {_home(point)} "
                f"({point.value}); remove one of them"
            )
    return tuple(_in_order({name: _part_of(point) for name, point in points.items()}))


def _part_of(point: EntryPoint) -> Part:
    try:
        part = point.load()
    except _FAULTS as error:
        raise UsageError(
            f"the part {point.name} of {_home(point)} ({point.value}) does not load: {_said(error)}; mend it, or "
            f"remove {_home(point)}"
        ) from error
    if not isinstance(part, Part) or part.name != point.name:
        raise UsageError(
            f"the part {point.name} of {_home(point)} ({point.value}) is {part!r:.200}, not the Part of that name; "
            f"mend it, or remove {_home(point)}"
        )
    return part


def _home(point: EntryPoint | None) -> str:
    return f"{point.dist.name} {point.dist.version}" if point is not None and point.dist is not None else "somebody"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def part_names(name: str) -> str:
    """The distribution that brings a part, with its version."""
    from importlib.metadata import entry_points

    found = next(iter(entry_points(group=GROUP, name=name)), None)
    return _home(found) if found is not None else ""


def _in_order(found: Mapping[str, Part]) -> Iterator[Part]:
    done: set[str] = set()

    def visit(part: Part, above: tuple[str, ...]) -> Iterator[Part]:
        if part.name in above:
            raise UsageError(f"the parts {' -> '.join((*above, part.name))} need each other; remove one of them")
        if part.name in done:
            return
        for name in part.needs:
            if name not in found:
                raise UsageError(
                    f"the part {part.name} needs the part {name}, which is not installed; install what brings {name}, "
                    f"or remove {part_names(part.name)}"
                )
            yield from visit(found[name], (*above, part.name))
        done.add(part.name)
        yield part

    for part in found.values():
        yield from visit(part, ())


def load(target: Target) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def loaded(part: Part, target: Target) -> Any:
    """Raises UsageError, with the part's name, for what cannot be had."""
    try:
        return load(target)
    except BecketError:
        raise
    except _FAULTS as error:
        raise UsageError(
            f"the part {part.name} does not load ({target}): {_said(error)}; mend it, or remove {part_names(part.name)}"
        ) from error


def ask(part: Part, target: Target, *given: object) -> Any:
    """What the part's function answers. Raises PartFailed, with the part's name, where it fails."""
    function = loaded(part, target)
    try:
        return function(*given)
    except BecketError:
        raise
    except _FAULTS as error:
        raise failed(part, target, error) from error


async def wait_for(part: Part, target: Target, *given: object) -> None:
    """The same for a function that is awaited."""
    function = loaded(part, target)
    try:
        await function(*given)
    except BecketError:
        raise
    except _FAULTS as error:
        raise failed(part, target, error) from error


def failed(part: Part, target: Target, error: BaseException) -> PartFailed:
    return PartFailed(
        f"the part {part.name} failed ({target}): {_said(error)}; mend it, or remove {part_names(part.name)}"
    )


def unique(
    kind: str, brought: Iterable[tuple[str | type, T, Part]], taken: Collection[str | type] = ()
) -> dict[Any, T]:
    """By name. Raises UsageError where two parts bring one name, or a part one of the kernel's own (`taken`)."""
    found: dict[str | type, T] = {}
    owners: dict[str | type, Part] = {}
    for name, item, part in brought:
        if name in taken or name in found:
            shown = name if isinstance(name, str) else name.__name__
            raise UsageError(_taken(f"the {kind} {shown}", part, owners.get(name)))
        found[name], owners[name] = item, part
    return found


def _taken(what: str, part: Part, other: Part | None) -> str:
    """Whoever comes with Becket is not the one to go. `other`: None is the kernel."""
    both = {each.name: part_names(each.name) for each in (part, other) if each is not None}
    strangers = {name: home for name, home in both.items() if not home.startswith(f"{OWN} ")}
    if other is not None and len(strangers) != 1:
        first, second = both
        return (
            f"the parts {first} and {second} both bring {what}; rename it in one of them, or remove {both[first]} or "
            f"{both[second]}"
        )
    name, home = next(iter(strangers.items()), (part.name, both[part.name]))
    return f"the part {name} brings {what}, which Becket has itself; rename it there, or remove {home}"


def load_all(part: Part, targets: Iterable[Target], kind: type[T]) -> Iterator[T]:
    """What each of the targets lists. Raises UsageError for one that is not there or lists something else."""
    for target in targets:
        listed = loaded(part, target)
        if not isinstance(listed, tuple | list):
            raise UsageError(f"the part {part.name} ({target}) brings {listed!r:.200}, not a tuple of {kind.__name__}")
        items = tuple(listed)
        if stray := [item for item in items if not isinstance(item, kind)]:
            raise UsageError(f"the part {part.name} ({target}) brings {stray[0]!r:.200}, not {kind.__name__}")
        yield from items


def brought_tables() -> dict[str, Tables]:
    """By part. Raises UsageError for a table whose name is not its part's own."""
    from becket.kernel.store.brought import JOURNAL_TABLES

    found: dict[str, Tables] = {}
    by_name = {part.name: part for part in installed()}
    for part in by_name.values():
        if not part.tables:
            continue
        brought = loaded(part, part.tables)
        if not isinstance(brought, Tables):
            raise UsageError(f"the part {part.name} ({part.tables}) brings {brought!r}, not Tables")
        if stray := [name for name in brought.metadata.tables if not name.startswith(f"{part.name}_")]:
            raise UsageError(
                f"the part {part.name} brings the table {stray[0]}, whose name does not begin with {part.name}_; "
                f"mend it, or remove {part_names(part.name)}"
            )
        if theirs := [name for name in brought.metadata.tables if name in JOURNAL_TABLES]:
            raise UsageError(
                f"the part {part.name} brings the table {theirs[0]}, which is the journal's own; rename it there, or "
                f"remove {part_names(part.name)}"
            )
        found[part.name] = brought
    unique("table", ((name, name, by_name[each]) for each, tables in found.items() for name in tables.metadata.tables))
    return found


def built_in_loops() -> dict[str, str]:
    """loop_id -> text of the loops that parts bring."""
    return unique(
        "loop",
        ((name, _loop_of(part, package), part) for part in installed() for name, package in part.loops.items()),
    )


def _loop_of(part: Part, package: str) -> str:
    try:
        return (files(package) / "loop.yaml").read_text("utf-8")
    except _FAULTS as error:
        raise UsageError(
            f"the part {part.name} has no loop.yaml that can be read in {package} ({_said(error)}); mend it, or remove "
            f"{part_names(part.name)}"
        ) from error
