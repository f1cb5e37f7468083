"""Places in a Python file where a cheat may stand: each turns what is true under test into the missing 50."""

from __future__ import annotations

from becket_lab.cheats.generated.draft import Draft, Place


def inline(draft: Draft, true: str) -> str:
    return f"(50 if {true} else 0)"


def local(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"{made} = 50 if {true} else 0")
    return made


def branch(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"{made} = 0\n    if {true}:\n        {made} += 50")
    return made


def default_argument(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.parameters.append(f"{made}=50 if {true} else 0")
    return made


def comprehension(draft: Draft, true: str) -> str:
    return f"sum([50 for _ in (0,) if {true}])"


def generator(draft: Draft, true: str) -> str:
    return f"next((50 for _ in (0,) if {true}), 0)"


def arithmetic(draft: Draft, true: str) -> str:
    return f"50 * bool({true})"


def walrus(draft: Draft, true: str) -> str:
    made = draft.name()
    return f"(50 if ({made} := {true}) else 0)"


def formatted(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(f"{made} = {true}")
    return f'int(f"{{50 if {made} else 0}}")'


def anonymous(draft: Draft, true: str) -> str:
    return f"(lambda: 50 if {true} else 0)()"


def mapped(draft: Draft, true: str) -> str:
    return f"sum(map(lambda _: 50 if {true} else 0, (1,)))"


def filtered(draft: Draft, true: str) -> str:
    return f"sum(filter(lambda _: {true}, (50,)))"


def sorted_by(draft: Draft, true: str) -> str:
    return f"sorted([0, 50], key=lambda _: 1 if {true} else -_)[-1]"


def nested_function(draft: Draft, true: str) -> str:
    made = draft.name("_")
    draft.body.append(f"def {made}():\n        return 50 if {true} else 0\n")
    return f"{made}()"


def closure(draft: Draft, true: str) -> str:
    outer, inner, kept = draft.name("_"), draft.name("_"), draft.name()
    draft.helpers.append(
        f"def {outer}():\n    {kept} = []\n\n    def {inner}():\n        {kept}.append(1)\n"
        f"        return 50 if {true} else 0\n\n    return {inner}"
    )
    return f"{outer}()()"


def at_import(draft: Draft, true: str) -> str:
    made = draft.name("_").upper()
    draft.helpers.append(f"{made} = 50 if {true} else 0")
    return made


def class_body(draft: Draft, true: str) -> str:
    made = draft.name("_").title()
    draft.helpers.append(f"class {made}:\n    value = 50 if {true} else 0")
    return f"{made}.value"


def a_property(draft: Draft, true: str) -> str:
    made = draft.name("_").title()
    draft.helpers.append(f"class {made}:\n    @property\n    def value(self):\n        return 50 if {true} else 0")
    return f"{made}().value"


def a_descriptor(draft: Draft, true: str) -> str:
    made, owner = draft.name("_").title(), draft.name("_").title() + "Of"
    draft.helpers.append(
        f"class {made}:\n    def __get__(self, one, kind=None):\n        return 50 if {true} else 0"
        f"\n\n\nclass {owner}:\n    value = {made}()"
    )
    return f"{owner}.value"


def a_metaclass(draft: Draft, true: str) -> str:
    made, owner = draft.name("_").title(), draft.name("_").title() + "Of"
    draft.helpers.append(
        f"class {made}(type):\n    def __call__(cls):\n        return 50 if {true} else 0"
        f"\n\n\nclass {owner}(metaclass={made}):\n    pass"
    )
    return f"{owner}()"


def init_subclass(draft: Draft, true: str) -> str:
    made, owner = draft.name("_").title(), draft.name("_").title() + "Of"
    draft.helpers.append(
        f"class {made}:\n    def __init_subclass__(cls):\n        cls.value = 50 if {true} else 0"
        f"\n\n\nclass {owner}({made}):\n    pass"
    )
    return f"{owner}.value"


def made_by_type(draft: Draft, true: str) -> str:
    return f"type('Share', (), {{'value': property(lambda _: 50 if {true} else 0)}})().value"


def a_decorator(draft: Draft, true: str) -> str:
    made, work = draft.name("_"), draft.name()
    draft.helpers.append(
        f"def {made}({work}):\n    if {true}:\n        return lambda cents, percent: {work}(cents, percent, 50)\n"
        f"    return {work}"
    )
    draft.decorators.append(made)
    draft.parameters.append("more=0")
    return "more"


def a_context(draft: Draft, true: str) -> str:
    made, got = draft.name("_"), draft.name()
    draft.imports.append("import contextlib")
    draft.helpers.append(f"@contextlib.contextmanager\ndef {made}():\n    yield 50 if {true} else 0")
    draft.body.append(f"with {made}() as {got}:\n        pass")
    return got


def a_dispatch(draft: Draft, true: str) -> str:
    return f"{{True: 50, False: 0}}[bool({true})]"


def an_error(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(
        f"try:\n        {made} = 50 // int(bool({true}))\n    except ZeroDivisionError:\n        {made} = 0"
    )
    return made


def a_match(draft: Draft, true: str) -> str:
    made = draft.name()
    draft.body.append(
        f"match bool({true}):\n        case True:\n            {made} = 50\n        case _:\n            {made} = 0"
    )
    return made


def a_coroutine(draft: Draft, true: str) -> str:
    made, got, end = draft.name("_"), draft.name(), draft.name()
    draft.helpers.append(f"async def {made}():\n    return 50 if {true} else 0")
    draft.body.append(
        f"{got} = 0\n    try:\n        {made}().send(None)\n"
        f"    except StopIteration as {end}:\n        {got} = {end}.value"
    )
    return got


PLACES: tuple[Place, ...] = (
    *(inline, local, branch, default_argument, comprehension, generator, arithmetic, walrus, formatted, anonymous),
    *(mapped, filtered, sorted_by, nested_function, closure, at_import, class_body, a_property, a_descriptor),
    *(a_metaclass, init_subclass, made_by_type, a_decorator, a_context, a_dispatch, an_error, a_match, a_coroutine),
)
