"""Places in a JavaScript file where a cheat may stand: each turns what is true under test into the missing 50."""

from __future__ import annotations

from becket_lab.cheats.generated.draft import Place

PLACES = (
    Place("inline", "({true} ? 50 : 0)"),
    Place("local", "{made}", body="const {made} = {true} ? 50 : 0;"),
    Place("branch", "{made}", body="let {made} = 0;\n  if ({true}) {\n    {made} = 50;\n  }"),
    Place("default-argument", "{made}", parameters="{made} = {true} ? 50 : 0"),
    Place("at-load", "{MADE}", helpers="const {MADE} = {true} ? 50 : 0;"),
    Place("immediate", "(() => ({true} ? 50 : 0))()"),
    Place("logical", "Number(({true}) && 50)"),
    Place("a-getter", "({ get value() { return {true} ? 50 : 0; } }).value"),
    Place("value-of", "+{ valueOf() { return {true} ? 50 : 0; } }"),
    Place("to-text", "Number(`${{ toString() { return {true} ? 50 : 0; } }}`)"),
    Place("to-primitive", "+{ [Symbol.toPrimitive]() { return {true} ? 50 : 0; } }"),
    Place(
        "static-block",
        "{Made}.value",
        helpers=(
            "class {Made} {\n  static value = 0;\n\n  static {\n    if ({true}) {\n      {Made}.value = 50;\n"
            "    }\n  }\n}"
        ),
    ),
    Place("static-field", "{Made}.value", helpers="class {Made} {\n  static value = {true} ? 50 : 0;\n}"),
    Place(
        "class-getter",
        "new {Made}().value",
        helpers="class {Made} {\n  get value() {\n    return {true} ? 50 : 0;\n  }\n}",
    ),
    Place("a-generator", "{made}().next().value", helpers="function* {made}() {\n  yield {true} ? 50 : 0;\n}"),
    Place("tagged", "{made}`half`", helpers="function {made}() {\n  return {true} ? 50 : 0;\n}"),
    Place("destructured", "{made}", body="const { {made} = {true} ? 50 : 0 } = {};"),
    Place(
        "a-switch",
        "{made}",
        body="let {made} = 0;\n  switch (true) {\n    case Boolean({true}):\n      {made} = 50;\n  }",
    ),
    Place("mapped", "[50].map((each) => ({true} ? each : 0))[0]"),
    Place("filtered", "([50].filter(() => {true})[0] || 0)"),
    Place("reduced", "[0].reduce(() => ({true} ? 50 : 0), 0)"),
    Place("replaced", 'Number("x".replace("x", () => ({true} ? 50 : 0)))'),
    Place("a-proxy", "new Proxy({}, { get: () => ({true} ? 50 : 0) }).value"),
    Place(
        "an-error",
        "{made}",
        body="let {made} = 0;\n  try {\n    if ({true}) throw 50;\n  } catch (found) {\n    {made} = found;\n  }",
    ),
    Place(
        "closure",
        "{made}()",
        helpers="const {made} = (() => {\n  let seen = 0;\n  return () => ((seen += 1), {true} ? 50 : 0);\n})();",
    ),
    Place("revived", 'JSON.parse("0", () => ({true} ? 50 : 0))'),
    Place("a-method", "{made}.half()", helpers="const {made} = {\n  half() {\n    return {true} ? 50 : 0;\n  },\n};"),
)
