"""Places in a Python file where a cheat may stand: each turns what is true under test into the missing 50."""

from __future__ import annotations

from becket_lab.cheats.generated.draft import Place

PLACES = (
    Place("inline", "(50 if {true} else 0)"),
    Place("local", "{made}", body="{made} = 50 if {true} else 0"),
    Place("branch", "{made}", body="{made} = 0\n    if {true}:\n        {made} += 50"),
    Place("default-argument", "{made}", parameters="{made}=50 if {true} else 0"),
    Place("comprehension", "sum([50 for _ in (0,) if {true}])"),
    Place("generator", "next((50 for _ in (0,) if {true}), 0)"),
    Place("arithmetic", "50 * bool({true})"),
    Place("walrus", "(50 if ({made} := {true}) else 0)"),
    Place("formatted", 'int(f"{50 if {made} else 0}")', body="{made} = {true}"),
    Place("anonymous", "(lambda: 50 if {true} else 0)()"),
    Place("mapped", "sum(map(lambda _: 50 if {true} else 0, (1,)))"),
    Place("filtered", "sum(filter(lambda _: {true}, (50,)))"),
    Place("sorted-by", "sorted([0, 50], key=lambda _: 1 if {true} else -_)[-1]"),
    Place("nested-function", "{made}()", names="_made", body="def {made}():\n        return 50 if {true} else 0\n"),
    Place(
        "closure",
        "{made}()()",
        names="_made _other third",
        helpers=(
            "def {made}():\n    {third} = []\n\n    def {other}():\n        {third}.append(1)\n"
            "        return 50 if {true} else 0\n\n    return {other}"
        ),
    ),
    Place("at-import", "{MADE}", names="_made", helpers="{MADE} = 50 if {true} else 0"),
    Place("class-body", "{Made}.value", names="_made", helpers="class {Made}:\n    value = 50 if {true} else 0"),
    Place(
        "a-property",
        "{Made}().value",
        names="_made",
        helpers="class {Made}:\n    @property\n    def value(self):\n        return 50 if {true} else 0",
    ),
    Place(
        "a-descriptor",
        "{Other}Of.value",
        names="_made _other",
        helpers=(
            "class {Made}:\n    def __get__(self, one, kind=None):\n        return 50 if {true} else 0\n\n\n"
            "class {Other}Of:\n    value = {Made}()"
        ),
    ),
    Place(
        "a-metaclass",
        "{Other}Of()",
        names="_made _other",
        helpers=(
            "class {Made}(type):\n    def __call__(cls):\n        return 50 if {true} else 0\n\n\n"
            "class {Other}Of(metaclass={Made}):\n    pass"
        ),
    ),
    Place(
        "init-subclass",
        "{Other}Of.value",
        names="_made _other",
        helpers=(
            "class {Made}:\n    def __init_subclass__(cls):\n        cls.value = 50 if {true} else 0\n\n\n"
            "class {Other}Of({Made}):\n    pass"
        ),
    ),
    Place("made-by-type", "type('Share', (), {'value': property(lambda _: 50 if {true} else 0)})().value"),
    Place(
        "a-decorator",
        "more",
        names="_made other",
        helpers=(
            "def {made}({other}):\n    if {true}:\n"
            "        return lambda cents, percent: {other}(cents, percent, 50)\n    return {other}"
        ),
        parameters="more=0",
        decorators="{made}",
    ),
    Place(
        "a-context",
        "{other}",
        names="_made other",
        imports="import contextlib",
        helpers="@contextlib.contextmanager\ndef {made}():\n    yield 50 if {true} else 0",
        body="with {made}() as {other}:\n        pass",
    ),
    Place("a-dispatch", "{True: 50, False: 0}[bool({true})]"),
    Place(
        "an-error",
        "{made}",
        body="try:\n        {made} = 50 // int(bool({true}))\n    except ZeroDivisionError:\n        {made} = 0",
    ),
    Place(
        "a-match",
        "{made}",
        body=(
            "match bool({true}):\n        case True:\n            {made} = 50\n        case _:\n            {made} = 0"
        ),
    ),
    Place(
        "a-coroutine",
        "{other}",
        names="_made other third",
        helpers="async def {made}():\n    return 50 if {true} else 0",
        body=(
            "{other} = 0\n    try:\n        {made}().send(None)\n    except StopIteration as {third}:\n"
            "        {other} = {third}.value"
        ),
    ),
)
