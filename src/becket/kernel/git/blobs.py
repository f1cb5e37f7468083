"""Contents by their ids: many in one spawn."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence

from becket.kernel.contract.errors import GitFailed
from becket.kernel.git.program import GitPlace, run, shown

MEMORY = 256_000_000


async def sizes_of(place: GitPlace, blobs: Iterable[str]) -> dict[str, int]:
    """Raises GitFailed if one is missing."""
    asked = "".join(f"{blob}\n" for blob in blobs).encode()
    if not asked:
        return {}
    output = await run(place, "cat-file", "--batch-check", stdin=asked)
    sizes = {}
    for line in output.text.splitlines():
        fields = line.split(" ")
        if len(fields) != 3 or not fields[2].isdigit():
            raise GitFailed(f"an object cannot be read: {line}; run `git fsck`")
        sizes[fields[0]] = int(fields[2])
    return sizes


async def contents_of(place: GitPlace, blobs: Sequence[str]) -> dict[str, bytes]:
    if not blobs:
        return {}
    output = await run(place, "cat-file", "--batch", "--buffer", stdin="".join(f"{blob}\n" for blob in blobs).encode())
    said = output.stdout
    contents: dict[str, bytes] = {}
    position = 0
    while position < len(said):
        end = said.find(b"\n", position)
        fields = said[position:end].split(b" ")
        if len(fields) != 3 or not fields[2].isdigit():
            raise GitFailed(f"an object cannot be read: {shown(said[position:end])}; run `git fsck`")
        begin, size = end + 1, int(fields[2])
        contents[fields[0].decode()] = said[begin : begin + size]
        position = begin + size + 1
    return contents


async def files_of(
    place: GitPlace, listed: Mapping[str, str], paths: Collection[str], largest: int
) -> dict[str, bytes]:
    """Of the files of a commit those that are asked for and are not too large."""
    entries = {path: listed[path] for path in paths if path in listed}
    blobs = {path: entry[7:] for path, entry in entries.items() if entry.startswith("100")}
    sizes = await sizes_of(place, dict.fromkeys(blobs.values()))
    contents = await contents_of(place, affordable(sizes, largest))
    return {path: contents[blob] for path, blob in blobs.items() if blob in contents}


async def files_at(place: GitPlace, commit: str, paths: Collection[str], largest: int) -> dict[str, bytes]:
    return await files_of(place, by_path(await listing(place, commit)), paths, largest)


async def listing(place: GitPlace, commit: str) -> bytes:
    return (await run(place, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)).stdout


def by_path(listing: bytes) -> dict[str, str]:
    """Mode and id of every path, from `git ls-tree -r -z`."""
    entries = (entry.partition("\t") for entry in os.fsdecode(listing).split("\0")[:-1])
    return {name: f"{meta[:6]} {meta.rpartition(' ')[2]}" for meta, _, name in entries}


def affordable(sizes: Mapping[str, int], largest: int) -> list[str]:
    """The smaller ones first, none beyond `largest`, and all together not beyond the memory."""
    left = MEMORY
    wanted = []
    for blob in sorted(sizes, key=lambda blob: (sizes[blob], blob)):
        if sizes[blob] > largest or sizes[blob] > left:
            break
        left -= sizes[blob]
        wanted.append(blob)
    return wanted
