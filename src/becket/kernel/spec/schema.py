"""JSON Schema of specs and of becket.yaml, made from the models, for editors and `becket loops schema`."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from becket.kernel.contract.base import show_duration
from becket.kernel.contract.config import Config
from becket.kernel.contract.spec import LoopSpec, Phase
from becket.kernel.spec.descriptions import DESCRIPTIONS

Schema = dict[str, Any]

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_VARIABLE: Schema = {"type": "string", "pattern": r"\$\{"}


def spec_schema() -> Schema:
    """The schema of a LoopSpec. What it lets through, `becket loops lint` may still refuse."""
    schema = _described(LoopSpec, "Becket loop")
    definitions = schema["$defs"]
    phases = schema["properties"]["phases"]
    phases.pop("propertyNames", None)
    phases["properties"] = {phase.value: {"$ref": "#/$defs/PhaseSpec"} for phase in Phase}
    phases["additionalProperties"] = False
    definitions["Trigger"] |= {"minProperties": 1, "maxProperties": 1}
    for step in ("ActionSpec", "VerifierSpec"):
        definitions[step]["oneOf"] = [{"required": ["uses"]}, {"required": ["run"]}]
    _also_as_text(definitions, "VerifierSpec", "A registered verifier by name.")
    return schema


def config_schema(model: type[Config]) -> Schema:
    """The schema of becket.yaml. `model` knows parts' sections."""
    schema = _described(model, "becket.yaml")
    definitions = schema["$defs"]
    for name, definition in [("", schema), *definitions.items()]:
        if name != "GateStep" and "properties" in definition:
            for key, value in definition["properties"].items():
                if _needs_more_than_text(value, definitions):
                    definition["properties"][key] = _or_variable(value)
    _also_as_text(definitions, "SandboxConfig", "Short for `use`.")
    _also_as_text(definitions, "Credential", "Short for `file`.")
    _also_as_text(definitions, "BuildConfig", "Short for `run`.")
    return schema


def _described(model: type[BaseModel], title: str) -> Schema:
    schema = model.model_json_schema(by_alias=True)
    for name, definition in [(model.__name__, schema), *schema["$defs"].items()]:
        for key, value in definition.get("properties", {}).items():
            value["description"] = DESCRIPTIONS.get(name, {}).get(key) or value.get("description", "")
            value.pop("title", None)
            _tidy(value)
    return {"$schema": _DIALECT, **schema, "title": title}


def _tidy(value: Schema) -> None:
    if value.get("default", ...) is None:
        del value["default"]
    elif "300ms" in value.get("examples", ()) and isinstance(value.get("default"), float):
        value["default"] = show_duration(value["default"])
    if "patternProperties" in value:
        value["additionalProperties"] = False


def _also_as_text(definitions: Schema, name: str, description: str) -> None:
    definitions[name] = {"anyOf": [{"type": "string", "description": description}, definitions[name]]}


def _needs_more_than_text(value: Schema, definitions: Schema) -> bool:
    """Whether a plain text such as `${PORT}` would be refused although what it stands for may fit."""
    if "$ref" in value:
        return _needs_more_than_text(definitions[value["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in value:
        free = any(item.get("type") == "string" and "pattern" not in item for item in value["anyOf"])
        return not free and any(_needs_more_than_text(item, definitions) for item in value["anyOf"])
    return value.get("type") in ("integer", "number", "boolean") or "enum" in value or "pattern" in value


def _or_variable(value: Schema) -> Schema:
    about = ("description", "default")
    rest = {key: item for key, item in value.items() if key not in about}
    return {"anyOf": [rest, _VARIABLE], **{key: item for key, item in value.items() if key in about}}
