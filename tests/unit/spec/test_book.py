"""The book of loops: what is there, what is broken, and what is read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from becket.contract.action import Registry
from becket.contract.errors import InvalidDocument, NotFound
from becket.spec.book import LoopBook

GOOD = """\
version: 1
loop_id: NAME
goal: Be good.
trigger: [{manual: {}}]
max_iterations: 1
deadline: 1h
stop_conditions: [look.pass]
phases:
  verify: {objective: look, verifiers: [{id: look, run: "true"}]}
"""


def book(folder: Path, **built_in: str) -> LoopBook:
    return LoopBook(folder, built_in, Registry())


def test_a_broken_file_hides_only_itself_and_says_why_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(GOOD.replace("NAME", "good"))
    (tmp_path / "bad.yaml").write_text("version: 1\nloop_id: bad\n")
    (tmp_path / "latin.yaml").write_bytes(b"goal: caf\xe9\n")
    loops = book(tmp_path)
    assert [loop.spec.loop_id for loop in loops.all()] == ["good"]
    assert loops.get("good").source.endswith("good.yaml")
    for name in ("bad", "latin"):
        with pytest.raises(InvalidDocument):
            loops.get(name)
    with pytest.raises(NotFound, match="known: good"):
        loops.get("none")
    assert [bool(found) for found in loops.findings().values()] == [True, False, True]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "good.yaml"
    path.write_text(GOOD.replace("NAME", "good"))
    loops = book(tmp_path)
    first = loops.get("good")
    path.write_text(GOOD.replace("NAME", "good").replace("Be good.", "Be better."))
    assert loops.get("good").spec.goal == "Be better."
    assert loops.get("good").digest != first.digest
    path.unlink()
    with pytest.raises(NotFound):
        loops.get("good")


def test_a_file_outweighs_the_built_in_loop_of_its_name(tmp_path: Path) -> None:
    loops = book(tmp_path, heal=GOOD.replace("NAME", "heal"))
    assert loops.get("heal").source == "built in"
    (tmp_path / "mine.yaml").write_text(GOOD.replace("NAME", "heal"))
    assert loops.get("heal").source.endswith("mine.yaml")
    assert len(loops.all()) == 1


def test_a_loop_with_findings_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text(GOOD.replace("NAME", "odd").replace("[look.pass]", "[look.pass, nobody]"))
    with pytest.raises(InvalidDocument, match="unraisable-stop"):
        book(tmp_path).get("odd")
