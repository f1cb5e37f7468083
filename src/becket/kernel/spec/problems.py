"""Turns pydantic's errors into findings: the right place, plain words, and what was probably meant."""

from __future__ import annotations

import difflib
import types
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ValidationError
from pydantic_core import ErrorDetails

from becket.kernel.contract import config, naming, spec
from becket.kernel.contract.base import BadDuration, BadSize, InvalidValue, KeyProblem
from becket.kernel.contract.errors import Finding
from becket.kernel.spec.document import Document, Path, Spot

BOUNDS = frozenset({"max_iterations", "deadline", "for"})
_SUGGESTIONS_UP_TO = 100  # difflib is slow; nobody reads the hundred and first hint


def _pattern_of(kind: Any) -> str:
    return str(get_args(kind)[1].pattern)


_WANTED_BY_PATTERN = {
    _pattern_of(spec.Name): "at most 63 lower-case letters, digits and `_`, beginning with a letter",
    _pattern_of(spec.LoopId): "at most 63 lower-case letters, digits, `_` and `-`, beginning with a letter",
    _pattern_of(spec.DottedName): "lower-case names joined by dots, like `git.read_base`",
    _pattern_of(spec.NonBlank): "a text that says something",
    _pattern_of(spec.ConditionRef): "a condition like `base.fast_red` or `no_progress`",
    _pattern_of(config.SkillName): "lower-case letters and digits, joined by single `-`",
    _pattern_of(naming.ReportFormat): "plain, junit:FILE, pytest, go, cargo or tap",
}
_WANTED_BY_TYPE = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def suggestion(wrong: str, known: Iterable[str], otherwise: str = "correct the name") -> str:
    """What was probably meant, or what there is."""
    names = sorted(set(known))
    close = difflib.get_close_matches(wrong[:80], names, n=1, cutoff=0.6)
    if close:
        return f"did you mean `{close[0]}`?"
    if len(names) == 1:
        return f"write {names[0]}"
    return f"use one of {', '.join(names)}" if 1 < len(names) <= 12 else otherwise


def findings_of(error: ValidationError, model: type[BaseModel], document: Document) -> list[Finding]:
    """Every error of one validation, in the order of the file, each place and rule once."""
    return in_order(
        finding_of(details, model, document, hint=number < _SUGGESTIONS_UP_TO)
        for number, details in enumerate(error.errors(include_url=False))
        if not _only_left_empty(details, document)
    )


def _only_left_empty(details: ErrorDetails, document: Document) -> bool:
    """pydantic also calls a list too short when its items were wrong; they have errors of their own."""
    return details["type"] == "too_short" and bool(document.at(tuple(details["loc"])))


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """By place; a second finding of the same rule at the same place says nothing new."""
    first: dict[tuple[int, int, str, str], Finding] = {}
    for finding in found:
        # Several keys can be missing in one mapping; otherwise the first message is enough.
        apart = finding.message if finding.rule.startswith("missing-") else ""
        first.setdefault((finding.line, finding.column, finding.rule, apart), finding)
    return sorted(first.values(), key=lambda finding: (finding.line, finding.column, finding.rule))


def finding_of(
    details: ErrorDetails, model: type[BaseModel], document: Document, *, below: Path = (), hint: bool = True
) -> Finding:
    """One error as a finding. `below` is where in the document the model's data stands."""
    inner: Path = tuple(details["loc"])
    path = (*below, *inner)
    if inner and inner[-1] == "[key]":
        return _bad_key(details, path[:-1], document)
    if details["type"] == "extra_forbidden":
        known = keys_of(model_at(model, inner[:-1])) if hint else ()
        return _unknown_key(path, known, document)
    if details["type"] == "missing":
        return _missing(path, document)
    return _bad_value(details, path, document)


def _unknown_key(path: Path, known: Iterable[str], document: Document) -> Finding:
    fix = suggestion(str(path[-1]), known, "remove it, or see `becket loops schema`")
    return document.finding(document.place(path).key, "unknown-key", f"{name_of(path)} is not a key here", fix)


def _bad_key(details: ErrorDetails, path: Path, document: Document) -> Finding:
    if known := _expected(details):
        return _unknown_key(path, known, document)
    cause = (details.get("ctx") or {}).get("error")
    if isinstance(cause, InvalidValue):
        return document.finding(
            document.place(path).key, "bad-value", f"the key {name_of(path)} {cause.problem}", cause.fix
        )
    message = f"the key {name_of(path)} is not allowed"
    return document.finding(document.place(path).key, "bad-value", message, f"write {_wanted(details)}")


def _missing(path: Path, document: Document) -> Finding:
    name = str(path[-1])
    bound = name in BOUNDS
    around = f" in {name_of(path[:-1])}" if len(path) > 1 else ""
    rule, fix = (
        ("missing-bound", f"add `{name}:`; nothing runs without a bound")
        if bound
        else ("missing-key", f"add `{name}:`")
    )
    return document.finding(document.place(path[:-1]).value, rule, f"`{name}` is missing{around}", fix)


def _bad_value(details: ErrorDetails, path: Path, document: Document) -> Finding:
    cause = (details.get("ctx") or {}).get("error")
    if isinstance(cause, ValueError):
        return _by_a_check(cause, path, document)
    spot = document.place(path).value
    if details["type"] in ("too_short", "string_too_short"):
        return document.finding(spot, "bad-value", f"{name_of(path)} is empty", "fill it in")
    rule = "unknown-effect-class" if path[-2:] == ("effects", "class") else "bad-value"
    known = _expected(details)
    fix = suggestion(str(details["input"]), known) if known else f"write {_wanted(details)}"
    if details["type"] == "string_type" and isinstance(details["input"], int | float):
        fix = "put it in quotes"
    message = f"{name_of(path)} is {_shown(path, details, document)}, not {_wanted(details)}"
    return document.finding(spot, rule, message, fix)


def _by_a_check(cause: ValueError, path: Path, document: Document) -> Finding:
    """What a type's or a model's own check said."""
    spot, name = document.place(path).value, name_of(path)
    match cause:
        case KeyProblem(problem=problem, keys=keys, fix=fix):
            return document.finding(_blamed((*path, *keys), path, document), "bad-value", problem, fix)
        case InvalidValue(problem=problem, fix=fix):
            return document.finding(spot, "bad-value", f"{name} {problem}", fix)
        case BadDuration():
            return document.finding(spot, "bad-duration", f"{name}: {cause}", "write it like 30s, 10m or 2h")
        case BadSize():
            return document.finding(spot, "bad-size", f"{name}: {cause}", "write it like 500KB or 5MB")
    return document.finding(spot, "bad-value", str(cause), "change it so that it fits")


def _blamed(path: Path, otherwise: Path, document: Document) -> Spot:
    return document.place(path).key if document.has(path) else document.place(otherwise).value


def _expected(details: ErrorDetails) -> tuple[str, ...]:
    """The allowed values that pydantic lists as text: "'a', 'b' or 'c'"."""
    if details["type"] not in ("enum", "literal_error"):
        return ()
    listed = str((details.get("ctx") or {}).get("expected", ""))
    return tuple(part.strip().strip("'") for part in listed.replace(" or ", ", ").split(","))


def _wanted(details: ErrorDetails) -> str:
    context = details.get("ctx") or {}
    known = _expected(details)
    if known:
        return known[0] if len(known) == 1 else f"one of {', '.join(known)}"
    if details["type"] == "string_pattern_mismatch":
        return _WANTED_BY_PATTERN.get(context["pattern"], f"a text that matches {context['pattern']}")
    if details["type"] in _WANTED_BY_TYPE:
        return _WANTED_BY_TYPE[details["type"]]
    if "max_length" in context:
        return f"a text of at most {context['max_length']} characters"
    for sign, words in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if sign in context:
            return f"a value of {words} {context[sign]:g}"
    return details["msg"][:1].lower() + details["msg"][1:]


def _shown(path: Path, details: ErrorDetails, document: Document) -> str:
    """The value as it is written, if it is a plain one."""
    value = details["input"]
    if document.has(path) and document.place(path).scalar:
        value = document.at(path)
        if not isinstance(value, str):
            return document.place(path).source or "empty"
    match value:
        case None:
            return "empty"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case str():
            return repr(value) if len(value) <= 60 else repr(value[:57] + "...")
        case _:
            return str(value)


def name_of(path: Path) -> str:
    """`phases.act.actions[0].uses`, in backquotes."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return f"`{text if len(text) <= 120 else text[:117] + '...'}`"


def keys_of(model: type[BaseModel] | None) -> tuple[str, ...]:
    """The keys that a mapping of this model may have, as written in YAML."""
    return tuple(field.alias or name for name, field in model.model_fields.items()) if model else ()


def model_at(model: type[BaseModel], path: Path) -> type[BaseModel] | None:
    """The model that describes the mapping at `path`."""
    kinds = kinds_at(model, path)
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def kinds_at(model: type[BaseModel], path: Path) -> tuple[Any, ...]:
    """The kinds of values that may stand at `path`, as far as pydantic reads them."""
    kinds: list[Any] = [model]
    for step in path:
        kinds = [inner for kind in kinds for inner in _below(kind, step)]
    return tuple(kinds)


@lru_cache(maxsize=4096)
def _below(kind: Any, step: str | int) -> tuple[Any, ...]:
    return tuple(_kinds_below(kind, step))


def _kinds_below(kind: Any, step: str | int) -> Iterator[Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            if step == (field.alias or name) and not _has_grammar(field.metadata):
                yield from _alternatives(field.annotation)
    elif get_origin(kind) is dict:
        yield from _alternatives(get_args(kind)[1])
    elif get_origin(kind) in (tuple, list):
        yield from _alternatives(get_args(kind)[0])


def _alternatives(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        inner, *metadata = get_args(kind)
        yield from () if _has_grammar(metadata) else _alternatives(inner)
    elif get_origin(kind) in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _alternatives(one)
    else:
        yield kind


def _has_grammar(metadata: Iterable[object]) -> bool:
    """Durations and sizes read what is written by themselves."""
    return any(isinstance(one, BeforeValidator) for one in metadata)
