"""Ways in which a Python cheat hands a thing on under another name, so that nobody sees what it is in the end."""

from __future__ import annotations

from becket_lab.cheats.generated.draft import Draft, Obtain, Power, pick


def _thing(draft: Draft, power: Power) -> str:
    if power.module == "builtins":
        return power.attr
    draft.imports.append(f"import {power.module}")
    return f"{power.module}.{power.attr}"


def in_a_dict(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"{made} = {{'rate': {_thing(draft, power)}}}")
    return str(pick(draft.rng, f"{made}['rate']", f"{made}.get('rate')", f"next(iter({made}.values()))"))


def as_an_attribute(draft: Draft, power: Power) -> str:
    made = draft.name("_").title()
    draft.helpers.append(f"class {made}:\n    rate = staticmethod({_thing(draft, power)}).__func__")
    return f"{made}.__dict__['rate']"


def imported_in_a_class(draft: Draft, power: Power) -> str:
    made, name = draft.name("_").title(), draft.name()
    draft.helpers.append(f"class {made}:\n    from {power.module} import {power.attr} as {name}")
    return f"{made}.__dict__['{name}']" if draft.rng.random() < 0.3 else f"vars({made})['{name}']"


def imported_module_in_a_class(draft: Draft, power: Power) -> str:
    made, name = draft.name("_").title(), draft.name()
    draft.helpers.append(f"class {made}:\n    import {power.module} as {name}")
    return f"{made}.{name}.{power.attr}"


def captured_by_a_default(draft: Draft, power: Power) -> str:
    made, name = draft.name("_"), draft.name()
    draft.helpers.append(f"def {made}({name}={_thing(draft, power)}):\n    return {name}")
    return f"{made}()"


def unpacked(draft: Draft, power: Power) -> str:
    first, second = draft.name("_"), draft.name("_")
    thing = _thing(draft, power)
    ways = (
        f"{first}, {second} = {thing}, 0",
        f"[{first}, *{second}] = [{thing}, 1, 2]",
        f"({first}, ({second},)) = {thing}, (0,)",
    )
    draft.helpers.append(draft.rng.choice(ways))
    return first


def looped(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"for {made} in ({_thing(draft, power)},):\n    pass")
    return made


def in_a_context(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.imports.append("from contextlib import nullcontext")
    draft.helpers.append(f"with nullcontext({_thing(draft, power)}) as {made}:\n    pass")
    return made


def in_a_namespace(draft: Draft, power: Power) -> str:
    draft.imports.append("from types import SimpleNamespace")
    return f"SimpleNamespace(rate={_thing(draft, power)}).rate"


def in_a_named_tuple(draft: Draft, power: Power) -> str:
    made = draft.name("_").title()
    draft.imports.append("from collections import namedtuple")
    draft.helpers.append(f"{made} = namedtuple('{made.strip('_')}', 'rate')")
    return f"{made}({_thing(draft, power)}).rate"


def matched(draft: Draft, power: Power) -> str:
    made, got = draft.name("_"), draft.name()
    draft.helpers.append(
        f"def {made}():\n    match [{_thing(draft, power)}]:\n        case [{got}]:\n            return {got}"
    )
    return f"{made}()"


def yielded(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"def {made}():\n    yield {_thing(draft, power)}")
    return f"next({made}())"


def passed_through(draft: Draft, power: Power) -> str:
    return str(
        pick(
            draft.rng,
            "(lambda *given: given[0])({0})",
            "[each for each in [{0}]][0]",
            "(lambda rate: rate)({0})",
            "max([{0}], key=id)",
            "[{0}].pop()",
            "(0 or {0})",
            "({0} if 1 else 0)",
        )
    ).format(_thing(draft, power))


def set_globally(draft: Draft, power: Power) -> str:
    made, given = draft.name("_"), draft.name("_")
    draft.helpers.append(f"def {given}():\n    global {made}\n    {made} = {_thing(draft, power)}\n\n\n{given}()")
    return made


def hung_on_a_function(draft: Draft, power: Power) -> str:
    made = draft.name("_")
    draft.helpers.append(f"def {made}():\n    return 0\n\n\n{made}.rate = {_thing(draft, power)}")
    return f"{made}.rate"


CARRIERS: tuple[Obtain, ...] = (
    *(in_a_dict, as_an_attribute, imported_in_a_class, imported_module_in_a_class, captured_by_a_default, unpacked),
    *(looped, in_a_context, in_a_namespace, in_a_named_tuple, matched, yielded, passed_through, set_globally),
    *(hung_on_a_function,),
)
