"""A small repository in five languages, and edits of it as the guard sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from becket.kernel.contract.guard import SYMLINK, Change, ChangedFile, ChangeStatus, Refusal
from becket.parts.guard.reading.examine import examine
from becket.parts.guard.reading.side import TestSide
from becket.parts.guard.section import GuardConfig

TEST_SIDE = (
    "tests/**",
    "conftest.py",
    "**/*_test.go",
    "go/testdata/**",
    "web/test/**",
    "**/*.test.ts",
    "rust/tests/**",
    "java/src/test/**",
)
GATES = (
    "pytest -q",
    "make check",
    "cd web && npm run verify-all",
    "./scripts/gate.sh fast",
    "sh -c 'python scripts/smoke.py'",
    "cd web && ./tools/e2e.sh && cd .. && pytest -c ci/pytest-ci.ini -p ci.report tests",
)
PROTECTED = ("LICENSE", "migrations/**")

FILE, EXECUTABLE = "100644", "100755"


@dataclass(frozen=True)
class Entry:
    content: bytes
    mode: str = FILE


Tree = Mapping[str, Entry]
Edit = Callable[[dict[str, Entry]], None]


def tree(files: Mapping[str, str | bytes | Entry]) -> dict[str, Entry]:
    def entry(value: str | bytes | Entry) -> Entry:
        return value if isinstance(value, Entry) else Entry(value.encode() if isinstance(value, str) else value)

    return {path: entry(value) for path, value in files.items()}


def write(path: str, content: str | bytes, mode: str = FILE) -> Edit:
    def edit(files: dict[str, Entry]) -> None:
        files[path] = Entry(content.encode() if isinstance(content, str) else content, mode)

    return edit


def link(path: str, target: str) -> Edit:
    return write(path, target, SYMLINK)


def replace(path: str, old: str, new: str) -> Edit:
    def edit(files: dict[str, Entry]) -> None:
        entry = files[path]
        text = entry.content.decode()
        assert text.count(old) == 1, f"{path} holds {old!r} {text.count(old)} times"
        files[path] = Entry(text.replace(old, new).encode(), entry.mode)

    return edit


def append(path: str, text: str) -> Edit:
    def edit(files: dict[str, Entry]) -> None:
        files[path] = Entry(files[path].content + text.encode(), files[path].mode)

    return edit


def delete(path: str) -> Edit:
    def edit(files: dict[str, Entry]) -> None:
        del files[path]

    return edit


def move(old: str, new: str) -> Edit:
    def edit(files: dict[str, Entry]) -> None:
        files[new] = files.pop(old)

    return edit


def change_of(before: Tree, after: Tree, renames: Mapping[str, str] | None = None) -> Change:
    """As git would tell it: a file of the same content, or named in `renames`, moved."""
    gone = {path: entry for path, entry in before.items() if path not in after}
    come = {path: entry for path, entry in after.items() if path not in before}
    moved = dict(renames or {})
    for old, entry in gone.items():
        match = next((new for new, other in come.items() if other == entry and new not in moved.values()), None)
        if match is not None:
            moved.setdefault(old, match)
    files = [_file(path, path, before.get(path), after.get(path)) for path in {**before, **after}]
    pairs = [_file(old, new, before[old], after[new]) for old, new in moved.items()]
    taken = {*moved, *moved.values()}
    listed = [file for file in files if file is not None and file.path not in taken] + [pair for pair in pairs if pair]
    return Change(tuple(sorted(listed, key=lambda file: file.path)), len(before), frozenset(before))


def _file(old_path: str, path: str, old: Entry | None, new: Entry | None) -> ChangedFile | None:
    if old == new and old_path == path:
        return None
    status = _status(old_path, path, old, new)
    return ChangedFile(
        path=path,
        old_path=old_path,
        status=status,
        old_mode=old.mode if old else "000000",
        new_mode=new.mode if new else "000000",
        old_size=len(old.content) if old else 0,
        new_size=len(new.content) if new else 0,
        old=partial(_content, old),
        new=partial(_content, new),
        same=bool(old and new and old.content == new.content),
    )


def _content(entry: Entry | None) -> bytes:
    return entry.content if entry else b""


def _status(old_path: str, path: str, old: Entry | None, new: Entry | None) -> ChangeStatus:
    if old is None:
        return ChangeStatus.added
    if new is None:
        return ChangeStatus.deleted
    if old_path != path:
        return ChangeStatus.renamed
    return ChangeStatus.typechange if (old.mode == SYMLINK) != (new.mode == SYMLINK) else ChangeStatus.modified


@dataclass(frozen=True)
class Deed:
    """What an agent does, and the rules that it breaks; none for honest work."""

    name: str
    edits: tuple[Edit, ...]
    rules: frozenset[str] = frozenset()
    renames: Mapping[str, str] = field(default_factory=dict)

    def change(self, base: Tree) -> Change:
        after = dict(base)
        for edit in self.edits:
            edit(after)
        return change_of(base, after, self.renames)


def cheat(name: str, rules: str, *edits: Edit, renames: Mapping[str, str] | None = None) -> Deed:
    """`rules`: those that may name it, divided by blanks; one of them is enough."""
    return Deed(name, edits, frozenset(rules.split()), renames or {})


def honest(name: str, *edits: Edit, renames: Mapping[str, str] | None = None) -> Deed:
    return Deed(name, edits, renames=renames or {})


def judged(change: Change, config: GuardConfig | None = None) -> tuple[Refusal, ...]:
    return examine(change, config or GuardConfig(protected=PROTECTED), TestSide(TEST_SIDE), GATES)


def rules_in(refusals: tuple[Refusal, ...]) -> set[str]:
    return {str(refusal.rule) for refusal in refusals}
