"""The OpenAPI document, made from the table of operations."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.responses import JSONResponse, Response

from becket import __version__
from becket.kernel.contract.base import Record
from becket.parts.front.api.asks import NAME
from becket.parts.front.api.operations import BELOW, OPERATIONS, Operation
from becket.parts.front.asked import Asked

Document = dict[str, Any]
Schemas = dict[tuple[Any, JsonSchemaMode], Document]
_REFS = "#/components/schemas/{model}"


class FieldTrouble(Record):
    field: str
    why: str


class ProblemDetails(Record):
    """RFC 9457. `errors` names the fields of a request that cannot be used."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldTrouble, ...] = ()


PROBLEMS = {
    "401": "No token, or none that is good", "403": "The role is too low", "404": "There is nothing of that name",
    "409": "This cannot be done now; `detail` says why", "413": "Too large", "415": "Not JSON",
    "422": "This cannot be read; `errors` names the fields", "429": "Too often", "503": "Not now; try again",
}  # fmt: skip
OF_BODIES = ("409", "413", "415")


async def openapi(asked: Asked) -> Response:
    return JSONResponse(document())


@cache
def document() -> Document:
    schemas, components = _schemas()
    paths: dict[str, Document] = {}
    for one in OPERATIONS:
        paths.setdefault(f"{BELOW}{one.path}", {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Becket", "version": __version__, "summary": "What the command line does, over HTTP"},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {code: {"description": says, **_problem()} for code, says in PROBLEMS.items()},
        },
        "security": [{"token": []}],
    }


def _schemas() -> tuple[Schemas, Document]:
    """By operation and direction; and what they share, by name."""
    wanted: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = [
        (f"{one.name} answer", "serialization", TypeAdapter(one.answers)) for one in OPERATIONS
    ]
    wanted += [(f"{one.name} ask", "validation", TypeAdapter(one.asks)) for one in OPERATIONS if one.method != "GET"]
    wanted += [("problem", "serialization", TypeAdapter(ProblemDetails))]
    schemas, shared = TypeAdapter.json_schemas(wanted, ref_template=_REFS)
    return schemas, shared.get("$defs", {})


def _problem() -> Document:
    return {"content": {"application/problem+json": {"schema": {"$ref": _REFS.format(model="ProblemDetails")}}}}


def _operation(one: Operation, schemas: Schemas) -> Document:
    answer = {"application/json": {"schema": schemas[f"{one.name} answer", "serialization"]}}
    codes = [code for code in PROBLEMS if code not in OF_BODIES or one.method != "GET" or code == "409"]
    found: Document = {
        "operationId": one.name,
        "summary": one.says,
        "description": f"Needs the role {one.needs}.",
        "x-role": one.needs,
        "parameters": [*map(_in_path, one.params), *(_of_query(one.asks) if one.method == "GET" else ())],
        "responses": {
            "200": {"description": "Done", "content": answer},
            **{code: {"$ref": f"#/components/responses/{code}"} for code in codes},
        },
    }
    if one.method != "GET":
        required = any(field.is_required() for field in one.asks.model_fields.values())
        schema = schemas[f"{one.name} ask", "validation"]
        found["requestBody"] = {"required": required, "content": {"application/json": {"schema": schema}}}
    return found


def _in_path(name: str) -> Document:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": f"^{NAME}$"}}


def _of_query(asks: type[Record]) -> list[Document]:
    schema = asks.model_json_schema(ref_template=_REFS)
    return [
        {"name": name, "in": "query", "required": False, "description": one.pop("description", ""), "schema": one}
        for name, one in schema.get("properties", {}).items()
    ]
