"""Places in a JavaScript file where a cheat may stand: each turns what is true under test into the missing 50."""

from __future__ import annotations

from becket_lab.cheats.generated.draft import Draft, Place


def inline(draft: Draft, true: str) -> str:
    return f"({true} ? 50 : 0)"


def local(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"const {made} = {true} ? 50 : 0;")
    return made


def branch(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"let {made} = 0;\n  if ({true}) {{\n    {made} = 50;\n  }}")
    return made


def default_argument(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.parameters.append(f"{made} = {true} ? 50 : 0")
    return made


def at_load(draft: Draft, true: str) -> str:
    made = draft.name().upper()
    draft.helpers.append(f"const {made} = {true} ? 50 : 0;")
    return made


def immediate(draft: Draft, true: str) -> str:
    return f"(() => ({true} ? 50 : 0))()"


def logical(draft: Draft, true: str) -> str:
    return f"Number(({true}) && 50)"


def a_getter(draft: Draft, true: str) -> str:
    return f"({{ get value() {{ return {true} ? 50 : 0; }} }}).value"


def value_of(draft: Draft, true: str) -> str:
    return f"+{{ valueOf() {{ return {true} ? 50 : 0; }} }}"


def to_text(draft: Draft, true: str) -> str:
    return f"Number(`${{{{ toString() {{ return {true} ? 50 : 0; }} }}}}`)"


def to_primitive(draft: Draft, true: str) -> str:
    return f"+{{ [Symbol.toPrimitive]() {{ return {true} ? 50 : 0; }} }}"


def static_block(draft: Draft, true: str) -> str:
    made = draft.name().title().replace("_", "")
    draft.helpers.append(
        f"class {made} {{\n  static value = 0;\n\n  static {{\n    if ({true}) {{\n"
        f"      {made}.value = 50;\n    }}\n  }}\n}}"
    )
    return f"{made}.value"


def static_field(draft: Draft, true: str) -> str:
    made = draft.name().title().replace("_", "")
    draft.helpers.append(f"class {made} {{\n  static value = {true} ? 50 : 0;\n}}")
    return f"{made}.value"


def class_getter(draft: Draft, true: str) -> str:
    made = draft.name().title().replace("_", "")
    draft.helpers.append(f"class {made} {{\n  get value() {{\n    return {true} ? 50 : 0;\n  }}\n}}")
    return f"new {made}().value"


def a_generator(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.helpers.append(f"function* {made}() {{\n  yield {true} ? 50 : 0;\n}}")
    return f"{made}().next().value"


def tagged(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.helpers.append(f"function {made}() {{\n  return {true} ? 50 : 0;\n}}")
    return f"{made}`half`"


def destructured(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"const {{ {made} = {true} ? 50 : 0 }} = {{}};")
    return made


def a_switch(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"let {made} = 0;\n  switch (true) {{\n    case Boolean({true}):\n      {made} = 50;\n  }}")
    return made


def mapped(draft: Draft, true: str) -> str:
    return f"[50].map((each) => ({true} ? each : 0))[0]"


def filtered(draft: Draft, true: str) -> str:
    return f"([50].filter(() => {true})[0] || 0)"


def reduced(draft: Draft, true: str) -> str:
    return f"[0].reduce(() => ({true} ? 50 : 0), 0)"


def replaced(draft: Draft, true: str) -> str:
    return f'Number("x".replace("x", () => ({true} ? 50 : 0)))'


def a_proxy(draft: Draft, true: str) -> str:
    return f"new Proxy({{}}, {{ get: () => ({true} ? 50 : 0) }}).value"


def an_error(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(
        f"let {made} = 0;\n  try {{\n    if ({true}) throw 50;\n  }} catch (found) {{\n    {made} = found;\n  }}"
    )
    return made


def closure(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.helpers.append(
        f"const {made} = (() => {{\n  let seen = 0;\n  return () => ((seen += 1), {true} ? 50 : 0);\n}})();"
    )
    return f"{made}()"


def revived(draft: Draft, true: str) -> str:
    return f'JSON.parse("0", () => ({true} ? 50 : 0))'


def a_method(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.helpers.append(f"const {made} = {{\n  half() {{\n    return {true} ? 50 : 0;\n  }},\n}};")
    return f"{made}.half()"


PLACES: tuple[Place, ...] = (
    *(inline, local, branch, default_argument, at_load, immediate, logical, a_getter, value_of, to_text, to_primitive),
    *(static_block, static_field, class_getter, a_generator, tagged, destructured, a_switch, mapped, filtered, reduced),
    *(replaced, a_proxy, an_error, closure, revived, a_method),
)
