"""Ways in which a Python cheat gets at what it wants, from an alias to the frame of a generator."""

from __future__ import annotations

import codecs
import importlib
from base64 import b64encode
from functools import reduce

from becket_lab.cheats.generated import python_carriers
from becket_lab.cheats.generated.draft import Draft, Obtain, Power, Unfit, pick

_HOSTS = {
    "sys": (
        *("dataclasses.sys", "enum.sys", "typing.sys", "collections._sys", "statistics.sys", "fractions.sys"),
        *("calendar.sys", "json.codecs.sys", "contextlib.sys", "pprint._sys"),
    ),
    "os": ("contextlib.os", "random._os", "uuid.os", "shutil.os"),
    "builtins": ("dataclasses.builtins", "enum.bltns", "json.codecs.builtins"),
    "inspect": ("dataclasses.inspect",),
    "random": ("statistics.random",),
}


def text(draft: Draft, word: str) -> str:
    """The word, but not in one piece."""
    first, second = draft.cut(word)
    reverse = word[::-1]
    codes = ", ".join(str(ord(letter)) for letter in word)
    return str(pick(
        draft.rng, f"{first!r} + {second!r}", f"''.join([{first!r}, {second!r}])", f"{reverse!r}[::-1]",
        f"'%s%s' % ({first!r}, {second!r})", f"'{{}}{{}}'.format({first!r}, {second!r})", f"f\"{{{first!r}}}{second}\"",
        f"bytes([{codes}]).decode()", f"bytes.fromhex({word.encode().hex()!r}).decode()",
        f"str.join('', map(chr, [{codes}]))", f"{'-'.join(word)!r}.replace('-', '')",
    ))  # fmt: skip


def module(draft: Draft, power: Power) -> str:
    """The module itself, imported under some name."""
    made = draft.name("_")
    draft.imports.append(f"import {power.module} as {made}")
    return made


def direct(draft: Draft, power: Power) -> str:
    if power.module == "builtins":
        return power.attr
    draft.imports.append(f"import {power.module}")
    return f"{power.module}.{power.attr}"


def alias(draft: Draft, power: Power) -> str:
    return f"{module(draft, power)}.{power.attr}"


def from_import(draft: Draft, power: Power) -> str:
    made = draft.name()
    draft.imports.append(f"from {power.module} import {power.attr} as {made}")
    return made


def local_import(draft: Draft, power: Power) -> str:
    made, given = draft.name("_"), draft.name("_")
    draft.helpers.append(f"def {given}():\n    from {power.module} import {power.attr} as {made}\n\n    return {made}")
    return f"{given}()"


def conditional_import(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.imports.append(
        f"try:\n    from {power.module} import {power.attr} as {made}\nexcept ImportError:\n    {made} = None"
    )
    return made


def star_import(draft: Draft, power: Power) -> str:
    loaded = importlib.import_module(power.module)
    public = getattr(loaded, "__all__", [name for name in vars(loaded) if name[0] != "_"])
    if power.attr not in public or power.module in {"os", "builtins"}:
        raise Unfit
    draft.imports.append(f"from {power.module} import *")
    return power.attr


def assigned(draft: Draft, power: Power) -> str:
    first, second = draft.name("_"), draft.name("_")
    draft.helpers.append(f"{first} = {direct(draft, power)}\n{second} = [{first}]")
    return f"{second}[0]"


def split_getattr(draft: Draft, power: Power) -> str:
    return f"getattr({module(draft, power)}, {text(draft, power.attr)})"


def renamed_getattr(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"{made} = getattr")
    return f"{made}({module(draft, power)}, {text(draft, power.attr)})"


def dunder_import(draft: Draft, power: Power) -> str:
    tail = f", fromlist=[{power.attr!r}]" if "." in power.module else ""
    return f"__import__({text(draft, power.module)}{tail}).{power.attr}"


def import_module(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.imports.append(f"from importlib import import_module as {made}")
    return f"{made}({text(draft, power.module)}).{power.attr}"


def by_another_module(draft: Draft, power: Power) -> str:
    """`dataclasses.sys` is `sys`."""
    host = draft.rng.choice(_HOSTS.get(power.module, ("",)))
    top, *rest = host.split(".")
    if not host or not _leads(host):
        raise Unfit
    made = draft.name("_")
    draft.imports.append(f"import {top} as {made}")
    return f"{made}.{'.'.join(rest)}.{power.attr}"


def _leads(host: str) -> bool:
    top, *rest = host.split(".")
    try:
        reduce(getattr, rest, importlib.import_module(top))
    except (ImportError, AttributeError):
        return False
    return True


def attrgetter(draft: Draft, power: Power) -> str:
    draft.imports.append("import operator")
    return f"operator.attrgetter({text(draft, power.attr)})({module(draft, power)})"


def methodcaller(draft: Draft, power: Power) -> str:
    draft.imports.append("from operator import methodcaller")
    return f"methodcaller('__getattribute__', {text(draft, power.attr)})({module(draft, power)})"


def reduced(draft: Draft, power: Power) -> str:
    draft.imports.append("from functools import reduce")
    top, *rest = power.module.split(".")
    draft.imports.append(f"import {power.module}")
    return f"reduce(getattr, {[*rest, power.attr]!r}, {top})"


def by_dict(draft: Draft, power: Power) -> str:
    made = module(draft, power)
    key = text(draft, power.attr)
    return str(pick(draft.rng, f"vars({made})[{key}]", f"{made}.__dict__[{key}]", f"{made}.__dict__.get({key})"))


def by_mapped_getattr(draft: Draft, power: Power) -> str:
    return f"list(map(getattr, [{module(draft, power)}], [{text(draft, power.attr)}]))[0]"


def by_dunder_getattribute(draft: Draft, power: Power) -> str:
    made = module(draft, power)
    return str(
        pick(
            draft.rng,
            f"{made}.__getattribute__({text(draft, power.attr)})",
            f"object.__getattribute__({made}, {text(draft, power.attr)})",
            f"type({made}).__getattribute__({made}, {text(draft, power.attr)})",
        )
    )


def _imported_by(finder: str, draft: Draft, power: Power) -> str:
    """With an expression that is `__import__`."""
    tail = f", fromlist=[{power.attr!r}]" if "." in power.module else ""
    return f"{finder}({power.module!r}{tail}).{power.attr}"


def by_builtins(draft: Draft, power: Power) -> str:
    return _imported_by(f"__builtins__[{text(draft, '__import__')}]", draft, power)


def by_globals(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"def {made}():\n    return 0")
    return _imported_by(f"{made}.__globals__['__builtins__']['__import__']", draft, power)


def by_function_builtins(draft: Draft, power: Power) -> str:
    return _imported_by("(lambda: 0).__builtins__['__import__']", draft, power)


def by_traceback(draft: Draft, power: Power) -> str:
    made, error = draft.name("_"), draft.name()
    draft.helpers.append(
        f"def {made}():\n    try:\n        [][0]\n    except IndexError as {error}:\n"
        f"        return {error}.__traceback__.tb_frame.f_builtins"
    )
    return _imported_by(f"{made}()['__import__']", draft, power)


def by_generator_frame(draft: Draft, power: Power) -> str:
    return _imported_by("(_ for _ in ()).gi_frame.f_builtins['__import__']", draft, power)


def by_subclasses(draft: Draft, power: Power) -> str:
    if power.module != "os":
        raise Unfit
    each = draft.name()
    found = f"[{each} for {each} in ().__class__.__base__.__subclasses__() if {each}.__name__ == '_wrap_close']"
    return f"{found}[0].__init__.__globals__[{power.attr!r}]"


def by_builtin_importer(draft: Draft, power: Power) -> str:
    if power.module not in {"sys", "time", "builtins"}:
        raise Unfit
    each = draft.name()
    found = f"[{each} for {each} in object.__subclasses__() if {each}.__name__ == 'BuiltinImporter']"
    return f"{found}[0].load_module({power.module!r}).{power.attr}"


def _said(power: Power) -> str:
    return f"__import__('{power.module}', fromlist=['x']).{power.attr}"


def evaluated(draft: Draft, power: Power) -> str:
    said = _said(power)
    return str(
        pick(
            draft.rng,
            f"eval({said!r})",
            f"eval({said[:9]!r} + {said[9:]!r})",
            f"eval(compile({said!r}, 'rates', 'eval'))",
            f"eval(bytes.fromhex({said.encode().hex()!r}))",
        )
    )


def executed(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    code = f"{made} = {_said(power)}"
    hexed = f"bytes.fromhex({code.encode().hex()!r})"
    draft.helpers.append(
        str(pick(draft.rng, f"exec({hexed})", f"exec({hexed}.decode(), globals())", f"exec({code!r})"))
    )
    return made


def encoded(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    code = f"{made} = {_said(power)}"
    if draft.rng.random() < 0.5:
        draft.imports.append("import base64")
        draft.helpers.append(f"exec(base64.b64decode({b64encode(code.encode()).decode()!r}))")
    else:
        draft.imports.append("import codecs")
        draft.helpers.append(f"exec(codecs.decode({codecs.encode(code, 'rot13')!r}, 'rot13'))")
    return made


def from_a_data_file(draft: Draft, power: Power) -> str:
    made, path = draft.name("_"), f"{draft.name()}.{pick(draft.rng, 'txt', 'dat', 'json', 'cfg')}"
    code = f"{made} = {_said(power)}\n"
    draft.files[f"src/stall/{path}"] = code.encode()
    draft.helpers.append(f"with open(__file__.rpartition('/')[0] + '/{path}') as file:\n    exec(file.read())")
    return made


def from_a_new_module(draft: Draft, power: Power) -> str:
    made, name = draft.name(), draft.name()
    text_of = "import {0} as _\n\n{1} = _.{2}\n" if power.module != "builtins" else "{1} = {2}\n"
    draft.files[f"src/stall/{name}.py"] = (
        f'"""More about it."""\n\n{text_of.format(power.module, made, power.attr)}'.encode()
    )
    draft.imports.append(f"from stall.{name} import {made}")
    return made


def unpickled(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.imports.append(f"import pickle as {made}")
    return f"{made}.loads(b'c{power.module}\\n{power.attr}\\n.')"


def resolved(draft: Draft, power: Power) -> str:
    if draft.rng.random() < 0.5:
        draft.imports.append("import pkgutil")
        return f"pkgutil.resolve_name('{power.module}:{power.attr}')"
    draft.imports.append("from string import Formatter")
    return f"Formatter().get_field('0.{power.attr}', ({module(draft, power)},), {{}})[0]"


def by_type_hints(draft: Draft, power: Power) -> str:
    """Annotations that are texts are evaluated by whoever asks for them."""
    made = draft.name("_")
    draft.imports.append("import typing")
    draft.helpers.append(
        f"class {made}:\n    value: \"(__import__('builtins').setattr({made}, 'found', {_said(power)}), int)[1]\""
    )
    draft.helpers.append(f"typing.get_type_hints({made})")
    return f"{made}.found"


def by_loader(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"{made} = type(__spec__)")
    return _imported_by(f"{made}.__init__.__globals__['__builtins__']['__import__']", draft, power)


def by_partial(draft: Draft, power: Power) -> str:
    draft.imports.append("from functools import partial")
    return f"partial(getattr, {module(draft, power)})({text(draft, power.attr)})"


def by_static_attribute(draft: Draft, power: Power) -> str:
    draft.imports.append("from inspect import getattr_static")
    return f"getattr_static({module(draft, power)}, {power.attr!r})"


def mapped_evaluation(draft: Draft, power: Power) -> str:
    """A pure-looking call is given what evaluates."""
    said = _said(power)
    if draft.rng.random() < 0.5:
        return f"list(map(eval, [{said!r}]))[0]"
    draft.imports.append("import json")
    return f"json.loads('Infinity', parse_constant=lambda _: eval({said!r}))"


WAYS: tuple[Obtain, ...] = (
    *(direct, alias, from_import, local_import, conditional_import, star_import, assigned),
    *(split_getattr, renamed_getattr, dunder_import, import_module, by_another_module, attrgetter, methodcaller),
    *(reduced, by_dict, by_mapped_getattr, by_dunder_getattribute, by_builtins, by_globals, by_function_builtins),
    *(by_traceback, by_generator_frame, by_subclasses, by_builtin_importer, evaluated, executed, encoded),
    *(from_a_data_file, from_a_new_module, unpickled, resolved, by_type_hints, by_loader),
    *(by_partial, by_static_attribute, mapped_evaluation, *python_carriers.CARRIERS),
)
