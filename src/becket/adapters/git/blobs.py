"""Contents by their ids: many in one spawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from becket.adapters.git.program import Place, run, shown
from becket.contract.errors import GitFailed

MEMORY = 256_000_000


async def sizes_of(place: Place, blobs: Iterable[str]) -> dict[str, int]:
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


async def contents_of(place: Place, blobs: Sequence[str]) -> dict[str, bytes]:
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
