"""The parts that are installed. They enter by entry point, the built-in ones by the same door as a stranger's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, TypeVar

from becket.kernel.contract.errors import UsageError
from becket.kernel.contract.part import Part, Target
from becket.kernel.contract.tables import Tables

GROUP = "becket.parts"

T = TypeVar("T")


@cache
def installed() -> tuple[Part, ...]:
    """Every part, after those that it needs. Raises UsageError for one that does not load or lacks what it needs."""
    from importlib.metadata import entry_points  # it takes longer to import than most verbs

    found: dict[str, Part] = {}
    for point in sorted(entry_points(group=GROUP)):
        try:
            part = point.load()
        except Exception as error:
            raise UsageError(
                f"the part {point.name} ({point.value}) does not load: {error}; remove or mend it"
            ) from error
        if not isinstance(part, Part) or part.name != point.name:
            raise UsageError(f"the part {point.name} ({point.value}) brings {part!r}, not the Part of that name")
        found[part.name] = part
    return tuple(_in_order(found))


def part_names(name: str) -> str:
    """The distribution that brings a part, with its version."""
    from importlib.metadata import entry_points

    found = next((point.dist for point in entry_points(group=GROUP, name=name)), None)
    return f"{found.name} {found.version}" if found is not None else ""


def _in_order(found: Mapping[str, Part]) -> Iterator[Part]:
    done: set[str] = set()

    def visit(part: Part, above: tuple[str, ...]) -> Iterator[Part]:
        if part.name in above:
            raise UsageError(f"the parts {' -> '.join((*above, part.name))} need each other; remove one of them")
        if part.name in done:
            return
        for name in part.needs:
            if name not in found:
                raise UsageError(f"the part {part.name} needs the part {name}, which is not installed")
            yield from visit(found[name], (*above, part.name))
        done.add(part.name)
        yield part

    for part in found.values():
        yield from visit(part, ())


def load(target: Target) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def load_all(part: Part, targets: Iterable[Target], kind: type[T]) -> Iterator[T]:
    """What each of the targets lists. Raises UsageError for one that is not there or lists something else."""
    for target in targets:
        try:
            items = tuple(load(target))
        except Exception as error:
            raise UsageError(f"the part {part.name} does not load ({target}): {error}; remove or mend it") from error
        if stray := [item for item in items if not isinstance(item, kind)]:
            raise UsageError(f"the part {part.name} ({target}) brings {stray[0]!r}, not {kind.__name__}")
        yield from items


def brought_tables() -> dict[str, Tables]:
    """By part. Raises UsageError for a table whose name is not its part's own."""
    found: dict[str, Tables] = {}
    for part in installed():
        if not part.tables:
            continue
        brought = load(part.tables)
        if not isinstance(brought, Tables):
            raise UsageError(f"the part {part.name} ({part.tables}) brings {brought!r}, not Tables")
        if stray := [name for name in brought.metadata.tables if not name.startswith(f"{part.name}_")]:
            raise UsageError(
                f"the part {part.name} brings the table {stray[0]}, whose name does not begin with {part.name}_; "
                "remove that part, or mend it"
            )
        found[part.name] = brought
    return found


def built_in_loops() -> dict[str, str]:
    """loop_id -> text of the loops that parts bring."""
    return {
        name: (files(package) / "loop.yaml").read_text("utf-8")
        for part in installed()
        for name, package in part.loops.items()
    }
