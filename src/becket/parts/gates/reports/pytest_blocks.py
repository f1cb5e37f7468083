"""The tracebacks in pytest's output: which test each belongs to, what it asserts, and where."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from becket.parts.gates.ports.report import CaseOutcome
from becket.parts.gates.reports.book import Draft
from becket.parts.gates.reports.places import find_place
from becket.parts.gates.reports.tree import Tree

MOST_LINES = 400

_SECTION = re.compile(r"^=+ (.{1,200}?) =+$")
_TITLE = re.compile(r"^_+ (.{1,1000}?) _+$")
_SEPARATOR = re.compile(r"^(?:_ )+_?\s*$")
_CAPTURED = re.compile(r"^-+ Captured .{1,60} -+$")
_OF_ERROR = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) (.+)$")
_PLACE = re.compile(r"^(\S[^:\n]{0,400}\.py):\d+: ")


@dataclass(slots=True)
class Block:
    """One failure with its traceback. `told` is set once a test of the summary was found for it."""

    title: str
    is_error: bool
    lines: list[str] = field(default_factory=list)
    captured: list[str] = field(default_factory=list)
    told: bool = False

    def draft(self, name: str, tree: Tree) -> Draft:
        text = "\n".join(self.lines)
        place = find_place(text, tree)
        asserted = [line[1:].strip() for line in self.lines if line.startswith("E   ")]
        more = "\n".join(self.captured)
        return Draft(
            id=name,
            outcome=CaseOutcome.error if self.is_error else CaseOutcome.failed,
            message="\n".join(line for line in asserted[:6] if line),
            file=place.file if place else None,
            line=place.line if place else None,
            excerpt=f"{text}\n{more}" if more and len(text) < 3_000 else text,
        )

    def standalone(self, tree: Tree) -> tuple[str, Draft]:
        """Id and draft where no summary line names the test: its file is that of its first frame."""
        first = next((match[1] for line in self.lines if (match := _PLACE.match(line))), "")
        title = self.title
        if title.endswith(".py") or not first:
            name = title
        else:
            function, bracket, parameters = title.partition("[")
            name = f"{tree.relative(first)}::{function.replace('.', '::')}{bracket}{parameters}"
        return name, self.draft(name, tree)


def blocks_of(lines: Sequence[str]) -> list[Block]:
    """The blocks of the sections ERRORS and FAILURES."""
    blocks: list[Block] = []
    block: Block | None = None
    section = ""
    in_captured = False
    for line in lines:
        if header := _SECTION.match(line):
            section, block = header[1], None
        elif section not in ("ERRORS", "FAILURES"):
            continue
        elif (title := _TITLE.match(line)) and not _SEPARATOR.match(line):
            error = _OF_ERROR.match(title[1])
            block = Block(error[1] if error else title[1], error is not None)
            blocks.append(block)
            in_captured = False
        elif block is not None:
            in_captured = in_captured or bool(_CAPTURED.match(line))
            into = block.captured if in_captured else block.lines
            if len(into) < MOST_LINES:
                into.append(line)
    return blocks


def describe(blocks: list[Block], names: Sequence[str], tree: Tree) -> dict[str, Draft]:
    """A draft for each named test that has a traceback; tests of one name are matched in their order."""
    waiting: dict[str, deque[str]] = defaultdict(deque)
    for name in names:
        waiting[_title_of(name)].append(name)
    drafts: dict[str, Draft] = {}
    for block in blocks:
        queue = waiting.get(block.title)
        found = queue.popleft() if queue else _named_inside(block, names)
        block.told = found is not None or block.title in waiting
        if found is not None:
            drafts.setdefault(found, block.draft(found, tree))
    return drafts


def _named_inside(block: Block, names: Sequence[str]) -> str | None:
    """A worker that crashed is told under its file; the text says which test it was."""
    first = "\n".join(block.lines[:10]) if block.title.endswith(".py") else ""
    return next((name for name in names if f"'{name}'" in first), None)


def _title_of(node_id: str) -> str:
    """`tests/test_calc.py::TestShelf::test_put` stands above its traceback as `TestShelf.test_put`."""
    plain, bracket, parameters = node_id.partition("[")
    path, inside, rest = plain.partition("::")
    return (rest.replace("::", ".") if inside else path) + bracket + parameters
