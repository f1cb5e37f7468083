"""The book of loops: what is there, what is broken, and what is read again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import pytest

from becket.app.sections import config_model
from becket.kernel.contract.action import ActionContext, ActionDef, Registry, Result
from becket.kernel.contract.base import Record
from becket.kernel.contract.config import Names, PersonConfig
from becket.kernel.contract.errors import InvalidDocument, NotFound
from becket.kernel.spec.book import LoopBook
from becket.parts.gates.section import GateStep

from .registry import REGISTRY

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


def test_a_built_in_loop_is_replaced_only_in_so_many_words(tmp_path: Path) -> None:
    loops = book(tmp_path, heal=GOOD.replace("NAME", "heal"))
    mine = GOOD.replace("NAME", "heal")
    (tmp_path / "mine.yaml").write_text(mine)
    assert loops.get("heal").source == "built in"
    (finding,) = loops.findings()[str(tmp_path / "mine.yaml")]
    assert (finding.rule, finding.line, finding.column) == ("built-in-loop", 2, 10)
    (tmp_path / "mine.yaml").write_text(mine.replace("goal:", "replaces_built_in: true\ngoal:"))
    assert loops.get("heal").source.endswith("mine.yaml")
    assert len(loops.all()) == 1


def test_only_a_loop_that_comes_with_becket_can_be_replaced(tmp_path: Path) -> None:
    text = GOOD.replace("NAME", "heel").replace("goal:", "replaces_built_in: true\ngoal:")
    (tmp_path / "mine.yaml").write_text(text)
    loops = book(tmp_path, heal=GOOD.replace("NAME", "heal"))
    (finding,) = loops.findings()[str(tmp_path / "mine.yaml")]
    assert (finding.rule, finding.line, finding.column) == ("built-in-loop", 3, 1)


def test_what_a_loop_names_is_looked_up_in_becket_yaml_as_it_stands_now(tmp_path: Path) -> None:
    text = GOOD.replace("NAME", "odd").replace(
        "phases:\n", "phases:\n  act: {objective: do, actions: [{id: again, uses: gate.again, with: {gate: smoke}}]}\n"
    )
    (tmp_path / "odd.yaml").write_text(text)
    step = GateStep(name="unit", run="make")
    now = [
        config_model()(version=1, gates={"fast": (step,)}),
        config_model()(version=1, gates={"fast": (step,), "smoke": (step,)}),
    ]
    loops = LoopBook(tmp_path, {}, REGISTRY, lambda: now[0])
    with pytest.raises(InvalidDocument, match=r"odd\.yaml:9:77: unknown-gate: becket\.yaml has no `smoke`"):
        loops.get("odd")
    now.pop(0)
    assert loops.get("odd").spec.loop_id == "odd"


class Whom(Record):
    who: Annotated[str, Names("people", "unknown-person")]


async def greet(context: ActionContext, params: Whom) -> Result:
    return Result()


def test_a_part_may_name_entries_of_any_section(tmp_path: Path) -> None:
    registry = Registry(actions={"greet": ActionDef(name="greet", summary="Greet.", run=greet, params=Whom)})
    act = "  act: {objective: do, actions: [{id: hello, uses: greet, with: {who: ann}}]}\n"
    (tmp_path / "odd.yaml").write_text(GOOD.replace("NAME", "odd").replace("phases:\n", f"phases:\n{act}"))
    now = [config_model()(version=1), config_model()(version=1, people={"ann": PersonConfig()})]
    loops = LoopBook(tmp_path, {}, registry, lambda: now[0])
    with pytest.raises(InvalidDocument, match=r"unknown-person: becket\.yaml has no `ann` in `people`"):
        loops.get("odd")
    now.pop(0)
    assert loops.get("odd").spec.loop_id == "odd"


def test_a_loop_that_sleeps_may_name_what_is_not_there_yet(tmp_path: Path) -> None:
    act = "  act: {objective: do, actions: [{id: again, uses: gate.again, with: {gate: smoke}}]}\n"
    text = GOOD.replace("NAME", "odd").replace("phases:\n", f"needs: [gates]\nphases:\n{act}")
    (tmp_path / "odd.yaml").write_text(text)
    loops = LoopBook(tmp_path, {}, REGISTRY, lambda: config_model()(version=1))
    assert loops.findings() == {str(tmp_path / "odd.yaml"): ()}


def test_a_loop_with_findings_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "odd.yaml").write_text(GOOD.replace("NAME", "odd").replace("[look.pass]", "[look.pass, nobody]"))
    with pytest.raises(InvalidDocument, match="unraisable-stop"):
        book(tmp_path).get("odd")


def test_an_entry_that_cannot_be_read_hides_only_itself(tmp_path: Path) -> None:
    """L44: an editor's lock, a stray folder or a pipe must not stop every loop of the repository."""
    (tmp_path / "good.yaml").write_text(GOOD.replace("NAME", "good"))
    (tmp_path / ".#good.yaml").symlink_to("somebody@somewhere.123")
    (tmp_path / ".hidden.yaml").write_text("not a loop")
    (tmp_path / "folder.yaml").mkdir()
    (tmp_path / "nowhere.yml").symlink_to("absent.yaml")
    (tmp_path / "round.yaml").symlink_to("round.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    loops = book(tmp_path)
    assert loops.get("good").spec.loop_id == "good"
    assert [loop.spec.loop_id for loop in loops.all()] == ["good"]
    found = {Path(file).name: [item.rule for item in items] for file, items in loops.findings().items()}
    unreadable = {name: ["unreadable"] for name in ("folder.yaml", "nowhere.yml", "round.yaml", "pipe.yaml")}
    assert found == {"good.yaml": [], **unreadable}
    assert {Path(file).name for file in loops.broken()} == unreadable.keys()
    with pytest.raises(InvalidDocument, match=r"nowhere\.yml cannot be read: No such file"):
        loops.get("nowhere")
    (tmp_path / "absent.yaml").write_text(GOOD.replace("NAME", "late"))
    (tmp_path / "folder.yaml").rmdir()
    assert {Path(file).name for file in loops.broken()} == {"round.yaml", "pipe.yaml"}


def test_a_folder_that_cannot_be_read_is_a_finding_and_a_missing_one_is_none(tmp_path: Path) -> None:
    assert book(tmp_path / "absent").findings() == {}
    (tmp_path / "loops").write_text("a file where the folder belongs")
    loops = book(tmp_path / "loops", heal=GOOD.replace("NAME", "heal"))
    ((file, (finding,)),) = loops.broken().items()
    assert (file, finding.rule) == (str(tmp_path / "loops"), "unreadable")
    assert [loop.spec.loop_id for loop in loops.all()] == ["heal"]


def test_of_two_files_with_one_loop_the_first_counts_and_the_other_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text("# A copy.\n" + GOOD.replace("NAME", "good").replace("Be good.", "Be a copy."))
    (tmp_path / "a.yml").write_text(GOOD.replace("NAME", "good"))
    (tmp_path / "c.yaml").write_text("version: 1\n")
    loops = book(tmp_path)
    assert loops.get("good").spec.goal == "Be good."
    assert [loop.spec.goal for loop in loops.all()] == ["Be good."]
    findings = loops.findings()
    assert findings[str(tmp_path / "a.yml")] == ()
    (copy,) = findings[str(tmp_path / "b.yaml")]
    assert (copy.rule, copy.line, copy.column) == ("duplicate-loop", 3, 10)
    assert "a.yml" in copy.message
    assert list(loops.broken()) == [str(tmp_path / "c.yaml")], "what a copy would say is known"
    (tmp_path / "a.yml").unlink()
    assert loops.get("good").spec.goal == "Be a copy."
    assert loops.findings()[str(tmp_path / "b.yaml")] == ()
