"""A person's file in the tree while one program runs there: by its folder's descriptor, which follows no link.

The program may put a link in the place of the folder, or anything in the place of the file: what is written and removed
is always what was opened before it ran.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath

from becket.kernel.contract.removal import opened, remove_entry


class BadPlace(Exception):
    """No file of a person's can be put there; the text says why."""


def refuse_committed(name: str, committed: Collection[str]) -> None:
    """What the commit has there would be replaced, and the step is then judged by something else than the commit."""
    place = PurePosixPath(name)
    above = {str(parent) for parent in place.parents}
    taken = next((path for path in committed if path in above or path == str(place)), None)
    taken = taken or next((path for path in committed if path.startswith(f"{place}/")), None)
    if taken is not None:
        raise BadPlace(
            f"the commit has {taken} in that place; name another file, or remove that one from the repository"
        )


@contextmanager
def provided(source: Path, tree: Path, name: str) -> Iterator[None]:
    """A copy of it for as long as the block lasts, and no longer: what runs next did not ask for it (L12)."""
    with _parent(tree, name) as (folder, base):
        _put(source, folder, base)
        try:
            yield
        finally:
            remove_entry(base, folder)


def put(source: Path, tree: Path, name: str) -> None:
    """The same for a tree that goes with its program."""
    with _parent(tree, name) as (folder, base):
        _put(source, folder, base)


@contextmanager
def _parent(tree: Path, name: str) -> Iterator[tuple[int, bytes]]:
    """The folder of the file, made where it is missing, and the file's own name."""
    *parents, base = PurePosixPath(name).parts
    if PurePosixPath(name).is_absolute() or ".." in parents:
        raise BadPlace("it leads out of the tree")
    with ExitStack() as held:
        here = held.enter_context(opened(os.fspath(tree)))
        for part in parents:
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=here)
                here = held.enter_context(opened(part, here))
            except OSError as error:
                raise BadPlace(f"it leads through what is no folder ({part}: {error.strerror})") from error
        yield here, os.fsencode(base)


def _put(source: Path, folder: int, name: bytes) -> None:
    content = source.read_bytes()
    remove_entry(name, folder)
    file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    with os.fdopen(file, "wb") as stream:
        stream.write(content)
