"""`becket init`: the first becket.yaml, tried once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from becket.cli.output import emit, say
from becket.cli.plain import line
from becket.cli.shape import AsJson, end
from becket.parts.init import words

if TYPE_CHECKING:
    from becket.app.state import StateFolder
    from becket.parts.doctor.doctor import Diagnosis
    from becket.parts.gates.trial import Tried
    from becket.parts.init.beginning import InitResult


def init(
    force: Annotated[
        bool, typer.Option("--force", help="Keep an existing becket.yaml as .bak and start anew.")
    ] = False,
    example: Annotated[bool, typer.Option("--example/--no-example", help="Write a small example loop too.")] = True,
    try_: Annotated[bool, typer.Option("--try/--no-try", help="Run the set-up and every gate once at HEAD.")] = True,
    as_json: AsJson = False,
) -> None:
    """Look at the repository, write a first becket.yaml and try it."""
    from becket.app.state import find_state
    from becket.parts.init.beginning import begin, has_commit, keep_green, remarks

    state = find_state()
    begun = begin(state, force=force, with_example=example)
    if not as_json:
        _tell(state, begun)
    something = bool(begun.detected.fast or begun.detected.slow)
    tried = _tried(as_json) if try_ and something and has_commit(state) else None
    dropped = keep_green(begun, tried) if tried is not None else {}
    remarked = remarks(state, begun)
    green = tried is None or tried.green or (bool(dropped) and _proves(tried))
    if as_json:
        from becket.parts.gates.verbs.trying import document

        told = None if tried is None else {**document(tried), "left_out": dropped}
        emit(
            {
                **begun.model_dump(mode="json"),
                "tried": told,
                "remarks": [one.model_dump(mode="json", exclude={"agent"}) for one in remarked],
            }
        )
    else:
        _tell_result(tried, dropped, not_tried=try_ and something)
        _tell_remarks(remarked)
        _tell_next(begun, tried, green=green)
    end(int(not green))


def _tried(as_json: bool) -> Tried:
    from becket.parts.gates.verbs.trying import attempt

    return attempt((), None, as_json)


def _proves(tried: Tried) -> bool:
    """Is a step of the fast gate left that is green?"""
    return any(one.step.green and one.step.gate == "fast" for one in tried.steps)


def _tell(state: StateFolder, begun: InitResult) -> None:
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


def _tell_result(tried: Tried | None, dropped: dict[str, str], *, not_tried: bool) -> None:
    from becket.parts.gates.verbs.trying import green_line, show_red

    if tried is None:
        say(words.INIT_NOT_TRIED) if not_tried else None
    elif tried.green or dropped:
        for step, why in dropped.items():
            say(words.INIT_LEFT_OUT.format(step=step, why=line(why, 300)))
        say(green_line(tried) if _proves(tried) else words.INIT_NOTHING)
    else:
        show_red(tried)


def _tell_remarks(remarked: Iterable[Diagnosis]) -> None:
    from becket.parts.doctor.verbs import show

    say()
    for one in remarked:
        show(one)


def _tell_next(begun: InitResult, tried: Tried | None, *, green: bool) -> None:
    untried = words.INIT_NEXT if begun.detected.fast else words.INIT_NEXT_NOTHING
    told = untried if tried is None else words.INIT_NEXT_GREEN if green else words.INIT_NEXT_RED
    say()
    say(told.format(paths=" ".join(begun.to_commit)))
