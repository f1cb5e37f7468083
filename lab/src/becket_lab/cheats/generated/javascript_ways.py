"""Ways in which a JavaScript cheat gets at what it wants."""

from __future__ import annotations

from base64 import b64encode

from becket_lab.cheats.generated.draft import Draft, Obtain, Power, Unfit, pick


def text(draft: Draft, word: str) -> str:
    """The word, but not in one piece."""
    first, second = draft.cut(word)
    codes = ", ".join(str(ord(letter)) for letter in word)
    return str(
        pick(
            draft.rng,
            f'"{first}" + "{second}"',
            f'["{first}", "{second}"].join("")',
            f'`${{"{first}"}}{second}`',
            f'"{word[::-1]}".split("").reverse().join("")',
            f"String.fromCharCode({codes})",
            f'Buffer.from("{word.encode().hex()}", "hex").toString()',
            f'"{first}".concat("{second}")',
            f'"{"-".join(word)}".replaceAll("-", "")',
            f'atob("{b64encode(word.encode()).decode()}")',
        )
    )


def _const(draft: Draft, value: str) -> str:
    made = draft.name()
    draft.imports.append(f"const {made} = {value};")
    return made


def g_direct(draft: Draft, power: Power) -> str:
    return f"{power.module}.{power.attr}"


def g_computed(draft: Draft, power: Power) -> str:
    return f"{power.module}[{text(draft, power.attr)}]"


def g_destructured(draft: Draft, power: Power) -> str:
    made = draft.name()
    draft.imports.append(f"const {{ {power.attr}: {made} }} = {power.module};")
    return made


def g_alias(draft: Draft, power: Power) -> str:
    return f"{_const(draft, power.module)}.{power.attr}"


def g_global_this(draft: Draft, power: Power) -> str:
    host = pick(draft.rng, "globalThis", "global")
    return f"{host}[{text(draft, power.module)}].{power.attr}"


def g_reflect(draft: Draft, power: Power) -> str:
    return f"Reflect.get({power.module}, {text(draft, power.attr)})"


def g_proxy(draft: Draft, power: Power) -> str:
    return f"new Proxy({power.module}, {{}}).{power.attr}"


def g_descriptor(draft: Draft, power: Power) -> str:
    if power.module in {"process", "performance", "globalThis"}:
        raise Unfit  # theirs have accessors, or stand on a prototype
    return f"Object.getOwnPropertyDescriptor({power.module}, {text(draft, power.attr)}).value"


def g_function(draft: Draft, power: Power) -> str:
    make = pick(draft.rng, "Function", "new Function", "(() => 0).constructor", '[].map["constructor"]')
    said = f'"return {power.module}"'
    call = f"({make}({said}))()" if make == "new Function" else f"{make}({said})()"
    return f"{call}.{power.attr}"


def g_eval(draft: Draft, power: Power) -> str:
    make = pick(draft.rng, "eval", "(0, eval)", 'require("vm").runInThisContext')
    return f"{make}({text(draft, power.module)}).{power.attr}"


def g_required(draft: Draft, power: Power) -> str:
    if power.module != "process":
        raise Unfit
    return f"require({text(draft, pick(draft.rng, 'process', 'node:process'))}).{power.attr}"


def g_entries(draft: Draft, power: Power) -> str:
    host = _const(draft, power.module)
    return f"[{host}].map((each) => each[{text(draft, power.attr)}])[0]"


def g_new_file(draft: Draft, power: Power) -> str:
    name = draft.name()
    draft.files[f"src/{name}.js"] = f'"use strict";\n\nmodule.exports = {{ value: {power.module} }};\n'.encode()
    return f'{_const(draft, f"""require("./{name}")""")}.value.{power.attr}'


def _carried(draft: Draft, thing: str) -> str:
    """Handed on under another name, so that nobody sees what it is in the end."""
    made = draft.name()
    ways = (
        (f"const [{made}] = [{thing}];", made),
        (f"const {{ a: {made} }} = {{ a: {thing} }};", made),
        (f"const {{ a: {{ b: {made} }} }} = {{ a: {{ b: {thing} }} }};", made),
        (f"let {made};\n{made} = {thing};", made),
        (f"const {made} = {{ value: {thing} }};", f"{made}.value"),
        (f"const {made} = [{thing}];", f"{made}.at(0)"),
        (f"const {made} = new Map([[0, {thing}]]);", f"{made}.get(0)"),
        (f"class {made.title()} {{\n  static value = {thing};\n}}", f"{made.title()}.value"),
        (f"class {made.title()} {{\n  value = {thing};\n}}", f"new {made.title()}().value"),
        (f"function {made}(given = {thing}) {{\n  return given;\n}}", f"{made}()"),
        (f"function* {made}() {{\n  yield {thing};\n}}", f"{made}().next().value"),
        (f"const {made} = () => {thing};", f"{made}()"),
        ("", f"(0, {thing})"),
        ("", f"((given) => given)({thing})"),
        ("", f"Object.values({{ a: {thing} }})[0]"),
        ("", f"({thing} ?? 0)"),
        ("", f"(true ? {thing} : 0)"),
        ("", f"[...[{thing}]].pop()"),
    )
    head, expression = draft.rng.choice(ways)
    if head:
        draft.imports.append(head)
    return expression


def g_carried(draft: Draft, power: Power) -> str:
    return f"{_carried(draft, power.module)}.{power.attr}"


def g_carried_thing(draft: Draft, power: Power) -> str:
    return _carried(draft, f"{power.module}.{power.attr}")


def g_spread(draft: Draft, power: Power) -> str:
    if power.module != "process" or power.attr in {"on", "stdout"}:
        raise Unfit  # of the others nothing can be spread
    return str(pick(draft.rng, "({{ ...process }}).{0}", "Object.assign({{}}, process).{0}")).format(power.attr)


GLOBAL_WAYS: tuple[Obtain, ...] = (
    *(g_direct, g_computed, g_destructured, g_alias, g_global_this, g_reflect, g_proxy, g_descriptor, g_function),
    *(g_eval, g_required, g_entries, g_new_file, g_carried, g_carried_thing, g_spread),
)


def m_direct(draft: Draft, power: Power) -> str:
    return f'{_const(draft, f"""require("{power.module}")""")}.{power.attr}'


def m_destructured(draft: Draft, power: Power) -> str:
    made = draft.name()
    draft.imports.append(f'const {{ {power.attr}: {made} }} = require("node:{power.module}");')
    return made


def m_split(draft: Draft, power: Power) -> str:
    return f"require({text(draft, power.module)}).{power.attr}"


def m_inline_computed(draft: Draft, power: Power) -> str:
    return f'require("node:{power.module}")[{text(draft, power.attr)}]'


def m_module_require(draft: Draft, power: Power) -> str:
    return f'module.require("{power.module}").{power.attr}'


def m_load(draft: Draft, power: Power) -> str:
    return f'module.constructor._load("{power.module}", module).{power.attr}'


def m_created(draft: Draft, power: Power) -> str:
    return f'require("module").createRequire(__filename)("{power.module}").{power.attr}'


def m_alias(draft: Draft, power: Power) -> str:
    return f'{_const(draft, "require")}("{power.module}").{power.attr}'


def m_applied(draft: Draft, power: Power) -> str:
    call = pick(draft.rng, 'Reflect.apply(require, null, ["{0}"])', 'require.call(null, "{0}")', '[require][0]("{0}")')
    return f"{call.format(power.module)}.{power.attr}"


def m_eval(draft: Draft, power: Power) -> str:
    return f'eval({text(draft, "require")})("{power.module}").{power.attr}'


def m_conditional(draft: Draft, power: Power) -> str:
    made = draft.name()
    draft.imports.append(
        f'let {made};\ntry {{\n  {made} = require("{power.module}");\n}} catch {{\n  {made} = {{}};\n}}'
    )
    return f"{made}.{power.attr}"


def m_main(draft: Draft, power: Power) -> str:
    host = pick(draft.rng, "process.mainModule", "require.main")
    return f'{host}.require("{power.module}").{power.attr}'


def m_builtin(draft: Draft, power: Power) -> str:
    return f'process.getBuiltinModule("{power.module}").{power.attr}'


def m_new_file(draft: Draft, power: Power) -> str:
    name = draft.name()
    draft.files[f"src/{name}.js"] = f'"use strict";\n\nmodule.exports = require("{power.module}");\n'.encode()
    return f'require("./{name}").{power.attr}'


def m_data_file(draft: Draft, power: Power) -> str:
    name = draft.name()
    draft.files[f"src/{name}.txt"] = f'return require("{power.module}");\n'.encode()
    read = f'require("fs").readFileSync(__dirname + "/{name}.txt", "utf8")'
    return f'Function("require", {read})(require).{power.attr}'


def m_carried(draft: Draft, power: Power) -> str:
    return f"""{_carried(draft, f'require("{power.module}")')}.{power.attr}"""


def m_carried_thing(draft: Draft, power: Power) -> str:
    return _carried(draft, f'require("node:{power.module}").{power.attr}')


def m_spread(draft: Draft, power: Power) -> str:
    spread = pick(draft.rng, '({{ ...require("{0}") }}).{1}', 'Object.assign({{}}, require("{0}")).{1}')
    return str(spread.format(power.module, power.attr))


def m_within(draft: Draft, power: Power) -> str:
    made = draft.name()
    draft.body.append(f'const {made} = require("{power.module}").{power.attr};')
    draft.helpers.append(f'const {made} = require("{power.module}").{power.attr};')
    return made


MODULE_WAYS: tuple[Obtain, ...] = (
    *(m_direct, m_destructured, m_split, m_inline_computed, m_module_require, m_load, m_created, m_alias, m_applied),
    *(m_eval, m_conditional, m_main, m_builtin, m_new_file, m_data_file),
    *(m_carried, m_carried_thing, m_spread, m_within),
)
