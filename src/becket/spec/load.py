"""Text -> LoopSpec or Config. Everything wrong with the form is found here; `lint` proves the meaning."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from becket.contract.base import Json
from becket.contract.config import Config
from becket.contract.errors import Finding, InvalidDocument
from becket.contract.spec import LoopSpec
from becket.spec.document import Document, Path, read
from becket.spec.expand import expanded
from becket.spec.problems import findings_of, in_order

Model = TypeVar("Model", bound=BaseModel)


def load_spec(text: str | bytes, file: str) -> LoopSpec:
    """The LoopSpec that `text` says; raises InvalidDocument. `file` is only named in the findings."""
    return fit(read(text, file), LoopSpec)


def load_config(text: str | bytes, file: str, env: Mapping[str, str]) -> Config:
    """The Config that `text` says, with `${VAR}` from `env`; raises InvalidDocument."""
    document, written, findings = expanded(read(text, file), env)
    if findings:
        raise InvalidDocument(in_order(findings))
    try:
        return fit(document, Config)
    except InvalidDocument as error:
        raise InvalidDocument([_unexpanded(finding, document, written) for finding in error.findings]) from None


def fit(document: Document, model: type[Model]) -> Model:
    """The document as a `model`; raises InvalidDocument."""
    if not isinstance(document.data, dict):
        fix = "begin with `version: 1`"
        raise InvalidDocument(
            [document.finding((1, 1), "bad-value", "the file is not a mapping of keys to values", fix)]
        )
    data = copy.deepcopy(document.data)
    while True:
        try:
            made = model.model_validate(data, by_alias=True, by_name=False)
            break
        except ValidationError as error:
            if not _as_written(error, data, document):
                raise InvalidDocument(findings_of(error, model, document)) from None
    if findings := _booleans_as_numbers(made, document):
        raise InvalidDocument(findings)
    return made


def _as_written(error: ValidationError, data: Json, document: Document) -> bool:
    """Where a text is wanted, `1.10` and `true` are the texts they look like; says whether any was put in so."""
    changed = False
    for details in error.errors(include_url=False):
        path: Path = tuple(details["loc"])
        holder = _reached(data, path[:-1])
        if details["type"] == "string_type" and isinstance(_reached(holder, path[-1:]), int | float):
            holder[path[-1]] = document.place(path).source
            changed = True
    return changed


def _booleans_as_numbers(made: BaseModel, document: Document) -> list[Finding]:
    """pydantic reads `true` as 1 where a number is wanted; in a spec that is always a slip."""
    return in_order(
        document.finding(place.value, "bad-value", f"`{path[-1]}` is {place.source}, not a number", "write a number")
        for path, place in document.places.items()
        if isinstance(document.at(path), bool) and type(_reached(made, path)) in (int, float)
    )


def _reached(value: Any, path: Path) -> Any:
    for step in path:
        if isinstance(value, BaseModel):
            names = {field.alias or name: name for name, field in type(value).model_fields.items()}
            value = getattr(value, names.get(str(step), ""), None)
        elif isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, tuple | list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _unexpanded(finding: Finding, document: Document, written: Mapping[Path, str]) -> Finding:
    """A value that came from the environment may be a secret: the finding shows the variable instead."""
    for path, text in written.items():
        place = document.place(path)
        if (finding.line, finding.column) in (place.key, place.value):
            return replace(
                finding, message=f"{text!r}: its value does not fit here", fix="look at the variable's value"
            )
    return finding
