"""A candidate's change for people: its lines numbered and coloured, with what the guard says of them. All escaped."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from becket.app.record.report.diff import DiffLine, by_file
from becket.app.record.report.elements import brief, code, counts, fold, text
from becket.app.record.report.model import ChangeFacts, FileFacts, GuardFacts
from becket.app.record.report.plain import short, whole_change
from becket.parts.front.highlight import colored, ready

MOST_FILES = 60
MOST_LINES = 1_200
OPEN_LINES = 200
MOST_COLORED = 400
"""Lines of one file; longer ones are plain."""
COLOR_FOR = 0.15
"""Seconds that all files of a change may take to be coloured."""
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@")


@dataclass(frozen=True, slots=True)
class LineRemark:
    """What the guard says of a line, or of a file where `line` is 0."""

    tone: str
    text: str


Remarks = Mapping[tuple[str, int], Sequence[LineRemark]]


def remarks_of(guards: Sequence[GuardFacts], commit: str) -> Remarks:
    found: dict[tuple[str, int], list[LineRemark]] = defaultdict(list)
    for guard in guards:
        if guard.candidate not in ("", commit):
            continue
        for one in guard.refusals:
            found[one.path, one.line].append(LineRemark("bad", f"refused, {one.rule}: {one.message}"))
        for finding in guard.findings:
            found[finding.path, finding.line].append(LineRemark("unsure", f"{finding.kind}: {finding.message}"))
    return {place: list(dict.fromkeys(remarks))[:5] for place, remarks in found.items()}


def change_html(change: ChangeFacts, guards: Sequence[GuardFacts]) -> Iterator[str]:
    remarks = remarks_of(guards, change.commit)
    yield f"<p>{text(change.kind or 'change')} {code(short(change.commit))} on {code(short(change.parent))}</p>"
    for path in {file.path for file in change.files[:MOST_FILES]}:
        ready(path)
    until, room, left = time.thread_time() + COLOR_FOR, OPEN_LINES, MOST_LINES
    files = list(zip(change.files, by_file(change.diff), strict=False))
    for number, (file, lines) in enumerate(files[:MOST_FILES]):
        room -= len(lines)
        marked = sum(len(said) for (path, _), said in remarks.items() if path == file.path)
        told = f' <span class="soft">{marked} by the guard</span>' if marked else ""
        body = _file(file, lines[: max(left, 0)], remarks, until, f"{short(change.commit)}-{number}")
        left -= len(lines)
        yield fold(f"{code(file.path)} {counts(file.added, file.removed)}{told}", body, is_open=room >= 0)
    shown = sum(len(lines) for _, lines in files[:MOST_FILES])
    if change.left_out or left < 0 or len(change.files) > len(files[:MOST_FILES]):
        cut = change.left_out + max(shown - MOST_LINES, 0)
        what = f"{cut:,} lines and " if cut else ""
        missing = len(change.files) - len(files[:MOST_FILES])
        yield f"<p>{what}{missing:,} files are left out here; {code(short(change.patch))} has all of it.</p>"
    if not change.kept_whole:
        yield f'<p class="note">More than this was changed. All of it: {code(whole_change(change))}</p>'


def _file(file: FileFacts, lines: Sequence[DiffLine], remarks: Remarks, until: float, mark: str) -> str:
    said = "".join(map(_remark, remarks.get((file.path, 0), ())))
    painted = _painted(file.path, lines, until)
    rows = "".join(_rows(file.path, lines, painted, remarks, mark))
    unseen = _unseen(file.path, lines, remarks)
    return (
        f'{said}<pre class="diff numbered" tabindex="0" role="region" aria-label="Diff of {brief(file.path)}">{rows}'
        f"</pre>{unseen}"
    )


def _painted(path: str, lines: Sequence[DiffLine], until: float) -> list[str]:
    """The lines without their sign, as HTML."""
    bare = [line.text[1:] if line.kind in ("add", "remove", "same") else line.text for line in lines]
    plain = [text(line) for line in bare]
    if len(lines) > MOST_COLORED:
        return plain
    for kinds in (("same", "remove"), ("same", "add")):  # the old side, then the new one, each as one text
        places = [at for at, line in enumerate(lines) if line.kind in kinds]
        for place, made in zip(places, colored(path, [bare[at] for at in places], until), strict=False):
            plain[place] = made
    return plain


def _rows(path: str, lines: Sequence[DiffLine], painted: Sequence[str], remarks: Remarks, mark: str) -> Iterator[str]:
    old = new = 0
    signs = {"add": "+", "remove": "-", "same": " "}
    for line, made in zip(lines, painted, strict=True):
        if line.kind == "hunk" and (found := _HUNK.match(line.text)):
            old, new = int(found[1]), int(found[2])
        if line.kind not in signs:
            yield f'<span class="{line.kind}" data-both="" data-new="">{made or " "}</span>'
            continue
        at_old, at_new = (str(old) if line.kind != "add" else ""), (str(new) if line.kind != "remove" else "")
        anchor = f' id="c{mark}-{at_new}" data-path="{text(path)}" data-line="{at_new}"' if at_new else ""
        numbers = f'data-both="{at_old:>5} {at_new:>5}" data-new="{at_new}"'
        yield f'<span class="{line.kind}" {numbers}{anchor}>{signs[line.kind]}{made}</span>'
        if at_new:
            yield from map(_remark, remarks.get((path, new), ()))
        old, new = old + (line.kind != "add"), new + (line.kind != "remove")


def _remark(one: LineRemark) -> str:
    return f'<span class="remark {one.tone}" role="note">guard: {brief(one.text)}</span>'


def _unseen(path: str, lines: Sequence[DiffLine], remarks: Remarks) -> str:
    """What the guard says of lines that the diff does not show."""
    shown: set[int] = set()
    new = 0
    for line in lines:
        if line.kind == "hunk" and (found := _HUNK.match(line.text)):
            new = int(found[2])
        elif line.kind in ("add", "same"):
            shown.add(new)
            new += 1
    others = [
        f"<li>line {line}: {brief(one.text)}</li>"
        for (where, line), said in remarks.items()
        if where == path and line and line not in shown
        for one in said
    ]
    return f"<ul>{''.join(others[:50])}</ul>" if others else ""
