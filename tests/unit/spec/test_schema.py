"""The JSON Schemas: complete enough for an editor, and of one mind with the loader about the corpus."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from becket.app.sections import config_model
from becket.kernel.spec import schema as schemas
from becket.kernel.spec.descriptions import DESCRIPTIONS
from becket.kernel.spec.document import read
from becket.kernel.spec.schema import Schema, spec_schema

from .test_config import WHOLE

SPECS = Path(__file__).parents[2] / "specs"


def config_schema() -> Schema:
    return schemas.config_schema(config_model())


def fits(value: Any, schema: Schema, root: Schema) -> bool:
    """As much of JSON Schema as the two schemas use."""
    if "$ref" in schema and not fits(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root):
        return False
    if "anyOf" in schema and not any(fits(value, one, root) for one in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(fits(value, one, root) for one in schema["oneOf"]) != 1:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema and not is_type(value, schema["type"]):
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None and len(value) >= schema.get("minLength", 0)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    if isinstance(value, list):
        items = schema.get("items", {})
        return len(value) >= schema.get("minItems", 0) and all(fits(item, items, root) for item in value)
    return not isinstance(value, dict) or mapping_fits(value, schema, root)


def is_type(value: Any, name: str) -> bool:
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    if name in kinds:
        return isinstance(value, kinds[name])
    return isinstance(value, int if name == "integer" else int | float) and not isinstance(value, bool)


def mapping_fits(value: dict[str, Any], schema: Schema, root: Schema) -> bool:
    if not set(schema.get("required", ())) <= value.keys():
        return False
    if not schema.get("minProperties", 0) <= len(value) <= schema.get("maxProperties", len(value)):
        return False
    for key, item in value.items():
        patterns = [one for pattern, one in schema.get("patternProperties", {}).items() if re.search(pattern, key)]
        known = schema.get("properties", {}).get(key) or (patterns[0] if patterns else None)
        known = schema.get("additionalProperties", True) if known is None else known
        if known is False or (isinstance(known, dict) and not fits(item, known, root)):
            return False
    return True


def spec_fits(path: Path) -> bool:
    schema = spec_schema()
    return fits(read(path.read_bytes(), path.name).data, schema, schema)


@pytest.mark.parametrize("path", sorted((SPECS / "good").glob("*.yaml")), ids=lambda path: path.stem)
def test_the_schema_accepts_the_good_specs(path: Path) -> None:
    assert spec_fits(path)


@pytest.mark.parametrize(
    "rule", ["unknown-key", "missing-key", "missing-bound-deadline", "bad-value-version", "unknown-effect-class"]
)
def test_the_schema_refuses_specs_of_the_wrong_form(rule: str) -> None:
    paths = sorted((SPECS / "bad").glob(f"*-{rule}*.yaml"))
    assert paths
    assert [path.name for path in paths if spec_fits(path)] == []


def test_the_schema_of_the_configuration_accepts_the_file_of_the_design() -> None:
    schema = config_schema()
    data = read(WHOLE, "becket.yaml").data
    assert fits(data, schema, schema)
    assert fits(data | {"sandbox": {"use": "none", "without": ["files"]}, "autonomy": "${LEVEL}"}, schema, schema)
    assert not fits(data | {"brnach": "main"}, schema, schema)
    assert not fits(data | {"autonomy": "everything"}, schema, schema)
    assert not fits(data | {"gates": {"fast": [{"name": "a", "run": "x", "min_tests": "${N}"}]}}, schema, schema)


@pytest.mark.parametrize("schema", [spec_schema(), config_schema()], ids=["spec", "config"])
def test_every_key_is_described(schema: Schema) -> None:
    missing = []
    for name, definition in [("", schema), *schema["$defs"].items()]:
        for part in [definition, *definition.get("anyOf", ())]:
            missing += [
                f"{name}.{key}" for key, value in part.get("properties", {}).items() if not value["description"]
            ]
    assert missing == []
    assert schema["title"]
    assert schema["$schema"].startswith("https://json-schema.org/")


def test_no_description_is_left_over() -> None:
    named = {
        *spec_schema()["$defs"],
        *config_schema()["$defs"],
        "LoopSpec",
        "Config",
    }
    assert set(DESCRIPTIONS) <= named


def test_durations_are_texts_or_numbers_and_their_defaults_read_as_texts() -> None:
    schema = spec_schema()
    deadline = schema["properties"]["deadline"]
    assert [fits(value, deadline, schema) for value in ("1h30m", 90, "soon", -1)] == [True, True, False, False]
    assert schema["$defs"]["ActionSpec"]["properties"]["timeout"]["default"] == "10m"
