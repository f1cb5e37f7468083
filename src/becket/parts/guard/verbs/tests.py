"""`becket tests`: which files are tests, and why."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import emit, say
from becket.cli.plain import Paint, line, short
from becket.cli.shape import AsJson
from becket.parts.guard import words

if TYPE_CHECKING:
    from becket.parts.guard.side_desk import SideSeen

MOST_ROWS = 15


def list_tests(
    at: Annotated[str | None, typer.Option("--at", metavar="COMMIT", help="Another commit than HEAD.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the files that count as tests, each with the reason.

    A repair is judged by these: it may not change them, and is proven with them as they were before it. In a run, files
    that its reports name for tests that ran are added.
    """
    from becket.parts.guard.side_desk import look

    seen = asyncio.run(look(Path.cwd(), at))
    if as_json:
        emit(seen.model_dump(mode="json"))
    else:
        _say(seen)


def _say(seen: SideSeen) -> None:
    from becket.parts.guard.side_desk import rows_for

    say(words.SIDE_COUNTED.format(commit=short(seen.commit), count=len(seen.files), total=seen.total))
    paint = Paint()
    for reason, said in words.SIDE_REASONS.items():
        paths = [file.path for file in seen.files if file.reason == reason]
        if not paths:
            continue
        title = words.SIDE_USUAL if reason == "declared" and not seen.declares else said
        say(f"\n{paint.bold(title)}: {len(paths)}")
        rows = rows_for(paths, MOST_ROWS)
        for name, count in rows[:MOST_ROWS]:
            say(f"  {line(name)}" + (words.SIDE_FILES.format(count=count) if count > 1 else ""))
        if len(rows) > MOST_ROWS:
            say(words.SIDE_MORE.format(count=sum(count for _, count in rows[MOST_ROWS:])))
    say()
    say(words.SIDE_NEXT if seen.files else words.SIDE_EMPTY)
