"""Numbers are numbers, texts are texts: what is written has the kind that its key wants. Nothing is read as another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel

from becket.kernel.contract.base import Json
from becket.kernel.contract.errors import Finding
from becket.kernel.spec.document import Document, Path
from becket.kernel.spec.problems import in_order, kinds_at, name_of

_WANTED = {bool: "true or false", int: "a whole number", float: "a number"}
"""pydantic reads other kinds as these, `"3"` and `3.0` as 3, `yes` and `1` as true; it takes only texts for texts."""


def kind_findings(
    document: Document, model: type[BaseModel], under: Path = (), open_: Callable[[Json], bool] = lambda _: False
) -> list[Finding]:
    """Every number, truth value and text of the model below `under` that has another kind than its key wants."""
    return in_order(_found(document, model, under, open_))


def _found(document: Document, model: type[BaseModel], under: Path, open_: Callable[[Json], bool]) -> Iterator[Finding]:
    for path, place in document.places.items():
        value = document.at(path)
        if not place.scalar or value is None or path[: len(under)] != under or open_(value):
            continue
        wanted = scalars_at(model, path[len(under) :])
        if wanted and not any(_is(value, kind) for kind in wanted):
            words = " or ".join(_WANTED[kind] for kind in wanted)
            fix = f"write {words}, without quotes" if isinstance(value, str) and place.style else f"write {words}"
            yield document.finding(
                place.value, "bad-value", f"{name_of(path)} is {place.source[:60]}, not {words}", fix
            )


def scalars_at(model: type[BaseModel], path: Path) -> tuple[type, ...]:
    """The kinds that may stand at `path`, if all of them are numbers or truth values; else nothing."""
    kinds = [one for kind in kinds_at(model, path) for one in _of_literal(kind)]
    plain = [kind for kind in kinds if kind is not type(None)]
    return tuple(plain) if plain and all(kind in _WANTED for kind in plain) else ()


def _of_literal(kind: Any) -> tuple[Any, ...]:
    """`version: true` equals 1 to Python, and is not meant."""
    return tuple({type(one) for one in get_args(kind)}) if get_origin(kind) is Literal else (kind,)


def _is(value: Json, kind: type) -> bool:
    if isinstance(value, bool) or kind is bool:
        return isinstance(value, bool) and kind is bool
    return isinstance(value, int | float if kind is float else int)
