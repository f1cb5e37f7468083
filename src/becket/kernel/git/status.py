"""HEAD and cleanliness of a work tree, in one spawn."""

from __future__ import annotations

from becket.kernel.contract.git import TreeState
from becket.kernel.git.program import GitPlace, run, shown

_FIELDS_BEFORE_PATH = {b"1": 8, b"u": 10}


async def read_status(place: GitPlace, *, untracked: bool = True) -> TreeState:
    """Submodules are compared by their commit only: looking inside would run git with their own configuration.

    Without `untracked` git reads nothing but the tracked files and their attributes.
    """
    output = await run(
        place,
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        f"--untracked-files={'all' if untracked else 'no'}",
        "--no-renames",
        "--no-ahead-behind",
        f"--ignore-submodules={'dirty' if untracked else 'all'}",
    )
    return parse_status(output.stdout)


def parse_status(listing: bytes) -> TreeState:
    """Of `status --porcelain=v2 --branch -z --no-renames`."""
    headers: dict[bytes, bytes] = {}
    changed: list[str] = []
    untracked: list[str] = []
    for line in listing.split(b"\0")[:-1]:
        kind, _, rest = line.partition(b" ")
        if kind == b"#":
            name, _, value = rest.partition(b" ")
            headers[name] = value
        elif kind == b"?":
            untracked.append(shown(rest))
        else:
            changed.append(shown(line.split(b" ", _FIELDS_BEFORE_PATH[kind])[-1]))
    head, branch = headers.get(b"branch.oid", b"(initial)"), headers.get(b"branch.head", b"(detached)")
    return TreeState(
        head=None if head == b"(initial)" else head.decode(),
        branch=None if branch == b"(detached)" else shown(branch),
        changed=tuple(changed),
        untracked=tuple(untracked),
    )
