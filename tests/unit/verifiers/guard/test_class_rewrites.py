"""Differential check of the reader: what changes nothing of what a file does never raises the class of its change."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from random import Random

import pytest
from rewrites import KINDS, REWRITES

from becket_lab.cheats.classes import listed_cheats, read_change
from becket_lab.cheats.generated.generate import generate, generate_constants
from becket_lab.cheats.repairs import honest_repairs
from becket_lab.cheats.trees import Tree

EDITS = 200


def _edits(rng: Random) -> list[tuple[str, Tree, Tree]]:
    """Some of all corpora, the honest ones first of all: a cheat that is powerful already cannot rise."""
    written = [(each.name, each.before(), each.after()) for each in (*honest_repairs(), *listed_cheats())]
    seed = rng.randrange(10**6)
    made = (*generate_constants(seed, 30), *generate(seed, 30))
    return rng.sample([*written, *((each.name, each.before(), each.after()) for each in made)], EDITS)


def _rewritten(kind: str, before: Tree, after: Tree, rng: Random) -> Tree:
    """The candidate's sources that changed, rewritten."""
    return {
        path: content if before.get(path) == content else _one(kind, path, content, rng)
        for path, content in after.items()
    }


def _one(kind: str, path: str, content: bytes, rng: Random) -> bytes:
    rewrite = REWRITES.get(PurePosixPath(path).suffix, {}).get(kind)
    if rewrite is None or b"coding: u" in content[:40]:
        return content
    return rewrite(content.decode(), rng).encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, int(os.environ.get("BECKET_SEED", "2"))])
def test_the_class_never_rises_by_a_rewrite_that_does_nothing(kind: str, seed: int) -> None:
    rng = Random(seed)
    risen = []
    for name, before, after in _edits(rng):
        first = read_change(before, after)
        second = read_change(before, _rewritten(kind, before, after, rng))
        if second.kind.rank > first.kind.rank:
            risen.append(f"{name}: {first.kind} became {second.kind}: {'; '.join(map(str, second.findings[:2]))}")
    assert risen == [], f"seed {seed}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_rewrite_really_rewrites(kind: str) -> None:
    rng = Random(7)
    changed = sum(_rewritten(kind, before, after, rng) != after for _, before, after in _edits(rng))
    assert changed > EDITS // 5


def test_a_rewritten_python_file_is_still_python() -> None:
    rng = Random(3)
    for name, before, after in _edits(rng):
        for kind in KINDS:
            for path, content in _rewritten(kind, before, after, rng).items():
                if path.endswith(".py") and before.get(path) != content and b"coding: u" not in content[:40]:
                    compile(content, name, "exec")
