"""`becket init`: the first becket.yaml."""

from __future__ import annotations

from typing import Annotated

import typer

from becket.cli import words
from becket.cli.paper import emit, say
from becket.cli.plain import line
from becket.cli.shape import AsJson


def init(
    force: Annotated[
        bool, typer.Option("--force", help="Keep an existing becket.yaml as .bak and start anew.")
    ] = False,
    example: Annotated[bool, typer.Option("--example/--no-example", help="Write a small example loop too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Look at the repository and write a first becket.yaml."""
    from becket.app.beginning import begin
    from becket.app.state import find_state

    state = find_state()
    begun = begin(state, force=force, with_example=example)
    if as_json:
        emit(begun.model_dump(mode="json"))
        return
    for found in begun.detected.ecosystems:
        where = f" in {found.folder}" if found.folder else ""
        say(words.INIT_FOUND.format(name=found.name, where=where, evidence=line(found.evidence)))
    if not begun.detected.ecosystems:
        say(words.INIT_NOTHING)
    written = begun.written
    if written.backup:
        say(words.INIT_KEPT.format(path=written.backup))
    for path in (written.config, written.example):
        if path is not None:
            say(words.INIT_WROTE.format(path=path.relative_to(state.root)))
    for text in written.notes:
        say(f"  {line(text, 400)}")
    say()
    say(words.INIT_NEXT.format(paths="becket.yaml .becket" if written.example else "becket.yaml"))
