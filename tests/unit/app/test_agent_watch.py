"""Events of agents at work are read once, in order, whatever the file does."""

from __future__ import annotations

import shutil
from pathlib import Path

from becket.app.record import agent_watch
from becket.app.record.agent_watch import EventTail, event_of, events_of
from becket.kernel.contract.agent import AgentEvent, AgentEventKind


def event(text: str) -> bytes:
    return AgentEvent(kind=AgentEventKind.message, text=text).model_dump_json(exclude_defaults=True).encode() + b"\n"


def texts(tail: EventTail) -> list[str]:
    return [each.text for each in tail.read()]


def test_a_line_is_told_when_it_is_whole_and_only_once(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(event("a") + event("b")[:10])
    tail = EventTail(path)
    assert texts(tail) == ["a"]
    assert texts(tail) == []
    with path.open("ab") as file:
        file.write(event("b")[10:] + event("c"))
    assert texts(tail) == ["b", "c"]
    tail.close()


def test_what_was_written_before_its_folder_went_is_still_told(tmp_path: Path) -> None:
    """An ended run's folder is removed at once."""
    folder = tmp_path / "calls"
    folder.mkdir()
    path = folder / "events.jsonl"
    path.write_bytes(b"")
    tail = EventTail(path)
    path.write_bytes(event("last"))
    shutil.rmtree(folder)
    assert texts(tail) == ["last"]
    tail.close()


def test_lines_that_are_no_events_are_left_out(tmp_path: Path) -> None:
    content = b'{"kind": "dream"}\n\n[]\nnonsense\n\xff\xfe\n' + event("good") + b'{"kind": "mess'
    assert [each.text for each in events_of(content)] == ["good"]
    assert event_of(b"{}") is None


def test_a_line_without_an_end_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"x" * (agent_watch.LONGEST_LINE + agent_watch.CHUNK) + b"\n" + event("after"))
    tail = EventTail(path)
    assert texts(tail) == ["after"]
    tail.close()
