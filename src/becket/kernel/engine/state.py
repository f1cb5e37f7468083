"""Looks at the places where a loop's state lives. What is not there is recorded so; nothing here fails a run."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from becket.kernel.contract.base import Json, digest_of
from becket.kernel.contract.errors import BecketError
from becket.kernel.contract.git import Git
from becket.kernel.contract.loop import Loops
from becket.kernel.contract.run import Run
from becket.kernel.contract.state import fits, full_ref
from becket.kernel.contract.store import Store
from becket.kernel.contract.template import TemplateError, fill

UNREADABLE = "unreadable"
MOST = 16 << 20
"""So much of a file is read; of a longer one its size counts besides."""


@dataclass(frozen=True, slots=True)
class StateReader:
    """One look, for one run."""

    store: Store
    git: Callable[[], Git]
    run_id: str

    async def at(self, refs: Sequence[str], fields: Mapping[str, Json]) -> dict[str, Json]:
        """Ref -> digest. What is no ref is left out: lint told of it, and older specs say what they like."""
        named = (_filled(ref, fields) for ref in refs)
        return {ref: await self._one(ref) for ref in named if ref is not None and fits(ref)}

    async def of_run(self, loops: Loops, run: Run) -> dict[str, Json]:
        """At the end of a run that nobody walks; a spec that is gone or loads no more names nothing."""
        try:
            refs = loops.parse(await self.store.spec_text(run.spec_digest)).state_refs
        except BecketError:
            return {}
        return await self.at(refs, run.subject.fields)

    async def _one(self, ref: str) -> str | None:
        kind, _, rest = ref.partition(":")
        try:
            return await _READERS[kind](self, rest)
        except (BecketError, OSError):
            return UNREADABLE

    async def commit(self, name: str) -> str | None:
        return await self.git().resolve(full_ref(name))

    async def file(self, place: str) -> str | None:
        return await asyncio.to_thread(_digest_of_file, self.git().root / place)

    async def journal(self, _: str) -> str:
        """What other runs have told: its own words are no news to it."""
        return digest_of(await self.store.heads(besides=self.run_id))


_READERS: Mapping[str, Callable[[StateReader, str], Awaitable[str | None]]] = {
    "git": StateReader.commit,
    "file": StateReader.file,
    "journal": StateReader.journal,
}


def _filled(ref: str, fields: Mapping[str, Json]) -> str | None:
    try:
        return fill(ref, lambda name: str(fields[name]))
    except (TemplateError, KeyError):
        return None


def _digest_of_file(path: Path) -> str | None:
    """None where nothing is; what is there and is no file, such as a folder or a link, cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return UNREADABLE
        digest = hashlib.sha256(file.read(MOST)).hexdigest()
    return digest if found.st_size <= MOST else f"{digest}+{found.st_size}"
