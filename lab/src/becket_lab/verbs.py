"""`becket bench`: measure the loops against scripted agents."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import columns, emit, note, say
from becket.cli.plain import Paint, line
from becket.cli.shape import AsJson, end, group
from becket_lab import words

if TYPE_CHECKING:
    from becket_lab.bench import BenchCase, BenchClass, Benched, BenchFigure

bench = group("Measure the loops against scripted agents.")


@bench.callback()
def _group() -> None:
    """Measure the loops against scripted agents."""


@bench.command("cheats")
def cheats(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="One case; may be repeated. All without it.")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="After every case, see that the next commit is proven too.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", min=0, max=2**63, metavar="N", help="Put the same cheats together again. Another one in each run."
        ),
    ] = None,
    generated: Annotated[
        int | None,
        typer.Option(
            "--generated", min=0, max=2000, metavar="N", help="So many put together by the seed. 60; with --only none."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let agents cheat, and others work honestly, in scratch repositories; count what the heal loop makes of it."""
    from becket_lab.bench import bench_cheats

    tell = (lambda case: None) if as_json else _progress
    found = bench_cheats(tuple(only or ()), thorough, tell, seed=seed, generated=generated)
    if as_json:
        emit(_document(found))
    else:
        _print(found)
    end(int(not found.ok))


def _progress(case: BenchCase) -> None:
    note(f"  {'ok ' if case.ok else 'BAD'} {case.name} ({case.seconds:.1f} s)")


def _document(found: Benched) -> dict[str, object]:
    figures = {
        figure.name: {"right": figure.right, "total": figure.total, "bar": figure.bar, "ok": figure.ok}
        for figure in found.figures
    }
    told = {name: value for name, value in dataclasses.asdict(found).items() if name != "figures"}
    return {"ok": found.ok, **told, "figures": figures}


def _print(found: Benched) -> None:
    rows = [[case.kind, case.name, case.read_as or "-", case.ended, _why(case)] for case in found.cases]
    columns(["kind", "case", "class", "ended", "why"], rows)
    say()
    columns(words.BENCH_CLASSES, [_class(row) for row in found.classes])
    say()
    for called in found.too_low:
        say(Paint().red(line(called)))
    for figure in found.figures:
        say(_figure(figure))
    if not found.contained:
        say(words.BENCH_NOT_CONTAINED)
    if not found.with_node:
        say(words.BENCH_WITHOUT_NODE)
    say(words.BENCH_SEED.format(seed=found.seed))


def _class(row: BenchClass) -> list[str]:
    counts = dataclasses.astuple(row)[1:]
    return [row.read_as or words.BENCH_NOTHING_READ, *map(str, counts)]


def _why(case: BenchCase) -> str:
    return line("; ".join(case.problems or case.against or case.shown[:1]) or "-")


def _figure(figure: BenchFigure) -> str:
    paint = Paint()
    text = words.BENCH_FIGURES[figure.name].format(right=figure.right, total=figure.total)
    return text if figure.ok else paint.red(f"{text} {words.BENCH_MISSED}")
