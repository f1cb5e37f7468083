"""`becket guard explain`: what a change newly can do, line by line, without a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.loops import counted
from becket.cli.output import emit, say
from becket.cli.plain import Paint, line
from becket.cli.shape import AsJson, group
from becket.kernel.contract.errors import UsageError
from becket.parts.guard import words

if TYPE_CHECKING:
    from becket.kernel.contract.guard import ClassFinding
    from becket.parts.guard.desk import Explained

guard = group("Say what a change newly can do, and what it would have to prove.")


@guard.callback()
def _group() -> None:
    """Say what a change newly can do, and what it would have to prove."""


@guard.command("explain")
def explain(
    change: Annotated[
        str | None,
        typer.Argument(metavar="[COMMIT|RANGE]", help="A commit, against its first parent, or A..B. HEAD by default."),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="What is staged, against HEAD.")] = False,
    as_json: AsJson = False,
) -> None:
    """Tell a change's class, the lines that made it so, its tests, refusals, and what it would need.

    Works on any commit of any repository, with a becket.yaml or without. The exit code says nothing about the change.
    """
    from becket.parts.guard.desk import explain

    if staged and change is not None:
        raise UsageError(words.GUARD_TWO)
    if change is not None and not change.strip():
        raise UsageError(words.GUARD_EMPTY)
    found = asyncio.run(explain(Path.cwd(), change or "HEAD", staged))
    if as_json:
        emit({**found.model_dump(mode="json"), "class": found.reading.kind.value})
        return
    for text in explanation_lines(found, Paint()):
        say(text)


def explanation_lines(found: Explained, paint: Paint) -> Iterator[str]:
    from becket.app.record.report.plain import CLASSES

    kind = found.reading.kind.value
    yield f"{line(found.new)} against {line(found.old)}: {counted(found.files, 'file')}"
    if not found.files:
        yield words.GUARD_NOTHING
        return
    yield f"{_colored(kind, paint)}: {CLASSES[kind]}"
    yield from (f"  {_finding(one, paint)}" for one in found.reading.findings)
    yield from _section("test side", [line(path) for path in found.test_side], paint)
    yield from _section("refused", [line(one, 400) for one in found.refusals], paint)
    yield from _section("to be promoted by itself it needs", [line(need) for need in found.needs], paint)
    if found.trust:
        yield paint.yellow(found.trust)
    yield paint.dim(f"by {line(found.rules)}")


def _section(title: str, lines: list[str], paint: Paint) -> Iterator[str]:
    if lines:
        yield from ("", paint.bold(title))
    yield from (f"  {text}" for text in lines)


def _colored(kind: str, paint: Paint) -> str:
    return {"plain": paint.green, "powerful": paint.yellow}.get(kind, paint.cyan)(kind)


def _finding(one: ClassFinding, paint: Paint) -> str:
    return f"{_colored(one.kind.value, paint)}: {line(one)}" + (
        paint.dim(f"  {line(one.shown, 100)}") if one.shown else ""
    )
