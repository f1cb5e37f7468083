"""What is wrong is refused when it is read: hundreds of bad files, each refused at a place or shown to be harmless.

Harmless is a mutant that loads, lints clean, and either is equal in meaning to its original (the same record), or is of
a kind that may be a legal other file and passes for one by all other witnesses: the published JSON Schema accepts it,
and the record survives being written and read again. A sample of those is run.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from becket.app.sections import load_config
from becket.cli import front
from becket.kernel.contract.action import Registry
from becket.kernel.contract.base import Json, Record
from becket.kernel.contract.errors import BecketError, Finding, InvalidDocument
from becket.kernel.contract.loop import LoadedLoop
from becket.kernel.spec.document import read
from becket.kernel.spec.lint import lint_text
from becket.kernel.spec.load import load_spec
from becket.testing.world import World

from .mutants import SLIPS, Mutant, mutants, repository
from .registry import CONFIG, OTHERS, REGISTRY
from .test_config import WHOLE
from .test_schema import config_schema, fits, spec_schema

ENV = {
    "USER": "ada", "BECKET_DATABASE": "postgresql://db.example/becket", "CI_HOOK_SECRET": "a-secret-of-a-hook",
}  # fmt: skip
LOOP_CONFIG = load_config(
    "version: 1\ngates: {fast: [{name: unit, run: make}]}\nagents: {fixer: {driver: claude}}\n", "becket.yaml", {}
)
ADDRESSES = """\
version: 1
database: postgresql://db.example/becket
alarms: [{url: "https://hooks.example.org/a"}]
agents: {fixer: {driver: claude, endpoint: "https://gateway.example.org/v1"}}
"""
SECONDS = 1.0  # of this process, whatever the machine does besides
_BLOCK = re.compile(r"^```yaml\n(version: 1\n.*?)^```$", re.MULTILINE | re.DOTALL)

Answer = tuple[Record | None, Sequence[Finding]]


@dataclass(frozen=True, slots=True)
class Source:
    """A good file, and how files of its kind are read."""

    name: str
    text: str
    reader: Callable[[str | bytes], Answer]
    schema: Callable[[], dict[str, Json]]


def _config(text: str | bytes) -> Answer:
    try:
        return load_config(text, "f.yaml", ENV), ()
    except InvalidDocument as error:
        return None, error.findings


def _of_corpus(text: str | bytes) -> Answer:
    return lint_text(text, "f.yaml", REGISTRY, OTHERS, CONFIG)


@cache
def _registry() -> Registry:
    from becket.app.registry import load_registry
    from becket.kernel.notices.file import FileNotice

    return load_registry([FileNotice([Path()])])


@cache
def _neighbours() -> dict[str, LoadedLoop]:
    texts = [*(path.read_text() for path in _shipped()), *_documented(loops=True).values()]
    loops = [LoadedLoop(spec=load_spec(text, "f"), text=text, digest="", source="f") for text in texts]
    return {loop.spec.loop_id: loop for loop in loops}


def _of_product(text: str | bytes) -> Answer:
    try:
        name = load_spec(text, "f.yaml").loop_id
    except InvalidDocument as error:
        return None, error.findings
    others = [loop for known, loop in _neighbours().items() if known != name]
    return lint_text(text, "f.yaml", _registry(), others, LOOP_CONFIG)


def _shipped() -> list[Path]:
    root = repository()
    return [*sorted(root.glob("src/becket/loops/*/loop.yaml")), *sorted(root.glob("examples/loops/*.yaml"))]


def _documented(*, loops: bool) -> dict[str, str]:
    pages = sorted(repository().glob("docs/**/*.md"))
    found = [(f"{page.stem}:{n}", text) for page in pages for n, text in enumerate(_BLOCK.findall(page.read_text()))]
    return {name: text for name, text in found if ("\nloop_id:" in text) is loops}


def _sources() -> list[Source]:
    good = sorted((repository() / "tests/specs/good").glob("*.yaml"))
    return [
        *(Source(path.stem, path.read_text(), _of_corpus, spec_schema) for path in good),
        *(Source(f"{p.parent.name}/{p.stem}", p.read_text(), _of_product, spec_schema) for p in _shipped()),
        *(Source(name, text, _of_product, spec_schema) for name, text in _documented(loops=True).items()),
        *(Source(name, text, _config, config_schema) for name, text in _documented(loops=False).items()),
        Source("whole", WHOLE, _config, config_schema),
        Source("addresses", ADDRESSES, _config, config_schema),
    ]


SOURCES = [source for source in _sources() if not source.reader(source.text)[1]]


def faults(source: Source, mutant: Mutant, original: Record) -> list[str]:
    """What speaks against how this mutant was taken; nothing if it was refused well or is harmless."""
    began = time.process_time()
    made, findings = source.reader(mutant.content)
    took = time.process_time() - began
    told = [f"{mutant}: took {took:.1f} s"] if took > SECONDS else []
    if findings:
        return told + [f"{mutant}: told badly: {found}" for found in findings if not _has_a_place(found, mutant)]
    assert made is not None
    if mutant.always:
        return [*told, f"{mutant}: accepted"]
    if made == original:
        return told
    return told + [f"{mutant}: {why}" for why in _unusable(made, source, mutant)]


def _has_a_place(found: Finding, mutant: Mutant) -> bool:
    rows = mutant.content.count(b"\n") + 2
    worded = re.fullmatch(r"[a-z0-9-]+", found.rule) and found.message and found.fix
    return bool(worded) and found.file == "f.yaml" and 1 <= found.line <= rows and found.column >= 1


def _unusable(made: Record, source: Source, mutant: Mutant) -> list[str]:
    told = []
    if b"${" not in mutant.content:  # a schema knows nothing of variables
        schema = source.schema()
        if not fits(read(mutant.content, "f.yaml").data, schema, schema):
            told.append("accepted, and the published schema refuses it")
    written = json.loads(made.model_dump_json(by_alias=True, exclude_unset=True))
    if type(made).model_validate(written, by_alias=True, by_name=False) != made:
        told.append("accepted, and does not survive being written and read")
    return told


def test_there_are_good_files_of_every_origin() -> None:
    """A source that did not lint clean would make every mutant of it pass."""
    assert len(SOURCES) == len(_sources()) >= 20


def test_a_seed_makes_hundreds_of_mutants_of_every_kind() -> None:
    kinds = [mutant.kind for source in SOURCES for mutant in mutants(source.name, source.text, seed=1)]
    assert len(kinds) >= 1_000
    assert {slip.kind for slip in SLIPS} < set(kinds)


def test_ten_megabytes_are_refused_at_once() -> None:
    began = time.process_time()
    assert [found.rule for found in _config(b"version: 1\n" + b"# filler\n" * 1_200_000)[1]] == ["too-large"]
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_mutant_is_refused_at_a_place_or_harmless(source: Source) -> None:
    original = source.reader(source.text)[0]
    assert original is not None
    every = mutants(source.name, source.text, seed=1)
    assert [fault for mutant in every for fault in faults(source, mutant, original)] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_other_seeds_find_nothing_either(seed: int) -> None:
    for source in SOURCES:
        original = source.reader(source.text)[0]
        assert original is not None
        for mutant in mutants(source.name, source.text, seed, each=3):
            assert faults(source, mutant, original) == []


def accepted(seed: int, most: int) -> list[Mutant]:
    """Loops with another meaning than the example they were made from, which nothing speaks against."""
    found = []
    for source in SOURCES:
        original = source.reader(source.text)[0] if source.name.startswith("loops/") else None
        for mutant in mutants(source.name, source.text, seed) if original else ():
            made, findings = source.reader(mutant.content)
            if not findings and made != original:
                found.append(mutant)
    return random.Random(seed).sample(found, min(most, len(found)))


async def run_in(world: World, mutant: Mutant) -> str:
    """How a run of it ended. Whatever is wrong with it now must be a person's to read, not a fault of ours."""
    spec = load_spec(mutant.content, "f.yaml")
    given = {name: "1" for name, item in spec.inputs.items() if item.default is None and not item.optional}
    try:
        run = await world.run(spec.loop_id, inputs=given)
    except BecketError as error:
        return str(error)
    return f"{run.status} {run.reason}"


def run_accepted(folder: Path, seed: int, most: int) -> None:
    chosen = accepted(seed, most)
    assert chosen
    for number, mutant in enumerate(chosen):
        world = World(folder / str(number))
        for path in sorted((repository() / "examples/loops").glob("*.yaml")):
            world.write(f".becket/loops/{path.name}", path.read_text())
        name = mutant.source.removeprefix("loops/")
        (world.root / f".becket/loops/{name}.yaml").write_bytes(mutant.content)
        world.commit({"docs/a.md": "[good](README.md)\n", "src/one.txt": "1\n"})
        assert "internal_error" not in asyncio.run(run_in(world, mutant)), str(mutant)


def test_what_is_accepted_runs_without_a_fault_of_ours(tmp_path: Path) -> None:
    run_accepted(tmp_path, seed=1, most=2)


@pytest.mark.slow
def test_more_of_what_is_accepted_runs_without_a_fault_of_ours(tmp_path: Path) -> None:
    run_accepted(tmp_path, seed=2, most=25)


@pytest.mark.parametrize("kind", ["number in quotes", "latin-1", "deep nesting", "key misspelt", "raw NUL", "anchor"])
def test_the_command_line_refuses_with_a_place_and_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    world = World(tmp_path)
    source = next(one for one in SOURCES if one.name == "loops/measure")
    mutant = next(one for one in mutants(source.name, source.text, 1) if one.kind == kind)
    world.write(".becket/loops/measure.yaml", "")
    (world.root / ".becket/loops/measure.yaml").write_bytes(mutant.content)
    monkeypatch.chdir(world.root)
    assert front.run(["loops", "lint"]) == 2
    told = capsys.readouterr()
    assert re.search(r"measure\.yaml:\d+:\d+: [a-z0-9-]+: ", told.out)
    assert "Traceback" not in told.out + told.err
    assert "internal error" not in told.out + told.err
