"""Text -> LoopSpec or Config. Everything wrong with the form is found here; `lint` proves the meaning."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from becket.kernel.contract.base import Json
from becket.kernel.contract.config import Config
from becket.kernel.contract.errors import Finding, InvalidDocument
from becket.kernel.contract.spec import LoopSpec
from becket.kernel.spec.document import Document, Path, plain, read
from becket.kernel.spec.expand import expanded
from becket.kernel.spec.kinds import kind_findings, scalars_at
from becket.kernel.spec.problems import findings_of, in_order

Model = TypeVar("Model", bound=BaseModel)


def load_spec(text: str | bytes, file: str) -> LoopSpec:
    """The LoopSpec that `text` says; raises InvalidDocument. `file` is only named in the findings."""
    return fit(read(text, file), LoopSpec)


def load_config(text: str | bytes, file: str, env: Mapping[str, str], model: type[Config] = Config) -> Config:
    """The Config that `text` says, with `${VAR}` from `env`; raises InvalidDocument. `model` knows parts' sections."""
    document, written, findings = expanded(read(text, file), env, model.literal)
    if findings:
        raise InvalidDocument(in_order(findings))
    document = replace(document, data=_as_plain(document, written, model))
    try:
        return fit(document, model)
    except InvalidDocument as error:
        raise InvalidDocument([_unexpanded(finding, document, written) for finding in error.findings]) from None


def fit(document: Document, model: type[Model]) -> Model:
    """The document as a `model`; raises InvalidDocument."""
    if not isinstance(document.data, dict):
        fix = "begin with `version: 1`"
        raise InvalidDocument(
            [document.finding((1, 1), "bad-value", "the file is not a mapping of keys to values", fix)]
        )
    findings = kind_findings(document, model)
    try:
        made = model.model_validate(document.data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidDocument(in_order([*findings, *findings_of(error, model, document)])) from None
    if findings:
        raise InvalidDocument(findings)
    return made


def _as_plain(document: Document, written: Mapping[Path, str], model: type[Config]) -> Json:
    """A variable's value is read like a plain word of the file where no text is wanted: `${PORT}` may be a number."""
    data = copy.deepcopy(document.data)
    for path in written:
        if scalars_at(model, path):
            *above, last = path
            holder = data
            for step in above:
                holder = holder[step]
            holder[last] = plain(holder[last])
    return data


def _unexpanded(finding: Finding, document: Document, written: Mapping[Path, str]) -> Finding:
    """A value that came from the environment may be a secret: the finding shows the variable instead."""
    for path, text in written.items():
        place = document.place(path)
        if (finding.line, finding.column) in (place.key, place.value):
            return replace(
                finding, message=f"{text!r}: its value does not fit here", fix="look at the variable's value"
            )
    return finding
