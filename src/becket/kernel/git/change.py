"""A change between two commits, read by the git program in four spawns, whatever its size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from becket.kernel.contract.errors import GitFailed
from becket.kernel.contract.guard import READ_LIMIT, SUBMODULE, Change, ChangedFile, ChangeStatus
from becket.kernel.git.blobs import affordable, contents_of, sizes_of
from becket.kernel.git.program import GitPlace, run, shown

_RENAMES_LOOKED_FOR = 1000  # git compares each pair; beyond this only exact renames are seen
_STATUS = {
    "A": ChangeStatus.added,
    "M": ChangeStatus.modified,
    "D": ChangeStatus.deleted,
    "R": ChangeStatus.renamed,
    "T": ChangeStatus.typechange,
}


@dataclass(frozen=True, slots=True)
class _Entry:
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    status: ChangeStatus
    old_path: str
    path: str

    @property
    def blobs(self) -> tuple[str, ...]:
        """Ids of the contents; a submodule has none, and a missing side is all zeros."""
        sides = ((self.old_mode, self.old_id), (self.new_mode, self.new_id))
        return tuple(blob for mode, blob in sides if mode != SUBMODULE and blob.strip("0"))


async def read_change(place: GitPlace, base: str, candidate: str) -> Change:
    """Everything that differs between two commits, with the contents at hand. Called once per candidate."""
    entries = await _entries(place, base, candidate)
    listing = await run(place, "ls-tree", "-r", "-z", "--name-only", "--full-tree", "--end-of-options", base)
    paths = frozenset(shown(path) for path in listing.stdout.split(b"\0")[:-1])
    sizes = await sizes_of(place, dict.fromkeys(blob for entry in entries for blob in entry.blobs))
    contents = await contents_of(place, _wanted(entries, sizes))
    return Change(tuple(_changed(entry, sizes, contents) for entry in entries), len(paths), paths)


async def _entries(place: GitPlace, base: str, candidate: str) -> list[_Entry]:
    output = await run(
        place,
        "diff-tree",
        "-r",
        "-z",
        "--raw",
        "--no-abbrev",
        "--full-index",
        "--find-renames=50%",
        f"-l{_RENAMES_LOOKED_FOR}",
        "--no-ext-diff",
        "--no-textconv",
        "--ignore-submodules=none",
        "--end-of-options",
        base,
        candidate,
        "--",
    )
    return list(parse_raw(output.stdout))


def parse_raw(listing: bytes) -> Iterator[_Entry]:
    """Of `diff-tree -z --raw`."""
    fields = iter(listing.split(b"\0")[:-1])
    for header in fields:
        parts = header.decode("ascii", "replace").lstrip(":").split(" ")
        status = _STATUS.get(parts[4][:1]) if len(parts) == 5 else None
        if status is None:
            raise GitFailed(f"git diff-tree said something unknown: {shown(header)!r}; is it a newer git?")
        old_path = shown(next(fields))
        path = shown(next(fields)) if status is ChangeStatus.renamed else old_path
        old_mode, new_mode, old_id, new_id = parts[:4]
        yield _Entry(old_mode, new_mode, old_id, new_id, status, old_path, path)


def _wanted(entries: Sequence[_Entry], sizes: Mapping[str, int]) -> list[str]:
    """Contents worth reading: not too large, on both sides different, and all together not beyond the memory."""
    blobs = {
        blob
        for entry in entries
        if entry.old_id != entry.new_id or entry.status is ChangeStatus.renamed
        for blob in entry.blobs
    }
    return affordable({blob: sizes[blob] for blob in blobs}, READ_LIMIT)


def _content(contents: Mapping[str, bytes], blob: str) -> bytes:
    return contents.get(blob, b"")


def _changed(entry: _Entry, sizes: Mapping[str, int], contents: Mapping[str, bytes]) -> ChangedFile:
    unread = any(blob not in contents and sizes[blob] <= READ_LIMIT for blob in entry.blobs)
    same = entry.old_id == entry.new_id
    return ChangedFile(
        path=entry.path,
        old_path=entry.old_path,
        status=entry.status,
        old_mode=entry.old_mode,
        new_mode=entry.new_mode,
        old_size=sizes.get(entry.old_id, 0),
        new_size=sizes.get(entry.new_id, 0),
        old=partial(_content, contents, entry.old_id),
        new=partial(_content, contents, entry.new_id),
        same=same,
        unread=unread and not same,
        old_id=entry.old_id,
        new_id=entry.new_id,
    )
