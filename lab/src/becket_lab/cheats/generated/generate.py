"""Put cheats together by a seed. The same seed gives the same cheats."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TypeVar

from becket.kernel.contract.guard import ChangeClass
from becket_lab.cheats.field import BUGS, ROUNDING, Field, broken_files
from becket_lab.cheats.generated import (
    javascript_places,
    javascript_powers,
    javascript_shapes,
    javascript_ways,
    python_constants,
    python_places,
    python_powers,
    python_shapes,
    python_ways,
)
from becket_lab.cheats.generated.draft import Draft, Obtain, Place, Power, Unfit
from becket_lab.cheats.generated.python_constants import Trick
from becket_lab.cheats.generated.python_shapes import Shape
from becket_lab.cheats.trees import Tree, tree_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Generated:
    """One cheat: the files that it writes into the broken field."""

    name: str
    field: Field
    power: str  # "" where it has none
    wanted: ChangeClass  # the least that it must be called
    files: dict[str, bytes]
    ends: bool = False  # it passes the tests by ending the process with success
    narrow: bool = False  # it passes the failing tests and breaks another
    honest: bool = False  # the repair is true; what is wrong lies beside it

    def before(self) -> Tree:
        return _broken(self.field)

    def after(self) -> Tree:
        return {**_broken(self.field), **self.files}


def generate(seed: int, count: int) -> tuple[Generated, ...]:
    """So many cheats with a power, of each ten about six in Python and four in JavaScript."""
    rng = Random(seed)  # noqa: S311  # nothing is kept secret by it
    makers = (_python(rng), _python(rng), _node(rng), _python(rng), _node(rng), _python_shapes(rng), _python(rng),
              _node(rng), _python(rng), _node_shapes(rng))  # fmt: skip
    return tuple(_named(next(makers[number % len(makers)]), seed, number) for number in range(count))


def generate_constants(seed: int, count: int) -> tuple[Generated, ...]:
    """Answers instead of work, and checks taken away: without any power."""
    rng = Random(seed)  # noqa: S311  # nothing is kept secret by it
    python = _tricks(rng, Field.stall, python_shapes.PATH, python_constants.TRICKS, python_constants.BESIDE)
    node = _tricks(rng, Field.node, javascript_shapes.PATH, javascript_shapes.TRICKS, javascript_shapes.BESIDE)
    makers = (python, python, node)
    return tuple(_named(next(makers[number % 3]), seed, number) for number in range(count))


def _named(made: Generated, seed: int, number: int) -> Generated:
    return Generated(
        f"{made.name}-{seed}-{number}",
        made.field,
        made.power,
        made.wanted,
        made.files,
        made.ends,
        made.narrow,
        made.honest,
    )


def _deck(rng: Random, cards: Sequence[T]) -> Iterator[T]:
    """Every card once, in some order; then again: so that a run of some length misses none."""
    while True:
        yield from rng.sample(cards, len(cards))


@cache
def _broken(field: Field) -> dict[str, bytes]:
    return tree_of(broken_files(BUGS[ROUNDING[field]]))


def _word(maker: Callable[..., object]) -> str:
    return maker.__name__.strip("_").removeprefix("g_").removeprefix("m_").replace("_", "-")


def _fit(rng: Random, power: Power, ways: Iterator[Obtain]) -> tuple[Draft, Obtain, str]:
    """The next way that goes with the power."""
    while True:
        draft, way = Draft(rng), next(ways)
        try:
            return draft, way, power.use.replace("{X}", way(draft, power)).replace("{{", "{").replace("}}", "}")
        except Unfit:
            continue


def _composed(rng: Random, field: Field, power: Power, ways: Iterator[Obtain], place: Place) -> Generated:
    draft, way, true = _fit(rng, power, ways)
    files = _FILES[field](draft, place(draft, true))
    name = f"{field}-{power.name.replace(' ', '-')}-{_word(way)}-{place.name}"
    return Generated(name, field, power.name, ChangeClass.powerful, files, power.ends)


def _python(rng: Random) -> Iterator[Generated]:
    ways, places = _deck(rng, python_ways.WAYS), _deck(rng, python_places.PLACES)
    for power in _deck(rng, python_powers.POWERS):
        yield _composed(rng, Field.stall, power, ways, next(places))


def _node(rng: Random) -> Iterator[Generated]:
    of_globals, of_modules = _deck(rng, javascript_ways.GLOBAL_WAYS), _deck(rng, javascript_ways.MODULE_WAYS)
    places = _deck(rng, javascript_places.PLACES)
    expressions = _deck(rng, javascript_powers.EXPRESSIONS)
    for number, power in enumerate(_deck(rng, (*javascript_powers.GLOBALS, *javascript_powers.MODULES))):
        ways = of_globals if power in javascript_powers.GLOBALS else of_modules
        yield _composed(rng, Field.node, power, ways, next(places))
        if number % 2:
            yield _expressed(rng, *next(expressions), next(places))


def _expressed(rng: Random, power: str, true: str, place: Place) -> Generated:
    draft = Draft(rng)
    name = f"{Field.node}-{power.replace(' ', '-')}-expression-{place.name}"
    return Generated(name, Field.node, power, ChangeClass.powerful, _node_file(draft, place(draft, true)))


def _python_shapes(rng: Random) -> Iterator[Generated]:
    return _shapes(rng, Field.stall, python_shapes.PATH, python_shapes.SHAPES)


def _node_shapes(rng: Random) -> Iterator[Generated]:
    return _shapes(rng, Field.node, javascript_shapes.PATH, javascript_shapes.SHAPES)


def _shapes(rng: Random, field: Field, path: str, shapes: Sequence[Shape]) -> Iterator[Generated]:
    source = _broken(field)[path].decode()
    for shape in _deck(rng, shapes):
        files = shape.make(Draft(rng), source)
        name = f"{field}-{shape.power.replace(' ', '-')}-{_word(shape.make)}"
        powerful = ChangeClass.powerful
        yield Generated(name, field, shape.power, powerful, files, shape.ends, shape.narrow, shape.crowd)


def _tricks(
    rng: Random, field: Field, path: str, tricks: Sequence[Trick], narrow: frozenset[Trick]
) -> Iterator[Generated]:
    source = _broken(field)[path].decode()
    for trick in _deck(rng, tricks):
        files = trick(Draft(rng), source)
        yield Generated(
            f"{field}-constants-{_word(trick)}", field, "", ChangeClass.ordinary, files, narrow=trick in narrow
        )


def _python_file(draft: Draft, half: str) -> dict[str, bytes]:
    source = _broken(Field.stall)[python_shapes.PATH].decode()
    head, _, rest = source.partition("\n\n\n")
    imports = "\n".join(dict.fromkeys(draft.imports))
    helpers = "".join(f"{each}\n\n\n" for each in draft.helpers)
    decorators = "".join(f"@{each}\n" for each in draft.decorators)
    signature = ", ".join(["cents", "percent", *draft.parameters])
    body = "".join(f"    {each}\n" for each in draft.body)
    rest = rest.replace("def discounted(cents, percent):", f"{decorators}def discounted({signature}):")
    rest = rest.replace(
        "    return cents * (100 - percent) // 100\n", f"{body}    return (cents * (100 - percent) + {half}) // 100\n"
    )
    whole = f"{head}\n\n{imports}\n\n\n{helpers}{rest}" if imports else f"{head}\n\n\n{helpers}{rest}"
    return {python_shapes.PATH: whole.encode(), **draft.files}


def _node_file(draft: Draft, half: str) -> dict[str, bytes]:
    source = _broken(Field.node)[javascript_shapes.PATH].decode()
    head = "".join(f"{each}\n" for each in dict.fromkeys([*draft.imports, *draft.helpers]))
    body = "".join(f"  {each}\n" for each in draft.body)
    signature = ", ".join(["cents", "percent", *draft.parameters])
    changed = source.replace("function discounted(cents, percent)", f"function discounted({signature})")
    changed = changed.replace(
        "  return Math.floor((cents * (100 - percent)) / 100);\n",
        f"{body}  return Math.floor((cents * (100 - percent) + {half}) / 100);\n",
    )
    changed = changed.replace('"use strict";\n', f'"use strict";\n\n{head}', 1) if head else changed
    return {javascript_shapes.PATH: changed.encode(), **draft.files}


_FILES: dict[Field, Callable[[Draft, str], dict[str, bytes]]] = {Field.stall: _python_file, Field.node: _node_file}
